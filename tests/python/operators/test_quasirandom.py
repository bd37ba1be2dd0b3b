"""Sobol sequences: against SciPy's, point for point, and what an engine's methods do."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
import scipy.stats
from scipy.stats import qmc

import treadle
from treadle.quasirandom import SobolEngine, _directions

# SciPy has as many binary digits if it is asked for them.
BITS = SobolEngine.MAXBIT


def _scipy_points(dimension: int, m: int) -> np.ndarray:
    return qmc.Sobol(dimension, scramble=False, bits=BITS).random_base2(m)


def test_directions_are_the_published_ones() -> None:
    place = os.path.join(os.path.dirname(scipy.stats.__file__), "_sobol_direction_numbers.npz")
    published = np.load(place)
    polynomials, numbers = _directions.initial_numbers(SobolEngine.MAXDIM)
    assert np.array_equal(polynomials, published["poly"][1:])
    assert np.array_equal(numbers, published["vinit"][1:])


@pytest.mark.parametrize("dimension", [1, 2, 3, 8, 60, 1111])
def test_points_are_the_published_sequence(dimension: int) -> None:
    points = SobolEngine(dimension).draw(128, dtype=treadle.float64)
    assert points.dtype == treadle.float64 and points.shape == (128, dimension)
    assert np.array_equal(points.numpy(), _scipy_points(dimension, 7))
    assert SobolEngine(dimension).draw(3).dtype == treadle.float32


def test_last_dimension() -> None:
    engine = SobolEngine(SobolEngine.MAXDIM)
    assert engine.MAXDIM == 21201
    expected = _scipy_points(SobolEngine.MAXDIM, 3)
    assert np.array_equal(engine.draw(8, dtype=treadle.float64).numpy(), expected)


@pytest.mark.parametrize("scramble", [False, True])
def test_points_come_in_the_same_order_however_they_are_asked_for(scramble: bool) -> None:
    whole = SobolEngine(5, scramble, seed=1).draw(64)
    engine = SobolEngine(5, scramble, seed=1)
    parts = [engine.draw(), engine.draw(0), engine.draw(2), engine.draw(13), engine.draw(48)]
    assert treadle.equal(treadle.cat(parts), whole) and engine.num_generated == 64
    assert treadle.equal(engine.reset().draw(64), whole)
    for left_out in (0, 1, 2, 31):
        engine = SobolEngine(5, scramble, seed=1)
        assert engine.fast_forward(left_out) is engine
        assert treadle.equal(engine.draw(3), whole[left_out : left_out + 3])
        engine.fast_forward(7)
        assert treadle.equal(engine.draw(2), whole[left_out + 10 : left_out + 12])
    engine = SobolEngine(5, scramble, seed=1)
    assert treadle.equal(treadle.cat([engine.draw_base2(3), engine.draw_base2(3)]), whole[:16])
    assert treadle.equal(engine.draw(0), whole[:0])


def test_scrambled_points_are_evenly_spread() -> None:
    engine = SobolEngine(6, scramble=True, seed=12)
    points = engine.draw(64, dtype=treadle.float64)
    # A net: in each dimension one point in each of 64 parts; in pairs of the first ones, in 8 by 8.
    for dimension in range(6):
        assert sorted((points[:, dimension] * 64).long().tolist()) == list(range(64))
    cells = (points[:, :2] * 8).long()
    assert sorted((cells[:, 0] * 8 + cells[:, 1]).tolist()) == list(range(64))
    assert not treadle.equal(points, SobolEngine(6, True, 13).draw(64, dtype=treadle.float64))


def test_scrambling_mixes_digits_by_triangular_matrices() -> None:
    plain, mixed = SobolEngine(4), SobolEngine(4, scramble=True, seed=2)

    def digits(numbers: treadle.Tensor) -> treadle.Tensor:
        return numbers.unsqueeze(-1) >> treadle.arange(BITS - 1, -1, -1) & 1

    generator = treadle.Generator().manual_seed(2)
    shift = treadle.randint(2, (4, BITS), generator=generator)
    lower = treadle.randint(2, (4, BITS, BITS), generator=generator).tril(-1)
    lower += treadle.eye(BITS, dtype=treadle.int64)
    assert treadle.equal(digits(mixed.shift).flip(-1), shift)
    expected = (lower.unsqueeze(1) @ digits(plain.sobolstate).unsqueeze(-1)).squeeze(-1) % 2
    assert treadle.equal(digits(mixed.sobolstate), expected)


def test_seed_is_the_engines_own_or_the_librarys() -> None:
    treadle.manual_seed(3)
    before = treadle.get_rng_state()
    first = SobolEngine(3, scramble=True, seed=5).draw(4)
    assert treadle.equal(treadle.get_rng_state(), before)
    assert treadle.equal(SobolEngine(3, scramble=True, seed=5).draw(4), first)
    second = SobolEngine(3, scramble=True).draw(4)
    assert not treadle.equal(SobolEngine(3, scramble=True).draw(4), second)
    treadle.manual_seed(3)
    assert treadle.equal(SobolEngine(3, scramble=True).draw(4), second)


def test_dtypes_and_out() -> None:
    engine = SobolEngine(2)
    out = treadle.zeros(7, dtype=treadle.float64)
    assert engine.draw(3, out=out) is out
    assert out.tolist() == [[0.0, 0.0], [0.5, 0.5], [0.75, 0.25]]
    assert engine.draw(1, dtype=treadle.float16).tolist() == [[0.25, 0.75]]
    treadle.set_default_dtype(treadle.float64)
    try:
        assert SobolEngine(2).draw(2).dtype == treadle.float64
    finally:
        treadle.set_default_dtype(treadle.float32)


def test_representation() -> None:
    assert repr(SobolEngine(3)) == "SobolEngine(dimension=3)"
    assert repr(SobolEngine(3, True, 9)) == "SobolEngine(dimension=3, scramble=True, seed=9)"
    assert repr(SobolEngine(3, seed=0)) == "SobolEngine(dimension=3, seed=0)"


def test_refused() -> None:
    for dimension in (0, -1, 21202):
        with pytest.raises(ValueError) as error:
            SobolEngine(dimension)
        expected = f"SobolEngine: expected a dimension from 1 to 21201, got {dimension}"
        assert str(error.value) == expected
    engine = SobolEngine(2)
    with pytest.raises(ValueError) as error:
        engine.draw(-1)
    assert str(error.value) == "SobolEngine.draw: expected n >= 0, got -1"
    with pytest.raises(ValueError) as error:
        engine.fast_forward(-2)
    assert str(error.value) == "SobolEngine.fast_forward: expected n >= 0, got -2"
    with pytest.raises(NotImplementedError) as unsupported:
        engine.draw(2, dtype=treadle.int64)
    assert str(unsupported.value) == (
        "SobolEngine.draw: expected a floating dtype, got treadle.int64"
    )
    with pytest.raises(ValueError) as error:
        engine.draw_base2(-1)
    assert str(error.value) == "SobolEngine.draw_base2: expected m >= 0, got -1"
    engine.draw(3)
    with pytest.raises(ValueError) as error:
        engine.draw_base2(2)
    assert str(error.value) == (
        "SobolEngine.draw_base2: expected a power of 2 as the number of points in all, "
        "got 3 + 2**2 = 7; draw() takes any number"
    )
    engine.reset().fast_forward(2**30 - 1)
    assert 0 < engine.draw(1, dtype=treadle.float64).min()
    with pytest.raises(ValueError) as error:
        engine.draw(1)
    assert str(error.value) == (
        "SobolEngine.draw: expected at most 1073741824 points in all, got 1073741824 + 1"
    )


def test_module_loads_when_it_is_asked_for() -> None:
    program = (
        "import sys, treadle; assert 'treadle.quasirandom' not in sys.modules; "
        "print(treadle.quasirandom.SobolEngine(2).draw(2).tolist())"
    )
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert found.stdout == "[[0.0, 0.0], [0.5, 0.5]]\n", found.stderr
