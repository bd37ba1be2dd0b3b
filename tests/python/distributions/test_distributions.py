"""Every distribution says what PyTorch says of the same parameters, keeps saying it when expanded,
and gives samples that agree with it.

The cases stand in distribution_cases/cases.py, and PyTorch's results beside them; a class without a
case fails.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import copy
import dataclasses
import functools
import importlib
import inspect
import json
import pickle
import sys
import warnings
from pathlib import Path
from typing import Any, Iterator

import numpy as np
import pytest
from distribution_cases.cases import CASES, Case
from distribution_cases.record import build, record

import treadle
from treadle import distributions

KEPT = json.loads((Path(__file__).parent / "distribution_cases" / "results.json").read_text())
TOLERANCE = {"float64": 1e-9, "float32": 2e-5}

BASES = {"Distribution", "ExponentialFamily"}

# Samples of these follow their parameters by implicit reparameterisation, which is no function of
# the parameters for fixed random numbers.
IMPLICIT = {
    "Beta",
    "Chi2",
    "Dirichlet",
    "FisherSnedecor",
    "Gamma",
    "InverseGamma",
    "StudentT",
    "Wishart",
}

# Nobody knows a formula for these, or there is none for all of them.
WITHOUT_MOMENTS = {
    "LKJCholesky",
    "LogisticNormal",
    "RelaxedBernoulli",
    "RelaxedOneHotCategorical",
    "TransformedDistribution",
}

# Samples of these do not follow their parameters, for the formulas of a limit are taken.
AT_A_LIMIT = {"ContinuousBernoulli half", "GeneralizedPareto of 0"}


@pytest.fixture(params=CASES, ids=lambda case: case.name)
def case(request: pytest.FixtureRequest) -> Iterator[Case]:
    treadle.manual_seed(0)
    with warnings.catch_warnings():
        # Wishart says so where matrices that were drawn are singular.
        warnings.simplefilter("ignore", UserWarning)
        yield request.param


def _dist(case: Case) -> Any:
    return build(case, treadle)[0]


def _value(case: Case) -> treadle.Tensor:
    return treadle.tensor(case.value, dtype=getattr(treadle, case.dtype))


def test_every_class_has_a_case() -> None:
    classes = {
        name
        for name in distributions.__all__
        if inspect.isclass(getattr(distributions, name))
        and issubclass(getattr(distributions, name), distributions.Distribution)
    }
    assert classes - BASES == {case.cls for case in CASES}
    assert set(KEPT) == {case.name for case in CASES}


def test_says_what_pytorch_says(case: Case) -> None:
    got = record(case, treadle)
    wanted = KEPT[case.name]
    assert set(got) == set(wanted)
    for quantity, want in wanted.items():
        if quantity in case.differs:
            continue
        if isinstance(want, str) or isinstance(got[quantity], str):
            assert got[quantity] == want, quantity
            continue
        np.testing.assert_allclose(
            np.asarray(got[quantity], dtype=np.float64),
            np.asarray(want, dtype=np.float64),
            rtol=TOLERANCE[case.dtype],
            atol=TOLERANCE[case.dtype],
            err_msg=quantity,
        )


def test_expanded(case: Case) -> None:
    dist, value = _dist(case), _value(case)
    batch = (4, 2) + tuple(dist.batch_shape)
    wide = dist.expand(batch)
    assert type(wide) is type(dist)
    assert tuple(wide.batch_shape) == batch
    assert tuple(wide.event_shape) == tuple(dist.event_shape)
    assert wide._validate_args == dist._validate_args
    assert wide.has_rsample == dist.has_rsample
    assert tuple(wide.sample((3,)).shape) == (3, *batch, *dist.event_shape)
    narrow_log_prob = dist.log_prob(value)
    value = value.expand(treadle.broadcast_shapes(value.shape, dist.batch_shape + dist.event_shape))
    sample_dims = value.dim() - len(dist.batch_shape + dist.event_shape)
    # The new dimensions stand between those of the sample and the old batch.
    inside = (slice(None),) * sample_dims + (None, None)
    np.testing.assert_allclose(
        wide.log_prob(value[inside]).detach().numpy(),
        narrow_log_prob[inside]
        .expand(value.shape[:sample_dims] + treadle.Size(batch))
        .detach()
        .numpy(),
        rtol=1e-6,
    )
    for quantity in ("mean", "variance"):
        try:
            narrow = getattr(dist, quantity)
        except NotImplementedError:
            continue
        wanted = narrow.expand(batch + tuple(dist.event_shape))
        np.testing.assert_allclose(
            getattr(wide, quantity).detach().numpy(), wanted.detach().numpy(), rtol=1e-6
        )
    with pytest.raises((RuntimeError, ValueError)):
        wide.expand((3, 2) + tuple(dist.batch_shape))


def test_an_unchecked_one_stays_unchecked_when_expanded() -> None:
    dist = distributions.Normal(treadle.zeros(2), treadle.ones(2), validate_args=False)
    assert not dist.expand((3, 2))._validate_args
    dist.expand((3, 2)).log_prob(treadle.tensor(treadle.nan))


def test_samples_are_in_the_support(case: Case) -> None:
    dist = _dist(case)
    sample = dist.sample((50,))
    assert not sample.requires_grad
    # Rounding to float32 leaves matrices a little from where they should be.
    assert dist.support.check(sample).all()
    dist.log_prob(sample)


def test_one_sample_of_no_dimensions(case: Case) -> None:
    dist = _dist(case)
    assert tuple(dist.sample().shape) == tuple(dist.batch_shape + dist.event_shape)
    if dist.has_rsample and case.cls != "OneHotCategoricalStraightThrough":  # multinomial says no
        assert tuple(dist.sample((0,)).shape) == (0, *dist.batch_shape, *dist.event_shape)


def test_seed_decides(case: Case) -> None:
    dist = _dist(case)
    draws = []
    for seed in (7, 7, 8):
        treadle.manual_seed(seed)
        draws.append(dist.sample((20,)).numpy())
    np.testing.assert_array_equal(draws[0], draws[1])
    assert not np.array_equal(draws[0], draws[2])


COUNT = 20_000


def test_moments_of_samples(case: Case) -> None:
    dist = _dist(case)
    if case.cls in WITHOUT_MOMENTS:
        with pytest.raises(NotImplementedError):
            _ = dist.mean
        return
    mean, variance = dist.mean.detach().numpy(), dist.variance.detach().numpy()
    if case.cls == "VonMises":
        # The mean is a direction, and the variance that of a direction.
        angles = dist.sample((COUNT,)).numpy()
        np.testing.assert_allclose(np.sin(angles - mean).mean(0), 0, atol=0.02)
        np.testing.assert_allclose(1 - np.cos(angles - mean).mean(0), variance, atol=0.02)
        return
    x = dist.sample((COUNT,)).double().numpy()
    known = np.isfinite(mean) & np.isfinite(variance)
    # Six standard errors: a wrong distribution is far outside, chance is not.
    error = 6 * np.sqrt(np.where(known, variance, 0) / COUNT) + 1e-6
    away = np.abs(x.mean(0) - np.where(known, mean, 0))
    assert (away[known] < error[known]).all()
    fourth = ((x - x.mean(0)) ** 4).mean(0)
    error = 8 * np.sqrt(np.abs(fourth - x.var(0) ** 2) / COUNT) + 1e-6
    away = np.abs(x.var(0) - np.where(known, variance, 0))
    assert (away[known] < error[known]).all()


def test_gradient_through_samples(case: Case) -> None:
    """The slope of each parameter is that of a sample made of the same random numbers."""
    case = dataclasses.replace(case, dtype="float64")
    dist, parameters = build(case, treadle)
    if not dist.has_rsample:
        with pytest.raises(NotImplementedError):
            dist.rsample()
        return
    if case.name in AT_A_LIMIT:
        return
    weights = treadle.randn((200, *dist.batch_shape, *dist.event_shape), dtype=treadle.float64)

    def sampled(d: Any) -> treadle.Tensor:
        treadle.manual_seed(3)
        return (d.rsample((200,)) * weights).sum()

    slopes = treadle.autograd.grad(sampled(dist), parameters, allow_unused=True)
    assert any(slope is not None and (slope != 0).any() for slope in slopes)
    if case.cls in IMPLICIT or case.cls == "OneHotCategoricalStraightThrough":
        return
    for index, slope in enumerate(slopes):
        if slope is None:
            continue
        direction = treadle.ones_like(parameters[index])
        if "scale_tril" in case.name and direction.dim() > 2:
            direction = direction.tril()
        ends = [sampled(_moved(case, index, sign * 1e-6 * direction)).item() for sign in (1, -1)]
        numeric = (ends[0] - ends[1]) / 2e-6
        want = (slope * direction).sum().item()
        assert abs(numeric - want) <= 1e-5 * (1 + abs(want)), index


def _moved(case: Case, index: int, by: treadle.Tensor) -> Any:
    """The distribution of a case, its parameter `index` moved."""
    count = iter(range(100))

    def t(data: Any) -> treadle.Tensor:
        tensor = treadle.tensor(data, dtype=treadle.float64)
        return tensor + by if next(count) == index else tensor

    return case.build(distributions, t)


def test_gradient_of_the_mean_through_samples(case: Case) -> None:
    """The mean of the slopes of samples is the slope of the mean; so those of implicit
    reparameterisation are seen to be right, too.
    """
    case = dataclasses.replace(case, dtype="float64")
    dist, parameters = build(case, treadle)
    if not dist.has_rsample or case.name in AT_A_LIMIT:
        return
    if case.cls in WITHOUT_MOMENTS:
        return
    mean, variance = dist.mean, dist.variance
    if not (mean.requires_grad and mean.isfinite().all() and variance.isfinite().all()):
        return
    slopes_of = functools.partial(
        treadle.autograd.grad, inputs=parameters, allow_unused=True, retain_graph=True
    )
    wanted = slopes_of(mean.sum())
    treadle.manual_seed(5)
    tries = [slopes_of(dist.rsample((500,)).mean(0).sum()) for _ in range(40)]
    for index, want in enumerate(wanted):
        if want is None or tries[0][index] is None:
            continue
        got = np.stack([slopes[index].numpy() for slopes in tries])
        error = 7 * got.std(0) / np.sqrt(len(got)) + 1e-8
        assert (np.abs(got.mean(0) - want.numpy()) < error).all(), index


def test_is_copied_and_pickled(case: Case) -> None:
    dist, value = _dist(case), _value(case)
    wanted = dist.log_prob(value).detach().numpy()
    for again in (pickle.loads(pickle.dumps(dist)), copy.copy(dist)):
        np.testing.assert_array_equal(again.log_prob(value).detach().numpy(), wanted)


def test_rejects_what_is_outside_the_support(case: Case) -> None:
    dist, value = _dist(case), _value(case)
    with pytest.raises(ValueError, match="to be within the support|value argument"):
        dist.log_prob(value.double() * treadle.nan)
    if not isinstance(dist, distributions.Gamma):  # which takes numbers
        with pytest.raises(ValueError, match="must be a Tensor"):
            dist.log_prob(1.0)


def test_log_prob_sums_to_one(case: Case) -> None:
    dist = _dist(case)
    if not dist.has_enumerate_support:
        with pytest.raises(NotImplementedError):
            dist.enumerate_support()
        return
    values = dist.enumerate_support()
    total = dist.log_prob(values).exp().sum(0).detach().numpy()
    np.testing.assert_allclose(total, np.ones(tuple(dist.batch_shape)), rtol=1e-12)


def test_multinomial_of_more_draws_than_can_be_made_one_by_one():
    from treadle.distributions import Multinomial

    treadle.manual_seed(0)
    for dtype in (treadle.float32, treadle.float64):
        probs = treadle.tensor([[0.5, 0.0, 0.3, 0.2], [0.1, 0.1, 0.8, 0.0]], dtype=dtype)
        many = Multinomial(10**6 if dtype == treadle.float32 else 10**12, probs)
        drawn = many.sample((3000,))
        assert drawn.shape == (3000, 2, 4) and drawn.dtype == dtype
        assert (drawn.sum(-1) == many.total_count).all() and drawn[..., 0, 1].max() == 0
        assert drawn[..., 1, 3].max() == 0
        error = (drawn.double().mean(0) - many.mean.double()) * 3000**0.5
        sigma = many.variance.double().sqrt()
        assert (error.abs() <= 4 * sigma).all()
        present = sigma > 0
        assert ((drawn.double().std(0) / sigma)[present] - 1).abs().max() < 0.06


def test_modules_have_the_names_of_pytorch() -> None:
    for module, name in (
        ("half_normal", "HalfNormal"),
        ("normal", "Normal"),
        ("relaxed_bernoulli", "LogitRelaxedBernoulli"),
        ("weibull", "Weibull"),
    ):
        full = f"treadle.distributions.{module}"
        found = getattr(importlib.import_module(full), name)
        assert found.__module__ == full and pickle.loads(pickle.dumps(found)) is found
        assert getattr(treadle.distributions, module) is sys.modules[full]
