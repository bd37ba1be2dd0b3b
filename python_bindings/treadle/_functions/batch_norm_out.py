"""The forms of batch normalisation that write to tensors which are given. The statistics are
updated last, when nothing can be refused any more.

    treadle.native_batch_norm(x, None, None, mean, var, True, 0.1, 1e-5, out=(y, batch_mean, rstd))
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Optional, Sequence, Tuple

from treadle import _C
from treadle._C import Tensor
from treadle._functions.overridable import make_overridable as _make_overridable

_Results = Sequence[Tensor]


def _written(
    name: str, out: _Results, arguments: Tuple[Any, ...], means: Tuple[Optional[Tensor], ...]
) -> _Results:
    """`out`, with what the operator gives; `means` are the running statistics."""
    if len(out) != 3:
        raise TypeError(f"{name}: expected out of three tensors, got {len(out)}")
    made = tuple(None if m is None else m.clone() for m in means)
    results = getattr(_C, name)(*arguments[:3], *made, *arguments[3:])
    for target, result in zip(out, results):
        _C.alias_copy(result, out=target)
    for running, new in zip(means, made):
        if running is not None and new is not None:
            running.copy_(new)
    return out


def native_batch_norm(
    input: Tensor,
    weight: Optional[Tensor],
    bias: Optional[Tensor],
    running_mean: Optional[Tensor],
    running_var: Optional[Tensor],
    training: bool,
    momentum: float,
    eps: float,
    *,
    out: Optional[_Results] = None,
) -> _Results:
    """The result of `batch_norm`, and in training the mean and the inverse deviation of each
    channel, else two empty tensors. `out`: three tensors that are written. TypeError for another
    number.
    """
    settings = (input, weight, bias, training, momentum, eps)
    if out is not None:
        return _written("native_batch_norm", out, settings, (running_mean, running_var))
    return _C.native_batch_norm(
        input, weight, bias, running_mean, running_var, training, momentum, eps
    )


def _native_batch_norm_legit(*args: Any, out: Optional[_Results] = None, **kwargs: Any) -> Any:
    """As native_batch_norm(); without running statistics where they are left out."""
    named = "input weight bias running_mean running_var training momentum eps".split()
    given = dict(zip(named, args), **kwargs)
    if out is None or len(args) > len(named) or set(given) != set(named):
        settings = {} if out is None else {"out": out}
        return _C._native_batch_norm_legit(*args, **kwargs, **settings)
    means = (given.pop("running_mean"), given.pop("running_var"))
    return _written("_native_batch_norm_legit", out, tuple(given.values()), means)


_make_overridable(__name__, ["native_batch_norm"])
