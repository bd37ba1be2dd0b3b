"""Divergences of distributions of two families: less the entropy of p, less the mean under p of
log(q).

That mean needs little of p: its mean and variance, that of log(x), or that of exp(t x). So
a family q has one formula, for every p that has those.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import math
from typing import Any

from treadle import _C
from treadle._C import Tensor
from treadle.distributions.bernoulli import Bernoulli
from treadle.distributions.beta import Beta
from treadle.distributions.binomial import Binomial
from treadle.distributions.continuous_bernoulli import ContinuousBernoulli
from treadle.distributions.exponential import Exponential
from treadle.distributions.gamma import Gamma
from treadle.distributions.kl.registry import register_kl
from treadle.distributions.laplace import Laplace
from treadle.distributions.normal import Normal
from treadle.distributions.poisson import Poisson
from treadle.distributions.transformed.gumbel import Gumbel
from treadle.distributions.transformed.pareto import Pareto
from treadle.distributions.uniform import Uniform
from treadle.distributions.utils import euler_constant


def _outside(p: Any, low: Any, high: Any) -> Any:
    """Where `p`, a distribution of an interval, gives numbers outside [low, high]."""
    if isinstance(p, Uniform):
        return (p.low < low) | (p.high > high)
    return (low > 0) | (high < 1)  # of [0, 1]


def _mean_log(p: Any) -> Tensor:
    """The mean of log(x)."""
    if isinstance(p, Beta):
        return p.concentration1.digamma() - (p.concentration1 + p.concentration0).digamma()
    if isinstance(p, Gamma):
        return p.concentration.digamma() - p.rate.log()
    if isinstance(p, Exponential):
        return -euler_constant - p.rate.log()
    if isinstance(p, Pareto):
        return p.scale.log() + p.alpha.reciprocal()
    return _mean_log_of_uniform(p.low, p.high)


def _mean_log_of_uniform(low: Tensor, high: Tensor) -> Tensor:
    return (_C.xlogy(high, high) - _C.xlogy(low, low)) / (high - low) - 1


def _mean_exp(p: Any, t: Tensor) -> Tensor:
    """The mean of exp(-t x), for positive t."""
    if isinstance(p, Normal):
        return _C.exp(-t * p.loc + 0.5 * (t * p.scale).pow(2))
    if isinstance(p, Gamma):
        return (1 + t / p.rate).pow(-p.concentration)
    if isinstance(p, Exponential):
        return p.rate / (p.rate + t)
    return (_C.exp(-t * p.low) - _C.exp(-t * p.high)) / (t * (p.high - p.low))


# ---- q with every real number ----


@register_kl(Beta, Normal)
@register_kl(ContinuousBernoulli, Normal)
@register_kl(Exponential, Normal)
@register_kl(Gamma, Normal)
@register_kl(Gumbel, Normal)
@register_kl(Laplace, Normal)
@register_kl(Pareto, Normal)
@register_kl(Uniform, Normal)
def _kl_to_normal(p: Any, q: Normal) -> Tensor:
    # The mean of (x - loc)^2; that of a Pareto number may be infinite, as its variance is.
    square = p.variance + (p.mean - q.loc).pow(2)
    return -p.entropy() + 0.5 * (2 * math.pi * q.variance).log() + 0.5 * square / q.variance


@register_kl(Exponential, Gumbel)
@register_kl(Gamma, Gumbel)
@register_kl(Normal, Gumbel)
@register_kl(Uniform, Gumbel)
def _kl_to_gumbel(p: Any, q: Gumbel) -> Tensor:
    away = (p.mean - q.loc) / q.scale
    moment = _C.exp(q.loc / q.scale) * _mean_exp(p, q.scale.reciprocal())
    return -p.entropy() + q.scale.log() + away + moment


@register_kl(Normal, Laplace)
def _kl_normal_laplace(p: Normal, q: Laplace) -> Tensor:
    # The mean of |x - loc|: that of a folded normal number.
    away = p.loc - q.loc
    z = away / (math.sqrt(2) * p.scale)
    size = p.scale * math.sqrt(2 / math.pi) * _C.exp(-z.pow(2)) + away * _C.erf(z)
    return -p.entropy() + (2 * q.scale).log() + size / q.scale


# ---- q of positive numbers ----


@register_kl(Beta, Exponential)
@register_kl(ContinuousBernoulli, Exponential)
@register_kl(Gamma, Exponential)
@register_kl(Pareto, Exponential)
def _kl_to_exponential(p: Any, q: Exponential) -> Tensor:
    return -p.entropy() - q.rate.log() + q.rate * p.mean


@register_kl(Uniform, Exponential)
def _kl_uniform_exponential(p: Uniform, q: Exponential) -> Tensor:
    return _kl_to_exponential(p, q).masked_fill(p.low < 0, math.inf)


@register_kl(Beta, Gamma)
@register_kl(Exponential, Gamma)
@register_kl(Pareto, Gamma)
def _kl_to_gamma(p: Any, q: Gamma) -> Tensor:
    log_norm = q.concentration.lgamma() - q.concentration * q.rate.log()
    return -p.entropy() + log_norm - (q.concentration - 1) * _mean_log(p) + q.rate * p.mean


@register_kl(Uniform, Gamma)
def _kl_uniform_gamma(p: Uniform, q: Gamma) -> Tensor:
    return _kl_to_gamma(p, q).masked_fill(p.low < 0, math.inf)


@register_kl(Uniform, Pareto)
def _kl_uniform_pareto(p: Uniform, q: Pareto) -> Tensor:
    log_norm = q.alpha.log() + q.alpha * q.scale.log()
    result = -p.entropy() - log_norm + (q.alpha + 1) * _mean_log(p)
    return result.masked_fill(p.low < q.scale, math.inf)


# ---- q of an interval ----


@register_kl(Beta, Uniform)
@register_kl(ContinuousBernoulli, Uniform)
def _kl_to_uniform(p: Any, q: Uniform) -> Tensor:
    result = -p.entropy() + (q.high - q.low).log()
    return result.masked_fill(_outside(p, q.low, q.high), math.inf)


@register_kl(Beta, ContinuousBernoulli)
def _kl_to_continuous_bernoulli(p: Any, q: ContinuousBernoulli) -> Tensor:
    log_norm = _C.log1p(-q.probs) + q._cont_bern_log_norm()
    return -p.entropy() - p.mean * q.logits - log_norm


@register_kl(Uniform, ContinuousBernoulli)
def _kl_uniform_continuous_bernoulli(p: Uniform, q: ContinuousBernoulli) -> Tensor:
    return _kl_to_continuous_bernoulli(p, q).masked_fill(_outside(p, 0, 1), math.inf)


@register_kl(Uniform, Beta)
def _kl_uniform_beta(p: Uniform, q: Beta) -> Tensor:
    a, b = q.concentration1, q.concentration0
    log_norm = a.lgamma() + b.lgamma() - (a + b).lgamma()
    powers = (a - 1) * _mean_log(p) + (b - 1) * _mean_log_of_uniform(1 - p.high, 1 - p.low)
    return (-p.entropy() + log_norm - powers).masked_fill(_outside(p, 0, 1), math.inf)


# ---- q of counts ----


@register_kl(Bernoulli, Poisson)
def _kl_bernoulli_poisson(p: Bernoulli, q: Poisson) -> Tensor:
    return -p.entropy() - (p.probs * q.rate.log() - q.rate)


# ---- p with numbers that q has not ----


def _register_infinite(type_p: type, *types_q: type) -> None:
    for type_q in types_q:
        register_kl(type_p, type_q)(_kl_infinite)


def _kl_infinite(p: Any, q: Any) -> Tensor:
    return _C.full_like(p.mean, math.inf)


_register_infinite(Beta, Pareto)
_register_infinite(ContinuousBernoulli, Pareto)
_register_infinite(Exponential, Beta, ContinuousBernoulli, Pareto, Uniform)
_register_infinite(Gamma, Beta, ContinuousBernoulli, Pareto, Uniform)
_register_infinite(Gumbel, Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform)
_register_infinite(Laplace, Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform)
_register_infinite(Normal, Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform)
_register_infinite(Pareto, Beta, ContinuousBernoulli, Uniform)
_register_infinite(Poisson, Bernoulli, Binomial)
