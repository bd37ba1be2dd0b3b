"""Calling a module with other parameters: the older place of treadle.func.functional_call."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import contextlib
import warnings
from typing import Any, Dict, Iterator, Optional

from treadle import func
from treadle._C import Tensor
from treadle.func._modules import replaced_state


def functional_call(
    module: Any,
    parameters_and_buffers: Dict[str, Tensor],
    args: Any = None,
    kwargs: Optional[Dict[str, Any]] = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """treadle.func.functional_call, with one dictionary of values."""
    warnings.warn(
        "nn.utils.stateless.functional_call: use func.functional_call instead",
        FutureWarning,
        stacklevel=2,
    )
    return func.functional_call(
        module, parameters_and_buffers, args, kwargs, tie_weights=tie_weights, strict=strict
    )


@contextlib.contextmanager
def _reparametrize_module(
    module: Any,
    parameters_and_buffers: Dict[str, Tensor],
    tie_weights: bool = False,
    strict: bool = False,
    stack_weights: bool = False,
) -> Iterator[None]:
    """The module has these parameters and buffers inside the block."""
    with replaced_state(module, parameters_and_buffers, tie_weights, strict):
        yield


__all__ = ["functional_call"]
