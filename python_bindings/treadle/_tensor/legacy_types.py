"""The older names of tensor types: treadle.FloatTensor(2, 3), isinstance(x, treadle.LongTensor).

Each stands for a dtype on a device. It makes tensors as `treadle.Tensor` does, from sizes or from
data, and a tensor is an instance of it if it has that dtype and device.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Dict, Optional, Tuple

from treadle import _C
from treadle._C import Tensor, dtype

_DTYPES = {
    "FloatTensor": _C.float32,
    "DoubleTensor": _C.float64,
    "HalfTensor": _C.float16,
    "BFloat16Tensor": _C.bfloat16,
    "ByteTensor": _C.uint8,
    "CharTensor": _C.int8,
    "ShortTensor": _C.int16,
    "IntTensor": _C.int32,
    "LongTensor": _C.int64,
    "BoolTensor": _C.bool,
}


class LegacyTensorType(type):
    """The type of FloatTensor and its kin: classes without instances of their own."""

    dtype: dtype
    device_type: str

    def __instancecheck__(cls, instance: Any) -> bool:
        return (
            isinstance(instance, Tensor)
            and not instance.is_sparse
            and instance.dtype == cls.dtype
            and instance.device.type == cls.device_type
        )

    def __call__(cls, *args: Any, device: Any = None, **kwargs: Any) -> Tensor:
        place = cls.device_type if device is None else device
        if len(args) == 1 and not isinstance(args[0], (int, _C.Size)):
            if hasattr(args[0], "untyped"):  # a storage: the tensor lies in it
                return _C.empty((0,), dtype=cls.dtype, device=place).set_(args[0])
            if _is_of(cls, args[0], place):  # which lie in one memory
                return args[0].detach()
            return _C.tensor(_data(args[0]), dtype=cls.dtype, device=place, **kwargs)
        sizes = tuple(args[0]) if len(args) == 1 and isinstance(args[0], _C.Size) else args
        if any(not isinstance(size, int) for size in sizes):
            raise TypeError(f"{cls.__name__}: expected sizes or data, got {sizes}")
        return _C.empty(sizes if sizes else (0,), dtype=cls.dtype, device=place, **kwargs)


def _is_of(cls: Any, value: Any, place: Any) -> bool:
    of_type = isinstance(value, Tensor) and value.dtype == cls.dtype
    return of_type and value.device.type == _C.device(place).type


def _data(value: Any) -> Any:
    return value.detach() if isinstance(value, Tensor) else value


def _make(name: str, device_type: str) -> LegacyTensorType:
    made = LegacyTensorType(name, (), {"dtype": _DTYPES[name], "device_type": device_type})
    made.__module__ = "treadle" if device_type == "cpu" else f"treadle.{device_type}"
    return made


_types: Dict[Tuple[str, str], LegacyTensorType] = {}


def tensor_type(name: str, device_type: str = "cpu") -> LegacyTensorType:
    """The type of that name: FloatTensor, LongTensor, ..."""
    if name not in _DTYPES:
        raise AttributeError(f"there is no tensor type '{name}'")
    key = (name, device_type)
    if key not in _types:
        _types[key] = _make(name, device_type)
    return _types[key]


def parse_type(text: str) -> Optional[LegacyTensorType]:
    """The type that 'torch.cuda.FloatTensor' names; None for text of another form."""
    package, _, rest = text.partition(".")
    place, _, name = rest.rpartition(".")
    if package not in ("torch", "treadle") or name not in _DTYPES:
        return None
    return tensor_type(name, place or "cpu")


def place_of_type(text: str) -> Tuple[dtype, str]:
    """Dtype and device of what `x.type(text)` gives; ValueError for other text."""
    kind = parse_type(text)
    if kind is None:
        raise ValueError(f"type: expected a type such as 'torch.FloatTensor', got {text!r}")
    return kind.dtype, kind.device_type


def set_default_tensor_type(t: Any) -> None:
    """Make new tensors of this type by default: a type such as FloatTensor, or its name."""
    kind = parse_type(t) if isinstance(t, str) else t
    if not isinstance(kind, LegacyTensorType):
        raise TypeError(f"set_default_tensor_type: expected a tensor type, got {t!r}")
    if kind.device_type != "cpu":
        raise RuntimeError(
            f"set_default_tensor_type: expected a type of CPU tensors, got {t!r}; "
            "use set_default_device"
        )
    _C.set_default_dtype(kind.dtype)


FloatTensor = tensor_type("FloatTensor")
DoubleTensor = tensor_type("DoubleTensor")
HalfTensor = tensor_type("HalfTensor")
BFloat16Tensor = tensor_type("BFloat16Tensor")
ByteTensor = tensor_type("ByteTensor")
CharTensor = tensor_type("CharTensor")
ShortTensor = tensor_type("ShortTensor")
IntTensor = tensor_type("IntTensor")
LongTensor = tensor_type("LongTensor")
BoolTensor = tensor_type("BoolTensor")

NAMES = tuple(_DTYPES)
