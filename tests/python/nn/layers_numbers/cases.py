"""All cases, and the classes that have none, with the reason."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from .cases_losses import LOSSES
from .cases_sequence import SEQUENCES
from .cases_simple import SIMPLE
from .cases_weighted import WEIGHTED

CASES = [*SIMPLE, *WEIGHTED, *SEQUENCES, *LOSSES]

WITHOUT = {
    "Container": "an older class that holds modules",
    "DataParallel": "runs a module, one of which is trained elsewhere here, on several devices",
    "FractionalMaxPool2d": "its windows are random; test_nn_fractional_pooling.py has its cases",
    "FractionalMaxPool3d": "its windows are random; test_nn_fractional_pooling.py has its cases",
    "LinearCrossEntropyLoss": "a Linear and a loss; test_more_names.py has its cases",
    "Module": "the base of all",
    "NLLLoss2d": "NLLLoss by its older name",
    "NonDynamicallyQuantizableLinear": "a Linear under another name, in MultiheadAttention",
    "RNNBase": "the base of the recurrent layers",
    "RNNCellBase": "the base of the recurrent cells",
    "SyncBatchNorm": "PyTorch's needs accelerators; test_sync_batch_norm.py has its cases",
}

# Their random numbers are not PyTorch's: test_layers_numbers.py takes the mask out of a result and
# computes the others from it.
RANDOM = {
    "AlphaDropout",
    "Dropout",
    "Dropout1d",
    "Dropout2d",
    "Dropout3d",
    "FeatureAlphaDropout",
}
