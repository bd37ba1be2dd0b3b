"""Divergences: each entry against the integral, sum or mean of log(p(x)) - log(q(x)) that it stands
for. An entry without a pair of distributions here fails.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import itertools
from typing import Any, Callable

import numpy as np
import pytest

import treadle
from treadle import distributions as d
from treadle.distributions.kl import _KL_REGISTRY


def t(data: Any) -> treadle.Tensor:
    return treadle.tensor(data, dtype=treadle.float64)


COVARIANCE = [[2.0, 0.5, -0.3], [0.5, 1.5, 0.2], [-0.3, 0.2, 0.8]]
OTHER = [[1.0, 0.2, 0.1], [0.2, 3.0, -0.4], [0.1, -0.4, 2.0]]

# Two distributions of each family, the second of which gives every number that the first gives.
NUMBERS: dict[str, tuple[Callable[[], Any], Callable[[], Any]]] = {
    "Bernoulli": (lambda: d.Bernoulli(t(0.3)), lambda: d.Bernoulli(logits=t(0.4))),
    "Beta": (lambda: d.Beta(t(1.5), t(2.0)), lambda: d.Beta(t(0.7), t(1.2))),
    "Binomial": (lambda: d.Binomial(6, t(0.3)), lambda: d.Binomial(6, t(0.55))),
    "Categorical": (
        lambda: d.Categorical(t([0.2, 0.5, 0.3])),
        lambda: d.Categorical(logits=t([0.1, -1.0, 0.4])),
    ),
    "Cauchy": (lambda: d.Cauchy(t(0.0), t(1.0)), lambda: d.Cauchy(t(1.5), t(2.5))),
    "ContinuousBernoulli": (
        lambda: d.ContinuousBernoulli(t(0.2)),
        lambda: d.ContinuousBernoulli(t(0.7)),
    ),
    "Exponential": (lambda: d.Exponential(t(1.5)), lambda: d.Exponential(t(0.6))),
    "Gamma": (lambda: d.Gamma(t(2.5), t(1.5)), lambda: d.Gamma(t(1.2), t(0.7))),
    "Geometric": (lambda: d.Geometric(t(0.4)), lambda: d.Geometric(t(0.25))),
    "Gumbel": (lambda: d.Gumbel(t(0.0), t(1.0)), lambda: d.Gumbel(t(0.5), t(1.5))),
    "HalfNormal": (lambda: d.HalfNormal(t(1.0)), lambda: d.HalfNormal(t(2.5))),
    "Laplace": (lambda: d.Laplace(t(0.0), t(1.0)), lambda: d.Laplace(t(0.5), t(1.5))),
    "LogNormal": (lambda: d.LogNormal(t(0.0), t(0.5)), lambda: d.LogNormal(t(0.5), t(0.8))),
    "Normal": (lambda: d.Normal(t(0.3), t(1.0)), lambda: d.Normal(t(-0.5), t(1.5))),
    "Pareto": (lambda: d.Pareto(t(1.5), t(4.5)), lambda: d.Pareto(t(0.2), t(1.5))),
    "Poisson": (lambda: d.Poisson(t(2.5)), lambda: d.Poisson(t(4.0))),
    "Uniform": (lambda: d.Uniform(t(0.25), t(0.75)), lambda: d.Uniform(t(-1.0), t(2.5))),
}

# Distributions of vectors, or made of others: by the mean of samples.
MANY: dict[str, tuple[Callable[[], Any], Callable[[], Any]]] = {
    "Dirichlet": (
        lambda: d.Dirichlet(t([1.5, 2.0, 3.0])),
        lambda: d.Dirichlet(t([1.0, 2.5, 1.5])),
    ),
    "Independent": (
        lambda: d.Independent(d.Normal(t([0.0, 1.0]), t([1.0, 2.0])), 1),
        lambda: d.Independent(d.Normal(t([0.5, 1.0]), t([1.5, 1.0])), 1),
    ),
    "LowRankMultivariateNormal": (
        lambda: d.LowRankMultivariateNormal(
            t([0.0, 1.0, -1.0]), t([[0.5], [1.0], [-0.3]]), t([1.0, 0.5, 2.0])
        ),
        lambda: d.LowRankMultivariateNormal(
            t([0.5, 1.0, 0.0]), t([[1.5, 0.0], [1.0, 0.2], [-0.3, 0.5]]), t([0.7, 1.5, 1.0])
        ),
    ),
    "MultivariateNormal": (
        lambda: d.MultivariateNormal(t([0.0, 1.0, -1.0]), t(COVARIANCE)),
        lambda: d.MultivariateNormal(t([0.5, 0.0, -1.5]), t(OTHER)),
    ),
    "OneHotCategorical": (
        lambda: d.OneHotCategorical(t([0.2, 0.5, 0.3])),
        lambda: d.OneHotCategorical(t([0.3, 0.3, 0.4])),
    ),
    "TransformedDistribution": (
        lambda: d.TransformedDistribution(d.Normal(t(0.0), t(1.0)), d.ExpTransform()),
        lambda: d.TransformedDistribution(d.Normal(t(0.5), t(1.5)), d.ExpTransform()),
    ),
    # By the divergence of log-normalisers, which all families without an entry have.
    "ExponentialFamily": (
        lambda: d.Wishart(t(6.5), t(COVARIANCE)),
        lambda: d.Wishart(t(5.0), t(OTHER)),
    ),
}

# Pairs that one of the families has numbers for which the other has none.
INFINITE = {
    (p, q)
    for p, q in itertools.product(NUMBERS, NUMBERS)
    if p != q
    and (
        (p in {"Gumbel", "Laplace", "Normal"} and q in {"Exponential", "Gamma"})
        or (p in {"Beta", "ContinuousBernoulli", "Exponential", "Gamma"} and q == "Pareto")
        or (p in {"Gumbel", "Laplace", "Normal"} and q == "Pareto")
        or (
            p in {"Exponential", "Gamma", "Gumbel", "Laplace", "Normal", "Pareto"}
            and q in {"Beta", "ContinuousBernoulli", "Uniform"}
        )
        or (p == "Poisson" and q in {"Bernoulli", "Binomial"})
    )
}

ENTRIES = sorted((p.__name__, q.__name__) for p, q in _KL_REGISTRY)


def _pair(p: str, q: str) -> tuple[Any, Any]:
    cases = {**NUMBERS, **MANY}
    return cases[p][0](), cases[q][1]()


def test_every_entry_has_a_pair() -> None:
    named = {name for entry in ENTRIES for name in entry}
    assert named <= {*NUMBERS, *MANY}
    assert INFINITE <= set(ENTRIES)


def _integral(p: Any, q: Any) -> float:
    """The integral of p(x) (log(p(x)) - log(q(x))) dx, by the tanh-sinh rule over p's support."""
    u = np.linspace(-4, 4, 20_001)  # many, for densities may have a corner
    step = u[1] - u[0]
    s = np.pi / 2 * np.sinh(u)
    slope = np.pi / 2 * np.cosh(u)
    bounds = p.support
    low = getattr(bounds, "lower_bound", None)
    high = getattr(bounds, "upper_bound", None)
    if low is None:
        x, weight = np.sinh(s), np.cosh(s) * slope
    elif high is None:
        x, weight = float(low) + np.exp(s), np.exp(s) * slope
    else:
        width = float(high) - float(low)
        x = float(low) + width / (1 + np.exp(-2 * s))
        weight = width * 2 * slope / (np.exp(s) + np.exp(-s)) ** 2
        inside = (x > float(low)) & (x < float(high))
        x, weight = x[inside], weight[inside]
    log_p = p.log_prob(t(x)).numpy()
    some = log_p > -700
    log_q = q.log_prob(t(x[some])).numpy()
    return float((np.exp(log_p[some]) * (log_p[some] - log_q) * weight[some]).sum() * step)


def _sum(p: Any, q: Any) -> float:
    values = p.enumerate_support() if p.has_enumerate_support else t(np.arange(200.0))
    log_p = p.log_prob(values)
    return float((log_p.exp() * (log_p - q.log_prob(values))).sum())


@pytest.mark.parametrize(
    ("p", "q"), [(p, q) for p, q in ENTRIES if p in NUMBERS and (p, q) not in INFINITE]
)
def test_is_the_integral(p: str, q: str) -> None:
    one, other = _pair(p, q)
    assert one.support.is_discrete == (other.support.is_discrete)
    integrate = _sum if one.support.is_discrete else _integral
    wanted = integrate(one, other)
    assert np.isfinite(wanted)
    np.testing.assert_allclose(d.kl_divergence(one, other).item(), wanted, rtol=1e-6)


@pytest.mark.parametrize(("p", "q"), sorted(INFINITE))
def test_is_infinite(p: str, q: str) -> None:
    one, other = _pair(p, q)
    kl = d.kl_divergence(one.expand((3,)), other.expand((3,)))
    assert tuple(kl.shape) == (3,)
    assert (kl == treadle.inf).all()


@pytest.mark.parametrize(("p", "q"), [(p, q) for p, q in ENTRIES if p in MANY])
def test_is_the_mean(p: str, q: str) -> None:
    treadle.manual_seed(3)
    one, other = _pair(p, q)
    x = one.sample((20_000,))
    terms = (one.log_prob(x) - other.log_prob(x)).numpy()
    error = 6 * terms.std() / np.sqrt(len(terms))
    kl = d.kl_divergence(one, other)
    assert tuple(kl.shape) == tuple(one.batch_shape)
    assert abs(kl.item() - terms.mean()) < error < 0.2


@pytest.mark.parametrize("name", [name for name in (*NUMBERS, *MANY)])
def test_from_itself_is_zero(name: str) -> None:
    one = _pair(name, name)[0]
    assert abs(d.kl_divergence(one, one).item()) < 1e-12


@pytest.mark.parametrize("name", ["Exponential", "Gamma", "Normal", "Beta", "Dirichlet"])
def test_the_exponential_family_agrees(name: str) -> None:
    """The divergence of log-normalisers is that of the family's own formula."""
    from treadle.distributions.kl.within import _kl_expfamily_expfamily

    one, other = _pair(name, name)
    np.testing.assert_allclose(
        _kl_expfamily_expfamily(one, other).item(), d.kl_divergence(one, other).item(), rtol=1e-9
    )


def test_broadcasts_and_is_differentiable() -> None:
    loc = treadle.zeros(3, requires_grad=True)
    p = d.Normal(loc, treadle.ones(2, 3))
    kl = d.kl_divergence(p, d.Normal(1.0, 2.0))
    assert tuple(kl.shape) == (2, 3)
    kl.sum().backward()
    np.testing.assert_allclose(loc.grad.numpy(), [-0.5] * 3)

    p = d.MultivariateNormal(treadle.zeros(4, 1, 3), treadle.eye(3).expand(2, 3, 3))
    q = d.LowRankMultivariateNormal(treadle.zeros(2, 3), treadle.ones(3, 1), treadle.ones(3))
    assert tuple(d.kl_divergence(p, q).shape) == (4, 2)
    assert tuple(d.kl_divergence(q, p).shape) == (4, 2)


def test_impossible_outcomes() -> None:
    sure, never = d.Bernoulli(t([1.0, 0.0])), d.Bernoulli(t([0.0, 1.0]))
    assert d.kl_divergence(sure, never).tolist() == [treadle.inf, treadle.inf]
    assert d.kl_divergence(sure, sure).tolist() == [0.0, 0.0]
    p, q = d.Categorical(t([0.5, 0.5, 0.0])), d.Categorical(t([1.0, 0.0, 0.0]))
    assert d.kl_divergence(p, q).item() == treadle.inf
    np.testing.assert_allclose(d.kl_divergence(q, p).item(), np.log(2))
    wide, narrow = d.Uniform(t(0.0), t(2.0)), d.Uniform(t(0.0), t(1.0))
    assert d.kl_divergence(wide, narrow).item() == treadle.inf
    assert d.kl_divergence(d.Pareto(t(1.0), t(2.0)), d.Pareto(t(2.0), t(2.0))).item() == treadle.inf
    assert d.kl_divergence(d.Binomial(5, t(0.5)), d.Binomial(4, t(0.5))).item() == treadle.inf
    for low, high in ((-0.5, 0.5), (0.5, 1.5)):
        p = d.Uniform(t(low), t(high))
        for q in (d.Beta(t(1.0), t(1.0)), d.ContinuousBernoulli(t(0.3))):
            assert d.kl_divergence(p, q).item() == treadle.inf
    below = d.Uniform(t(-0.5), t(0.5))
    for q in (d.Exponential(t(1.0)), d.Gamma(t(2.0), t(1.0)), d.Pareto(t(0.1), t(1.0))):
        assert d.kl_divergence(below, q).item() == treadle.inf
    for p in (d.Beta(t(2.0), t(2.0)), d.ContinuousBernoulli(t(0.3))):
        assert d.kl_divergence(p, d.Uniform(t(0.2), t(2.0))).item() == treadle.inf


def test_refusals() -> None:
    with pytest.raises(NotImplementedError, match="p type Normal and q type Categorical"):
        d.kl_divergence(d.Normal(0.0, 1.0), d.Categorical(treadle.ones(2)))
    with pytest.raises(NotImplementedError, match="different exponential families"):
        d.kl_divergence(d.Poisson(1.0), d.Exponential(1.0))
    with pytest.raises(NotImplementedError, match="q.total_count > p.total_count"):
        d.kl_divergence(d.Binomial(3, t(0.5)), d.Binomial(4, t(0.5)))
    normal = d.Normal(treadle.zeros(3), 1.0)
    with pytest.raises(NotImplementedError):
        d.kl_divergence(d.Independent(normal, 1), d.Independent(normal, 0))
    log_normal = d.TransformedDistribution(normal, d.ExpTransform())
    with pytest.raises(NotImplementedError):
        d.kl_divergence(log_normal, d.TransformedDistribution(normal, d.TanhTransform()))
    with pytest.raises(ValueError, match="different event shapes"):
        d.kl_divergence(
            d.MultivariateNormal(treadle.zeros(3), treadle.eye(3)),
            d.MultivariateNormal(treadle.zeros(2), treadle.eye(2)),
        )


def test_entries_of_a_program() -> None:
    class Mine(d.Normal):
        pass

    class Left(Mine):
        pass

    one, other = Left(0.0, 1.0), Mine(0.0, 1.0)
    assert d.kl_divergence(one, other).item() == 0.0  # of Normal
    try:

        @d.register_kl(Mine, d.Normal)
        def of_mine(p: Any, q: Any) -> treadle.Tensor:
            return treadle.tensor(7.0)

        assert d.kl_divergence(one, other).item() == 7.0
        assert d.kl_divergence(d.Normal(0.0, 1.0), other).item() == 0.0

        @d.register_kl(d.Normal, Mine)
        def to_mine(p: Any, q: Any) -> treadle.Tensor:
            return treadle.tensor(8.0)

        with pytest.warns(RuntimeWarning, match=r"register_kl\(Mine, Mine\)"):
            assert d.kl_divergence(one, other).item() == 7.0

        @d.register_kl(Mine, Mine)
        def between_mine(p: Any, q: Any) -> treadle.Tensor:
            return treadle.tensor(9.0)

        assert d.kl_divergence(one, other).item() == 9.0
    finally:
        for types in [types for types in _KL_REGISTRY if Mine in types]:
            del _KL_REGISTRY[types]
        treadle.distributions.kl._KL_MEMOIZE.clear()
    with pytest.raises(TypeError) as error:
        d.register_kl(d.Normal, 3)
    assert str(error.value) == "register_kl: expected type_q to be a class, got 3"


def test_entries_of_classes_that_behave_as_distributions() -> None:
    class Other:
        mean = 4.0

    try:
        d.register_kl(d.Normal, Other)(lambda p, q: p.mean - q.mean)
        assert d.kl_divergence(d.Normal(1.0, 1.0), Other()).item() == -3.0
    finally:
        del _KL_REGISTRY[d.Normal, Other]
        treadle.distributions.kl._KL_MEMOIZE.clear()
