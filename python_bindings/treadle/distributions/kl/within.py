"""Divergences of two distributions of one family."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import math
from typing import Any

from treadle import _C
from treadle._C import Tensor
from treadle._functions.variadic import broadcast_shapes
from treadle.autograd import grad
from treadle.autograd.grad_mode import enable_grad
from treadle.distributions.bernoulli import Bernoulli
from treadle.distributions.beta import Beta
from treadle.distributions.binomial import Binomial
from treadle.distributions.categorical import Categorical
from treadle.distributions.cauchy import Cauchy
from treadle.distributions.continuous_bernoulli import ContinuousBernoulli
from treadle.distributions.dirichlet import Dirichlet
from treadle.distributions.exp_family import ExponentialFamily
from treadle.distributions.exponential import Exponential
from treadle.distributions.gamma import Gamma
from treadle.distributions.geometric import Geometric
from treadle.distributions.independent import Independent
from treadle.distributions.kl.registry import kl_divergence, register_kl
from treadle.distributions.laplace import Laplace
from treadle.distributions.lowrank_multivariate_normal import (
    LowRankMultivariateNormal,
    _batch_lowrank_logdet,
    _batch_lowrank_mahalanobis,
)
from treadle.distributions.multivariate_normal import MultivariateNormal, _batch_mahalanobis
from treadle.distributions.normal import Normal
from treadle.distributions.one_hot_categorical import OneHotCategorical
from treadle.distributions.poisson import Poisson
from treadle.distributions.transformed.gumbel import Gumbel
from treadle.distributions.transformed.half_normal import HalfNormal
from treadle.distributions.transformed.pareto import Pareto
from treadle.distributions.transformed_distribution import TransformedDistribution
from treadle.distributions.uniform import Uniform
from treadle.distributions.utils import _sum_rightmost, euler_constant
from treadle.nn.functional import softplus


@register_kl(Bernoulli, Bernoulli)
def _kl_bernoulli_bernoulli(p: Bernoulli, q: Bernoulli) -> Tensor:
    one = p.probs * (softplus(-q.logits) - softplus(-p.logits))
    one = one.masked_fill(q.probs == 0, math.inf).masked_fill(p.probs == 0, 0)
    zero = (1 - p.probs) * (softplus(q.logits) - softplus(p.logits))
    zero = zero.masked_fill(q.probs == 1, math.inf).masked_fill(p.probs == 1, 0)
    return one + zero


@register_kl(Beta, Beta)
def _kl_beta_beta(p: Beta, q: Beta) -> Tensor:
    return _kl_dirichlet_dirichlet(p._dirichlet, q._dirichlet)


@register_kl(Binomial, Binomial)
def _kl_binomial_binomial(p: Binomial, q: Binomial) -> Tensor:
    # The binomial coefficients differ where the counts do; then values of p may be none of q.
    if (p.total_count < q.total_count).any():
        raise NotImplementedError(
            "KL between Binomials where q.total_count > p.total_count is not implemented"
        )
    of_a_trial = p.probs * (p.logits - q.logits) + (-p.probs).log1p() - (-q.probs).log1p()
    kl = p.total_count * of_a_trial
    return kl.masked_fill(p.total_count > q.total_count, math.inf)


@register_kl(Categorical, Categorical)
def _kl_categorical_categorical(p: Categorical, q: Categorical) -> Tensor:
    of_class = p.probs * (p.logits - q.logits)
    of_class = of_class.masked_fill(q.probs == 0, math.inf).masked_fill(p.probs == 0, 0)
    return of_class.sum(-1)


@register_kl(ContinuousBernoulli, ContinuousBernoulli)
def _kl_continuous_bernoulli(p: ContinuousBernoulli, q: ContinuousBernoulli) -> Tensor:
    of_p = p._cont_bern_log_norm() + _C.log1p(-p.probs)
    of_q = q._cont_bern_log_norm() + _C.log1p(-q.probs)
    return p.mean * (p.logits - q.logits) + of_p - of_q


@register_kl(Dirichlet, Dirichlet)
def _kl_dirichlet_dirichlet(p: Dirichlet, q: Dirichlet) -> Tensor:
    total_p, total_q = p.concentration.sum(-1), q.concentration.sum(-1)
    log_norms = (p.concentration.lgamma() - q.concentration.lgamma()).sum(-1)
    mean_logs = p.concentration.digamma() - total_p.digamma().unsqueeze(-1)
    cross = ((p.concentration - q.concentration) * mean_logs).sum(-1)
    return total_p.lgamma() - total_q.lgamma() - log_norms + cross


@register_kl(Exponential, Exponential)
def _kl_exponential_exponential(p: Exponential, q: Exponential) -> Tensor:
    ratio = q.rate / p.rate
    return -ratio.log() + ratio - 1


@register_kl(ExponentialFamily, ExponentialFamily)
def _kl_expfamily_expfamily(p: ExponentialFamily, q: ExponentialFamily) -> Tensor:
    """Bregman's divergence of the log-normaliser; see Nielsen and Nock, "Entropies and
    cross-entropies of exponential families" (2010).
    """
    if type(p) is not type(q):
        raise NotImplementedError(
            "The cross KL-divergence between different exponential families cannot "
            "be computed using Bregman divergences"
        )
    with enable_grad():
        p_params = [param.detach().requires_grad_() for param in p._natural_params]
        p_norm = p._log_normalizer(*p_params)
        slopes = grad(p_norm.sum(), p_params, create_graph=True)
    q_params = q._natural_params
    result = q._log_normalizer(*q_params) - p_norm
    for p_param, q_param, slope in zip(p_params, q_params, slopes):
        result = result - _sum_rightmost((q_param - p_param) * slope, len(q.event_shape))
    return result


@register_kl(Gamma, Gamma)
def _kl_gamma_gamma(p: Gamma, q: Gamma) -> Tensor:
    rates = q.concentration * (p.rate / q.rate).log()
    log_gammas = _C.lgamma(q.concentration) - _C.lgamma(p.concentration)
    shapes = (p.concentration - q.concentration) * _C.digamma(p.concentration)
    return rates + log_gammas + shapes + (q.rate - p.rate) * (p.concentration / p.rate)


@register_kl(Gumbel, Gumbel)
def _kl_gumbel_gumbel(p: Gumbel, q: Gumbel) -> Tensor:
    ratio = p.scale / q.scale
    away = (q.loc - p.loc) / q.scale
    moment = _C.exp(away + (1 + ratio).lgamma())  # of exp((q.loc - x) / q.scale)
    return -ratio.log() - away + ratio * euler_constant + moment - (1 + euler_constant)


@register_kl(Geometric, Geometric)
def _kl_geometric_geometric(p: Geometric, q: Geometric) -> Tensor:
    return -p.entropy() - _C.log1p(-q.probs) / p.probs - q.logits


@register_kl(HalfNormal, HalfNormal)
def _kl_half_normal(p: HalfNormal, q: HalfNormal) -> Tensor:
    return _kl_normal_normal(p.base_dist, q.base_dist)


@register_kl(Laplace, Laplace)
def _kl_laplace_laplace(p: Laplace, q: Laplace) -> Tensor:
    ratio = p.scale / q.scale
    away = (p.loc - q.loc).abs()
    return -ratio.log() + away / q.scale + ratio * _C.exp(-away / p.scale) - 1


def _check_event_shapes(p: Any, q: Any) -> int:
    if tuple(p.event_shape) != tuple(q.event_shape):
        raise ValueError(
            "KL-divergence between two (Low Rank) Multivariate Normals with different event shapes "
            "cannot be computed"
        )
    return p.event_shape[0]


def _is_low_rank(d: Any) -> bool:
    return isinstance(d, LowRankMultivariateNormal)


def _log_det(d: Any) -> Tensor:
    """The logarithm of the determinant of a covariance."""
    if _is_low_rank(d):
        return _batch_lowrank_logdet(
            d._unbroadcasted_cov_factor, d._unbroadcasted_cov_diag, d._capacitance_tril
        )
    return 2 * d._half_log_det()


def _inverse_square(q: Any, x: Tensor) -> Tensor:
    """x C^-1 x for the covariance C of `q`."""
    if _is_low_rank(q):
        return _batch_lowrank_mahalanobis(
            q._unbroadcasted_cov_factor, q._unbroadcasted_cov_diag, x, q._capacitance_tril
        )
    return _batch_mahalanobis(q._unbroadcasted_scale_tril, x)


def _trace_of_quotient(p: Any, q: Any) -> Tensor:
    """The trace of C_q^-1 C_p: the sum of x C_q^-1 x over the columns x of factors of C_p."""
    if _is_low_rank(p):
        factors = [p._unbroadcasted_cov_factor, _C.diag_embed(p._unbroadcasted_cov_diag.sqrt())]
    else:
        factors = [p._unbroadcasted_scale_tril]
    batch = broadcast_shapes(p.batch_shape, q.batch_shape)
    total = _C.zeros(batch, dtype=p.loc.dtype, device=p.loc.device)
    for factor in factors:
        # The columns come first, as samples do.
        factor = factor.expand(batch + factor.shape[-2:])
        columns = factor.permute(factor.dim() - 1, *range(factor.dim() - 1))
        total = total + _inverse_square(q, columns).sum(0)
    return total


@register_kl(LowRankMultivariateNormal, LowRankMultivariateNormal)
@register_kl(LowRankMultivariateNormal, MultivariateNormal)
@register_kl(MultivariateNormal, LowRankMultivariateNormal)
@register_kl(MultivariateNormal, MultivariateNormal)
def _kl_multivariate_normal(p: Any, q: Any) -> Tensor:
    n = _check_event_shapes(p, q)
    square = _inverse_square(q, q.loc - p.loc)
    return 0.5 * (_log_det(q) - _log_det(p) + _trace_of_quotient(p, q) + square - n)


@register_kl(Normal, Normal)
def _kl_normal_normal(p: Normal, q: Normal) -> Tensor:
    ratio = (p.scale / q.scale).pow(2)
    away = ((p.loc - q.loc) / q.scale).pow(2)
    return 0.5 * (ratio + away - 1 - ratio.log())


@register_kl(OneHotCategorical, OneHotCategorical)
def _kl_one_hot_categorical(p: OneHotCategorical, q: OneHotCategorical) -> Tensor:
    return _kl_categorical_categorical(p._categorical, q._categorical)


@register_kl(Pareto, Pareto)
def _kl_pareto_pareto(p: Pareto, q: Pareto) -> Tensor:
    ratio = q.alpha / p.alpha
    result = q.alpha * (p.scale / q.scale).log() - ratio.log() + ratio - 1
    return result.masked_fill(p.scale < q.scale, math.inf)


@register_kl(Poisson, Poisson)
def _kl_poisson_poisson(p: Poisson, q: Poisson) -> Tensor:
    return p.rate * (p.rate.log() - q.rate.log()) - (p.rate - q.rate)


@register_kl(TransformedDistribution, TransformedDistribution)
def _kl_transformed(p: TransformedDistribution, q: TransformedDistribution) -> Tensor:
    """The same transforms leave the divergence as it is. NotImplementedError for others."""
    if p.transforms != q.transforms:
        raise NotImplementedError
    if tuple(p.event_shape) != tuple(q.event_shape):
        raise NotImplementedError
    return kl_divergence(p.base_dist, q.base_dist)


@register_kl(Uniform, Uniform)
def _kl_uniform_uniform(p: Uniform, q: Uniform) -> Tensor:
    result = ((q.high - q.low) / (p.high - p.low)).log()
    return result.masked_fill((q.low > p.low) | (q.high < p.high), math.inf)


@register_kl(Independent, Independent)
def _kl_independent_independent(p: Independent, q: Independent) -> Tensor:
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NotImplementedError
    result = kl_divergence(p.base_dist, q.base_dist)
    return _sum_rightmost(result, p.reinterpreted_batch_ndims)


@register_kl(Cauchy, Cauchy)
def _kl_cauchy_cauchy(p: Cauchy, q: Cauchy) -> Tensor:
    # Chyzak and Nielsen, "A closed-form formula for the Kullback-Leibler divergence between Cauchy
    # distributions" (2019).
    size = ((p.scale + q.scale).pow(2) + (p.loc - q.loc).pow(2)).log()
    return size - (4 * p.scale * q.scale).log()
