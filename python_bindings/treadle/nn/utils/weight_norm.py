"""Weight normalisation by a hook before forward: weight = g * v / |v| (Salimans & Kingma, 2016).

Example:

    layer = weight_norm(nn.Linear(20, 40))    # parameters weight_g and weight_v
    remove_weight_norm(layer)                 # one parameter again
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Optional, TypeVar

from treadle import _C
from treadle._C import Tensor
from treadle.autograd.grad_mode import no_grad

from .._operators import ops
from ..modules.module import Module
from ..parameter import Parameter
from . import _weight_hooks

__all__ = ["WeightNorm", "remove_weight_norm", "weight_norm"]

M = TypeVar("M", bound=Module)


class WeightNorm:
    """The hook that makes the weight anew before each forward."""

    def __init__(self, name: str, dim: Optional[int]) -> None:
        self.name = name
        self.dim = -1 if dim is None else dim

    def compute_weight(self, module: Module) -> Tensor:
        """The weight from its length and its direction."""
        g, v = getattr(module, self.name + "_g"), getattr(module, self.name + "_v")
        return ops._weight_norm(v, g, self.dim)

    @staticmethod
    def apply(module: Module, name: str, dim: Optional[int]) -> "WeightNorm":
        """Replace the parameter `name` of `module`."""
        _weight_hooks.check_first(module, WeightNorm, name, "weight_norm")
        hook = WeightNorm(name, dim)
        weight = getattr(module, name)
        del module._parameters[name]
        with no_grad():
            length = _C.norm_except_dim(weight, 2, hook.dim)
        module.register_parameter(name + "_g", Parameter(length))
        module.register_parameter(name + "_v", Parameter(weight.detach()))
        setattr(module, name, hook.compute_weight(module))
        module.register_forward_pre_hook(hook)
        return hook

    def remove(self, module: Module) -> None:
        """Put one parameter in the place of the two."""
        weight = self.compute_weight(module).detach()
        delattr(module, self.name)
        del module._parameters[self.name + "_g"]
        del module._parameters[self.name + "_v"]
        module.register_parameter(self.name, Parameter(weight))

    def __call__(self, module: Module, inputs: Any) -> None:
        setattr(module, self.name, self.compute_weight(module))


def weight_norm(module: M, name: str = "weight", dim: Optional[int] = 0) -> M:
    """Give the parameter `name` a length for each index of `dim` (one in all for None) and a
    direction."""
    WeightNorm.apply(module, name, dim)
    return module


def remove_weight_norm(module: M, name: str = "weight") -> M:
    """Undo :func:`weight_norm`."""
    _weight_hooks.remove(module, WeightNorm, name, "weight_norm")
    return module
