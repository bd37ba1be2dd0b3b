"""Values that either side can read: tensors as bytes, functions as names or as their code.

`encode(torch, value)` makes them, `decode(torch, value)` makes tensors of the other `torch`. A
value that cannot be carried over raises NotCarried when it is encoded.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import functools
import importlib
import marshal
import math
import types
from dataclasses import dataclass
from typing import Any, Callable

import numpy as np

# The dtypes that NumPy has; others travel as integers of the same width.
_INTEGERS = {"bfloat16": "int16", "complex32": "int32", "bcomplex32": "int32"}
_SPACES = (
    "torch.Tensor",
    "torch",
    "torch.nn.functional",
    "torch.special",
    "torch.linalg",
    "torch.fft",
    "torch.masked",
    "torch.signal.windows",
)


class NotCarried(Exception):
    """A value of a kind that only the side that made it understands."""


@dataclass(frozen=True)
class Array:
    """A tensor: its elements in their order, and how they lay in memory."""

    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...] | None
    data: bytes
    requires_grad: bool = False
    parts: tuple[Any, ...] = ()  # of a sparse tensor: its layout, then its indices and values

    def numpy(self) -> Any:
        """The elements as numbers, of 16 bits as float32 or complex64."""
        if self.dtype == "bfloat16":
            wide = np.frombuffer(self.data, "uint16").astype("uint32") << 16
            return wide.view("float32").reshape(self.shape)
        if self.dtype == "complex32":
            halves = np.frombuffer(self.data, "float16").astype("float32")
            return halves.view("complex64").reshape(self.shape)
        kind = "uint8" if self.dtype.startswith("float8") else self.dtype
        return np.frombuffer(self.data, kind).reshape(self.shape)


@dataclass(frozen=True)
class Name:
    """Something that both sides have under the same path."""

    path: str


@dataclass(frozen=True)
class Made:
    """The result of a call of something by name: devices, sizes, slices."""

    path: str
    arguments: tuple[Any, ...]


@dataclass(frozen=True)
class Code:
    """A function that has no name, by its bytecode: for the same version of Python only."""

    code: bytes
    names: dict[str, Any]
    defaults: Any
    keywords: Any
    cells: tuple[Any, ...]


@dataclass(frozen=True)
class Failure:
    """An exception: the names of its classes, and its text."""

    classes: tuple[str, ...]
    text: str


def with_seed(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """The wrapper of the databases around functions that draw: they begin with the same seed."""
    importlib.import_module("torch").manual_seed(42)
    return function(*args, **kwargs)


@functools.cache
def _names(torch: Any) -> dict[int, str]:
    names: dict[int, str] = {}
    for space in reversed(_SPACES):
        owner = find(space)
        for name in dir(owner):
            value = getattr(owner, name, None)
            if callable(value):
                names[id(value)] = f"{space}.{name}"
    return names


def find(path: str) -> Any:
    """The object of a path; AttributeError where there is none."""
    if path == "with_seed":
        return with_seed
    first, *rest = path.split(".")
    owner = importlib.import_module(first)
    for i, name in enumerate(rest, 1):
        if isinstance(owner, types.ModuleType) and not hasattr(owner, name):
            try:
                importlib.import_module(".".join([first, *rest[:i]]))
            except ImportError:
                pass
        owner = getattr(owner, name)
    return owner


def encode_function(torch: Any, function: Any, depth: int = 0) -> Any:
    if id(function) in _names(torch):
        return Name(_names(torch)[id(function)])
    if type(function).__name__ in ("OpOverload", "OpOverloadPacket"):
        return Name(f"torch.ops.{function}")
    if getattr(function, "__name__", "") == "wrapper_set_seed":
        return Name("with_seed")
    if isinstance(function, types.BuiltinFunctionType) and hasattr(torch._C._nn, function.__name__):
        return Name(f"torch._C._nn.{function.__name__}")
    if isinstance(function, functools.partial):
        given = tuple(encode(torch, v) for v in function.args)
        return Made("functools.partial", (encode_function(torch, function.func), *given))
    if not isinstance(function, types.FunctionType) or depth > 4:
        raise NotCarried(f"a function of the type {type(function).__name__}")
    # A function of the package itself has a place where the other side looks for it, too.
    path = f"{function.__module__}.{function.__qualname__}"
    if path.startswith("torch.") and not path.startswith("torch.testing") and "<" not in path:
        return Name(path)
    wanted = _global_names(function.__code__)
    names = {n: function.__globals__[n] for n in wanted if n in function.__globals__}
    return Code(
        marshal.dumps(function.__code__),
        {n: _encode_any(torch, v, depth + 1) for n, v in names.items()},
        encode(torch, function.__defaults__),
        encode(torch, function.__kwdefaults__),
        tuple(_encode_any(torch, c.cell_contents, depth + 1) for c in function.__closure__ or ()),
    )


def _global_names(code: types.CodeType) -> set[str]:
    inner = (c for c in code.co_consts if isinstance(c, types.CodeType))
    return set(code.co_names).union(*(_global_names(c) for c in inner))


def _encode_any(torch: Any, value: Any, depth: int) -> Any:
    if isinstance(value, types.ModuleType):
        return Name(value.__name__)
    if isinstance(value, type) and value.__module__.partition(".")[0] in ("torch", "builtins"):
        return Name(f"{value.__module__}.{value.__qualname__}")
    return encode_function(torch, value, depth) if callable(value) else encode(torch, value)


def _bytes(torch: Any, tensor: Any) -> bytes:
    flat = tensor.detach()
    for resolve in ("resolve_conj", "resolve_neg"):
        flat = getattr(flat, resolve, lambda flat=flat: flat)()
    flat = flat.reshape(-1).contiguous()
    name = str(tensor.dtype).partition(".")[2]
    if name.startswith("float8"):
        flat = flat.view(torch.uint8)
    elif name in _INTEGERS:
        flat = flat.view(getattr(torch, _INTEGERS[name]))
    return flat.numpy().tobytes()


def _encode_tensor(torch: Any, tensor: Any) -> Array:
    dtype, shape = str(tensor.dtype).partition(".")[2], tuple(tensor.shape)
    layout = str(tensor.layout).partition(".")[2]
    if str(tensor.device.type) != "cpu":
        raise NotCarried(f"a tensor of the device {tensor.device}")
    if layout == "sparse_coo":
        whole = tensor.detach().coalesce()
        found = (whole.indices(), whole.values())
    elif layout in ("sparse_csr", "sparse_bsr"):
        found = (tensor.crow_indices(), tensor.col_indices(), tensor.detach().values())
    elif layout in ("sparse_csc", "sparse_bsc"):
        found = (tensor.ccol_indices(), tensor.row_indices(), tensor.detach().values())
    elif layout != "strided" or tensor.is_nested or tensor.is_quantized:
        raise NotCarried(f"a tensor of the layout {tensor.layout}")
    else:
        strides = tuple(tensor.stride())
        return Array(dtype, shape, strides, _bytes(torch, tensor), tensor.requires_grad)
    parts = (layout, *(_encode_tensor(torch, part) for part in found))
    return Array(dtype, shape, None, b"", tensor.requires_grad, parts)


def encode(torch: Any, value: Any) -> Any:
    """The plain form; NotCarried if there is none."""
    if isinstance(value, torch.Tensor):
        return _encode_tensor(torch, value)
    if isinstance(value, torch.Size):
        return Made("torch.Size", (tuple(value),))
    if value is None or isinstance(value, (bool, int, float, complex, str, bytes, range)):
        return value
    if isinstance(value, tuple):
        return tuple(encode(torch, v) for v in value)
    if isinstance(value, list):
        return [encode(torch, v) for v in value]
    if isinstance(value, dict):
        return {encode(torch, k): encode(torch, v) for k, v in value.items()}
    if isinstance(value, (np.ndarray, np.generic)):
        return value
    if isinstance(value, torch.dtype | torch.memory_format | torch.layout):
        return Name(str(value))
    if isinstance(value, torch.device):
        return Made("torch.device", (str(value),))
    if isinstance(value, slice):
        ends = (value.start, value.stop, value.step)
        return Made("builtins.slice", tuple(encode(torch, v) for v in ends))
    if value is Ellipsis:
        return Name("builtins.Ellipsis")
    if callable(value):
        return encode_function(torch, value)
    raise NotCarried(f"a value of the type {type(value).__name__}")


def _is_dense(shape: tuple[int, ...], strides: tuple[int, ...]) -> bool:
    """Whether no two elements share a place."""
    end = 0
    for stride, size in sorted((st, sz) for st, sz in zip(strides, shape) if sz > 1):
        if stride <= end:
            return False
        end += stride * (size - 1)
    return True


def contiguous_strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(math.prod(max(s, 1) for s in shape[i + 1 :]) for i in range(len(shape)))


def _decode_tensor(torch: Any, value: Array) -> Any:
    dtype = getattr(torch, value.dtype)
    if value.parts:
        layout, *parts = (value.parts[0], *(_decode_tensor(torch, p) for p in value.parts[1:]))
        if layout == "sparse_coo":
            made = torch.sparse_coo_tensor(*parts, value.shape).coalesce()
        else:
            make = torch.sparse_compressed_tensor
            made = make(*parts, value.shape, layout=getattr(torch, layout))
        return made.requires_grad_(value.requires_grad)
    plain = "uint8" if value.dtype.startswith("float8") else _INTEGERS.get(value.dtype, value.dtype)
    base = torch.from_numpy(np.frombuffer(value.data, plain).copy())
    base = (base if plain == value.dtype else base.view(dtype)).reshape(value.shape)
    strides = value.strides
    if strides is not None and strides != contiguous_strides(value.shape) and base.numel():
        if _is_dense(value.shape, strides):
            base = torch.empty_strided(value.shape, strides, dtype=dtype).copy_(base)
        else:
            for dim, stride in enumerate(strides):
                base = base if stride else base.narrow(dim, 0, 1)
            base = base.clone(memory_format=torch.contiguous_format).expand(value.shape)
    return base.requires_grad_(True) if value.requires_grad else base


def decode(torch: Any, value: Any) -> Any:
    """The value that `encode` was given, of this `torch`."""
    if isinstance(value, Array):
        return _decode_tensor(torch, value)
    if isinstance(value, Name):
        return find(value.path)
    if isinstance(value, Made):
        return find(value.path)(*(decode(torch, v) for v in value.arguments))
    if isinstance(value, Code):
        names = {n: decode(torch, v) for n, v in value.names.items()}
        cells = tuple(types.CellType(decode(torch, v)) for v in value.cells)
        code = marshal.loads(value.code)
        space = {"__builtins__": __builtins__, **names}
        function = types.FunctionType(code, space, None, None, cells)
        function.__defaults__ = decode(torch, value.defaults)
        function.__kwdefaults__ = decode(torch, value.keywords)
        return function
    if isinstance(value, tuple):
        return tuple(decode(torch, v) for v in value)
    if isinstance(value, list):
        return [decode(torch, v) for v in value]
    if isinstance(value, dict):
        return {decode(torch, k): decode(torch, v) for k, v in value.items()}
    return value


def failure(error: BaseException) -> Failure:
    return Failure(tuple(c.__name__ for c in type(error).__mro__), str(error)[:600])
