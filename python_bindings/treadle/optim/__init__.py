"""Optimisers: they change parameters by their gradients. `lr_scheduler` changes learning rates over
time.

    optimizer = treadle.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    optimizer.zero_grad(); loss.backward(); optimizer.step()
"""

# SPDX-License-Identifier: Apache-2.0

from . import functional, lr_scheduler, swa_utils
from ._adafactor import Adafactor
from ._muon import Muon
from ._stateless import swap_in_optimizer_params_and_state
from .adadelta import Adadelta
from .adagrad import Adagrad
from .adam import Adam
from .adamax import Adamax
from .adamw import AdamW
from .asgd import ASGD
from .lbfgs import LBFGS
from .nadam import NAdam
from .optimizer import Optimizer
from .radam import RAdam
from .rmsprop import RMSprop
from .rprop import Rprop
from .sgd import SGD
from .sparse_adam import SparseAdam

__all__ = [
    "ASGD",
    "Adadelta",
    "Adafactor",
    "Adagrad",
    "Adam",
    "AdamW",
    "Adamax",
    "LBFGS",
    "Muon",
    "NAdam",
    "Optimizer",
    "RAdam",
    "RMSprop",
    "Rprop",
    "SGD",
    "SparseAdam",
    "functional",
    "lr_scheduler",
    "swap_in_optimizer_params_and_state",
    "swa_utils",
]
