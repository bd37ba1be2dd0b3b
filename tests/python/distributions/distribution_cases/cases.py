"""One or more distributions of each class, and values of theirs.

    Case("Normal", lambda d, t: d.Normal(t([0.0, 1.0]), t([1.0, 2.5])), value=[[0.3, -1.0]])

A case is built by a module of distributions `d`, of Treadle or of PyTorch, and `t`, which makes a
tensor of it that requires a gradient. So make_data.py and the tests build the same.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Callable

PROBABILITIES = [0.05, 0.3, 0.5, 0.8]

EYE = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
COVARIANCE = [[2.0, 0.5, -0.3], [0.5, 1.5, 0.2], [-0.3, 0.2, 0.8]]
COVARIANCES = [COVARIANCE, [[1.0, 0.2, 0.1], [0.2, 3.0, -0.4], [0.1, -0.4, 2.0]]]
FACTOR = [[1.5, 0.0, 0.0], [0.3, 1.1, 0.0], [-0.4, 0.25, 0.7]]
FACTORS = [FACTOR, [[0.6, 0.0, 0.0], [1.3, 0.9, 0.0], [0.4, -0.5, 2.0]]]
CORRELATION = [[1.0, 0.0, 0.0], [0.6, 0.8, 0.0], [-0.28, 0.0, 0.96]]


@dataclass(frozen=True)
class Case:
    name: str  # of the class, and a word about this one after a space
    build: Callable[[Any, Callable[[Any], Any]], Any]
    value: Any  # values in the support, of a shape that broadcasts with batch and event
    dtype: str = "float64"
    # Quantities in which the results kept are not taken as the law, and why.
    differs: dict[str, str] = field(default_factory=dict)

    @property
    def cls(self) -> str:
        return self.name.split()[0]


UNIT = [[0.1, 0.45], [0.5, 0.97]]
POSITIVE = [[0.2, 1.5], [3.0, 0.01]]
ANY = [[0.3, -1.0], [2.5, 0.0]]
COUNTS = [[0.0, 1.0], [4.0, 2.0]]
BOOLS = [[0.0, 1.0], [1.0, 0.0]]
SIMPLEX = [[0.2, 0.5, 0.3], [0.05, 0.05, 0.9]]
VECTORS = [[0.3, -1.0, 2.0], [0.0, 0.5, -0.7]]
ONE_HOT = [[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]

CASES = [
    Case("Bernoulli", lambda d, t: d.Bernoulli(t([0.3, 0.8])), BOOLS),
    Case("Bernoulli logits", lambda d, t: d.Bernoulli(logits=t([-1.5, 0.4])), BOOLS),
    Case("Bernoulli half", lambda d, t: d.Bernoulli(t(0.5)), 1.0),
    Case("Beta", lambda d, t: d.Beta(t([0.5, 2.0]), t([1.5, 3.0])), UNIT),
    Case("Binomial", lambda d, t: d.Binomial(7, t([0.3, 0.9])), COUNTS),
    Case("Binomial logits", lambda d, t: d.Binomial(5, logits=t([-0.5, 2.0])), COUNTS),
    Case("Categorical", lambda d, t: d.Categorical(t([[0.2, 0.5, 0.3], [3.0, 1.0, 1.0]])), [0, 2]),
    Case("Categorical logits", lambda d, t: d.Categorical(logits=t([0.1, -2.0, 1.0])), [2, 0, 1]),
    Case("Cauchy", lambda d, t: d.Cauchy(t([0.0, 1.0]), t([1.0, 2.5])), ANY),
    Case("Chi2", lambda d, t: d.Chi2(t([1.5, 6.0])), POSITIVE),
    Case("ContinuousBernoulli", lambda d, t: d.ContinuousBernoulli(t([0.2, 0.85])), UNIT),
    Case("ContinuousBernoulli half", lambda d, t: d.ContinuousBernoulli(t([0.5, 0.4995])), UNIT),
    Case(
        "ContinuousBernoulli logits",
        lambda d, t: d.ContinuousBernoulli(logits=t([-2.0, 1.0])),
        UNIT,
    ),
    Case("Dirichlet", lambda d, t: d.Dirichlet(t([[1.5, 2.0, 0.5], [4.0, 3.0, 2.0]])), SIMPLEX),
    Case("Dirichlet small", lambda d, t: d.Dirichlet(t([0.4, 0.5, 0.3])), SIMPLEX),
    Case("Exponential", lambda d, t: d.Exponential(t([0.5, 3.0])), POSITIVE),
    Case("FisherSnedecor", lambda d, t: d.FisherSnedecor(t([3.0, 1.5]), t([6.0, 3.0])), POSITIVE),
    Case("Gamma", lambda d, t: d.Gamma(t([0.5, 3.5]), t([1.0, 2.0])), POSITIVE),
    Case(
        "GeneralizedPareto",
        lambda d, t: d.GeneralizedPareto(t([0.0, -1.0]), t([1.0, 2.0]), t([0.3, -0.2])),
        POSITIVE,
        dtype="float32",  # PyTorch's takes no other
    ),
    Case(
        "GeneralizedPareto of 0",
        lambda d, t: d.GeneralizedPareto(t([0.0, -1.0]), t([1.0, 2.0]), t([0.0, 0.7])),
        POSITIVE,
        dtype="float32",
    ),
    Case("Geometric", lambda d, t: d.Geometric(t([0.3, 0.8])), COUNTS),
    Case("Geometric logits", lambda d, t: d.Geometric(logits=t([-1.5, 0.4])), COUNTS),
    Case("Gumbel", lambda d, t: d.Gumbel(t([0.0, 1.0]), t([1.0, 2.5])), ANY),
    Case("HalfCauchy", lambda d, t: d.HalfCauchy(t([1.0, 2.5])), POSITIVE),
    Case("HalfNormal", lambda d, t: d.HalfNormal(t([1.0, 2.5])), POSITIVE),
    Case(
        "Independent",
        lambda d, t: d.Independent(d.Normal(t(VECTORS), t([1.0, 0.5, 2.0])), 1),
        [0.1, 0.2, -0.3],
    ),
    Case(
        "Independent of one-hot",
        lambda d, t: d.Independent(d.OneHotCategorical(t([[0.2, 0.5, 0.3], [0.6, 0.3, 0.1]])), 1),
        ONE_HOT,
    ),
    Case("InverseGamma", lambda d, t: d.InverseGamma(t([1.5, 3.5]), t([1.0, 2.0])), POSITIVE),
    Case(
        "Kumaraswamy",
        lambda d, t: d.Kumaraswamy(t([0.5, 2.0]), t([1.5, 3.0])),
        UNIT,
        differs={"mode": "PyTorch's is NaN for every parameter"},
    ),
    Case("LKJCholesky", lambda d, t: d.LKJCholesky(3, t([0.5, 1.0, 3.0])), CORRELATION),
    Case("Laplace", lambda d, t: d.Laplace(t([0.0, 1.0]), t([1.0, 2.5])), ANY),
    Case("LogNormal", lambda d, t: d.LogNormal(t([0.0, 1.0]), t([1.0, 0.5])), POSITIVE),
    Case(
        "LogisticNormal",
        lambda d, t: d.LogisticNormal(t([[0.1, -0.4], [0.0, 1.0]]), t([1.0, 0.5])),
        SIMPLEX,
    ),
    Case(
        "LowRankMultivariateNormal",
        lambda d, t: d.LowRankMultivariateNormal(
            t(VECTORS), t([[0.5], [1.0], [-0.3]]), t([1.0, 0.5, 2.0])
        ),
        VECTORS,
    ),
    Case(
        "MixtureSameFamily",
        lambda d, t: d.MixtureSameFamily(
            d.Categorical(t(SIMPLEX)), d.Normal(t(VECTORS), t([1.0, 0.5, 2.0]))
        ),
        ANY,
    ),
    Case(
        "MixtureSameFamily of vectors",
        lambda d, t: d.MixtureSameFamily(
            d.Categorical(logits=t([0.2, -0.5])),
            d.MultivariateNormal(t(VECTORS), scale_tril=t(FACTORS)),
        ),
        VECTORS,
    ),
    Case(
        "Multinomial",
        lambda d, t: d.Multinomial(4, t([[0.2, 0.5, 0.3], [0.6, 0.3, 0.1]])),
        [
            [1.0, 3.0, 0.0],
            [2.0, 1.0, 1.0],
        ],
        differs={
            "entropy": "PyTorch takes a logarithm of a factorial in float32",
            "perplexity": "the same",
        },
    ),
    Case(
        "MultivariateNormal",
        lambda d, t: d.MultivariateNormal(t([[0.0, 1.0, -1.0]] * 2), t(COVARIANCES)),
        VECTORS,
    ),
    Case(
        "MultivariateNormal precision",
        lambda d, t: d.MultivariateNormal(t(VECTORS), precision_matrix=t(COVARIANCE)),
        [0.1, 0.2, -0.3],
    ),
    Case(
        "MultivariateNormal scale_tril",
        lambda d, t: d.MultivariateNormal(t([0.0, 1.0, -1.0]), scale_tril=t(FACTORS)),
        VECTORS,
    ),
    Case("NegativeBinomial", lambda d, t: d.NegativeBinomial(t([2.5, 1.0]), t([0.3, 0.8])), COUNTS),
    Case(
        "NegativeBinomial logits",
        lambda d, t: d.NegativeBinomial(3, logits=t([-1.5, 0.4])),
        COUNTS,
    ),
    Case("Normal", lambda d, t: d.Normal(t([0.0, 1.0]), t([1.0, 2.5])), ANY),
    Case("Normal of numbers", lambda d, t: d.Normal(t(0.5), t(2.0)), [0.3, -1.0]),
    Case(
        "OneHotCategorical",
        lambda d, t: d.OneHotCategorical(t([[0.2, 0.5, 0.3], [3.0, 1.0, 1.0]])),
        ONE_HOT,
    ),
    Case(
        "OneHotCategoricalStraightThrough",
        lambda d, t: d.OneHotCategoricalStraightThrough(logits=t([0.1, -2.0, 1.0])),
        ONE_HOT,
    ),
    Case("Pareto", lambda d, t: d.Pareto(t([1.0, 0.5]), t([3.0, 0.8])), [[1.5, 0.7], [4.0, 9.0]]),
    Case("Poisson", lambda d, t: d.Poisson(t([0.5, 6.5])), COUNTS),
    Case("RelaxedBernoulli", lambda d, t: d.RelaxedBernoulli(t(0.7), t([0.3, 0.8])), UNIT),
    Case(
        "RelaxedBernoulli logits",
        lambda d, t: d.RelaxedBernoulli(t(2.0), logits=t([-1.5, 0.4])),
        UNIT,
    ),
    Case(
        "RelaxedOneHotCategorical",
        lambda d, t: d.RelaxedOneHotCategorical(t(0.7), t([[0.2, 0.5, 0.3], [0.6, 0.3, 0.1]])),
        SIMPLEX,
    ),
    Case("StudentT", lambda d, t: d.StudentT(t([5.0, 1.5]), t([0.0, 1.0]), t([1.0, 2.5])), ANY),
    Case(
        "TransformedDistribution",
        lambda d, t: d.TransformedDistribution(
            d.Normal(t([0.0, 1.0]), t([1.0, 0.5])),
            [d.AffineTransform(t([0.5, 0.0]), -2.0), d.SigmoidTransform()],
        ),
        UNIT,
    ),
    Case(
        "TransformedDistribution of vectors",
        lambda d, t: d.TransformedDistribution(
            d.Normal(t(VECTORS), t(1.0)),
            [d.AffineTransform(t([0.5, 0.0, 1.0]), t(2.0), event_dim=1), d.ExpTransform()],
        ),
        SIMPLEX,
        differs={
            "log_prob": "PyTorch counts the scale once where one number scales three",
            "log_prob_grad_3": "the same",
        },
    ),
    Case("Uniform", lambda d, t: d.Uniform(t([-2.0, -1.5]), t([3.0, 2.0])), ANY),
    Case(
        "VonMises",
        lambda d, t: d.VonMises(t([0.0, 1.0]), t([0.5, 8.0])),
        ANY,
        differs={
            "log_prob": "PyTorch approximates the Bessel functions to 1e-7",
            "log_prob_grad_1": "the same",
            "variance": "the same",
            "stddev": "the same",
        },
    ),
    Case("Weibull", lambda d, t: d.Weibull(t([1.0, 2.5]), t([1.5, 3.0])), POSITIVE),
    Case(
        "Wishart",
        lambda d, t: d.Wishart(t([4.5, 7.0]), t(COVARIANCES)),
        COVARIANCE,
    ),
    Case(
        "Wishart scale_tril",
        lambda d, t: d.Wishart(t([5.5]), scale_tril=t(FACTORS)),
        COVARIANCE,
        differs={"log_prob_grad_1": "PyTorch's reaches the triangle that is not read"},
    ),
]
