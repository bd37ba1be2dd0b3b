"""Transforms of functions: gradients, Jacobians and batches of whatever a function computes, which
may be applied to each other.

    per_sample = vmap(grad(loss), in_dims=(None, 0, 0))(params, inputs, targets)
    H = hessian(f)(x)
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Callable

from treadle import _names
from treadle.func._gradients import grad, grad_and_value, jvp, linearize, vjp
from treadle.func._jacobians import hessian, jacfwd, jacrev
from treadle.func._modules import (
    functional_call,
    replace_all_batch_norm_modules_,
    stack_module_state,
)
from treadle.func._vmap import vmap

__getattr__ = _names.attributes_of(__name__, {"rearrange": "_rearrange"})


def functionalize(func: Callable, *, remove: str = "mutations") -> Callable:
    """`func` itself: its results do not depend on whether it changes its own values in place."""
    if remove not in ("mutations", "mutations_and_views"):
        raise RuntimeError(
            "functionalize: expected remove to be 'mutations' or 'mutations_and_views', got "
            f"{remove!r}"
        )
    return func


def debug_unwrap(tensor: Any, *, recurse: bool = True) -> Any:
    """The tensor itself: transforms hand plain tensors to their functions."""
    return tensor


__all__ = [
    "debug_unwrap",
    "functional_call",
    "functionalize",
    "grad",
    "grad_and_value",
    "hessian",
    "jacfwd",
    "jacrev",
    "jvp",
    "linearize",
    "rearrange",
    "replace_all_batch_norm_modules_",
    "stack_module_state",
    "vjp",
    "vmap",
]
