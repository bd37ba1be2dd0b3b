"""Samples: arguments for one call, as NumPy data, and what NumPy says the result is.

    @samples("gather")
    def gather(make):
        x, index = make((3, 4)), make.index((3, 2), below=4)
        yield Sample(x, 1, index, expect=lambda x, d, i, **_: np.take_along_axis(x, i, d))

A NumPy array in the arguments becomes a tensor; everything else is passed as it is. `expect` gets
the same arguments with floating arrays widened to float64 (complex to complex128), and returns an
array or a tuple of them.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable, Iterator, Optional

import numpy as np

import treadle
from treadle._introspection.explain import model

from . import device

# NumPy's type for the values of a dtype; bfloat16 has none, so its values are made as float32 and
# rounded by the tensor.
NUMPY_TYPES = {
    dtype["name"]: getattr(
        np, {"bool": "bool_", "bfloat16": "float32"}.get(dtype["name"], dtype["name"])
    )
    for dtype in model()["dtypes"]
}
# Relative and absolute tolerance against a float64 reference.
TOLERANCE = {
    "float16": (2e-3, 2e-3),
    "complex32": (2e-3, 2e-3),
    "bfloat16": (2e-2, 2e-2),
    "float32": (2e-5, 2e-5),
    "float64": (1e-10, 1e-10),
    "complex64": (2e-5, 2e-5),
    "complex128": (1e-10, 1e-10),
}


class Maker:
    """Makes arrays of one dtype from a fixed seed."""

    def __init__(self, dtype: str, seed: int = 0):
        self.dtype = dtype
        self.rng = np.random.default_rng(seed)

    @property
    def is_floating(self) -> bool:
        return "float" in self.dtype

    @property
    def is_complex(self) -> bool:
        return self.dtype.startswith("complex")

    @property
    def is_integral(self) -> bool:
        return "int" in self.dtype

    @property
    def is_unsigned(self) -> bool:
        return self.dtype.startswith("uint")

    def __call__(self, shape: tuple[int, ...], low: float = -2.0, high: float = 2.0) -> np.ndarray:
        """Values in [low, high) of the dtype; integers keep the range but span at least -4..4 (0..4
        unsigned).
        """
        if self.dtype == "bool":
            return np.asarray(self.rng.random(shape) < 0.5)
        if self.is_integral:
            below = 0 if self.is_unsigned else min(-4, int(low))
            first = below if low < 0 else max(1, int(np.ceil(low)))
            return np.asarray(
                self.rng.integers(first, max(5, int(high)), shape), dtype=NUMPY_TYPES[self.dtype]
            )
        values = self.rng.uniform(low, high, shape)
        if self.is_complex:
            values = values + 1j * self.rng.uniform(low, high, shape)
        return np.asarray(values).astype(NUMPY_TYPES[self.dtype])

    def distinct(self, shape: tuple[int, ...]) -> np.ndarray:
        """Values that differ by enough to be told apart in any floating dtype: for sorts and
        maxima.
        """
        count = int(np.prod(shape))
        if self.dtype == "bool":
            return self(shape)
        values = self.rng.permutation(count) - (0 if self.is_unsigned else count // 2)
        scale = 0.25 if self.is_floating else 1
        return (values * scale).reshape(shape).astype(NUMPY_TYPES[self.dtype])

    def index(self, shape: tuple[int, ...], below: int) -> np.ndarray:
        return np.asarray(self.rng.integers(0, below, shape), dtype=np.int64)

    def mask(self, shape: tuple[int, ...]) -> np.ndarray:
        return np.asarray(self.rng.random(shape) < 0.5)

    def scalar(self) -> Any:
        """A Python number of the dtype's kind, not zero."""
        if self.dtype == "bool":
            return True
        if self.is_integral:
            return 2
        return 1.5 + 0.5j if self.is_complex else 1.5


@dataclass
class Sample:
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    expect: Optional[Callable[..., Any]]
    grad: bool = True  # whether gradcheck applies to this sample
    exact: bool = False  # bit for bit, rather than within the dtype's tolerance
    loose: float = 1.0  # widens the tolerance, with a reason beside it
    shape_only: bool = (
        False  # the values are random or uninitialised: `expect` says shape and kind of dtype only
    )
    strides: bool = (
        False  # the result depends on the strides of the arguments: only contiguous ones are tried
    )
    # Why the gradient at ties, zeros, ends of the range or infinities is not what slopes say it is:
    # a convention, or a derivative that does not exist there.
    convention: str = ""
    # For a random operator: its numbers have a gradient by the parameters of their distribution,
    # at a given probability rather than a given seed.
    implicit: bool = False
    # Applied to what the operator returned before it is compared or differentiated: takes out what
    # is not determined, such as the sign of an eigenvector.
    settle: Optional[Callable[[Any], Any]] = None
    # Applied to the first argument where derivatives are checked: keeps its finite differences in
    # the operator's domain, such as Hermitian matrices.
    domain: Optional[Callable[[treadle.Tensor], treadle.Tensor]] = None
    # The positional arguments as programs write them, where a function in Python takes them
    # otherwise than the operator does: for the reference pages.
    as_written: Optional[tuple[Any, ...]] = None

    def __init__(
        self,
        *args: Any,
        expect: Optional[Callable[..., Any]] = None,
        grad: bool = True,
        exact: bool = False,
        loose: float = 1.0,
        shape_only: bool = False,
        strides: bool = False,
        convention: str = "",
        implicit: bool = False,
        settle: Optional[Callable[[Any], Any]] = None,
        domain: Optional[Callable[[treadle.Tensor], treadle.Tensor]] = None,
        as_written: Optional[tuple[Any, ...]] = None,
        **kwargs: Any,
    ):
        self.args, self.kwargs, self.expect = args, kwargs, expect
        self.grad, self.exact, self.loose = grad, exact, loose
        self.shape_only, self.strides = shape_only, strides
        self.convention, self.implicit = convention, implicit
        self.settle, self.domain, self.as_written = settle, domain, as_written


class _OfCpu(np.ndarray):
    """An array whose tensor is on the CPU, wherever the others are."""


def of_cpu(array: np.ndarray) -> np.ndarray:
    """The array, to become a tensor of the CPU on every device: for arguments that the operator
    wants there."""
    return array.view(_OfCpu)


def map_arrays(value: Any, f: Callable[[np.ndarray], Any]) -> Any:
    """`value` with f applied to each array in it, lists and tuples included."""
    if isinstance(value, np.ndarray):
        return f(value)
    if isinstance(value, (list, tuple)):
        return type(value)(map_arrays(v, f) for v in value)
    return value


def to_tensor(array: np.ndarray, dtype: str) -> treadle.Tensor:
    """A tensor of the array's values, on the device under test; an array of the dtype's NumPy type
    becomes a tensor of the dtype itself.
    """
    t = (
        treadle.tensor(array)
        if array.ndim == 0
        else treadle.from_numpy(np.ascontiguousarray(array)).clone()
    )
    if dtype == "bfloat16" and array.dtype == np.float32:
        t = t.to(treadle.bfloat16)
    return t.cpu() if isinstance(array, _OfCpu) else device.here(t)


# Dtypes that NumPy does not have, with one that holds their values.
_WITHOUT_NUMPY = {
    treadle.bfloat16: treadle.float32,
    treadle.complex32: treadle.complex64,
    treadle.bcomplex32: treadle.complex64,
    treadle.float8_e4m3fn: treadle.float32,
    treadle.float8_e5m2: treadle.float32,
    treadle.float8_e4m3fnuz: treadle.float32,
    treadle.float8_e5m2fnuz: treadle.float32,
    treadle.float8_e8m0fnu: treadle.float32,
}


def to_array(tensor: treadle.Tensor) -> np.ndarray:
    if tensor.requires_grad:
        tensor = tensor.detach()
    if tensor.layout != treadle.strided:
        tensor = tensor.to_dense()
    wide = _WITHOUT_NUMPY.get(tensor.dtype)
    if wide is not None:
        tensor = tensor.to(wide)
    return tensor.cpu().resolve_conj().resolve_neg().numpy()


def widen(array: np.ndarray) -> np.ndarray:
    if np.issubdtype(array.dtype, np.floating):
        return array.astype(np.float64)
    return array.astype(np.complex128) if np.issubdtype(array.dtype, np.complexfloating) else array


SampleFunction = Callable[[Maker], Iterator[Sample]]
REGISTRY: dict[str, SampleFunction] = {}


def samples(*ids: str) -> Callable[[SampleFunction], SampleFunction]:
    """Registers a sample function for entries by id ("gather", "sum.dim_IntList")."""

    def register(f: SampleFunction) -> SampleFunction:
        for i in ids:
            assert i not in REGISTRY, f"samples of {i} are registered twice"
            REGISTRY[i] = f
        return f

    return register
