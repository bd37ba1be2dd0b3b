"""Averages of a network's weights over its training, and the learning rate that goes with them.

    average = AveragedModel(net, multi_avg_fn=get_ema_multi_avg_fn(0.999))
    for epoch in range(epochs):
        train(net); average.update_parameters(net)
    update_bn(loader, average)   # the averaged weights see other activations than the last ones

Polyak & Juditsky (1992); Izmailov et al. (2018).
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import math
from copy import deepcopy
from itertools import chain
from typing import Any, Callable, Iterable, Optional, Sequence, Union

from treadle import _C
from treadle._C import Tensor
from treadle.autograd.grad_mode import no_grad
from treadle.nn import Module
from treadle.nn.modules.batchnorm import _BatchNorm

from .lr_scheduler.base import LRScheduler, per_group
from .optimizer import Optimizer

__all__ = [
    "AveragedModel",
    "SWALR",
    "get_ema_avg_fn",
    "get_ema_multi_avg_fn",
    "get_swa_avg_fn",
    "get_swa_multi_avg_fn",
    "update_bn",
]

Average = Callable[[Tensor, Tensor, Union[Tensor, int]], Tensor]
MultiAverage = Callable[[Sequence[Tensor], Sequence[Tensor], Union[Tensor, int]], None]


def _check_decay(decay: float) -> None:
    if not 0.0 <= decay <= 1.0:
        raise ValueError(
            f"Invalid decay value {decay} provided. Please provide a value in [0,1] range."
        )


def get_ema_avg_fn(decay: float = 0.999) -> Average:
    """The exponential moving average of one tensor: decay * average + (1 - decay) * current."""
    _check_decay(decay)

    @no_grad()
    def ema_update(ema_param: Tensor, current_param: Tensor, num_averaged: Any) -> Tensor:
        return decay * ema_param + (1 - decay) * current_param

    return ema_update


def get_swa_avg_fn() -> Average:
    """The mean of all values so far of one tensor."""

    @no_grad()
    def swa_update(averaged_param: Tensor, current_param: Tensor, num_averaged: Any) -> Tensor:
        return averaged_param + (current_param - averaged_param) / (num_averaged + 1)

    return swa_update


def get_ema_multi_avg_fn(decay: float = 0.999) -> MultiAverage:
    """As `get_ema_avg_fn`, for lists of tensors that change in place."""
    return _in_place(get_ema_avg_fn(decay))


def get_swa_multi_avg_fn() -> MultiAverage:
    """As `get_swa_avg_fn`, for lists of tensors that change in place."""
    return _in_place(get_swa_avg_fn())


def _in_place(average: Average) -> MultiAverage:
    @no_grad()
    def update(
        averaged_param_list: Sequence[Tensor],
        current_param_list: Sequence[Tensor],
        num_averaged: Union[Tensor, int],
    ) -> None:
        for averaged, current in zip(averaged_param_list, current_param_list):
            averaged.copy_(average(averaged, current, num_averaged))

    return update


class AveragedModel(Module):
    """A copy of `model` whose parameters (and with `use_buffers` its buffers) are averages of those
    that `update_parameters` was given. `avg_fn` says how one tensor is averaged, `multi_avg_fn` how
    lists of them; the default is the mean."""

    n_averaged: Tensor

    def __init__(
        self,
        model: Module,
        device: Optional[Any] = None,
        avg_fn: Optional[Average] = None,
        multi_avg_fn: Optional[MultiAverage] = None,
        use_buffers: bool = False,
    ) -> None:
        super().__init__()
        assert avg_fn is None or multi_avg_fn is None, (
            "Only one of avg_fn and multi_avg_fn should be provided"
        )
        self.module = deepcopy(model)
        if device is not None:
            self.module = self.module.to(device)
        self.register_buffer("n_averaged", _C.tensor(0, dtype=_C.long, device=device))
        self.avg_fn = avg_fn
        self.multi_avg_fn = multi_avg_fn
        self.use_buffers = use_buffers

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The result of the averaged network."""
        return self.module(*args, **kwargs)

    def update_parameters(self, model: Module) -> None:
        """Take the parameters of `model` into the average."""
        averaged = [t.detach() for t in self._averaged_of(self.module)]
        current = [
            new.detach().to(old.device) for old, new in zip(averaged, self._averaged_of(model))
        ]
        if self.n_averaged == 0:
            for old, new in zip(averaged, current):
                old.copy_(new)
        elif self.avg_fn is not None:
            _in_place(self.avg_fn)(averaged, current, self.n_averaged)
        else:
            update = self.multi_avg_fn or get_swa_multi_avg_fn()
            for kind in dict.fromkeys((t.device, t.dtype) for t in averaged):
                places = [i for i, t in enumerate(averaged) if (t.device, t.dtype) == kind]
                update(
                    [averaged[i] for i in places],
                    [current[i] for i in places],
                    self.n_averaged.to(kind[0]),
                )
        if not self.use_buffers:
            for old, new in zip(self.module.buffers(), model.buffers()):
                old.detach().copy_(new.detach().to(old.device))
        self.n_averaged += 1

    def _averaged_of(self, model: Module) -> Iterable[Tensor]:
        return chain(model.parameters(), model.buffers() if self.use_buffers else ())


@no_grad()
def update_bn(loader: Iterable[Any], model: Module, device: Optional[Any] = None) -> None:
    """Compute the running statistics of `model`'s batch normalisations anew, from the inputs in
    `loader`: each batch is one, or a list or tuple that begins with it."""
    momenta = {
        module: module.momentum for module in model.modules() if isinstance(module, _BatchNorm)
    }
    if not momenta:
        return
    was_training = model.training
    model.train()
    for module in momenta:
        module.reset_running_stats()
        module.momentum = None  # the plain mean over all batches
    for batch in loader:
        inputs = batch[0] if isinstance(batch, (list, tuple)) else batch
        model(inputs if device is None else inputs.to(device))
    for module, momentum in momenta.items():
        module.momentum = momentum
    model.train(was_training)


class SWALR(LRScheduler):
    """From the rates as they are to `swa_lr` in `anneal_epochs`, along a cosine ("cos") or a line
    ("linear"), where they stay."""

    def __init__(
        self,
        optimizer: Optimizer,
        swa_lr: Union[float, Sequence[float]],
        anneal_epochs: int = 10,
        anneal_strategy: str = "cos",
        last_epoch: int = -1,
    ) -> None:
        rates = per_group("swa_lr", optimizer, swa_lr)
        for group, rate in zip(optimizer.param_groups, rates):
            group["swa_lr"] = rate
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(
                f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}"
            )
        self._anneal_strategy = anneal_strategy
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise ValueError(f"anneal_epochs must be equal or greater than 0, got {anneal_epochs}")
        self.anneal_epochs = anneal_epochs
        super().__init__(optimizer, last_epoch)

    def _part(self, step: int) -> float:
        """How much of the way to `swa_lr` is done after so many steps."""
        t = max(0.0, min(1.0, step / max(1, self.anneal_epochs)))
        return t if self._anneal_strategy == "linear" else (1 - math.cos(math.pi * t)) / 2

    def get_lr(self) -> list[float]:
        self._within_step()
        step = self._step_count - 1
        if self.anneal_epochs == 0:
            step = max(1, step)
        before, now = self._part(step - 1), self._part(step)
        rates = []
        for group in self.optimizer.param_groups:
            target = group["swa_lr"]
            # The rate that the part before was taken from, of which this one is taken.
            start = target if before == 1 else (group["lr"] - before * target) / (1 - before)
            rates.append(target * now + start * (1 - now))
        return rates
