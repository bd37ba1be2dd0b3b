"""Constraints, what they take and refuse; and what distributions say of parameters and values that
do not fit, in PyTorch's words.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import subprocess
import sys
import warnings
from typing import Any, Callable

import numpy as np
import pytest

import treadle
from treadle import distributions as d
from treadle.distributions import constraints, utils


def t(data: Any) -> treadle.Tensor:
    return treadle.tensor(data, dtype=treadle.float64)


NAN = float("nan")

# name: (constraint, event_dim, discrete, values inside, values outside)
CONSTRAINTS: dict[str, tuple[Any, int, bool, list[Any], list[Any]]] = {
    "boolean": (constraints.boolean, 0, True, [0.0, 1.0], [0.5, -1.0, NAN]),
    "cat": (
        constraints.cat([constraints.positive, constraints.real], 0, [1, 2]),
        0,
        False,
        [1.0, -1.0, -1.0],
        [-1.0, NAN, NAN],
    ),
    "corr_cholesky": (
        constraints.corr_cholesky,
        2,
        False,
        [[[1.0, 0.0], [0.6, 0.8]], [[1.0, 0.0], [0.0, 1.0]]],
        [[[1.0, 0.0], [0.6, 0.9]], [[1.0, 0.0], [0.6, -0.8]], [[0.8, 0.6], [0.6, 0.8]]],
    ),
    "greater_than": (constraints.greater_than(1.5), 0, False, [1.6, 9.0], [1.5, -1.0, NAN]),
    "greater_than_eq": (constraints.greater_than_eq(1.5), 0, False, [1.5, 9.0], [1.4, NAN]),
    "independent": (
        constraints.independent(constraints.positive, 1),
        1,
        False,
        [[1.0, 2.0]],
        [[1.0, -2.0], [NAN, 1.0]],
    ),
    "integer_interval": (
        constraints.integer_interval(-1, 3),
        0,
        True,
        [-1.0, 0.0, 3.0],
        [-2.0, 0.5, 4.0, NAN],
    ),
    "interval": (constraints.interval(-1.0, t(2.0)), 0, False, [-1.0, 2.0], [-1.1, 2.1, NAN]),
    "half_open_interval": (
        constraints.half_open_interval(0.0, 1.0),
        0,
        False,
        [0.0, 0.9],
        [1.0, -0.1, NAN],
    ),
    "less_than": (constraints.less_than(1.5), 0, False, [1.4, -9.0], [1.5, 2.0, NAN]),
    "lower_cholesky": (
        constraints.lower_cholesky,
        2,
        False,
        [[[2.0, 0.0], [-3.0, 0.1]]],
        [[[2.0, 1.0], [-3.0, 0.1]], [[2.0, 0.0], [-3.0, -0.1]], [[2.0, 0.0], [1.0, 0.0]]],
    ),
    "lower_triangular": (
        constraints.lower_triangular,
        2,
        False,
        [[[2.0, 0.0], [-3.0, -0.1]]],
        [[[2.0, 1.0], [-3.0, 0.1]]],
    ),
    "MixtureSameFamilyConstraint": (
        constraints.MixtureSameFamilyConstraint(constraints.positive),
        0,
        False,
        [1.0, 2.0],
        [-1.0, NAN],
    ),
    "multinomial": (
        constraints.multinomial(4),
        1,
        True,
        [[1.0, 3.0], [0.0, 2.0]],
        [[2.0, 3.0], [-1.0, 2.0]],
    ),
    "nonnegative": (constraints.nonnegative, 0, False, [0.0, 2.0], [-1e-9, NAN]),
    "nonnegative_integer": (constraints.nonnegative_integer, 0, True, [0.0, 7.0], [0.5, -1.0]),
    "one_hot": (
        constraints.one_hot,
        1,
        True,
        [[0.0, 1.0], [1.0, 0.0]],
        [[1.0, 1.0], [0.0, 0.0], [0.5, 0.5]],
    ),
    "positive": (constraints.positive, 0, False, [1e-9, 2.0], [0.0, -1.0, NAN]),
    "positive_semidefinite": (
        constraints.positive_semidefinite,
        2,
        False,
        [[[1.0, 0.0], [0.0, 0.0]], [[2.0, 1.0], [1.0, 2.0]]],
        [[[1.0, 2.0], [2.0, 1.0]]],
    ),
    "positive_definite": (
        constraints.positive_definite,
        2,
        False,
        [[[2.0, 1.0], [1.0, 2.0]]],
        [[[1.0, 2.0], [2.0, 1.0]], [[1.0, 0.0], [0.0, -1.0]]],
    ),
    "positive_integer": (constraints.positive_integer, 0, True, [1.0, 7.0], [0.0, 1.5]),
    "real": (constraints.real, 0, False, [0.0, float("inf")], [NAN]),
    "real_vector": (constraints.real_vector, 1, False, [[0.0, 1.0]], [[0.0, NAN]]),
    "simplex": (
        constraints.simplex,
        1,
        False,
        [[0.2, 0.8], [1.0, 0.0]],
        [[0.2, 0.7], [1.2, -0.2], [NAN, 1.0]],
    ),
    "square": (constraints.square, 2, False, [[[1.0, 2.0], [3.0, 4.0]]], [[[1.0, 2.0]]]),
    "stack": (
        constraints.stack([constraints.positive, constraints.real], 0),
        0,
        False,
        [1.0, -1.0],
        [-1.0, NAN],
    ),
    "symmetric": (
        constraints.symmetric,
        2,
        False,
        [[[1.0, 2.0], [2.0, -4.0]]],
        [[[1.0, 2.0], [3.0, 4.0]]],
    ),
    "unit_interval": (constraints.unit_interval, 0, False, [0.0, 1.0], [-0.1, 1.1, NAN]),
}
OTHERS = {"Constraint", "dependent", "dependent_property", "is_dependent"}


def test_every_constraint_is_here() -> None:
    assert set(constraints.__all__) == {*CONSTRAINTS, *OTHERS}


@pytest.mark.parametrize("name", CONSTRAINTS)
def test_inside_and_outside(name: str) -> None:
    constraint, event_dim, is_discrete, inside, outside = CONSTRAINTS[name]
    assert constraint.event_dim == event_dim
    assert constraint.is_discrete == is_discrete
    for values, wanted in ((inside, True), (outside, False)):
        got = constraint.check(t(values))
        assert got.dtype == treadle.bool
        np.testing.assert_array_equal(got.numpy(), np.full(len(values), wanted))
    assert not constraints.is_dependent(constraint)


def test_representations() -> None:
    for constraint, text in {
        constraints.real: "Real()",
        constraints.positive: "GreaterThan(lower_bound=0.0)",
        constraints.unit_interval: "Interval(lower_bound=0.0, upper_bound=1.0)",
        constraints.integer_interval(0, 3): "IntegerInterval(lower_bound=0, upper_bound=3)",
        constraints.nonnegative_integer: "IntegerGreaterThan(lower_bound=0)",
        constraints.less_than(3): "LessThan(upper_bound=3)",
        constraints.real_vector: "IndependentConstraint(Real(), 1)",
        constraints.simplex: "Simplex()",
        constraints.dependent: "Dependent()",
        constraints.MixtureSameFamilyConstraint(constraints.real): (
            "MixtureSameFamilyConstraint(Real())"
        ),
    }.items():
        assert repr(constraint) == text


def test_dependent() -> None:
    assert constraints.is_dependent(constraints.dependent)
    known = constraints.dependent(is_discrete=True, event_dim=1)
    assert (known.is_discrete, known.event_dim) == (True, 1)
    assert known(event_dim=2).event_dim == 2
    for what in ("is_discrete", "event_dim"):
        with pytest.raises(NotImplementedError, match=f"{what} cannot be determined statically"):
            getattr(constraints.dependent, what)
    with pytest.raises(ValueError, match="dependent constraint"):
        constraints.dependent.check(t(1.0))
    assert constraints.is_dependent(d.Uniform.support)
    assert d.Uniform.support.event_dim == 0
    assert not constraints.is_dependent(d.Uniform(0.0, 1.0).support)


def test_values_of_too_few_dimensions() -> None:
    with pytest.raises(ValueError, match=r"Expected value.dim\(\) >= 2 but got 1"):
        constraints.independent(constraints.real, 2).check(t([1.0]))
    with pytest.raises(ValueError, match=r"Expected value.dim\(\) >= 1 but got 0"):
        constraints.MixtureSameFamilyConstraint(constraints.real_vector).check(t(1.0))
    with pytest.raises(AssertionError):
        constraints.cat([constraints.real], dim=1).check(t([1.0]))
    with pytest.raises(AssertionError):
        constraints.stack([constraints.real], dim=1).check(t([1.0]))


# call: (what raises, the beginning of its text)
REFUSALS: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "parameter": (
        lambda: d.Normal(0.0, -1.0),
        ValueError,
        "Expected parameter scale (Tensor of shape ()) of distribution "
        "Normal(loc: 0.0, scale: -1.0) to satisfy the constraint GreaterThan(lower_bound=0.0), "
        "but found invalid values:\n-1.0",
    ),
    "parameters": (
        lambda: d.Normal(treadle.zeros(2), treadle.tensor([1.0, -1.0])),
        ValueError,
        "Expected parameter scale (Tensor of shape (2,)) of distribution "
        "Normal(loc: treadle.Size([2]), scale: treadle.Size([2])) to satisfy the constraint "
        "GreaterThan(lower_bound=0.0), but found invalid values:\ntensor([ 1., -1.])",
    ),
    "an nn.Parameter": (
        lambda: d.Exponential(treadle.nn.Parameter(treadle.tensor(-1.0))),
        ValueError,
        # The broadcast parameter is a tensor.
        "Expected parameter rate (",
    ),
    "value": (
        lambda: d.Beta(1.0, 2.0).log_prob(treadle.tensor(2.0)),
        ValueError,
        "Expected value argument (Tensor of shape ()) to be within the support "
        "(Interval(lower_bound=0.0, upper_bound=1.0)) of the distribution Beta(), "
        "but found invalid values:\n2.0",
    ),
    "a number as value": (
        lambda: d.Normal(0.0, 1.0).log_prob(1.0),
        ValueError,
        "The value argument to log_prob must be a Tensor",
    ),
    "shape of the event": (
        lambda: d.Dirichlet(treadle.ones(3)).log_prob(treadle.ones(2)),
        ValueError,
        "The right-most size of value must match event_shape: "
        "treadle.Size([2]) vs treadle.Size([3]).",
    ),
    "shape of the batch": (
        lambda: d.Normal(treadle.zeros(3), 1.0).log_prob(treadle.zeros(2)),
        ValueError,
        "Value is not broadcastable with batch_shape+event_shape: "
        "treadle.Size([2]) vs treadle.Size([3]).",
    ),
    "shape of values of many dimensions": (
        lambda: d.Dirichlet(treadle.ones(3)).log_prob(treadle.tensor(1.0)),
        ValueError,
        "The right-most size of value must match event_shape: "
        "treadle.Size([]) vs treadle.Size([3]).",
    ),
    "a text as parameter": (
        lambda: d.Normal("a", 1.0),
        ValueError,
        "Input arguments must all be instances of Number",
    ),
    "neither": (
        d.Bernoulli,
        ValueError,
        "Either `probs` or `logits` must be specified, but not both.",
    ),
    "both": (
        lambda: d.Categorical(treadle.ones(2), treadle.ones(2)),
        ValueError,
        "Either `probs` or `logits` must be specified, but not both.",
    ),
    "classes": (
        lambda: d.Categorical(treadle.tensor(1.0)),
        ValueError,
        "`probs` parameter must be at least one-dimensional.",
    ),
    "classes of logits": (
        lambda: d.Categorical(logits=treadle.tensor(1.0)),
        ValueError,
        "`logits` parameter must be at least one-dimensional.",
    ),
    "geometric": (
        lambda: d.Geometric(0.0),
        ValueError,
        "Expected parameter probs (Tensor of shape ()) of distribution Geometric(probs: 0.0) "
        "to be positive but found invalid values:\ntensor([0.])",
    ),
    "uniform": (
        lambda: d.Uniform(1.0, 1.0),
        ValueError,
        "Uniform is not defined when low>= high",
    ),
    "uniform value": (
        lambda: d.Uniform(0.0, 1.0).log_prob(treadle.tensor(1.5)),
        ValueError,
        "Expected value argument (Tensor of shape ()) to be within the support "
        "(Interval(lower_bound=0.0, upper_bound=1.0))",
    ),
    "dirichlet": (
        lambda: d.Dirichlet(treadle.tensor(1.0)),
        ValueError,
        "`concentration` parameter must be at least one-dimensional.",
    ),
    "no matrix": (
        lambda: d.MultivariateNormal(treadle.zeros(3)),
        ValueError,
        "Exactly one of covariance_matrix or precision_matrix or scale_tril may be specified.",
    ),
    "mean of no dimension": (
        lambda: d.MultivariateNormal(treadle.tensor(0.0), treadle.eye(1)),
        ValueError,
        "loc must be at least one-dimensional.",
    ),
    "covariance of one dimension": (
        lambda: d.MultivariateNormal(treadle.zeros(2), treadle.ones(2)),
        ValueError,
        "covariance_matrix must be at least two-dimensional, with optional leading batch "
        "dimensions",
    ),
    "factor of one dimension": (
        lambda: d.MultivariateNormal(treadle.zeros(2), scale_tril=treadle.ones(2)),
        ValueError,
        "scale_tril matrix must be at least two-dimensional, with optional leading batch "
        "dimensions",
    ),
    "covariance that is none": (
        lambda: d.MultivariateNormal(treadle.zeros(2), -treadle.eye(2)),
        ValueError,
        "Expected parameter covariance_matrix (Tensor of shape (2, 2)) of distribution",
    ),
    "low rank": (
        lambda: d.LowRankMultivariateNormal(treadle.ones(2), treadle.ones(3, 1), treadle.ones(2)),
        ValueError,
        "cov_factor must be a batch of matrices with shape 2 x m",
    ),
    "low rank diagonal": (
        lambda: d.LowRankMultivariateNormal(treadle.ones(2), treadle.ones(2, 1), treadle.ones(3)),
        ValueError,
        "cov_diag must be a batch of vectors with shape treadle.Size([2])",
    ),
    "low rank batches": (
        lambda: d.LowRankMultivariateNormal(
            treadle.ones(2, 2), treadle.ones(3, 2, 1), treadle.ones(2)
        ),
        ValueError,
        "Incompatible batch shapes: loc treadle.Size([2, 2])",
    ),
    "mixture": (
        lambda: d.MixtureSameFamily(d.Normal(0.0, 1.0), d.Normal(0.0, 1.0)),
        ValueError,
        " The Mixture distribution needs to be an  instance of torch.distributions.Categorical",
    ),
    "component": (
        lambda: d.MixtureSameFamily(d.Categorical(treadle.ones(2)), 1),
        ValueError,
        "The Component distribution need to be an instance of torch.distributions.Distribution",
    ),
    "number of components": (
        lambda: d.MixtureSameFamily(
            d.Categorical(treadle.ones(2)), d.Normal(treadle.zeros(3), 1.0)
        ),
        ValueError,
        "`mixture_distribution component` (2) does not equal "
        "`component_distribution.batch_shape[-1]` (3)",
    ),
    "batch of components": (
        lambda: d.MixtureSameFamily(
            d.Categorical(treadle.ones(2, 2)), d.Normal(treadle.zeros(3, 2), 1.0)
        ),
        ValueError,
        "`mixture_distribution.batch_shape` (treadle.Size([2])) is not compatible with "
        "`component_distribution.batch_shape`(treadle.Size([3]))",
    ),
    "one row of correlations": (
        lambda: d.LKJCholesky(1),
        ValueError,
        "Expected dim to be an integer greater than or equal to 2. Found dim=1.",
    ),
    "degrees of freedom": (
        lambda: d.Wishart(treadle.tensor(1.0), treadle.eye(3)),
        ValueError,
        "Value of df=1.0 expected to be greater than ndim - 1 = 2.",
    ),
    "Wishart without a matrix": (
        lambda: d.Wishart(treadle.tensor(3.0)),
        AssertionError,
        "Exactly one of covariance_matrix or precision_matrix or scale_tril may be specified.",
    ),
    "independent": (
        lambda: d.Independent(d.Normal(treadle.zeros(3), 1.0), 2),
        ValueError,
        "Expected reinterpreted_batch_ndims <= len(base_distribution.batch_shape), actual 2 vs 1",
    ),
    "all values of many": (
        lambda: d.Independent(d.Bernoulli(treadle.ones(3) / 2), 1).enumerate_support(),
        NotImplementedError,
        "Enumeration over cartesian product is not implemented",
    ),
    "binomials": (
        lambda: d.Binomial(treadle.tensor([1, 2]), treadle.tensor(0.5)).entropy(),
        NotImplementedError,
        "Inhomogeneous total count not supported by `entropy`.",
    ),
    "all values of binomials": (
        lambda: d.Binomial(treadle.tensor([1, 2]), treadle.tensor(0.5)).enumerate_support(),
        NotImplementedError,
        "Inhomogeneous total count not supported by `enumerate_support`.",
    ),
    "multinomial counts": (
        lambda: d.Multinomial(treadle.tensor([1, 2]), treadle.ones(2)),
        NotImplementedError,
        "inhomogeneous total_count is not supported",
    ),
    "continuous Bernoulli": (
        lambda: d.ContinuousBernoulli(treadle.tensor(1.3), validate_args=True),
        ValueError,
        "The parameter probs has invalid values",
    ),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_refused(name: str) -> None:
    call, kind, text = REFUSALS[name]
    with pytest.raises(kind) as raised:
        call()
    assert type(raised.value) is kind
    assert str(raised.value).startswith(text)


def test_nothing_is_checked_on_request() -> None:
    dist = d.Normal(0.0, -1.0, validate_args=False)
    dist.log_prob(treadle.tensor(NAN))
    assert d.Normal(0.0, 1.0, validate_args=True)._validate_args
    try:
        d.Distribution.set_default_validate_args(False)
        d.Normal(0.0, -1.0)
        with pytest.raises(ValueError, match="to satisfy the constraint"):
            d.Normal(0.0, -1.0, validate_args=True)
    finally:
        d.Distribution.set_default_validate_args(True)
    with pytest.raises(ValueError, match="set_default_validate_args"):
        d.Distribution.set_default_validate_args(3)  # type: ignore[arg-type]
    # As in any other program that runs so.
    code = "import treadle.distributions as d; d.Normal(0.0, -1.0)"
    subprocess.run([sys.executable, "-O", "-c", code], check=True)


class Coin(d.Distribution):
    """A distribution of a program, with the least there may be."""

    arg_constraints = {"p": constraints.unit_interval}

    def __init__(self, p: treadle.Tensor, validate_args: bool | None = None) -> None:
        self.p = p
        super().__init__(p.shape, validate_args=validate_args)

    def log_prob(self, value: treadle.Tensor) -> treadle.Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return treadle.where(value > 0, self.p, 1 - self.p).log()


def test_a_distribution_of_a_program() -> None:
    coin = Coin(treadle.tensor([0.25, 0.5]))
    assert repr(coin) == "Coin(p: treadle.Size([2]))"
    with pytest.warns(UserWarning, match="does not define `support`"):
        coin.log_prob(treadle.ones(2))
    for missing in ("mean", "variance", "stddev", "support"):
        with pytest.raises(NotImplementedError):
            getattr(coin, missing)
    with pytest.raises(NotImplementedError, match="does not implement mode"):
        _ = coin.mode
    for call in ("sample", "rsample", "entropy", "perplexity", "enumerate_support"):
        with pytest.raises(NotImplementedError):
            getattr(coin, call)()
    for call in ("cdf", "icdf", "expand"):
        with pytest.raises(NotImplementedError):
            getattr(coin, call)(treadle.ones(2))
    with pytest.warns(UserWarning, match="does not define `arg_constraints`"):
        d.Distribution(validate_args=True)


def test_a_subclass_of_a_program() -> None:
    class Standard(d.Normal):
        def __init__(self, shape: tuple[int, ...]) -> None:
            super().__init__(treadle.zeros(shape), treadle.ones(shape))

    with pytest.raises(NotImplementedError, match="must also define a custom .expand"):
        Standard((2,)).expand((3, 2))

    class Kept(Standard):
        def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
            new = self._get_checked_instance(Kept, _instance)
            return super().expand(batch_shape, _instance=new)

    wide = Kept((2,)).expand((3, 2))
    assert type(wide) is Kept
    assert tuple(wide.batch_shape) == (3, 2)


def test_plain_numbers_and_dtypes() -> None:
    assert d.Normal(0, 1).loc.dtype == treadle.float32
    assert tuple(d.Normal(0, 1).batch_shape) == ()
    assert d.Normal(t(0.0), 1).scale.dtype == treadle.float64
    assert d.Gamma(1, t([2.0, 3.0])).sample().dtype == treadle.float64
    for make in (
        lambda: d.Bernoulli(0.5),
        lambda: d.Beta(1, 2),
        lambda: d.Chi2(3),
        lambda: d.HalfCauchy(1),
        lambda: d.Kumaraswamy(1, 2),
        lambda: d.LKJCholesky(3),
        lambda: d.LogisticNormal(0, 1),
        lambda: d.Poisson(2),
        lambda: d.StudentT(2),
        lambda: d.VonMises(0, 1),
        lambda: d.Wishart(3, treadle.eye(2)),
    ):
        assert make().sample().dtype == treadle.float32


def test_half_precision() -> None:
    for dtype in (treadle.float16, treadle.bfloat16):
        normal = d.Normal(treadle.zeros(3, dtype=dtype), treadle.ones(3, dtype=dtype))
        assert normal.rsample().dtype == dtype
        assert normal.log_prob(normal.sample()).dtype == dtype


def test_sample_n_is_deprecated() -> None:
    with pytest.warns(UserWarning, match="sample_n"):
        assert tuple(d.Normal(0.0, 1.0).sample_n(3).shape) == (3,)


def test_low_degrees_of_freedom_warn() -> None:
    with pytest.warns(UserWarning, match="Low df values detected"):
        d.Wishart(treadle.tensor(2.5), treadle.eye(3))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        d.Wishart(treadle.tensor(3.5), treadle.eye(3))


# ---- What they share ----


def test_broadcast_all() -> None:
    a, b = utils.broadcast_all(1.0, treadle.zeros(2, 1, dtype=treadle.float64))
    assert a.dtype == treadle.float64
    assert tuple(a.shape) == tuple(b.shape) == (2, 1)
    (c,) = utils.broadcast_all(True)
    assert c.dtype == treadle.get_default_dtype()


def test_probabilities_and_log_odds() -> None:
    p = t([0.0, 0.25, 1.0])
    logits = utils.probs_to_logits(p, is_binary=True)
    assert logits.isfinite().all()
    np.testing.assert_allclose(logits[1].item(), np.log(0.25 / 0.75), rtol=1e-12)
    np.testing.assert_allclose(
        utils.logits_to_probs(logits, is_binary=True).numpy(), p.numpy(), atol=1e-12
    )
    shares = t([0.2, 0.5, 0.3])
    np.testing.assert_allclose(
        utils.logits_to_probs(utils.probs_to_logits(shares)).numpy(), shares.numpy(), rtol=1e-12
    )
    eps = treadle.finfo(treadle.float32).eps
    assert utils.clamp_probs(treadle.tensor([0.0, 1.0])).tolist() == [eps, 1 - eps]


@pytest.mark.parametrize("diag", [-2, -1, 0, 1])
def test_lower_parts(diag: int) -> None:
    mat = t(np.arange(2 * 16.0).reshape(2, 4, 4) + 1)
    vec = utils.tril_matrix_to_vec(mat, diag)
    rows, columns = np.tril_indices(4, diag)
    np.testing.assert_array_equal(vec.numpy(), mat.numpy()[:, rows, columns])
    np.testing.assert_array_equal(
        utils.vec_to_tril_matrix(vec, diag).numpy(), np.tril(mat.numpy(), diag)
    )


def test_lower_parts_that_are_none() -> None:
    with pytest.raises(ValueError, match=r"diag \(4\) provided is outside \[-4, 3\]"):
        utils.tril_matrix_to_vec(treadle.ones(4, 4), 4)
    with pytest.raises(ValueError, match="size of last dimension is 4"):
        utils.vec_to_tril_matrix(treadle.ones(4))


def test_lazy_properties_carry_gradients() -> None:
    logits = treadle.zeros(2, requires_grad=True)
    dist = d.Bernoulli(logits=logits)
    with treadle.no_grad():
        probs = dist.probs
    assert probs.requires_grad
    assert dist.probs is probs
    assert isinstance(d.Bernoulli.probs, utils.lazy_property)


def test_is_imported_when_it_is_used() -> None:
    code = (
        "import sys, treadle; assert 'treadle.distributions' not in sys.modules; "
        "treadle.distributions.Normal(0.0, 1.0); assert 'treadle.distributions' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
