"""Optimisers: they change parameters by their gradients. `lr_scheduler` changes learning rates over
time.

optimizer = treadle.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
optimizer.zero_grad(); loss.backward(); optimizer.step()
"""

from . import lr_scheduler
from .adam import Adam
from .adamw import AdamW
from .optimizer import Optimizer
from .sgd import SGD

__all__ = ["Adam", "AdamW", "Optimizer", "SGD", "lr_scheduler"]
