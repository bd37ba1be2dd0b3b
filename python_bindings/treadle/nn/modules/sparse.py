"""Layers whose input is integers that name rows of a table."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Optional

from treadle import _C
from treadle._C import Tensor
from treadle.autograd.grad_mode import no_grad

from .. import functional as F
from .. import init
from ..parameter import Parameter
from .module import Module


class _Table(Module):
    """A table of vectors: `weight`, whose row padding_idx starts as zeros and is not trained."""

    def _make_table(
        self,
        rows: int,
        columns: int,
        padding_idx: Optional[int],
        weight: Optional[Tensor],
        freeze: bool,
        device: Any,
        dtype: Any,
    ) -> None:
        name = type(self).__name__
        if padding_idx is not None:
            if not -rows <= padding_idx < rows:
                raise AssertionError(
                    f"{name}: expected padding_idx within num_embeddings = {rows}, "
                    f"got {padding_idx}"
                )
            padding_idx %= rows
        self.num_embeddings = rows
        self.embedding_dim = columns
        self.padding_idx = padding_idx
        size = (rows, columns)
        if weight is None:
            self.weight = Parameter(_C.empty(size, device=device, dtype=dtype), not freeze)
            self.reset_parameters()
        else:
            if tuple(weight.shape) != size:
                raise AssertionError(
                    f"{name}: expected a weight of size {size}, got {tuple(weight.shape)}"
                )
            self.weight = Parameter(weight, not freeze)

    def reset_parameters(self) -> None:
        """Standard normal, and zero for the padding row."""
        init.normal_(self.weight)
        if self.padding_idx is not None:
            with no_grad():
                self.weight[self.padding_idx].fill_(0)

    def _settings_text(self) -> str:
        text = ""
        if self.max_norm is not None:
            text += f", max_norm={self.max_norm}"
        if self.norm_type != 2:
            text += f", norm_type={self.norm_type}"
        if self.scale_grad_by_freq:
            text += f", scale_grad_by_freq={self.scale_grad_by_freq}"
        return text


def _size_of(embeddings: Tensor) -> tuple[int, int]:
    if embeddings.dim() != 2:
        raise AssertionError(
            f"from_pretrained: expected embeddings of 2 dimensions, got {embeddings.dim()}"
        )
    rows, columns = embeddings.shape
    return rows, columns


class Embedding(_Table):
    """A table of vectors, looked up by integers. The row padding_idx starts as zeros and is not
    trained."""

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: Optional[int] = None,
        max_norm: Optional[float] = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
        _weight: Optional[Tensor] = None,
        _freeze: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.max_norm = max_norm
        self.norm_type = norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
        self.sparse = sparse
        self._make_table(
            num_embeddings, embedding_dim, padding_idx, _weight, _freeze, device, dtype
        )

    def forward(self, input: Tensor) -> Tensor:
        return F.embedding(
            input,
            self.weight,
            self.padding_idx,
            self.max_norm,
            self.norm_type,
            self.scale_grad_by_freq,
            self.sparse,
        )

    @classmethod
    def from_pretrained(
        cls,
        embeddings: Tensor,
        freeze: bool = True,
        padding_idx: Optional[int] = None,
        max_norm: Optional[float] = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
    ) -> "Embedding":
        """An Embedding whose table is `embeddings`."""
        rows, columns = _size_of(embeddings)
        return cls(
            rows,
            columns,
            padding_idx,
            max_norm,
            norm_type,
            scale_grad_by_freq,
            sparse,
            _weight=embeddings,
            _freeze=freeze,
        )

    def extra_repr(self) -> str:
        text = f"{self.num_embeddings}, {self.embedding_dim}"
        if self.padding_idx is not None:
            text += f", padding_idx={self.padding_idx}"
        text += self._settings_text()
        if self.sparse:
            text += ", sparse=True"
        return text


class EmbeddingBag(_Table):
    """The sum, mean or maximum of the rows that each bag of integers names."""

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        max_norm: Optional[float] = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        _weight: Optional[Tensor] = None,
        include_last_offset: bool = False,
        padding_idx: Optional[int] = None,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.max_norm = max_norm
        self.norm_type = norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
        self.mode = mode
        self.sparse = sparse
        self.include_last_offset = include_last_offset
        self._make_table(num_embeddings, embedding_dim, padding_idx, _weight, False, device, dtype)

    def forward(
        self,
        input: Tensor,
        offsets: Optional[Tensor] = None,
        per_sample_weights: Optional[Tensor] = None,
    ) -> Tensor:
        return F.embedding_bag(
            input,
            self.weight,
            offsets,
            self.max_norm,
            self.norm_type,
            self.scale_grad_by_freq,
            self.mode,
            self.sparse,
            per_sample_weights,
            self.include_last_offset,
            self.padding_idx,
        )

    @classmethod
    def from_pretrained(
        cls,
        embeddings: Tensor,
        freeze: bool = True,
        max_norm: Optional[float] = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        include_last_offset: bool = False,
        padding_idx: Optional[int] = None,
    ) -> "EmbeddingBag":
        """An EmbeddingBag whose table is `embeddings`."""
        rows, columns = _size_of(embeddings)
        bag = cls(
            rows,
            columns,
            max_norm,
            norm_type,
            scale_grad_by_freq,
            mode,
            sparse,
            embeddings,
            include_last_offset,
            padding_idx,
        )
        bag.weight.requires_grad = not freeze
        return bag

    def extra_repr(self) -> str:
        text = f"{self.num_embeddings}, {self.embedding_dim}{self._settings_text()}"
        text += f", mode={self.mode!r}"
        if self.padding_idx is not None:
            text += f", padding_idx={self.padding_idx}"
        return text
