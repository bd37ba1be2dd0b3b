"""Probability distributions, their transforms and divergences.

    from treadle.distributions import Categorical, Normal, kl_divergence

    policy = Categorical(logits=net(state))
    action = policy.sample()
    loss = -policy.log_prob(action) * reward        # the score function's gradient

    posterior = Normal(mean, std)
    z = posterior.rsample()                         # the pathwise one, through the sample
    loss = loss + kl_divergence(posterior, Normal(0.0, 1.0)).sum()

Names, arguments and messages are those of torch.distributions.
"""

# SPDX-License-Identifier: Apache-2.0

import sys as _sys

from treadle.distributions import (
    constraints as constraints,
)
from treadle.distributions import (
    kl as kl,
)
from treadle.distributions import (
    transforms as _transforms,
)
from treadle.distributions import (
    utils as utils,
)
from treadle.distributions.bernoulli import Bernoulli
from treadle.distributions.beta import Beta
from treadle.distributions.binomial import Binomial
from treadle.distributions.categorical import Categorical
from treadle.distributions.cauchy import Cauchy
from treadle.distributions.chi2 import Chi2
from treadle.distributions.constraint_registry import biject_to, transform_to
from treadle.distributions.continuous_bernoulli import ContinuousBernoulli
from treadle.distributions.dirichlet import Dirichlet
from treadle.distributions.distribution import Distribution
from treadle.distributions.exp_family import ExponentialFamily
from treadle.distributions.exponential import Exponential
from treadle.distributions.fishersnedecor import FisherSnedecor
from treadle.distributions.gamma import Gamma
from treadle.distributions.generalized_pareto import GeneralizedPareto
from treadle.distributions.geometric import Geometric
from treadle.distributions.independent import Independent
from treadle.distributions.kl import kl_divergence, register_kl
from treadle.distributions.laplace import Laplace
from treadle.distributions.lkj_cholesky import LKJCholesky
from treadle.distributions.lowrank_multivariate_normal import LowRankMultivariateNormal
from treadle.distributions.mixture_same_family import MixtureSameFamily
from treadle.distributions.multinomial import Multinomial
from treadle.distributions.multivariate_normal import MultivariateNormal
from treadle.distributions.negative_binomial import NegativeBinomial
from treadle.distributions.normal import Normal
from treadle.distributions.one_hot_categorical import (
    OneHotCategorical,
    OneHotCategoricalStraightThrough,
)
from treadle.distributions.poisson import Poisson
from treadle.distributions.studentT import StudentT
from treadle.distributions.transformed import (
    gumbel as gumbel,
)
from treadle.distributions.transformed import (
    half_cauchy as half_cauchy,
)
from treadle.distributions.transformed import (
    half_normal as half_normal,
)
from treadle.distributions.transformed import (
    inverse_gamma as inverse_gamma,
)
from treadle.distributions.transformed import (
    kumaraswamy as kumaraswamy,
)
from treadle.distributions.transformed import (
    log_normal as log_normal,
)
from treadle.distributions.transformed import (
    logistic_normal as logistic_normal,
)
from treadle.distributions.transformed import (
    pareto as pareto,
)
from treadle.distributions.transformed import (
    relaxed_bernoulli as relaxed_bernoulli,
)
from treadle.distributions.transformed import (
    relaxed_categorical as relaxed_categorical,
)
from treadle.distributions.transformed import (
    weibull as weibull,
)
from treadle.distributions.transformed.gumbel import Gumbel
from treadle.distributions.transformed.half_cauchy import HalfCauchy
from treadle.distributions.transformed.half_normal import HalfNormal
from treadle.distributions.transformed.inverse_gamma import InverseGamma
from treadle.distributions.transformed.kumaraswamy import Kumaraswamy
from treadle.distributions.transformed.log_normal import LogNormal
from treadle.distributions.transformed.logistic_normal import LogisticNormal
from treadle.distributions.transformed.pareto import Pareto
from treadle.distributions.transformed.relaxed_bernoulli import RelaxedBernoulli
from treadle.distributions.transformed.relaxed_categorical import RelaxedOneHotCategorical
from treadle.distributions.transformed.weibull import Weibull
from treadle.distributions.transformed_distribution import TransformedDistribution
from treadle.distributions.transforms import *  # noqa: F403  the classes, as names of this module
from treadle.distributions.uniform import Uniform
from treadle.distributions.von_mises import VonMises
from treadle.distributions.wishart import Wishart

__all__ = [
    "Bernoulli",
    "Beta",
    "Binomial",
    "Categorical",
    "Cauchy",
    "Chi2",
    "ContinuousBernoulli",
    "Dirichlet",
    "Distribution",
    "Exponential",
    "ExponentialFamily",
    "FisherSnedecor",
    "Gamma",
    "GeneralizedPareto",
    "Geometric",
    "Gumbel",
    "HalfCauchy",
    "HalfNormal",
    "Independent",
    "InverseGamma",
    "Kumaraswamy",
    "LKJCholesky",
    "Laplace",
    "LogNormal",
    "LogisticNormal",
    "LowRankMultivariateNormal",
    "MixtureSameFamily",
    "Multinomial",
    "MultivariateNormal",
    "NegativeBinomial",
    "Normal",
    "OneHotCategorical",
    "OneHotCategoricalStraightThrough",
    "Pareto",
    "RelaxedBernoulli",
    "RelaxedOneHotCategorical",
    "StudentT",
    "Poisson",
    "Uniform",
    "VonMises",
    "Weibull",
    "Wishart",
    "TransformedDistribution",
    "biject_to",
    "kl_divergence",
    "register_kl",
    "transform_to",
]
__all__.extend(_transforms.__all__)


def _show_transformed() -> None:
    """Let the modules of `transformed` be modules of this package to programs and in pickles."""
    for name in """gumbel half_cauchy half_normal inverse_gamma kumaraswamy log_normal
            logistic_normal pareto relaxed_bernoulli relaxed_categorical weibull""".split():
        module = _sys.modules[f"{__name__}.{name}"] = globals()[name]
        for public in module.__all__:
            getattr(module, public).__module__ = f"{__name__}.{name}"


_show_transformed()
