"""Ready-made parametrisations: weight norm, spectral norm, orthogonal matrices."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Optional, TypeVar

from treadle import _C, linalg
from treadle._C import Tensor
from treadle.autograd.grad_mode import no_grad

from .. import functional as F
from .._operators import ops
from ..modules.module import Module
from . import parametrize
from .spectral_norm import (
    check_iterations,
    output_dim,
    power_iteration,
    random_directions,
    weight_matrix,
)

__all__ = ["orthogonal", "spectral_norm", "weight_norm"]

M = TypeVar("M", bound=Module)


def _tensor_of(module: Module, name: str) -> Tensor:
    tensor = getattr(module, name, None)
    if not isinstance(tensor, Tensor):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    return tensor


class _WeightNorm(Module):
    def __init__(self, dim: Optional[int] = 0) -> None:
        super().__init__()
        self.dim = -1 if dim is None else dim

    def forward(self, weight_g: Tensor, weight_v: Tensor) -> Tensor:
        return ops._weight_norm(weight_v, weight_g, self.dim)

    def right_inverse(self, weight: Tensor) -> tuple[Tensor, Tensor]:
        return _C.norm_except_dim(weight, 2, self.dim), weight


def weight_norm(module: M, name: str = "weight", dim: Optional[int] = 0) -> M:
    """The tensor `name` as a length (`original0`) for each index of `dim` and a direction
    (`original1`)."""
    parametrize.register_parametrization(module, name, _WeightNorm(dim), unsafe=True)

    def rename(
        state_dict: dict, prefix: str, local: dict, strict: bool, *reports: list[str]
    ) -> None:
        for i, older in enumerate((f"{prefix}{name}_g", f"{prefix}{name}_v")):
            if older in state_dict:
                state_dict[f"{prefix}parametrizations.{name}.original{i}"] = state_dict.pop(older)

    # Checkpoints of nn.utils.weight_norm load, too.
    module._register_load_state_dict_pre_hook(rename)
    return module


def _iterate(matrix: Tensor, u: Tensor, v: Tensor, steps: int, eps: float) -> None:
    """Power iteration from `v`, while the older function of the name begins with `u`."""
    power_iteration(matrix.t(), v, u, steps, eps)


class _SpectralNorm(Module):
    def __init__(
        self, weight: Tensor, n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12
    ) -> None:
        super().__init__()
        if not -weight.dim() <= dim < max(1, weight.dim()):
            raise IndexError(
                f"Dimension out of range (expected to be in range of [-{weight.dim()}, "
                f"{weight.dim() - 1}] but got {dim})"
            )
        check_iterations(n_power_iterations)
        self.dim = dim if dim >= 0 else dim + weight.dim()
        self.eps = eps
        if weight.dim() > 1:
            self.n_power_iterations = n_power_iterations
            matrix = weight_matrix(weight.detach(), self.dim)
            u, v = random_directions(matrix, eps)
            _iterate(matrix, u, v, 15, eps)
            self.register_buffer("_u", u)
            self.register_buffer("_v", v)

    def forward(self, weight: Tensor) -> Tensor:
        if weight.dim() == 1:
            return F.normalize(weight, dim=0, eps=self.eps)
        matrix = weight_matrix(weight, self.dim)
        if self.training:
            _iterate(matrix.detach(), self._u, self._v, self.n_power_iterations, self.eps)
        u, v = self._u.clone(), self._v.clone()  # overwritten before backward has run, perhaps
        return weight / u.dot(matrix.mv(v))

    def right_inverse(self, value: Tensor) -> Tensor:
        return value


def spectral_norm(
    module: M,
    name: str = "weight",
    n_power_iterations: int = 1,
    eps: float = 1e-12,
    dim: Optional[int] = None,
) -> M:
    """The tensor `name` divided by its largest singular value."""
    weight = _tensor_of(module, name)
    dim = output_dim(module, dim)
    parametrize.register_parametrization(
        module, name, _SpectralNorm(weight, n_power_iterations, dim, eps)
    )
    return module


class _Orthogonal(Module):
    """A matrix with orthonormal columns (or rows, whichever are fewer): base times the Cayley or
    exponential map of a skew-symmetric matrix."""

    def __init__(self, weight: Tensor, orthogonal_map: str, use_trivialization: bool) -> None:
        super().__init__()
        self.orthogonal_map = orthogonal_map
        self.shape = tuple(weight.shape)
        rows, columns = self.shape[-2:]
        self.tall = rows >= columns
        self.size = max(rows, columns)
        self.columns = min(rows, columns)
        base = _orthonormal(weight.detach() if self.tall else weight.detach().transpose(-2, -1))
        self.use_trivialization = use_trivialization
        self.register_buffer("base", base)

    def forward(self, x: Tensor) -> Tensor:
        if not self.tall:
            x = x.transpose(-2, -1)
        below = x.tril(-1)
        if self.columns < self.size:
            missing = x.new_zeros((*x.shape[:-1], self.size - self.columns))
            below = _C.cat([below, missing], -1)
        skew = below - below.transpose(-2, -1)
        if self.orthogonal_map == "cayley":
            eye = _C.eye(self.size, dtype=x.dtype, device=x.device)
            rotation = linalg.solve(eye + skew * 0.5, eye - skew * 0.5)
        else:
            rotation = linalg.matrix_exp(skew)
        result = rotation.matmul(self.base)
        return result if self.tall else result.transpose(-2, -1)

    def right_inverse(self, value: Tensor) -> Tensor:
        if tuple(value.shape) != self.shape:
            raise ValueError(
                f"orthogonal: expected a tensor of shape {self.shape}, got {tuple(value.shape)}"
            )
        tall = value if self.tall else value.transpose(-2, -1)
        with no_grad():
            self.base.copy_(_orthonormal(tall))
        return _C.zeros_like(value)


def _orthonormal(matrix: Tensor) -> Tensor:
    """Orthonormal columns that span those of the matrix; the matrix itself where they are."""
    with no_grad():
        q, r = linalg.qr(matrix)
        signs = r.diagonal(dim1=-2, dim2=-1).sign()
        signs = _C.where(signs == 0, _C.ones_like(signs), signs)
        return (q * signs.unsqueeze(-2)).clone()


def orthogonal(
    module: M,
    name: str = "weight",
    orthogonal_map: Optional[str] = None,
    *,
    use_trivialization: bool = True,
) -> M:
    """The matrix `name` kept orthogonal: columns (or rows, whichever are fewer) of unit length at
    right angles."""
    weight = _tensor_of(module, name)
    if weight.dim() < 2:
        raise ValueError(
            f"Expected a matrix or batch of matrices. Got a tensor of {weight.dim()} dimensions."
        )
    if orthogonal_map is None:
        square = weight.shape[-2] == weight.shape[-1]
        orthogonal_map = "matrix_exp" if square else "cayley"
    if orthogonal_map not in ("matrix_exp", "cayley"):
        raise ValueError(
            'orthogonal_map has to be one of "matrix_exp", "cayley". Got: ' + str(orthogonal_map)
        )
    parametrization = _Orthogonal(weight, orthogonal_map, use_trivialization)
    parametrize.register_parametrization(module, name, parametrization, unsafe=True)
    return module
