"""Feeding data: datasets, the orders to go through them, batches, and worker processes that prepare
them.

    loader = DataLoader(TensorDataset(images, labels), batch_size=64, shuffle=True, num_workers=2)
    for images, labels in loader:
        ...
"""

# SPDX-License-Identifier: Apache-2.0

from treadle import _names

from .collate import default_collate, default_convert
from .dataloader import DataLoader
from .dataset import (
    ChainDataset,
    ConcatDataset,
    Dataset,
    IterableDataset,
    StackDataset,
    Subset,
    TensorDataset,
    random_split,
)
from .distributed import DistributedSampler
from .sampler import (
    BatchSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)
from .worker_info import get_worker_info

# Pipes are seldom used.
_PIPES = """DFIterDataPipe IterDataPipe MapDataPipe functional_datapipe
guaranteed_datapipes_determinism DataChunk""".split()
_OF_PIPES = """argument_validation non_deterministic runtime_validation
runtime_validation_disabled""".split()
__getattr__ = _names.attributes_of(
    __name__,
    {
        **dict.fromkeys(_PIPES, "datapipes.datapipe"),
        **dict.fromkeys(_OF_PIPES, "datapipes._decorator"),
        "_DatasetKind": "dataloader",
    },
)

__all__ = [
    "BatchSampler",
    "ChainDataset",
    "ConcatDataset",
    "DataLoader",
    "Dataset",
    "DistributedSampler",
    "IterableDataset",
    "RandomSampler",
    "Sampler",
    "SequentialSampler",
    "StackDataset",
    "Subset",
    "SubsetRandomSampler",
    "TensorDataset",
    "WeightedRandomSampler",
    "default_collate",
    "default_convert",
    "get_worker_info",
    "random_split",
]
