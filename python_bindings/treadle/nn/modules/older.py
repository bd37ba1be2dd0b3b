"""Layers by older names, and what goes with making layers."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import warnings
from typing import Any, Dict, Optional

from treadle.nn.modules.loss import NLLLoss
from treadle.nn.modules.module import Module


class NLLLoss2d(NLLLoss):
    """The older name of NLLLoss, with a FutureWarning."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        message = "NLLLoss2d is the older name of NLLLoss"
        warnings.warn(message, FutureWarning, stacklevel=2)
        super().__init__(*args, **kwargs)


class Container(Module):
    """Modules by name, with a FutureWarning: any module does this."""

    def __init__(self, **kwargs: Optional[Module]) -> None:
        super().__init__()
        message = "Container is an older class: a Module can have other modules by itself"
        warnings.warn(message, FutureWarning, stacklevel=2)
        for name, module in kwargs.items():
            self.add_module(name, module)


def factory_kwargs(kwargs: Optional[Dict[str, Any]]) -> Dict[str, Any]:
    """The arguments of a layer that make tensors: device, dtype and memory_format, and
    those in an argument `factory_kwargs`. TypeError for others, and for one that is there twice."""
    if kwargs is None:
        return {}
    simple = {"device", "dtype", "memory_format"}
    unknown = sorted(set(kwargs) - simple - {"factory_kwargs"})
    if unknown:
        raise TypeError(f"factory_kwargs: expected device, dtype and memory_format, got {unknown}")
    found = dict(kwargs.get("factory_kwargs", {}))
    for name in sorted(simple & set(kwargs)):
        if name in found:
            raise TypeError(f"factory_kwargs: expected {name} once, got it twice")
        found[name] = kwargs[name]
    return found
