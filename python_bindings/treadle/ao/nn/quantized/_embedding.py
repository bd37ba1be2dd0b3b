"""Tables of rows in eight bits; a row that is looked up becomes floats."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Optional, Tuple

from treadle import _C, nn
from treadle._C import Tensor
from treadle._introspection.build import per_channel_affine_float_qparams
from treadle.ao.nn import qat
from treadle.ao.nn._weights import WithState, check_type, check_weight_dtype
from treadle.nn import functional

# The whole numbers of a table, and the scale and the zero point of each row. The zero points are
# floats, which a quantized tensor does not have.
Table = Tuple[Tensor, Tensor, Tensor]


class EmbeddingPackedParams(WithState):
    """A table (num_embeddings, embedding_dim) of whole numbers, and two numbers of each row."""

    _version = 1
    _kept = ("dtype", "_packed_weight", "_scales", "_zero_points")

    def __init__(self, table: Table) -> None:
        super().__init__()
        self.dtype = _C.quint8
        self._packed_weight, self._scales, self._zero_points = table

    def forward(self, x: Tensor) -> Tensor:
        """The argument."""
        return x


def _zeros(rows: int, columns: int) -> Table:
    return _C.zeros((rows, columns), dtype=_C.uint8), _C.ones(rows), _C.zeros(rows)


def quantized_table(weight: Tensor, observer: Any) -> Table:
    """A table of floats in whole numbers, with the scale and the zero point of each row for what
    the observer saw."""
    scales, zero_points = observer.calculate_qparams()
    numbers = _C.round(weight.detach().float() / scales[:, None] + zero_points[:, None])
    low, high = observer.quant_min, observer.quant_max
    return numbers.clamp(low, high).to(_C.uint8), scales, zero_points


class _Table(WithState):
    _version = 1
    _name = ""
    _float_classes: Any = ()

    def _set_up(self, rows: int, columns: int, weight: Optional[Table], dtype: Any) -> None:
        check_weight_dtype(type(self).__name__, dtype, (_C.quint8,))
        self.num_embeddings, self.embedding_dim = rows, columns
        if weight is not None and tuple(weight[0].shape) != (rows, columns):
            raise AssertionError(
                f"{type(self).__name__}: expected a weight of shape {(rows, columns)}, got "
                f"{tuple(weight[0].shape)}"
            )
        self._packed_params = EmbeddingPackedParams(
            _zeros(rows, columns) if weight is None else weight
        )

    def _settings(
        self, max_norm: Optional[float], norm_type: float, scale_grad_by_freq: bool, sparse: bool
    ) -> None:
        """Keep the settings of the float layer; those of gradients mean nothing here."""
        if max_norm is not None:
            raise NotImplementedError(
                f"{type(self).__name__}: expected max_norm=None, as a table in eight bits is not "
                f"scaled, got {max_norm}"
            )
        self.max_norm, self.norm_type = max_norm, norm_type
        self.scale_grad_by_freq, self.sparse = scale_grad_by_freq, sparse

    def weight(self) -> Table:
        """The whole numbers (num_embeddings, embedding_dim) of uint8, and the scale and the zero
        point of each row."""
        kept = self._packed_params
        return kept._packed_weight, kept._scales, kept._zero_points

    def set_weight(self, w: Table) -> None:
        """Put in what weight() gives."""
        self._packed_params = EmbeddingPackedParams(w)

    def _rows(self, indices: Tensor) -> Tensor:
        """The rows for indices of one dimension, as floats."""
        numbers, scales, zero_points = (part.index_select(0, indices) for part in self.weight())
        return (numbers.float() - zero_points[:, None]) * scales[:, None]

    @property
    def dtype(self) -> Any:
        """The dtype of the table."""
        return self._packed_params.dtype

    @classmethod
    def _quantized_from(cls, mod: Any) -> Table:
        what = f"nn.quantized.{cls.__name__}.from_float"
        check_type(what, mod, cls._float_classes)
        observer = getattr(mod, "weight_fake_quant", None) or mod.qconfig.weight()
        check_weight_dtype(cls.__name__, observer.dtype, (_C.quint8,))
        if observer.qscheme != per_channel_affine_float_qparams:
            raise AssertionError(
                f"{what}: expected weights of {per_channel_affine_float_qparams} (see "
                f"float_qparams_weight_only_qconfig), got {observer.qscheme}"
            )
        observer(mod.weight)
        return quantized_table(mod.weight, observer)

    def _get_name(self) -> str:
        return self._name

    def __repr__(self) -> str:
        return f"{self._get_name()}({self.extra_repr()})"

    def extra_repr(self) -> str:
        """The sizes, the dtype and the scheme."""
        return (
            f"num_embeddings={self.num_embeddings}, embedding_dim={self.embedding_dim}, "
            f"dtype={self.dtype}, qscheme={per_channel_affine_float_qparams}"
        )


class Embedding(_Table):
    """Rows of a table that is kept as quint8, with a scale and a zero point for each row.

    Indices of any shape give floats (*shape, embedding_dim). AssertionError for a table of another
    shape or dtype.
    """

    _name = "QuantizedEmbedding"
    _float_classes = (nn.Embedding, qat.Embedding)

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: Optional[int] = None,
        max_norm: Optional[float] = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
        _weight: Optional[Table] = None,
        dtype: Any = _C.quint8,
    ) -> None:
        super().__init__()
        self._set_up(num_embeddings, embedding_dim, _weight, dtype)
        self._settings(max_norm, norm_type, scale_grad_by_freq, sparse)
        self.padding_idx = padding_idx

    def forward(self, indices: Tensor) -> Tensor:
        """The rows, as floats."""
        return self._rows(indices.reshape(-1)).reshape(*indices.shape, self.embedding_dim)

    @classmethod
    def from_float(cls, mod: Any) -> Embedding:
        """From a layer with a QConfig whose weights have a zero point of floats."""
        weight = cls._quantized_from(mod)
        settings = (mod.max_norm, mod.norm_type, mod.scale_grad_by_freq, mod.sparse)
        return cls(mod.num_embeddings, mod.embedding_dim, mod.padding_idx, *settings, weight)


class EmbeddingBag(_Table):
    """Sums, means or maxima of bags of rows of a table that is kept as quint8; see nn.EmbeddingBag.

    AssertionError for a table of another shape or dtype.
    """

    _name = "QuantizedEmbeddingBag"
    _float_classes = (nn.EmbeddingBag, qat.EmbeddingBag)

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        max_norm: Optional[float] = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "sum",
        sparse: bool = False,
        _weight: Optional[Table] = None,
        include_last_offset: bool = False,
        dtype: Any = _C.quint8,
        padding_idx: Optional[int] = None,
    ) -> None:
        super().__init__()
        self._set_up(num_embeddings, embedding_dim, _weight, dtype)
        self._settings(max_norm, norm_type, scale_grad_by_freq, sparse)
        self.mode, self.include_last_offset = mode, include_last_offset
        self.padding_idx = padding_idx

    def forward(
        self,
        indices: Tensor,
        offsets: Optional[Tensor] = None,
        per_sample_weights: Optional[Tensor] = None,
    ) -> Tensor:
        """A row of floats for each bag."""
        # Each index takes its own row, so that only these become floats.
        flat = indices.reshape(-1)
        places = _C.arange(flat.numel(), device=flat.device).reshape(indices.shape)
        rows = self._rows(flat)
        if self.padding_idx is not None:
            # Padding is a row of its own, after all others.
            places = places.where(indices != self.padding_idx % self.num_embeddings, len(flat))
            rows = _C.cat([rows, rows.new_zeros(1, self.embedding_dim)])
        return functional.embedding_bag(
            places,
            rows,
            offsets,
            mode=self.mode,
            per_sample_weights=per_sample_weights,
            include_last_offset=self.include_last_offset,
            padding_idx=None if self.padding_idx is None else len(flat),
        )

    @classmethod
    def from_float(cls, mod: Any) -> EmbeddingBag:
        """From a layer with a QConfig whose weights have a zero point of floats."""
        return cls(
            mod.num_embeddings,
            mod.embedding_dim,
            mod.max_norm,
            mod.norm_type,
            mod.scale_grad_by_freq,
            mod.mode,
            mod.sparse,
            cls._quantized_from(mod),
            mod.include_last_offset,
            padding_idx=mod.padding_idx,
        )
