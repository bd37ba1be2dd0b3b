"""Memory with guard pages around it, and tensors in such memory.

    with GuardedMemory(24, at_end=True) as memory: ...

The page after the last byte (or before the first one, where the memory begins at the start of its
page) cannot be touched: an access beside a tensor is a SIGSEGV at the very element. The rest of the
pages, and gaps between elements, hold a pattern.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import ctypes
import itertools
import mmap
from math import prod
from typing import Any, Optional, Sequence

import numpy as np

import treadle

PAGE = mmap.PAGESIZE
# Longer tensors with gaps have memory only where their elements are.
_DENSE = 1 << 26
_PROT_NONE, _PROT_READ, _PROT_WRITE = 0, 1, 2
_MAP_PRIVATE, _MAP_ANONYMOUS, _MAP_NORESERVE = 2, 0x20, 0x4000
_libc = ctypes.CDLL(None, use_errno=True)
_libc.mmap.restype = ctypes.c_void_p
_libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [ctypes.c_long]
_libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
_libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]

# The NumPy type that holds the bits of a dtype that NumPy does not have.
_BITS = {1: np.uint8, 2: np.int16, 4: np.int32, 8: np.int64}


def storage_type(dtype: str) -> np.dtype:
    """The NumPy type of a dtype's elements in memory."""
    if dtype in ("float16", "float32", "float64", "bool", "complex64", "complex128"):
        return np.dtype(dtype)
    if "int" in dtype:
        return np.dtype(dtype)
    return np.dtype(_BITS[getattr(treadle, dtype).itemsize])


def contiguous(shape: Sequence[int]) -> tuple[int, ...]:
    """The strides of a contiguous tensor."""
    return tuple(prod(max(s, 1) for s in shape[d + 1 :]) for d in range(len(shape)))


def reach(shape: Sequence[int], strides: Sequence[int]) -> tuple[int, int]:
    """The offsets of the lowest and the highest element from the first one."""
    steps = [(n - 1) * s for n, s in zip(shape, strides)]
    return sum(min(s, 0) for s in steps), sum(max(s, 0) for s in steps)


class GuardedMemory:
    """So many bytes between two pages that cannot be touched.

    `pages` are the numbers of the only pages that memory is wanted for; None for all of them.
    MemoryError where there is none.
    """

    def __init__(self, size: int, at_end: bool, pages: Optional[set[int]] = None):
        inner = max(-(-size // PAGE), 1) * PAGE
        self.whole = inner + 2 * PAGE
        flags = _MAP_PRIVATE | _MAP_ANONYMOUS | _MAP_NORESERVE
        address = _libc.mmap(None, self.whole, _PROT_NONE, flags, -1, 0)
        if address is None or address == ctypes.c_void_p(-1).value:
            self.start = 0
            raise MemoryError(f"expected {self.whole} bytes of addresses, got none")
        self.start = address
        self.first, self.size = address + PAGE, inner
        self.address = self.first + (inner - size if at_end else 0)
        self.sparse = pages is not None
        for page in [0] if pages is None else pages:
            length = inner if pages is None else PAGE
            if _libc.mprotect(self.first + page * PAGE, length, _PROT_READ | _PROT_WRITE):
                raise MemoryError(f"expected {length} bytes, got none")

    def bytes(self) -> np.ndarray:
        """All that can be touched."""
        return np.frombuffer((ctypes.c_uint8 * self.size).from_address(self.first), np.uint8)

    def close(self) -> None:
        if self.start:
            _libc.munmap(self.start, self.whole)
            self.start = 0


class Buffer:
    """A tensor of given strides in guarded memory: `tensor`, and `array`, the same as NumPy has it.

    What is not an element of it holds `pattern`, a byte.
    """

    def __init__(
        self,
        dtype: str,
        shape: Sequence[int],
        strides: Optional[Sequence[int]] = None,
        at_end: bool = True,
        pattern: int = 0xFF,
        shift: int = 0,
    ):
        self.dtype, self.shape, self.pattern = dtype, tuple(shape), pattern
        self.strides = tuple(contiguous(shape) if strides is None else strides)
        kind = storage_type(dtype)
        item = kind.itemsize
        low, high = reach(self.shape, self.strides) if prod(self.shape) else (0, -1)
        size = (high - low + 1 + shift) * item
        self.low, self.high, self.item = low, high, item
        pages = None
        if size > _DENSE:
            inner = -(-size // PAGE) * PAGE
            begin = inner - size if at_end else 0
            pages = {
                page for o in self._offsets() for page in ((begin + (o - low) * item) // PAGE,)
            }
        self.memory = GuardedMemory(size, at_end, pages)
        if not self.memory.sparse:
            self.memory.bytes()[:] = pattern
        at = self.memory.address - low * item
        self.array = self._array(kind, at)
        # Memory of a tensor that another one shares, moved by `shift` elements.
        self.shifted = self._array(kind, at + shift * item) if shift else self.array
        self.outside: Optional[np.ndarray] = None

    def _offsets(self) -> list[int]:
        steps = (range(n) for n in self.shape)
        return [sum(i * s for i, s in zip(at, self.strides)) for at in itertools.product(*steps)]

    def _array(self, kind: np.dtype, address: int) -> np.ndarray:
        if not prod(self.shape):
            return np.empty(self.shape, kind)
        begin = address + self.low * self.item
        span = (self.high - self.low + 1) * self.item
        memory = (ctypes.c_uint8 * span).from_address(begin)
        strides = [s * self.item for s in self.strides]
        return np.ndarray(self.shape, kind, memory, -self.low * self.item, strides)

    def tensor_of(self, array: np.ndarray) -> treadle.Tensor:
        """The tensor over one of the arrays."""
        t = treadle.from_numpy(array)
        wanted = getattr(treadle, self.dtype)
        return t if t.dtype == wanted else t.view(wanted)

    def note_outside(self) -> None:
        """Keeps what is outside of the elements, to compare it with what is there later."""
        if self.memory.sparse:
            return
        mask = np.ones(self.memory.size, np.bool_)
        if prod(self.shape):
            begin = self.memory.address - self.memory.first - self.low * self.item
            strides = [s * self.item for s in self.strides]
            mask_of = np.ndarray((*self.shape, self.item), np.bool_, mask, begin, [*strides, 1])
            mask_of[...] = False
        self.mask, self.outside = mask, self.memory.bytes()[mask].copy()

    def changed_outside(self) -> Optional[int]:
        """The distance in bytes from the first element of a byte that was written beside the
        elements; None where there is none."""
        if self.outside is None:
            return None
        changed = np.flatnonzero(self.memory.bytes()[self.mask] != self.outside)
        if not changed.size:
            return None
        places = np.flatnonzero(self.mask)[changed] - (
            self.memory.address - self.memory.first - self.low * self.item
        )
        return int(places[np.argmin(np.abs(places))])

    def close(self) -> None:
        self.memory.close()


def to_numpy(t: treadle.Tensor) -> Any:
    """The values of a tensor on any device, widened to float64 or complex128 where they are not
    exact integers."""
    t = t.detach().cpu().resolve_conj().resolve_neg()
    if t.is_complex():
        return t.to(treadle.complex128).numpy()
    return t.to(treadle.float64).numpy() if t.is_floating_point() else t.numpy()
