"""Spectral normalisation by a hook before forward: the weight divided by its largest singular
value, which power iteration estimates (Miyato et al., 2018)."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Optional, TypeVar

from treadle._C import Tensor
from treadle.autograd.grad_mode import no_grad

from .. import functional as F
from ..modules.module import Module
from ..parameter import Parameter
from ..uninitialized import is_lazy
from . import _weight_hooks

__all__ = ["SpectralNorm", "remove_spectral_norm", "spectral_norm"]

M = TypeVar("M", bound=Module)


def weight_matrix(weight: Tensor, dim: int) -> Tensor:
    """The weight as a matrix whose rows are indexed by `dim`."""
    if dim != 0:
        weight = weight.permute((dim, *(d for d in range(weight.dim()) if d != dim)))
    return weight.reshape((weight.shape[0], -1))


def power_iteration(matrix: Tensor, u: Tensor, v: Tensor, steps: int, eps: float) -> None:
    """Bring u and v, in place, nearer to the first singular vectors."""
    with no_grad():
        for _ in range(steps):
            v.copy_(F.normalize(matrix.t().mv(u), dim=0, eps=eps))
            u.copy_(F.normalize(matrix.mv(v), dim=0, eps=eps))


def random_directions(matrix: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    """u and v to start from."""
    u, v = (
        F.normalize(matrix.new_empty((size,)).normal_(0, 1), dim=0, eps=eps)
        for size in matrix.shape
    )
    return u, v


def check_iterations(n_power_iterations: int) -> None:
    if n_power_iterations <= 0:
        raise ValueError(
            "Expected n_power_iterations to be positive, but got "
            f"n_power_iterations={n_power_iterations}"
        )


def output_dim(module: Module, dim: Optional[int]) -> int:
    """The dimension given, or the one of the weight that the outputs of the layer go along."""
    if dim is not None:
        return dim
    return int(type(module).__name__.startswith("ConvTranspose"))


class SpectralNorm:
    """The hook that divides the weight before each forward; u and v are buffers of the module."""

    _version = 1

    def __init__(
        self, name: str = "weight", n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12
    ) -> None:
        check_iterations(n_power_iterations)
        self.name = name
        self.dim = dim
        self.n_power_iterations = n_power_iterations
        self.eps = eps

    def compute_weight(self, module: Module, do_power_iteration: bool) -> Tensor:
        """The weight divided by the estimate of its largest singular value."""
        weight = getattr(module, self.name + "_orig")
        u, v = getattr(module, self.name + "_u"), getattr(module, self.name + "_v")
        matrix = weight_matrix(weight, self.dim)
        if do_power_iteration:
            power_iteration(matrix.detach(), u, v, self.n_power_iterations, self.eps)
            u, v = u.clone(), v.clone()  # the next step overwrites them before backward has run
        return weight / u.dot(matrix.mv(v))

    @staticmethod
    def apply(
        module: Module, name: str, n_power_iterations: int, dim: int, eps: float
    ) -> "SpectralNorm":
        """Replace the parameter `name` of `module`."""
        _weight_hooks.check_first(module, SpectralNorm, name, "spectral_norm")
        hook = SpectralNorm(name, n_power_iterations, dim, eps)
        weight = module._parameters[name]
        if weight is None:
            raise ValueError("`SpectralNorm` cannot be applied as parameter `" + name + "` is None")
        if is_lazy(weight):
            raise ValueError(
                f"spectral_norm: expected a parameter with a shape, got {name!r}, which is "
                "uninitialized; call the module once first"
            )
        u, v = random_directions(weight_matrix(weight.detach(), dim), eps)
        del module._parameters[name]
        module.register_parameter(name + "_orig", weight)
        setattr(module, name, weight.detach())
        module.register_buffer(name + "_u", u)
        module.register_buffer(name + "_v", v)
        module.register_forward_pre_hook(hook)
        return hook

    def remove(self, module: Module) -> None:
        """Put a parameter with the divided weight in the place of the parts."""
        with no_grad():
            weight = self.compute_weight(module, do_power_iteration=False)
        delattr(module, self.name)
        delattr(module, self.name + "_u")
        delattr(module, self.name + "_v")
        delattr(module, self.name + "_orig")
        module.register_parameter(self.name, Parameter(weight.detach()))

    def __call__(self, module: Module, inputs: Any) -> None:
        setattr(module, self.name, self.compute_weight(module, module.training))


def spectral_norm(
    module: M,
    name: str = "weight",
    n_power_iterations: int = 1,
    eps: float = 1e-12,
    dim: Optional[int] = None,
) -> M:
    """Divide the parameter `name` by its largest singular value before each forward."""
    SpectralNorm.apply(module, name, n_power_iterations, output_dim(module, dim), eps)
    return module


def remove_spectral_norm(module: M, name: str = "weight") -> M:
    """Undo :func:`spectral_norm`."""
    _weight_hooks.remove(module, SpectralNorm, name, "spectral_norm")
    return module
