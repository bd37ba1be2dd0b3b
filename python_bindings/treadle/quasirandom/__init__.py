"""Sobol sequences: points that fill a cube more evenly than random ones.

Example:

    engine = SobolEngine(dimension=5, scramble=True, seed=0)
    engine.draw(8)          # the first 8 points, a tensor of (8, 5) with numbers of [0, 1)
    engine.draw(8)          # the next 8
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Optional

import numpy as np

from treadle import _C
from treadle._C import Tensor
from treadle.quasirandom import _directions

_Tensor = Tensor


class SobolEngine:
    """The points of a Sobol sequence, one after the other.

    Args:
        dimension: how many numbers a point has, from 1 to 21201.
        scramble: whether the sequence is a random one of its kind: binary digits are mixed by a
            random triangular matrix for each dimension and then shifted (Owen, 1998; Matousek,
            1998). Otherwise the first point is 0.
        seed: of that choice; without one the library's random numbers are used.

    Raises ValueError where there is no such dimension.
    """

    MAXBIT = 30
    MAXDIM = _directions.DIMENSIONS

    def __init__(self, dimension: int, scramble: bool = False, seed: Optional[int] = None) -> None:
        if not 1 <= dimension <= self.MAXDIM:
            raise ValueError(
                f"SobolEngine: expected a dimension from 1 to {self.MAXDIM}, got {dimension}"
            )
        self.seed = seed
        self.scramble = scramble
        self.dimension = dimension
        state = _directions.directions(dimension, self.MAXBIT)
        if scramble:
            state, shift = self._scrambled(state)
        else:
            shift = np.zeros(dimension, np.int64)
        self.sobolstate = _on_cpu(state)
        self.shift = _on_cpu(shift)
        self.quasi = self.shift.clone()
        self._first_point = (self.quasi / 2**self.MAXBIT).reshape(1, -1)
        self.num_generated = 0

    def _scrambled(self, directions: np.ndarray) -> Any:
        """The directions with their digits mixed, and the shift."""
        generator = None
        if self.seed is not None:
            generator = _C.Generator()
            generator.manual_seed(self.seed)
        bits = self.MAXBIT

        def digits(*shape: int) -> np.ndarray:
            return _C.randint(2, shape, device="cpu", generator=generator).numpy()

        shift = digits(self.dimension, bits) @ (1 << np.arange(bits))
        # Digits are counted from the highest, in the rows and columns of the matrices too, which
        # have ones on the diagonal.
        weights = 1 << np.arange(bits - 1, -1, -1)
        mixers = np.tril(digits(self.dimension, bits, bits), -1) @ weights + weights
        mixed = np.zeros_like(directions)
        for place in range(bits):
            common = directions & mixers[:, place : place + 1]
            mixed |= _parity(common) << (bits - 1 - place)
        return mixed, shift

    def draw(
        self, n: int = 1, out: Optional[_Tensor] = None, dtype: Optional[_C.dtype] = None
    ) -> _Tensor:
        """The next n points, as a tensor of (n, dimension).

        Args:
            n: how many; 0 or more.
            out: a tensor that is resized and takes them.
            dtype: a floating one; the default dtype if it is not given.

        Raises ValueError for n below 0 and beyond the 2^30 points of the sequence,
        NotImplementedError for another dtype.
        """
        dtype = _C.get_default_dtype() if dtype is None else dtype
        if not dtype.is_floating_point:
            raise NotImplementedError(f"SobolEngine.draw: expected a floating dtype, got {dtype}")
        start = self.num_generated
        self._check_count("draw", n)
        result = _on_cpu(self._points(n) / 2**self.MAXBIT).to(dtype)
        if start == 0 and n > 0:
            # It has the precision of the default dtype that the engine was made in.
            result[0] = self._first_point
        self._go_to(start + n)
        if out is not None:
            return out.resize_as_(result).copy_(result)
        return result

    def draw_base2(
        self, m: int, out: Optional[_Tensor] = None, dtype: Optional[_C.dtype] = None
    ) -> _Tensor:
        """The next 2^m points, as a tensor of (2^m, dimension); see draw().

        Raises ValueError where the points drawn so far and these are not a power of 2 in all: only
        then are they spread evenly.
        """
        if m < 0:
            raise ValueError(f"SobolEngine.draw_base2: expected m >= 0, got {m}")
        n = 2**m
        total = self.num_generated + n
        if total & (total - 1):
            raise ValueError(
                f"SobolEngine.draw_base2: expected a power of 2 as the number of points in all, "
                f"got {self.num_generated} + 2**{m} = {total}; draw() takes any number"
            )
        return self.draw(n, out=out, dtype=dtype)

    def reset(self) -> "SobolEngine":
        """Start again from the first point."""
        self.quasi.copy_(self.shift)
        self.num_generated = 0
        return self

    def fast_forward(self, n: int) -> "SobolEngine":
        """Leave out the next n points.

        Raises ValueError for n below 0 and beyond the 2^30 points of the sequence.
        """
        self._check_count("fast_forward", n)
        self._go_to(self.num_generated + n)
        return self

    def _check_count(self, operation: str, n: int) -> None:
        if n < 0:
            raise ValueError(f"SobolEngine.{operation}: expected n >= 0, got {n}")
        if self.num_generated + n > 2**self.MAXBIT:
            raise ValueError(
                f"SobolEngine.{operation}: expected at most {2**self.MAXBIT} points in all, "
                f"got {self.num_generated} + {n}"
            )

    def _points(self, n: int) -> np.ndarray:
        """The next n points as integers. Each differs from the one before by one direction: the
        one whose number is that of the zeros at the end of the later point's index."""
        later = np.arange(self.num_generated, self.num_generated + n, dtype=np.int64)
        directions = self.sobolstate.numpy().T
        steps = directions[_zeros_at_end(later)]
        if n and self.num_generated == 0:
            steps[0] = 0
        if n:
            steps[0] ^= self.quasi.numpy()
        return np.bitwise_xor.accumulate(steps, axis=0, out=steps)

    def _go_to(self, number: int) -> None:
        """Keep the last of so many points, made of the directions in its index's Gray code."""
        changed = _gray_code(max(number - 1, 0)) ^ _gray_code(max(self.num_generated - 1, 0))
        places = [place for place in range(self.MAXBIT) if changed >> place & 1]
        self.quasi = _on_cpu(
            self.quasi.numpy()
            ^ np.bitwise_xor.reduce(self.sobolstate.numpy()[:, places], axis=1, initial=0)
        )
        self.num_generated = number

    def __repr__(self) -> str:
        words = [f"dimension={self.dimension}"]
        if self.scramble:
            words.append("scramble=True")
        if self.seed is not None:
            words.append(f"seed={self.seed}")
        return f"{type(self).__name__}({', '.join(words)})"


def _on_cpu(array: np.ndarray) -> _Tensor:
    return _C.from_numpy(np.ascontiguousarray(array))


def _gray_code(index: int) -> int:
    return index ^ (index >> 1)


def _zeros_at_end(numbers: np.ndarray) -> np.ndarray:
    """How many binary digits 0 are at the end of each number; 0 for 0."""
    return np.frexp((numbers & -numbers).astype(np.float64))[1].clip(min=1) - 1


def _parity(numbers: np.ndarray) -> np.ndarray:
    """Whether each number below 2^32 has an odd number of binary digits 1."""
    for width in (16, 8, 4, 2, 1):
        numbers = numbers ^ (numbers >> width)
    return numbers & 1


__all__ = ["SobolEngine"]
