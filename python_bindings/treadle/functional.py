"""Functions that are more than one operator, or choose between several by an argument."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import operator
from typing import Any, Dict, NamedTuple, Optional, Sequence, Tuple, Union

from treadle import _C, _names
from treadle._C import Tensor
from treadle._functions.linear_algebra import (  # noqa: F401  names that programs find here, too
    block_diag,
    cartesian_prod,
    cdist,
    chain_matmul,
    einsum,
    lu,
    pca_lowrank,
    svd_lowrank,
    tensordot,
)
from treadle._functions.overridable import make_overridable as _make_overridable
from treadle._functions.variadic import (  # noqa: F401
    atleast_1d,
    atleast_2d,
    atleast_3d,
    broadcast_shapes,
    broadcast_tensors,
    meshgrid,
)
from treadle._tensor.untyped_storage import typed_storages as _typed_storages

istft, split, stft = _C.istft, _C.split, _C.stft
has_torch_function = _C._has_torch_function
has_torch_function_unary = _C._has_torch_function_unary
has_torch_function_variadic = _C._has_torch_function_variadic

# Of DLPack: the number of the CPU's kind of device, and the version that this package reads.
_DL_CPU, _DLPACK_VERSION = 1, (1, 3)


def is_tensor(obj: Any) -> bool:
    """Whether `obj` is a tensor."""
    return isinstance(obj, Tensor)


def is_storage(obj: Any) -> bool:
    """Whether `obj` is the memory under a tensor."""
    return isinstance(obj, _C.UntypedStorage) or isinstance(obj, _typed_storages())


def is_floating_point(input: Tensor) -> bool:
    """Whether the dtype is a floating one."""
    return input.dtype.is_floating_point


def is_complex(input: Tensor) -> bool:
    """Whether the dtype is a complex one."""
    return input.dtype.is_complex


def numel(input: Tensor) -> int:
    """The number of elements."""
    return input.numel()


def typename(obj: Any) -> str:
    """The name of an object's type, as messages show it."""
    if isinstance(obj, Tensor):
        return obj.type()
    kind = type(obj)
    return (
        kind.__qualname__
        if kind.__module__ == "builtins"
        else _names.in_words_of_the_program(f"{kind.__module__}.{kind.__qualname__}")
    )


def nonzero(
    input: Tensor, *, out: Optional[Tensor] = None, as_tuple: bool = False
) -> Union[Tensor, Tuple[Tensor, ...]]:
    """Positions of the elements that are not zero: one row each; `as_tuple`: a tensor per
    dimension."""
    if as_tuple:
        if out is not None:
            raise RuntimeError("nonzero: expected no out beside as_tuple=True, which gives tensors")
        return _C.nonzero_numpy(input)
    return _C.nonzero(input) if out is None else _C.nonzero(input, out=out)


def unique(
    input: Tensor,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: Optional[int] = None,
) -> Union[Tensor, Tuple[Tensor, ...]]:
    """The different values, or slices along `dim`; if asked for, where each went and how often each
    occurs.
    """
    if dim is None:
        found = _C._unique2(input, sorted, return_inverse, return_counts)
    else:
        found = _C.unique_dim(input, dim, sorted, return_inverse, return_counts)
    return _asked_for(found, return_inverse, return_counts)


def unique_consecutive(
    input: Tensor,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: Optional[int] = None,
) -> Union[Tensor, Tuple[Tensor, ...]]:
    """The values, or slices along `dim`, that differ from the one before; if asked for, where each
    went and how many were equal.
    """
    found = _C.unique_consecutive(input, return_inverse, return_counts, dim)
    return _asked_for(found, return_inverse, return_counts)


def _asked_for(
    found: Tuple[Tensor, ...], return_inverse: bool, return_counts: bool
) -> Union[Tensor, Tuple[Tensor, ...]]:
    values, inverse, counts = found
    results = [values] + [inverse] * return_inverse + [counts] * return_counts
    return values if len(results) == 1 else tuple(results)


def from_dlpack(ext_tensor: Any, *, device: Any = None, copy: Optional[bool] = None) -> Tensor:
    """A tensor over the memory of another library's, through DLPack; on `device`, if one is given.
    With `copy=True` it is over memory of its own; BufferError with `copy=False` where the device
    takes a copy."""
    wanted = None if device is None else _C.device(device)
    taken, copied = _taken_from_dlpack(ext_tensor, wanted, copy)
    where = taken.device if wanted is None else wanted
    if where.type != taken.device.type or where.index not in (None, taken.device.index):
        if copy is False:
            raise BufferError(
                f"from_dlpack: expected device {taken.device} without a copy, got {where}"
            )
        return taken.to(where)
    return taken.clone() if copy and not copied else taken


def _taken_from_dlpack(ext_tensor: Any, device: Any, copy: Optional[bool]) -> Tuple[Tensor, bool]:
    """A tensor of another library, and whether that has made a copy for it."""
    to_cpu = device is not None and device.type == "cpu" and hasattr(ext_tensor, "__dlpack__")
    moves = to_cpu and int(ext_tensor.__dlpack_device__()[0]) != _DL_CPU
    if hasattr(ext_tensor, "__dlpack__") and (moves or copy is not None):
        options: Dict[str, Any] = {"max_version": _DLPACK_VERSION}
        if copy is not None:
            options["copy"] = copy
        if moves:
            options["dl_device"] = (_DL_CPU, 0)
        try:
            return _C.from_dlpack(ext_tensor.__dlpack__(**options)), copy is True
        except TypeError:
            pass  # made before these arguments
    return _C.from_dlpack(ext_tensor), False


def histogramdd(
    input: Tensor,
    bins: Any,
    *,
    range: Optional[Sequence[float]] = None,
    weight: Optional[Tensor] = None,
    density: bool = False,
) -> Any:
    """The histogram of points (..., d), and the edges of its bins for each dimension. `bins` is
    their number, a number for each dimension, or the edges for each."""
    if isinstance(bins, int):
        bins = [bins] * input.shape[-1] if input.dim() else [bins]
    # The operators that have no name of their own in Python.
    aten = _names.package().ops.aten
    if not all(isinstance(b, Tensor) for b in bins):
        bins = aten._histogramdd_edges(input, list(bins), range=range)
    hist = aten._histogramdd_hist(input, list(bins), weight=weight, density=density)
    return _HistogramDD(hist, tuple(bins))


class _HistogramDD(NamedTuple):
    hist: Tensor
    bin_edges: Tuple[Tensor, ...]


_HistogramDD.__name__ = _HistogramDD.__qualname__ = "histogramdd"


def norm(
    input: Tensor,
    p: Any = "fro",
    dim: Any = None,
    keepdim: bool = False,
    out: Optional[Tensor] = None,
    dtype: Any = None,
) -> Tensor:
    """The norm of all elements or over `dim`: a number `p`, 'fro' for 2, 'nuc' for the sum of the
    singular values of matrices.
    """
    given = {} if out is None else {"out": out}
    if isinstance(p, str) and p == "nuc":
        matrix = (-2, -1) if dim is None else dim
        return _C._linalg.linalg_matrix_norm(input, "nuc", matrix, keepdim, dtype=dtype, **given)
    if isinstance(p, str):
        if p != "fro":
            raise RuntimeError(f"norm: expected p to be a number, 'fro' or 'nuc', got {p!r}")
        p = 2
    dims = [dim] if isinstance(dim, int) else dim
    order = 2 if p is None else p
    return _C._linalg.linalg_vector_norm(input, order, dims, keepdim, dtype=dtype, **given)


def is_nonzero(input: Tensor) -> bool:
    """Whether the one element of the tensor is not zero."""
    if input.numel() != 1:
        raise RuntimeError(f"is_nonzero: expected one element, got shape {tuple(input.shape)}")
    return bool(input.item() != 0)


def is_same_size(input: Tensor, other: Tensor) -> bool:
    """Whether two tensors have the same sizes."""
    return input.is_same_size(other)


def is_signed(input: Tensor) -> bool:
    """Whether the dtype has negative values."""
    return input.is_signed()


def is_conj(input: Tensor) -> bool:
    """Whether the tensor is a lazy conjugate, which none is."""
    return input.is_conj()


def is_neg(input: Tensor) -> bool:
    """Whether the tensor is a lazy negative, which none is."""
    return input.is_neg()


def is_inference(input: Tensor) -> bool:
    """Whether the tensor was made in inference mode."""
    return input.is_inference()


def unravel_index(indices: Tensor, shape: Any) -> Tuple[Tensor, ...]:
    """The coordinates, in a tensor of this shape, of positions in it seen as 1-dim."""
    if not isinstance(shape, (int, Sequence)):
        raise TypeError(
            f"unravel_index: expected shape to be an int or a sequence, got {type(shape).__name__}"
        )
    sizes = [shape] if isinstance(shape, int) else list(shape)
    if wrong := [n for n in sizes if not hasattr(n, "__index__")]:
        raise TypeError(f"unravel_index: expected ints in shape, got {type(wrong[0]).__name__}")
    sizes = [operator.index(n) for n in sizes]
    if any(n < 0 for n in sizes):
        raise ValueError(f"unravel_index: expected sizes >= 0, got {tuple(sizes)}")
    if indices.is_floating_point() or indices.is_complex() or indices.dtype == _C.bool:
        raise TypeError(f"unravel_index: expected indices of an integer dtype, got {indices.dtype}")
    coordinates = []
    indices = indices.long()
    step = 1
    for n in reversed(sizes):
        size = max(n, 1)
        coordinates.append(indices.div(step, rounding_mode="floor").remainder(size))
        step *= size
    return tuple(reversed(coordinates))


def _assert(condition: Any, message: str) -> None:
    """Raise AssertionError with the message unless the condition holds."""
    if not isinstance(condition, (bool, Tensor)):
        raise TypeError(f"_assert: expected a bool or a tensor, got {type(condition).__name__}")
    if not condition:
        raise AssertionError(message)


def _install_methods() -> None:
    """The same functions as methods of Tensor."""
    for function in (nonzero, unique, unique_consecutive, norm, is_nonzero):
        setattr(Tensor, function.__name__, function)


_make_overridable(
    __name__,
    """_assert histogramdd is_complex is_conj is_floating_point is_neg is_nonzero is_same_size
    is_signed nonzero norm numel unique unique_consecutive unravel_index""".split(),
)
_install_methods()
