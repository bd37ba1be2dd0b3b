"""How nested tensors are made: of parts, of joined values, of a padded tensor."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Optional, Sequence

from treadle import _C
from treadle._C import Tensor
from treadle.nested._tensor import NestedTensor, joined


def _checked_layout(name: str, layout: Any) -> Any:
    from treadle._C import jagged

    layout = _C.strided if layout is None else layout
    if layout not in (_C.strided, jagged):
        raise RuntimeError(f"{name}: expected layout strided or jagged, got {layout}")
    return layout


def nested_tensor(
    tensor_list: Sequence[Any],
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> NestedTensor:
    """A nested tensor, a leaf, of copies of tensors, or of lists of numbers.

    The parts must have the same number of dimensions and differ in one size at most; others raise
    RuntimeError. layout: strided (the default) or jagged; both are kept alike, and are printed as
    in PyTorch.
    """
    layout = _checked_layout("nested_tensor", layout)
    parts = [
        (p.detach() if isinstance(p, Tensor) else _C.tensor(p)).to(dtype=dtype, device=device)
        for p in tensor_list
    ]
    made = joined(parts, layout=layout)
    if pin_memory:
        made = made._like(made._values.pin_memory())
    return made.requires_grad_(requires_grad)


def as_nested_tensor(
    ts: Any, dtype: Any = None, device: Any = None, layout: Any = None
) -> NestedTensor:
    """A nested tensor of tensors, through which gradients flow to them; or of the parts of a tensor
    (parts, size, ...). A nested tensor comes back with the dtype and on the device."""
    if issubclass(type(ts), NestedTensor):
        return ts.to(dtype=dtype or ts.dtype, device=device or ts.device)
    layout = _checked_layout("as_nested_tensor", layout)
    if isinstance(ts, Tensor):
        if ts.dim() < 2:
            raise RuntimeError(
                f"as_nested_tensor: expected two dimensions at least, got {tuple(ts.shape)}"
            )
        ts = ts.unbind(0)
    elif not isinstance(ts, (list, tuple)) or not all(isinstance(t, Tensor) for t in ts):
        raise TypeError(
            f"as_nested_tensor: expected a tensor or a list of tensors, got {type(ts).__name__}"
        )
    return joined([t.to(dtype=dtype or t.dtype, device=device) for t in ts], layout=layout)


def nested_tensor_from_jagged(
    values: Tensor,
    offsets: Optional[Tensor] = None,
    lengths: Optional[Tensor] = None,
    jagged_dim: Optional[int] = None,
    min_seqlen: Optional[int] = None,
    max_seqlen: Optional[int] = None,
) -> NestedTensor:
    """The parts of joined values, a view of them.

    offsets: (parts + 1), where each part begins and the last ends; lengths: (parts), how long they
    are, which may leave places between them where offsets are given too; jagged_dim: in which
    dimension of the result, 1 by default; min_seqlen, max_seqlen: the smallest and the largest
    length, where they are known. Raises RuntimeError where neither offsets nor lengths are given,
    or they do not fit.
    """
    from treadle import nn

    if not isinstance(values, Tensor) or issubclass(type(values), NestedTensor):
        raise TypeError(
            f"nested_tensor_from_jagged: expected values to be a dense tensor, got {type(values)}"
        )
    if offsets is None and lengths is None:
        raise RuntimeError("nested_tensor_from_jagged: expected offsets or lengths, got neither")
    if offsets is None:
        offsets = nn.functional.pad(lengths.cumsum(0), (1, 0))  # type: ignore[union-attr]
        lengths = None
    for name, given in (("offsets", offsets), ("lengths", lengths)):
        if given is not None and (given.dim() != 1 or given.is_floating_point()):
            raise RuntimeError(
                f"nested_tensor_from_jagged: expected {name} to be a vector of integers, got "
                f"{given.dtype} of shape {tuple(given.shape)}"
            )
    dim = 1 if jagged_dim is None else jagged_dim
    if not 1 <= dim <= values.dim():
        raise RuntimeError(
            f"nested_tensor_from_jagged: expected jagged_dim from 1 to {values.dim()}, got {dim}"
        )
    return NestedTensor(values, offsets, lengths, dim, min_seqlen, max_seqlen)


def narrow(
    tensor: Tensor, dim: int, start: Any, length: Any, layout: Any = _C.strided
) -> NestedTensor:
    """A view of `length` places from `start` on of each part of a tensor (parts, size, ...). start
    and length are numbers or tensors of one number for each part; dim is 1. Raises RuntimeError for
    another, and for places that are not there."""
    layout = _checked_layout("narrow", layout)
    if dim != 1:
        raise RuntimeError(f"narrow: expected dim = 1, got {dim}")
    count, size = tensor.shape[:2]

    def each(value: Any, name: str) -> Tensor:
        if not isinstance(value, Tensor):
            return _C.full((count,), int(value), dtype=_C.int64, device=tensor.device)
        if tuple(value.shape) != (count,):
            raise RuntimeError(
                f"narrow: expected {name} to be a number or {count} of them, got shape "
                f"{tuple(value.shape)}"
            )
        return value.to(_C.int64)

    starts, lengths = each(start, "start"), each(length, "length")
    if count and (int(starts.min()) < 0 or int((starts + lengths).max()) > size):
        raise RuntimeError(f"narrow: expected places within {size}, got others")
    first = _C.arange(count, device=tensor.device) * size + starts
    offsets = _C.cat([first, (first + lengths)[-1:]])
    made = NestedTensor(tensor.flatten(0, 1), offsets, lengths, 1)
    made._layout = layout
    return made


def masked_select(tensor: Tensor, mask: Tensor) -> NestedTensor:
    """The elements of a matrix (parts, size) where a mask, that is broadcast to it, is True: one
    part for each row. RuntimeError for other shapes."""
    if tensor.dim() != 2 or mask.dtype != _C.bool:
        raise RuntimeError(
            f"masked_select: expected a matrix and a mask of bools, got shape "
            f"{tuple(tensor.shape)} and {mask.dtype}"
        )
    mask = mask.expand(tensor.shape)
    return nested_tensor_from_jagged(tensor[mask], lengths=mask.sum(1))


def to_padded_tensor(input: Any, padding: float, output_size: Any = None) -> Tensor:  # noqa: A002
    """The parts side by side, (parts, ..., largest size, ...), with `padding` behind the shorter.
    output_size: the sizes of the result, that of the ragged dimension counts; what is beyond it is
    cut off."""
    return input.to_padded_tensor(padding, output_size)
