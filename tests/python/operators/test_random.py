"""Random numbers: the same from the same seed at any thread count, in range, with the moments they
should have.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import pickle
from typing import Any, Callable

import numpy as np
import pytest
import scipy.stats

import treadle

COUNT = 60_000


def _binomial(count: float, prob: float, generator: Any) -> treadle.Tensor:
    return treadle.binomial(
        treadle.full((COUNT,), float(count)), treadle.full((COUNT,), prob), generator=generator
    )


def _gamma(shape: float, generator: Any) -> treadle.Tensor:
    return treadle._C._standard_gamma(treadle.full((COUNT,), shape), generator=generator)


# name: (call, mean, variance)
FILLS: dict[str, tuple[Callable[[Any], treadle.Tensor], float, float]] = {
    "uniform_": (lambda g: treadle.empty(COUNT).uniform_(-1.0, 3.0, generator=g), 1.0, 16 / 12),
    "normal_": (lambda g: treadle.empty(COUNT).normal_(2.0, 3.0, generator=g), 2.0, 9.0),
    "exponential_": (lambda g: treadle.empty(COUNT).exponential_(2.0, generator=g), 0.5, 0.25),
    "bernoulli_": (lambda g: treadle.empty(COUNT).bernoulli_(0.3, generator=g), 0.3, 0.21),
    "random_": (lambda g: treadle.empty(COUNT).random_(-2, 4, generator=g), 0.5, 35 / 12),
    # The arctangent of a Cauchy number is uniformly distributed.
    "cauchy_": (
        lambda g: ((treadle.empty(COUNT).cauchy_(3.0, 2.0, generator=g) - 3.0) / 2.0).atan(),
        0.0,
        np.pi**2 / 12,
    ),
    "log_normal_": (
        lambda g: treadle.empty(COUNT).log_normal_(0.25, 0.5, generator=g),
        np.exp(0.375),
        (np.exp(0.25) - 1) * np.exp(0.75),
    ),
    "geometric_": (
        lambda g: treadle.empty(COUNT).geometric_(0.3, generator=g),
        1 / 0.3,
        0.7 / 0.09,
    ),
    "poisson of small rates": (
        lambda g: treadle.poisson(treadle.full((COUNT,), 3.5), generator=g),
        3.5,
        3.5,
    ),
    "poisson of large rates": (
        lambda g: treadle.poisson(treadle.full((COUNT,), 40.0), generator=g),
        40.0,
        40.0,
    ),
    "binomial of few": (lambda g: _binomial(9, 0.3, g), 2.7, 1.89),
    "binomial of many": (lambda g: _binomial(200, 0.25, g), 50.0, 37.5),
    "binomial of likely": (lambda g: _binomial(200, 0.75, g), 150.0, 37.5),
    "gamma of a small shape": (lambda g: _gamma(0.3, g), 0.3, 0.3),
    "gamma of a large shape": (lambda g: _gamma(7.5, g), 7.5, 7.5),
    "dirichlet": (
        lambda g: treadle._C._sample_dirichlet(
            treadle.tensor([0.5, 1.5]).expand(COUNT, 2), generator=g
        )[:, 0],
        0.25,
        0.0625,
    ),
    "rand_like": (
        lambda g: treadle.rand_like(treadle.empty(COUNT), generator=g),
        0.5,
        1 / 12,
    ),
    "randn_like": (lambda g: treadle.randn_like(treadle.empty(COUNT), generator=g), 0.0, 1.0),
    "randint_like": (
        lambda g: treadle.randint_like(treadle.empty(COUNT), -2, 4, generator=g),
        0.5,
        35 / 12,
    ),
    "rand": (lambda g: treadle.rand(COUNT, generator=g), 0.5, 1 / 12),
    "randn": (lambda g: treadle.randn(COUNT, generator=g), 0.0, 1.0),
    "randint": (lambda g: treadle.randint(0, 10, (COUNT,), generator=g), 4.5, 99 / 12),
    "randperm": (
        lambda g: treadle.randperm(COUNT, generator=g),
        (COUNT - 1) / 2,
        (COUNT**2 - 1) / 12,
    ),
    "multinomial": (
        lambda g: treadle.multinomial(treadle.tensor([1.0, 3.0]), COUNT, True, generator=g),
        0.75,
        0.1875,
    ),
}


def _generator(seed: int) -> treadle.Generator:
    return treadle.Generator().manual_seed(seed)


@pytest.fixture(params=sorted(FILLS))
def fill(request: pytest.FixtureRequest) -> tuple[Callable[[Any], treadle.Tensor], float, float]:
    return FILLS[request.param]


def test_moments(fill: tuple[Callable[[Any], treadle.Tensor], float, float]) -> None:
    call, mean, variance = fill
    x = call(_generator(3)).numpy().astype(np.float64)
    # Six standard errors: a wrong distribution is far outside, chance is not.
    assert abs(x.mean() - mean) < 6 * np.sqrt(variance / COUNT) + 1e-9 * abs(mean)
    assert abs(x.var() / variance - 1) < 0.05


def test_seed_decides(fill: tuple[Callable[[Any], treadle.Tensor], float, float]) -> None:
    call = fill[0]
    first = call(_generator(7)).numpy().tobytes()
    assert call(_generator(7)).numpy().tobytes() == first
    assert call(_generator(8)).numpy().tobytes() != first


def test_default_generator(fill: tuple[Callable[[Any], treadle.Tensor], float, float]) -> None:
    call = fill[0]
    treadle.manual_seed(7)
    first = call(None).numpy().tobytes()
    assert call(None).numpy().tobytes() != first
    treadle.manual_seed(7)
    assert call(None).numpy().tobytes() == first


def test_threads_change_nothing(fill: tuple[Callable[[Any], treadle.Tensor], float, float]) -> None:
    threads = treadle.get_num_threads()
    try:
        results = []
        for n in (1, 2, 3, 8):
            treadle.set_num_threads(n)
            results.append(fill[0](_generator(5)).numpy().tobytes())
        assert len(set(results)) == 1
    finally:
        treadle.set_num_threads(threads)


def test_layout_changes_nothing() -> None:
    """An element's number depends on its place in the tensor, not on where it lies in memory."""
    straight = treadle.empty(30, 40).normal_(generator=_generator(1))
    turned = treadle.empty(40, 30).t().normal_(generator=_generator(1))
    np.testing.assert_array_equal(straight.numpy(), turned.numpy())


def test_state_is_saved_and_restored() -> None:
    g = _generator(1)
    treadle.rand(10, generator=g)
    state = g.get_state()
    first = treadle.rand(10, generator=g).numpy()
    g.set_state(state)
    np.testing.assert_array_equal(treadle.rand(10, generator=g).numpy(), first)
    state = treadle.get_rng_state()
    first = treadle.rand(10).numpy()
    treadle.set_rng_state(state)
    np.testing.assert_array_equal(treadle.rand(10).numpy(), first)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_uniform_stays_below_the_upper_bound(dtype: str) -> None:
    kind = getattr(treadle, dtype)
    x = treadle.rand(COUNT, dtype=kind)
    assert x.min().item() >= 0 and x.max().item() < 1
    x = treadle.empty(COUNT, dtype=kind).uniform_(1.0, 2.0)
    assert x.min().item() >= 1 and x.max().item() < 2


def test_exponential_is_positive() -> None:
    assert treadle.empty(COUNT).exponential_().min().item() > 0


def test_integers_stay_in_range_and_reach_all_of_it() -> None:
    x = treadle.randint(-3, 5, (COUNT,)).numpy()
    np.testing.assert_array_equal(np.unique(x), np.arange(-3, 5))
    counts = np.bincount(x + 3)
    assert abs(counts / COUNT * 8 - 1).max() < 0.1


@pytest.mark.parametrize(
    "dtype, top", [("uint8", 255), ("int8", 127), ("int16", 2**15 - 1), ("bool", 1)]
)
def test_random_without_bounds_fills_the_dtype(dtype: str, top: int) -> None:
    x = treadle.empty(COUNT, dtype=getattr(treadle, dtype)).random_().numpy().astype(np.int64)
    assert x.min() >= 0 and x.max() <= top
    assert x.max() > 0.9 * top


def test_random_over_the_whole_of_int64() -> None:
    x = treadle.empty(1000, dtype=treadle.int64).random_(-(2**63), None).numpy()
    assert x.min() < -(2**61) and x.max() > 2**61


def test_permutation_has_every_number_once() -> None:
    for n in (0, 1, 2, 1000):
        np.testing.assert_array_equal(np.sort(treadle.randperm(n).numpy()), np.arange(n))


def test_permutations_are_evenly_spread() -> None:
    counts: dict[tuple[int, ...], int] = {}
    for _ in range(3000):
        key = tuple(treadle.randperm(3).tolist())
        counts[key] = counts.get(key, 0) + 1
    assert len(counts) == 6 and min(counts.values()) > 380


def test_multinomial_without_replacement_draws_each_once() -> None:
    weights = treadle.tensor([[0.0, 1.0, 2.0, 3.0], [1.0, 0.0, 1.0, 1.0]])
    for _ in range(50):
        drawn = treadle.multinomial(weights, 3).numpy()
        np.testing.assert_array_equal(np.sort(drawn, 1), [[1, 2, 3], [0, 2, 3]])


def _assert_follows(drawn: np.ndarray, share: Callable[[np.ndarray], np.ndarray]) -> None:
    """The shares of the counts that are not rare, within six standard errors each."""
    values, found = np.unique(drawn, return_counts=True)
    wanted = share(values)
    common = wanted * COUNT > 50
    assert wanted[common].sum() > 0.99
    errors = np.sqrt(wanted * (1 - wanted) / COUNT)
    assert (np.abs(found / COUNT - wanted) < 6 * errors)[common].all()


@pytest.mark.parametrize("rate", [0.2, 3.5, 9.9, 10.0, 40.0])
def test_poisson_follows_the_distribution(rate: float) -> None:
    x = treadle.poisson(treadle.full((COUNT,), rate), generator=_generator(2)).numpy()
    _assert_follows(x, lambda k: scipy.stats.poisson.pmf(k, rate))


@pytest.mark.parametrize(
    "count, prob", [(1, 0.4), (9, 0.3), (50, 0.1), (50, 0.9), (200, 0.25), (200, 0.8), (60, 0.5)]
)
def test_binomial_follows_the_distribution(count: int, prob: float) -> None:
    x = _binomial(count, prob, _generator(2)).numpy()
    _assert_follows(x, lambda k: scipy.stats.binom.pmf(k, count, np.float32(prob)))


def test_geometric_follows_the_distribution() -> None:
    x = treadle.empty(COUNT, dtype=treadle.int64).geometric_(0.3, generator=_generator(2)).numpy()
    _assert_follows(x, lambda k: scipy.stats.geom.pmf(k, 0.3))


def test_counts_at_the_ends_of_their_parameters() -> None:
    rates = treadle.tensor([0.0, 1e-30, 1e15], dtype=treadle.float64)
    nothing, tiny, huge = treadle.poisson(rates).tolist()
    assert nothing == 0 and tiny == 0 and abs(huge - 1e15) < 1e9
    count = treadle.tensor([0.0, 7.0, 7.0, 1e15], dtype=treadle.float64)
    prob = treadle.tensor([0.5, 0.0, 1.0, 0.5], dtype=treadle.float64)
    none, never, always, half = treadle.binomial(count, prob).tolist()
    assert (none, never, always) == (0, 0, 7) and abs(half - 5e14) < 1e9
    # A number that an integer cannot hold becomes its largest value.
    for dtype in (treadle.uint8, treadle.int16, treadle.int64):
        x = treadle.empty(100, dtype=dtype).geometric_(1e-300)
        assert (x == treadle.iinfo(dtype).max).all()


@pytest.mark.parametrize(
    "call",
    [
        lambda: treadle.poisson(treadle.tensor([1.0, -1.0])),
        lambda: treadle.poisson(treadle.tensor([float("nan")])),
        lambda: treadle.binomial(treadle.tensor([-1.0]), treadle.tensor([0.5])),
        lambda: treadle.binomial(treadle.tensor([1.0]), treadle.tensor([1.5])),
        lambda: treadle.binomial(treadle.tensor([1.0]), treadle.tensor([float("nan")])),
        lambda: treadle.empty(3).geometric_(1.0),
        lambda: treadle.empty(3).geometric_(0.0),
        lambda: treadle.empty(3).cauchy_(0.0, -1.0),
        lambda: treadle.empty(3).log_normal_(0.0, 0.0),
    ],
)
def test_parameters_of_no_distribution_are_refused(call: Callable[[], Any]) -> None:
    with pytest.raises((RuntimeError, ValueError), match=r"^\w+: expected "):
        call()


def test_multinomial_follows_the_weights() -> None:
    drawn = treadle.multinomial(treadle.tensor([1.0, 0.0, 3.0, 4.0]), COUNT, True).numpy()
    shares = np.bincount(drawn, minlength=4) / COUNT
    np.testing.assert_allclose(shares, [0.125, 0, 0.375, 0.5], atol=0.01)


def test_bernoulli_follows_each_probability() -> None:
    p = treadle.tensor([0.0, 0.25, 1.0]).expand(COUNT, 3)
    shares = treadle.bernoulli(p).numpy().mean(0)
    assert shares[0] == 0 and shares[2] == 1 and abs(shares[1] - 0.25) < 0.02


def test_normal_takes_a_mean_and_deviation_for_each_element() -> None:
    mean, std = (
        treadle.tensor([0.0, 10.0]).expand(COUNT, 2),
        treadle.tensor([1.0, 0.0]).expand(COUNT, 2),
    )
    x = treadle.normal(mean, std).numpy()
    assert (x[:, 1] == 10).all() and abs(x[:, 0].std() - 1) < 0.02


def test_dropout_keeps_the_mean() -> None:
    x = treadle.dropout(treadle.ones(COUNT), 0.25, True).numpy()
    np.testing.assert_allclose(np.unique(x), [0, 4 / 3], rtol=1e-6)
    assert abs((x == 0).mean() - 0.25) < 0.02


def test_dropout_and_its_gradient_drop_the_same_elements() -> None:
    x = treadle.ones(1000, requires_grad=True)
    y = treadle.dropout(x, 0.5, True)
    y.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), y.detach().numpy())


def test_neighbouring_seeds_are_unrelated() -> None:
    a, b = (treadle.randn(COUNT, generator=_generator(s)).numpy() for s in (0, 1))
    assert abs(np.corrcoef(a, b)[0, 1]) < 0.03


def test_the_dtype_that_is_asked_for_is_the_one_that_counts() -> None:
    integers = treadle.arange(5)
    assert treadle.rand_like(integers, dtype=treadle.float32).dtype == treadle.float32
    assert treadle.randn_like(integers, dtype=treadle.complex64).dtype == treadle.complex64
    numbers = treadle.ones(5, dtype=treadle.complex64)
    assert treadle.randint_like(numbers, 3, dtype=treadle.int8).dtype == treadle.int8
    row = "float16, bfloat16, float32, float64, complex64, complex128"
    with pytest.raises(NotImplementedError) as info:
        treadle.rand_like(integers)
    assert str(info.value) == f"rand_like: expected self of a dtype in ({row}), got int64"
    with pytest.raises(NotImplementedError) as info:
        treadle.rand_like(integers.to(treadle.float32), dtype=treadle.bool)
    assert str(info.value) == f"rand_like: expected dtype in ({row}), got bool"


def test_a_generator_goes_through_pickle_with_its_state():
    generator = treadle.Generator().manual_seed(12)
    treadle.rand(3, generator=generator)
    copied = pickle.loads(pickle.dumps(generator))
    assert copied is not generator and copied.device == generator.device
    assert copied.initial_seed() == 12
    assert treadle.equal(copied.get_state(), generator.get_state())
    assert treadle.equal(treadle.rand(4, generator=copied), treadle.rand(4, generator=generator))
