"""Operations as modules, so that each place in a model where one happens could have its own scale.

Example:

    self.skip_add = FloatFunctional()
    ...
    x = self.skip_add.add(x, y)       # x + y
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import List

from treadle import _C, _names, nn
from treadle._C import Tensor


class FloatFunctional(nn.Module):
    """Operations on ordinary tensors, whose results `activation_post_process` is called with; that
    is an Identity which a program may replace."""

    def __init__(self) -> None:
        super().__init__()
        self.activation_post_process = nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        """RuntimeError: its methods are called, not it."""
        raise RuntimeError(
            "FloatFunctional: expected a call of one of its methods, as add(x, y), got a call of "
            "the module"
        )

    def add(self, x: Tensor, y: Tensor) -> Tensor:
        """x + y."""
        return self.activation_post_process(_C.add(x, y))

    def add_scalar(self, x: Tensor, y: float) -> Tensor:
        """x + y; as in PyTorch it is not passed to activation_post_process."""
        return _C.add(x, y)

    def mul(self, x: Tensor, y: Tensor) -> Tensor:
        """x * y."""
        return self.activation_post_process(_C.mul(x, y))

    def mul_scalar(self, x: Tensor, y: float) -> Tensor:
        """x * y; as in PyTorch it is not passed to activation_post_process."""
        return _C.mul(x, y)

    def cat(self, x: List[Tensor], dim: int = 0) -> Tensor:
        """cat(x, dim)."""
        return self.activation_post_process(_C.cat(x, dim))

    def add_relu(self, x: Tensor, y: Tensor) -> Tensor:
        """relu(x + y)."""
        return self.activation_post_process(_C.relu(_C.add(x, y)))

    def matmul(self, x: Tensor, y: Tensor) -> Tensor:
        """x @ y."""
        return self.activation_post_process(_C.matmul(x, y))


__getattr__ = _names.attributes_of(__name__)
