"""Operations as modules, so that each place in a model where one happens has its own scale.

Example:

    self.skip_add = FloatFunctional()
    ...
    x = self.skip_add.add(x, y)       # x + y
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, List, NoReturn

from treadle import _C, nn
from treadle._C import Tensor
from treadle.ao.nn._weights import WithState, qparams
from treadle.ao.nn.quantized import functional as qf


def _refuse(name: str) -> NoReturn:
    raise RuntimeError(
        f"{name}: expected a call of one of its methods, as add(x, y), got a call of the module"
    )


class _Operations(nn.Module):
    """Operations on ordinary tensors."""

    def forward(self, x: Tensor) -> Tensor:
        """RuntimeError: its methods are called, not it."""
        del x
        _refuse(type(self).__name__)

    def _observed(self, result: Tensor) -> Tensor:
        return result

    def add(self, x: Tensor, y: Tensor) -> Tensor:
        """x + y."""
        return self._observed(_C.add(x, y))

    def add_scalar(self, x: Tensor, y: float) -> Tensor:
        """x + y, which is not observed: its scale follows from that of x."""
        return _C.add(x, y)

    def mul(self, x: Tensor, y: Tensor) -> Tensor:
        """x * y."""
        return self._observed(_C.mul(x, y))

    def mul_scalar(self, x: Tensor, y: float) -> Tensor:
        """x * y, which is not observed: its scale follows from that of x."""
        return _C.mul(x, y)

    def cat(self, x: List[Tensor], dim: int = 0) -> Tensor:
        """cat(x, dim)."""
        return self._observed(_C.cat(x, dim))

    def add_relu(self, x: Tensor, y: Tensor) -> Tensor:
        """relu(x + y)."""
        return self._observed(_C.relu(_C.add(x, y)))

    def matmul(self, x: Tensor, y: Tensor) -> Tensor:
        """x @ y."""
        return self._observed(_C.matmul(x, y))


class FloatFunctional(_Operations):
    """Operations on ordinary tensors, whose results `activation_post_process` is called with; that
    is an Identity, and an observer after prepare()."""

    def __init__(self) -> None:
        super().__init__()
        self.activation_post_process = nn.Identity()

    def _observed(self, result: Tensor) -> Tensor:
        return self.activation_post_process(result)


class FXFloatFunctional(_Operations):
    """The same operations, for graphs, which have observers of their own."""


class QFunctional(WithState):
    """The same operations on quantized tensors; the results have `scale` and `zero_point`, but for
    those with a number, which follow from the argument's."""

    _numbers = (("scale", float), ("zero_point", int))

    def __init__(self) -> None:
        super().__init__()
        self.scale, self.zero_point = 1.0, 0
        self.activation_post_process = nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        """RuntimeError: its methods are called, not it."""
        del x
        _refuse("QFunctional")

    def add(self, x: Tensor, y: Tensor) -> Tensor:
        """x + y."""
        result = _C._quantized_add(x, y, self.scale, self.zero_point, False)
        return self.activation_post_process(result)

    def add_scalar(self, x: Tensor, y: float) -> Tensor:
        """x + y, with the scale of x and a zero point that is moved."""
        return qf.add_scalar(x, y)

    def mul(self, x: Tensor, y: Tensor) -> Tensor:
        """x * y."""
        result = _C._quantized_mul(x, y, self.scale, self.zero_point, False)
        return self.activation_post_process(result)

    def mul_scalar(self, x: Tensor, y: float) -> Tensor:
        """x * y, with the scale of x times |y|."""
        return qf.mul_scalar(x, y)

    def cat(self, x: List[Tensor], dim: int = 0) -> Tensor:
        """cat(x, dim)."""
        result = _C._quantized_cat(list(x), dim, self.scale, self.zero_point)
        return self.activation_post_process(result)

    def add_relu(self, x: Tensor, y: Tensor) -> Tensor:
        """relu(x + y)."""
        result = _C._quantized_add(x, y, self.scale, self.zero_point, True)
        return self.activation_post_process(result)

    def matmul(self, x: Tensor, y: Tensor) -> Tensor:
        """x @ y."""
        return qf.matmul(x, y, self.scale, self.zero_point)

    @classmethod
    def from_float(cls, mod: Any) -> Any:
        """In place of a prepared FloatFunctional, by what its observer saw."""
        if type(mod) is not FloatFunctional:
            raise AssertionError(
                "nn.quantized.QFunctional.from_float: expected a module of class FloatFunctional, "
                f"got one of {type(mod).__name__}"
            )
        made = cls()
        made.scale, made.zero_point = qparams(mod)
        return made.train(mod.training)

    def extra_repr(self) -> str:
        """The scale and the zero point."""
        return f"scale={self.scale}, zero_point={self.zero_point}"
