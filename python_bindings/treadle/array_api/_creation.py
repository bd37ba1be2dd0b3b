"""New arrays."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import builtins
from typing import Any, Optional, Tuple, Union

from treadle import _C
from treadle._C import Tensor
from treadle.array_api._array import as_array
from treadle.array_api._dtypes import Dtype, Number

__all__ = [
    "arange", "asarray", "empty", "empty_like", "eye", "from_dlpack", "full", "full_like",
    "linspace", "meshgrid", "ones", "ones_like", "tril", "triu", "zeros", "zeros_like",
]  # fmt: skip

Shape = Union[int, Tuple[int, ...]]

# The codes of the struct module; their sizes differ between machines, the buffer says which it is.
_BUFFER_KINDS = {
    **dict.fromkeys("bhilqn", "int"),
    **dict.fromkeys("BHILQN", "uint"),
    **dict.fromkeys("efd", "float"),
    "?": "bool",
}


def _sizes(shape: Shape) -> Tuple[int, ...]:
    return tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)


def arange(
    start: Union[int, float],
    /,
    stop: Optional[Union[int, float]] = None,
    step: Union[int, float] = 1,
    *,
    dtype: Optional[Dtype] = None,
    device: Any = None,
) -> Tensor:
    """Numbers from `start` (0 where only one is given) to before `stop`, perhaps none."""
    start, stop = (0, start) if stop is None else (start, stop)
    if step != 0 and (stop - start) * step < 0:
        floating = builtins.any(isinstance(v, float) for v in (start, stop, step))
        start = stop = float(stop) if floating else stop  # none, of the dtype that the three say
    return as_array(_C.arange(start, stop, step, dtype=dtype, device=device))


def asarray(
    obj: Any,
    /,
    *,
    dtype: Optional[Dtype] = None,
    device: Any = None,
    copy: Optional[builtins.bool] = None,
) -> Tensor:
    """An array of numbers, nested sequences, buffers or arrays of any library."""
    buffer = _buffer_of(obj)
    if buffer is not None:
        obj = _from_buffer(buffer, copy)
    return as_array(_C.asarray(obj, dtype=dtype, device=device, copy=copy))


def _buffer_of(obj: Any) -> Optional[memoryview]:
    """The memory of an object that has a buffer and no better way to say what it holds."""
    better = ("__dlpack__", "__array_interface__", "__array__")
    if isinstance(obj, (list, tuple)) or builtins.any(hasattr(obj, name) for name in better):
        return None
    try:
        return memoryview(obj)
    except TypeError:
        return None


def _from_buffer(buffer: memoryview, copy: Optional[builtins.bool]) -> Tensor:
    """The elements of a buffer, of the dtype that it names; a copy where it may not be written."""
    kind = _BUFFER_KINDS.get(buffer.format.lstrip("@=")[-1:])
    dtype = getattr(_C, f"{kind}{8 * buffer.itemsize}" if kind != "bool" else "bool", None)
    if kind is None or dtype is None:
        raise TypeError(f"asarray: expected a buffer of numbers, got format {buffer.format!r}")
    if buffer.readonly or not buffer.c_contiguous:
        if copy is False:
            raise ValueError(
                "asarray: expected a contiguous buffer that may be written for copy=False"
            )
        memory: Any = bytearray(buffer.tobytes())
    else:
        memory = buffer
    if buffer.nbytes == 0:
        return _C.empty(buffer.shape, dtype=dtype)
    return _C.reshape(_C.frombuffer(memory, dtype=dtype), buffer.shape)  # type: ignore[arg-type]


def from_dlpack(x: Any, /, *, device: Any = None, copy: Optional[builtins.bool] = None) -> Tensor:
    """An array over the memory of another library's, or a copy of it."""
    array = _C.from_dlpack(x)
    target = array.device if device is None else _C.device(device)
    if copy is False and target != array.device:
        raise ValueError(
            f"from_dlpack: expected device {array.device} without a copy, got {target}"
        )
    return as_array(array.to(device=target, dtype=array.dtype, copy=builtins.bool(copy)))


def empty(shape: Shape, *, dtype: Optional[Dtype] = None, device: Any = None) -> Tensor:
    """An array whose values are whatever the memory holds."""
    return as_array(_C.empty(_sizes(shape), dtype=dtype, device=device))


def zeros(shape: Shape, *, dtype: Optional[Dtype] = None, device: Any = None) -> Tensor:
    """An array of zeros."""
    return as_array(_C.zeros(_sizes(shape), dtype=dtype, device=device))


def ones(shape: Shape, *, dtype: Optional[Dtype] = None, device: Any = None) -> Tensor:
    """An array of ones."""
    return as_array(_C.ones(_sizes(shape), dtype=dtype, device=device))


def full(
    shape: Shape, fill_value: Number, *, dtype: Optional[Dtype] = None, device: Any = None
) -> Tensor:
    """An array of one value, which also says the dtype unless it is given."""
    if isinstance(fill_value, complex):  # a part beyond the range becomes infinite
        dtype = dtype or _C.get_default_dtype().to_complex()
        return as_array(
            _C.full(_sizes(shape), fill_value, dtype=_C.complex128, device=device).to(dtype)
        )
    return as_array(_C.full(_sizes(shape), fill_value, dtype=dtype, device=device))


def empty_like(x: Tensor, /, *, dtype: Optional[Dtype] = None, device: Any = None) -> Tensor:
    """An array of the shape of `x` whose values are whatever the memory holds."""
    return _C.empty_like(x, dtype=dtype, device=device)


def zeros_like(x: Tensor, /, *, dtype: Optional[Dtype] = None, device: Any = None) -> Tensor:
    """Zeros in the shape of `x`."""
    return _C.zeros_like(x, dtype=dtype, device=device)


def ones_like(x: Tensor, /, *, dtype: Optional[Dtype] = None, device: Any = None) -> Tensor:
    """Ones in the shape of `x`."""
    return _C.ones_like(x, dtype=dtype, device=device)


def full_like(
    x: Tensor, /, fill_value: Number, *, dtype: Optional[Dtype] = None, device: Any = None
) -> Tensor:
    """One value in the shape of `x`."""
    return _C.full_like(x, fill_value, dtype=dtype, device=device)


def eye(
    n_rows: int,
    n_cols: Optional[int] = None,
    /,
    *,
    k: int = 0,
    dtype: Optional[Dtype] = None,
    device: Any = None,
) -> Tensor:
    """A matrix with ones on diagonal `k`: above the main one where it is positive."""
    n_cols = n_rows if n_cols is None else n_cols
    if k == 0:
        return as_array(_C.eye(n_rows, n_cols, dtype=dtype, device=device))
    matrix = _C.zeros((n_rows, n_cols), dtype=dtype, device=device)
    if -n_rows < k < n_cols:
        _C.diagonal(matrix, k).fill_(1)
    return as_array(matrix)


def linspace(
    start: Number,
    stop: Number,
    /,
    num: int,
    *,
    dtype: Optional[Dtype] = None,
    device: Any = None,
    endpoint: builtins.bool = True,
) -> Tensor:
    """Exactly `num` numbers equally far apart, the last of them `stop` or the one before."""
    points = _C.linspace(start, stop, num if endpoint else num + 1, dtype=dtype, device=device)
    return as_array(points if endpoint else points[:-1])


def meshgrid(*arrays: Tensor, indexing: str = "xy") -> Tuple[Tensor, ...]:
    """The values of 1-dim arrays along one dimension each of a common grid."""
    if len({a.dtype for a in arrays}) > 1:
        raise ValueError(f"meshgrid: expected arrays of one dtype, got {[a.dtype for a in arrays]}")
    return tuple(_C.meshgrid(list(arrays), indexing=indexing)) if arrays else ()


def tril(x: Tensor, /, *, k: int = 0) -> Tensor:
    """Zero above diagonal `k`."""
    return _C.tril(x, k)


def triu(x: Tensor, /, *, k: int = 0) -> Tensor:
    """Zero below diagonal `k`."""
    return _C.triu(x, k)
