"""Learning rates over time. A scheduler's `step()` is called once an epoch, after the optimiser's.

Example:

    scheduler = lr_scheduler.CosineAnnealingLR(optimizer, T_max=20)
    for epoch in range(20):
        train(); scheduler.step()
"""

# SPDX-License-Identifier: Apache-2.0

from math import inf  # noqa: F401  a name of PyTorch's module

from .base import EPOCH_DEPRECATION_WARNING, LRScheduler, _LRScheduler
from .cosine import CosineAnnealingLR, CosineAnnealingWarmRestarts
from .cyclic import CyclicLR, OneCycleLR
from .functions import (
    ConstantLR,
    ExponentialLR,
    LambdaLR,
    LinearLR,
    MultiplicativeLR,
    MultiStepLR,
    PolynomialLR,
    StepLR,
)
from .plateau import ReduceLROnPlateau
from .sequences import ChainedScheduler, SequentialLR

__all__ = [
    "ChainedScheduler",
    "ConstantLR",
    "CosineAnnealingLR",
    "CosineAnnealingWarmRestarts",
    "CyclicLR",
    "ExponentialLR",
    "LRScheduler",
    "LambdaLR",
    "LinearLR",
    "MultiStepLR",
    "MultiplicativeLR",
    "OneCycleLR",
    "PolynomialLR",
    "ReduceLROnPlateau",
    "SequentialLR",
    "StepLR",
    "_LRScheduler",
]
