"""Learning rates over time. A scheduler's `step()` is called once an epoch, after the optimiser's.

scheduler = lr_scheduler.CosineAnnealingLR(optimizer, T_max=20)
for epoch in range(20):
    train(); scheduler.step()
"""

from .base import LRScheduler
from .functions import (
    ConstantLR,
    CosineAnnealingLR,
    ExponentialLR,
    LambdaLR,
    LinearLR,
    MultiplicativeLR,
    MultiStepLR,
    StepLR,
)
from .plateau import ReduceLROnPlateau

_LRScheduler = LRScheduler

__all__ = [
    "ConstantLR",
    "CosineAnnealingLR",
    "ExponentialLR",
    "LRScheduler",
    "LambdaLR",
    "LinearLR",
    "MultiStepLR",
    "MultiplicativeLR",
    "ReduceLROnPlateau",
    "StepLR",
]
