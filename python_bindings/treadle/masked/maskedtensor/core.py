"""MaskedTensor: numbers and a mask of which of them count, that go through functions together.

Functions of elements keep the mask; two masked tensors must have the same one. Reductions take what
counts, and what they make counts where anything did. Functions of shape change both. Anything else
is refused.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Callable, Dict, Optional, Tuple

from treadle import _C
from treadle._C import Tensor
from treadle.masked import _operations

# Functions whose result at a place depends on the arguments at that place alone.
_ELEMENTWISE = frozenset(
    """abs absolute acos arccos acosh arccosh add sub subtract mul multiply div divide true_divide
    floor_divide remainder fmod pow angle asin arcsin asinh arcsinh atan arctan atanh arctanh atan2
    arctan2 bitwise_and bitwise_or bitwise_xor bitwise_not ceil clamp clip cos cosh deg2rad digamma
    eq erf erfc erfinv exp exp2 expm1 fix floor frac ge gt hypot isnan le lgamma log log10 log1p
    log2 logaddexp logit logical_and logical_or logical_xor logical_not lt maximum minimum fmax fmin
    nan_to_num ne neg negative positive rad2deg real imag reciprocal relu round rsqrt rsub sgn
    sigmoid sign signbit sin sinc sinh sqrt square tan tanh trunc to float double half int long
    conj_physical""".split()
)
_SHAPES = frozenset(
    """reshape view transpose permute t T mT unsqueeze squeeze flatten unflatten expand
    broadcast_to contiguous clone detach select narrow index_select __getitem__ split chunk unbind
    movedim swapaxes swapdims roll flip""".split()
)
_UNTOUCHED = frozenset("as_subclass backward __get__ __set__ requires_grad_ dim size".split())
_REDUCTIONS = frozenset(
    "sum prod mean median amax amin argmax argmin var std norm logsumexp".split()
)
_NORMALISATIONS = frozenset("softmax log_softmax cumsum cumprod".split())


def _check(data: Any, mask: Any) -> None:
    for name, tensor in (("data", data), ("mask", mask)):
        if not isinstance(tensor, Tensor):
            raise TypeError(
                f"masked_tensor: expected {name} to be a tensor, got {type(tensor).__name__}"
            )
    if mask.dtype != _C.bool:
        raise TypeError(f"masked_tensor: expected a mask of bools, got {mask.dtype}")
    if data.shape != mask.shape:
        raise ValueError(
            f"masked_tensor: expected a mask of shape {tuple(data.shape)}, got {tuple(mask.shape)}"
        )


class MaskedTensor(Tensor):
    """Numbers and their mask. TypeError and ValueError where they do not fit together."""

    _mask: Tensor

    @staticmethod
    def __new__(cls: Any, data: Tensor, mask: Tensor, requires_grad: bool = False) -> Any:
        _check(data, mask)
        leaf = data.get_data() if isinstance(data, MaskedTensor) else data
        made = leaf.detach().clone().as_subclass(cls)
        made._mask = mask.detach().clone()
        return made.requires_grad_() if requires_grad else made

    def __init__(self, data: Tensor, mask: Tensor, requires_grad: bool = False) -> None:
        pass

    def get_data(self) -> Tensor:
        """The numbers, also those that do not count."""
        return self.as_subclass(Tensor)

    def get_mask(self) -> Tensor:
        """The mask."""
        return self._mask

    def to_tensor(self, value: Any) -> Tensor:
        """A tensor with `value` where nothing counts."""
        return _C.where(self._mask, self.get_data(), value)

    def __repr__(self) -> str:
        data, mask = self.get_data().detach(), self._mask

        def text(x: Tensor, m: Tensor, indent: int) -> str:
            if x.dim() == 0:
                plain = f"{x.item():.4f}" if x.is_floating_point() else str(x.item())
                return plain if m else "--"
            rows = [text(row, row_mask, indent + 2) for row, row_mask in zip(x, m)]
            if x.dim() == 1:
                width = max(map(len, rows), default=0)
                return f"[{', '.join(row.rjust(width) for row in rows)}]"
            space = " " * indent
            inside = ",\n".join(f"{space}  {row}" for row in rows)
            return f"[\n{inside}\n{space}]"

        return f"MaskedTensor(\n  {text(data, mask, 2)}\n)"

    @classmethod
    def __torch_function__(
        cls, func: Callable, types: Any, args: Tuple = (), kwargs: Optional[Dict] = None
    ) -> Any:
        kwargs = kwargs or {}
        name = func.__name__
        if name in _UNTOUCHED:
            return super().__torch_function__(func, types, args, kwargs)
        plain = name.strip("_") if name.startswith("__") and name != "__getitem__" else name
        if plain.startswith("r") and plain[1:] in _ELEMENTWISE and name.startswith("__"):
            plain = plain[1:]
        if plain in _ELEMENTWISE or plain.removesuffix("_") in _ELEMENTWISE:
            return _elementwise(func, args, kwargs)
        if plain in _SHAPES:
            return _shaped(func, args, kwargs)
        if plain in _REDUCTIONS:
            return _reduced(plain, args, kwargs)
        if plain in _NORMALISATIONS:
            result = getattr(_operations, plain)(*args, **kwargs)
            return _with_mask(result, args[0]._mask)
        if plain == "where":
            return _chosen(*args)
        result = super().__torch_function__(func, types, args, kwargs)
        if _holds_tensors(result):
            raise TypeError(f"MaskedTensor: expected a function that keeps masks, got {name}")
        return result


def _holds_tensors(value: Any) -> bool:
    if isinstance(value, (tuple, list)) and type(value) in (tuple, list):
        return any(map(_holds_tensors, value))
    return isinstance(value, MaskedTensor)


def _data(value: Any) -> Any:
    return value.get_data() if isinstance(value, MaskedTensor) else value


def _with_mask(data: Tensor, mask: Tensor) -> MaskedTensor:
    made = data.as_subclass(MaskedTensor)
    made._mask = mask
    return made


def _elementwise(func: Callable, args: Tuple, kwargs: Dict) -> Any:
    masks = [a._mask for a in args if isinstance(a, MaskedTensor)]
    for other in masks[1:]:
        if not _C.equal(masks[0], other):
            raise ValueError("MaskedTensor: expected tensors of one mask, got two that differ")
    given = {key: _data(value) for key, value in kwargs.items()}
    result = func(*map(_data, args), **given)
    return _with_mask(result, masks[0].broadcast_to(result.shape))


def _shaped(func: Callable, args: Tuple, kwargs: Dict) -> Any:
    data, mask = (func(part, *args[1:], **kwargs) for part in (_data(args[0]), args[0]._mask))
    if isinstance(data, Tensor):
        return _with_mask(data, mask)
    return tuple(_with_mask(d, m) for d, m in zip(data, mask))


def _reduced(name: str, args: Tuple, kwargs: Dict) -> MaskedTensor:
    tensor, *rest = args
    dim = kwargs.get("dim", rest[0] if rest and name != "norm" else None)
    if name == "norm":
        kwargs = {"ord" if key == "p" else key: value for key, value in kwargs.items()}
    if name == "median" and dim is None:
        data = tensor.get_data()[tensor._mask]
        return _with_mask(data.median(), tensor._mask.any())
    result = getattr(_operations, name)(tensor, *rest, **kwargs)
    mask, keepdim = tensor._mask, kwargs.get("keepdim", False)
    dims = _operations._dims(mask, dim)
    for d in sorted(dims, reverse=True):
        mask = mask.any(d, keepdim=keepdim)
    return _with_mask(result, mask)


def _chosen(condition: Tensor, first: Any, second: Any) -> MaskedTensor:
    masks = [
        part._mask if isinstance(part, MaskedTensor) else _C.ones_like(condition)
        for part in (first, second)
    ]
    data = _C.where(condition, _data(first), _data(second))
    return _with_mask(data, _C.where(condition, *masks))


def masked_tensor(data: Tensor, mask: Tensor, requires_grad: bool = False) -> MaskedTensor:
    """A MaskedTensor of copies, a leaf of the graph."""
    return MaskedTensor(data, mask, requires_grad)


def as_masked_tensor(data: Tensor, mask: Tensor) -> MaskedTensor:
    """A MaskedTensor of the tensors themselves; gradients flow to the data."""
    _check(data, mask)
    return _with_mask(data, mask)


def is_masked_tensor(obj: Any) -> bool:
    """Whether something is a MaskedTensor."""
    return isinstance(obj, MaskedTensor)
