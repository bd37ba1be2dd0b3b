"""Names beside `vmap`: trees of arguments, and those of tensors with a hidden dimension, which are
names only, as vmap computes each sample by itself."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import functools
from typing import Any, Callable

from treadle import _names
from treadle._C import Tensor as Tensor
from treadle.func import vmap as vmap
from treadle.utils._pytree import _broadcast_to_and_flatten as _broadcast_to_and_flatten
from treadle.utils._pytree import tree_flatten as tree_flatten
from treadle.utils._pytree import tree_unflatten as tree_unflatten

__getattr__ = _names.attributes_of(__name__)


def _get_name(func: Callable[..., Any]) -> str:
    """A function's name, for messages."""
    if isinstance(func, functools.partial):
        return f"functools.partial({_get_name(func.func)}, ...)"
    return getattr(func, "__name__", repr(func))
