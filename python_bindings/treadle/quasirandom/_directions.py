"""The direction numbers of Sobol sequences, read from _directions.npz.

They are those that S. Joe and F. Y. Kuo published as "new-joe-kuo-6" (Constructing Sobol sequences
with better two-dimensional projections, SIAM J. Sci. Comput. 30, 2008), for 21201 dimensions. Each
dimension but the first has a primitive polynomial over GF(2), and as many initial numbers as its
degree s: the k-th is odd and below 2^k. The file has two arrays of bytes:

* half_steps: the polynomials, as numbers of their coefficients, ascend; half of each one's distance
  from the one before, starting from 1.
* digits: for each dimension in turn, of its initial numbers from the second to the s-th, the k - 1
  binary digits above the last, highest first; eight digits to a byte.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import os
from typing import Tuple

import numpy as np

DIMENSIONS = 21201

_FILE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "_directions.npz")


def initial_numbers(dimension: int) -> Tuple[np.ndarray, np.ndarray]:
    """The polynomials of the dimensions from the second to the last asked for, and a row for each
    with its initial numbers, followed by zeros."""
    with np.load(_FILE) as file:
        steps, packed = file["half_steps"][: dimension - 1], file["digits"]
    polynomials = 1 + 2 * np.cumsum(steps, dtype=np.int64)
    degrees = _degrees(polynomials)
    numbers = np.zeros((dimension - 1, 18), np.int64)
    first = 0
    for degree, (start, end) in _by_degree(degrees):
        numbers[start:end, 0] = 1
        width = degree * (degree - 1) // 2
        count = (end - start) * width
        # From the byte that the first digit is in.
        last = first + count
        digits = np.unpackbits(packed[first // 8 : -(-last // 8)])[first % 8 :][:count]
        digits = digits.reshape(end - start, width).astype(np.int64)
        place = 0
        for k in range(1, degree):
            weights = 2 << np.arange(k - 1, -1, -1)
            numbers[start:end, k] = 1 + digits[:, place : place + k] @ weights
            place += k
        first = last
    return polynomials, numbers


def directions(dimension: int, bits: int) -> np.ndarray:
    """The direction numbers of the first dimensions as an array of (dimension, bits): the j-th of a
    row is a binary fraction of that many digits, of which the j-th is its last that is not 0."""
    result = np.zeros((dimension, bits), np.int64)
    result[0] = 1
    if dimension > 1:
        polynomials, numbers = initial_numbers(dimension)
        for degree, (start, end) in _by_degree(_degrees(polynomials)):
            rows = result[start + 1 : end + 1]
            kept = min(degree, bits)
            rows[:, :kept] = numbers[start:end, :kept]
            for j in range(degree, bits):
                rows[:, j] = rows[:, j - degree]
                for k in range(1, degree + 1):
                    coefficient = (polynomials[start:end] >> (degree - k)) & 1
                    rows[:, j] ^= (coefficient * rows[:, j - k]) << k
    return result << np.arange(bits - 1, -1, -1)


def _degrees(polynomials: np.ndarray) -> np.ndarray:
    return np.frexp(polynomials.astype(np.float64))[1] - 1


def _by_degree(degrees: np.ndarray) -> list:
    """For each degree the rows that have it: they are next to each other, as degrees ascend."""
    found, starts = np.unique(degrees, return_index=True)
    ends = [*starts[1:].tolist(), len(degrees)]
    return list(zip(found.tolist(), zip(starts.tolist(), ends)))
