"""Distributions against SciPy's of the same parameters: densities, distribution functions,
entropies, moments, and whether samples follow them.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Any, Callable, Optional

import numpy as np
import pytest
import scipy.stats as st

import treadle
from treadle import distributions as d

COUNT = 20_000


def t(data: Any) -> treadle.Tensor:
    return treadle.tensor(data, dtype=treadle.float64)


COVARIANCE = [[2.0, 0.5, -0.3], [0.5, 1.5, 0.2], [-0.3, 0.2, 0.8]]
SHARES = [0.2, 0.5, 0.3]


@dataclass(frozen=True)
class Pair:
    """A distribution and SciPy's."""

    ours: Callable[[], Any]
    theirs: Any
    # SciPy's value for one of ours, where the two count otherwise.
    converted: Optional[Callable[[np.ndarray], np.ndarray]] = None


PAIRS = {
    "Bernoulli": Pair(lambda: d.Bernoulli(t(0.3)), st.bernoulli(0.3)),
    "Beta": Pair(lambda: d.Beta(t(0.5), t(2.5)), st.beta(0.5, 2.5)),
    "Beta of large": Pair(lambda: d.Beta(t(80.0), t(15.0)), st.beta(80, 15)),
    "Binomial": Pair(lambda: d.Binomial(9, t(0.3)), st.binom(9, 0.3)),
    "Cauchy": Pair(lambda: d.Cauchy(t(1.0), t(2.5)), st.cauchy(1, 2.5)),
    "Chi2": Pair(lambda: d.Chi2(t(3.5)), st.chi2(3.5)),
    "Exponential": Pair(lambda: d.Exponential(t(2.5)), st.expon(scale=1 / 2.5)),
    "FisherSnedecor": Pair(lambda: d.FisherSnedecor(t(3.0), t(7.5)), st.f(3, 7.5)),
    "Gamma": Pair(lambda: d.Gamma(t(3.5), t(2.0)), st.gamma(3.5, scale=1 / 2.0)),
    "Gamma of a small concentration": Pair(
        lambda: d.Gamma(t(0.3), t(2.0)), st.gamma(0.3, scale=0.5)
    ),
    "GeneralizedPareto": Pair(
        lambda: d.GeneralizedPareto(t(1.0), t(2.0), t(0.15)), st.genpareto(0.15, 1, 2)
    ),
    "GeneralizedPareto below 0": Pair(
        lambda: d.GeneralizedPareto(t(1.0), t(2.0), t(-0.3)), st.genpareto(-0.3, 1, 2)
    ),
    "Geometric": Pair(lambda: d.Geometric(t(0.3)), st.geom(0.3, loc=-1)),
    "Gumbel": Pair(lambda: d.Gumbel(t(1.0), t(2.5)), st.gumbel_r(1, 2.5)),
    "HalfCauchy": Pair(lambda: d.HalfCauchy(t(2.5)), st.halfcauchy(scale=2.5)),
    "HalfNormal": Pair(lambda: d.HalfNormal(t(2.5)), st.halfnorm(scale=2.5)),
    "InverseGamma": Pair(lambda: d.InverseGamma(t(4.5), t(2.0)), st.invgamma(4.5, scale=2)),
    "Laplace": Pair(lambda: d.Laplace(t(1.0), t(2.5)), st.laplace(1, 2.5)),
    "LogNormal": Pair(lambda: d.LogNormal(t(0.5), t(0.7)), st.lognorm(0.7, scale=np.exp(0.5))),
    "NegativeBinomial": Pair(lambda: d.NegativeBinomial(t(2.5), t(0.3)), st.nbinom(2.5, 0.7)),
    "Normal": Pair(lambda: d.Normal(t(1.0), t(2.5)), st.norm(1, 2.5)),
    "Pareto": Pair(lambda: d.Pareto(t(0.5), t(5.5)), st.pareto(5.5, scale=0.5)),
    "Poisson": Pair(lambda: d.Poisson(t(4.5)), st.poisson(4.5)),
    "StudentT": Pair(lambda: d.StudentT(t(5.5), t(1.0), t(2.5)), st.t(5.5, 1, 2.5)),
    "Uniform": Pair(lambda: d.Uniform(t(-1.0), t(2.5)), st.uniform(-1, 3.5)),
    "VonMises": Pair(lambda: d.VonMises(t(0.5), t(2.5)), st.vonmises(2.5, 0.5)),
    "VonMises of little": Pair(lambda: d.VonMises(t(0.0), t(1e-3)), st.vonmises(1e-3)),
    "VonMises of much": Pair(lambda: d.VonMises(t(0.0), t(800.0)), st.vonmises(800.0)),
    "Weibull": Pair(lambda: d.Weibull(t(2.5), t(1.5)), st.weibull_min(1.5, scale=2.5)),
}

# Distributions of vectors and matrices: log_prob, and entropy, alone.
MANY = {
    "Dirichlet": Pair(
        lambda: d.Dirichlet(t([1.5, 2.0, 0.5])), st.dirichlet([1.5, 2.0, 0.5]), lambda x: x.T
    ),
    "Multinomial": Pair(lambda: d.Multinomial(6, t(SHARES)), st.multinomial(6, SHARES)),
    "MultivariateNormal": Pair(
        lambda: d.MultivariateNormal(t([0.0, 1.0, -1.0]), t(COVARIANCE)),
        st.multivariate_normal([0, 1, -1], COVARIANCE),
    ),
    "LowRankMultivariateNormal": Pair(
        lambda: d.LowRankMultivariateNormal(
            t([0.0, 1.0, -1.0]), t([[0.5], [1.0], [-0.3]]), t([1.0, 0.5, 2.0])
        ),
        st.multivariate_normal(
            [0, 1, -1], np.outer([0.5, 1.0, -0.3], [0.5, 1.0, -0.3]) + np.diag([1.0, 0.5, 2.0])
        ),
    ),
    "Wishart": Pair(
        lambda: d.Wishart(t(5.5), t(COVARIANCE)),
        st.wishart(5.5, COVARIANCE),
        lambda x: np.moveaxis(x, 0, -1),
    ),
}

# Distributions that SciPy does not have; test_distributions.py compares them with PyTorch's, and
# these with what they are made of.
WITHOUT = {
    "Categorical",
    "ContinuousBernoulli",
    "Independent",
    "Kumaraswamy",
    "LKJCholesky",
    "LogisticNormal",
    "MixtureSameFamily",
    "OneHotCategorical",
    "OneHotCategoricalStraightThrough",
    "RelaxedBernoulli",
    "RelaxedOneHotCategorical",
    "TransformedDistribution",
}
BASES = {"Distribution", "ExponentialFamily"}


@pytest.fixture(params=PAIRS)
def pair(request: pytest.FixtureRequest) -> Pair:
    treadle.manual_seed(11)
    return PAIRS[request.param]


@pytest.fixture(params=MANY)
def many(request: pytest.FixtureRequest) -> Pair:
    treadle.manual_seed(11)
    return MANY[request.param]


def _is_discrete(pair: Pair) -> bool:
    return hasattr(pair.theirs, "pmf") or not hasattr(pair.theirs, "pdf")


def test_every_class_is_compared() -> None:
    classes = {
        name
        for name in d.__all__
        if inspect.isclass(getattr(d, name)) and issubclass(getattr(d, name), d.Distribution)
    }
    compared = {name.split()[0] for name in (*PAIRS, *MANY)}
    assert classes - BASES == compared | WITHOUT
    assert not compared & WITHOUT


def _values(pair: Pair) -> np.ndarray:
    """Numbers from all of the distribution."""
    values = pair.theirs.ppf(np.linspace(0.001, 0.999, 101))
    return np.unique(values)


def _log_density(pair: Pair, x: np.ndarray) -> np.ndarray:
    return pair.theirs.logpmf(x) if _is_discrete(pair) else pair.theirs.logpdf(x)


def test_log_prob(pair: Pair) -> None:
    x = _values(pair)
    got = pair.ours().log_prob(t(x)).numpy()
    np.testing.assert_allclose(got, _log_density(pair, x), rtol=1e-9, atol=1e-9)


def test_cdf_and_icdf(pair: Pair) -> None:
    dist, x = pair.ours(), _values(pair)
    try:
        got = dist.cdf(t(x)).numpy()
    except NotImplementedError:
        with pytest.raises(NotImplementedError):
            dist.icdf(t(0.5))
        return
    np.testing.assert_allclose(got, pair.theirs.cdf(x), rtol=1e-9, atol=1e-12)
    p = np.linspace(0.01, 0.99, 50)
    try:
        quantiles = dist.icdf(t(p)).numpy()
    except NotImplementedError:
        return
    np.testing.assert_allclose(quantiles, pair.theirs.ppf(p), rtol=1e-8, atol=1e-12)


def test_entropy(pair: Pair) -> None:
    dist = pair.ours()
    if isinstance(dist, (d.Poisson, d.NegativeBinomial, d.FisherSnedecor, d.VonMises)):
        with pytest.raises(NotImplementedError):
            dist.entropy()
        return
    # SciPy integrates some of these.
    np.testing.assert_allclose(dist.entropy().numpy(), pair.theirs.entropy(), rtol=1e-7)


def test_moments(pair: Pair) -> None:
    dist = pair.ours()
    if isinstance(dist, (d.VonMises, d.Cauchy)):
        return  # SciPy's are those of a number, not of a direction; and of Cauchy's, all are NaN
    np.testing.assert_allclose(dist.mean.numpy(), pair.theirs.mean(), rtol=1e-9)
    np.testing.assert_allclose(dist.variance.numpy(), pair.theirs.var(), rtol=1e-9)
    np.testing.assert_allclose(dist.stddev.numpy(), pair.theirs.std(), rtol=1e-9)


def test_samples_follow_the_distribution(pair: Pair) -> None:
    """Kolmogorov and Smirnov's test, or chi-square of counts; chance fails one in a million."""
    x = pair.ours().sample((COUNT,)).numpy()
    if not _is_discrete(pair):
        assert st.kstest(x, pair.theirs.cdf).pvalue > 1e-6
        return
    values, counts = np.unique(x, return_counts=True)
    expected = pair.theirs.pmf(values) * COUNT
    often = expected >= 5
    counts = np.append(counts[often], COUNT - counts[often].sum())
    expected = np.append(expected[often], COUNT - expected[often].sum())
    keep = expected > 1e-6
    statistic = ((counts[keep] - expected[keep]) ** 2 / expected[keep]).sum()
    assert st.chi2(max(keep.sum() - 1, 1)).sf(statistic) > 1e-6


def test_log_prob_of_many(many: Pair) -> None:
    dist = many.ours()
    x = dist.sample((20,))
    theirs = x.numpy() if many.converted is None else many.converted(x.numpy())
    log_density = getattr(many.theirs, "logpdf", None) or many.theirs.logpmf
    np.testing.assert_allclose(dist.log_prob(x).numpy(), log_density(theirs), rtol=1e-9, atol=1e-9)


def test_entropy_of_many(many: Pair) -> None:
    np.testing.assert_allclose(many.ours().entropy().numpy(), many.theirs.entropy(), rtol=1e-9)


def test_classes_are_drawn_as_often_as_said() -> None:
    treadle.manual_seed(11)
    drawn = d.Categorical(t(SHARES)).sample((COUNT,)).numpy()
    counts = np.bincount(drawn, minlength=3)
    assert st.chisquare(counts, np.asarray(SHARES) * COUNT).pvalue > 1e-6
    hot = d.OneHotCategorical(t(SHARES)).sample((COUNT,)).sum(0).numpy()
    assert st.chisquare(hot, np.asarray(SHARES) * COUNT).pvalue > 1e-6


def test_sums_of_squares_are_wishart() -> None:
    """Each element of the diagonal is a chi-square number, scaled."""
    treadle.manual_seed(11)
    drawn = d.Wishart(t(5.5), t(COVARIANCE)).sample((4000,)).numpy()
    for i in range(3):
        scaled = drawn[:, i, i] / COVARIANCE[i][i]
        assert st.kstest(scaled, st.chi2(5.5).cdf).pvalue > 1e-6


def test_correlations_of_lkj_are_beta() -> None:
    """The elements, shifted and halved: Lewandowski and others, theorem on page 1992."""
    treadle.manual_seed(11)
    concentration, n = 1.5, 4
    factors = d.LKJCholesky(n, t(concentration)).sample((4000,)).numpy()
    matrices = factors @ factors.swapaxes(-1, -2)
    shape = concentration - 1 + n / 2
    for i, j in ((1, 0), (2, 1), (3, 0)):
        halved = (matrices[:, i, j] + 1) / 2
        assert st.kstest(halved, st.beta(shape, shape).cdf).pvalue > 1e-6


def test_lkj_density_integrates_to_one() -> None:
    """A (2, 2) matrix has one number, the correlation r; the factor's row is
    (r, sqrt(1 - r^2)), and its density is that of r for the measure dr.
    """
    for concentration in (0.7, 1.0, 3.0):
        r, weight = np.polynomial.legendre.leggauss(400)
        angle = r * np.pi / 2  # r = sin(angle), so that the ends are no poles
        factor = np.zeros((400, 2, 2))
        factor[:, 0, 0] = 1
        factor[:, 1, 0], factor[:, 1, 1] = np.sin(angle), np.cos(angle)
        density = d.LKJCholesky(2, t(concentration)).log_prob(t(factor)).exp().numpy()
        total = (density * np.cos(angle) * weight).sum() * np.pi / 2
        np.testing.assert_allclose(total, 1, rtol=1e-4)


def test_continuous_bernoulli_samples_follow_its_cdf() -> None:
    treadle.manual_seed(11)
    for probs in (0.2, 0.5, 0.93):
        dist = d.ContinuousBernoulli(t(probs))
        x = dist.sample((COUNT,)).numpy()
        assert st.kstest(x, lambda v, dist=dist: dist.cdf(t(v)).numpy()).pvalue > 1e-6


def test_mixture_is_drawn_as_it_says() -> None:
    treadle.manual_seed(11)
    mixture = d.MixtureSameFamily(
        d.Categorical(t(SHARES)), d.Normal(t([-3.0, 0.0, 4.0]), t([1.0, 0.5, 2.0]))
    )
    x = mixture.sample((COUNT,)).numpy()
    assert st.kstest(x, lambda v: mixture.cdf(t(v)).numpy()).pvalue > 1e-6


def test_kumaraswamy() -> None:
    """Its power is a beta number: x^a is Beta(1, b)."""
    treadle.manual_seed(11)
    dist = d.Kumaraswamy(t(2.0), t(3.0))
    x = dist.sample((COUNT,)).numpy()
    assert st.kstest(x**2, st.beta(1, 3).cdf).pvalue > 1e-6
    np.testing.assert_allclose(dist.mode.numpy(), np.sqrt(1 / 5), rtol=1e-12)
    grid = t(np.linspace(0.001, 0.999, 999))
    best = grid[dist.log_prob(grid).argmax()].item()
    assert abs(best - dist.mode.item()) < 2e-3


def test_relaxed_ones_have_the_odds_of_the_rounded() -> None:
    treadle.manual_seed(11)
    for temperature in (0.3, 2.0):
        x = d.RelaxedBernoulli(t(temperature), t(0.3)).sample((COUNT,)).numpy()
        assert st.binomtest(int((x > 0.5).sum()), COUNT, 0.3).pvalue > 1e-6
        points = d.RelaxedOneHotCategorical(t(temperature), t(SHARES)).sample((COUNT,)).numpy()
        counts = np.bincount(points.argmax(-1), minlength=3)
        assert st.chisquare(counts, np.asarray(SHARES) * COUNT).pvalue > 1e-6


def test_logistic_normal_is_a_broken_stick() -> None:
    treadle.manual_seed(11)
    x = d.LogisticNormal(t([0.1, -0.4]), t([1.0, 0.5])).sample((COUNT,)).numpy()
    np.testing.assert_allclose(x.sum(-1), 1, rtol=1e-12)
    first = x[:, 0]
    log_odds = np.log(first) - np.log1p(-first) + np.log(2)
    assert st.kstest(log_odds, st.norm(0.1, 1).cdf).pvalue > 1e-6
