"""Transforms: what they compute, the way back, the change of volume against the Jacobian that
automatic differentiation finds, caches, shapes, and the two registries.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import gc
import inspect
import pickle
from typing import Any, Callable

import numpy as np
import pytest

import treadle
from treadle import distributions as d
from treadle.distributions import constraints
from treadle.distributions.constraint_registry import ConstraintRegistry
from treadle.distributions.transforms import Transform


def t(data: Any) -> treadle.Tensor:
    return treadle.tensor(data, dtype=treadle.float64)


NUMBERS = [[-1.5, 0.2, 0.4], [2.0, -0.3, 1.1]]
POSITIVE = [[0.2, 1.0, 3.0], [0.5, 2.5, 1.1]]
UNIT = [[0.1, 0.5, 0.97], [0.3, 0.75, 0.6]]

# name: (transform, arguments, images by NumPy)
TRANSFORMS: dict[str, tuple[Callable[[], Transform], Any, Callable[[np.ndarray], Any]]] = {
    "AbsTransform": (d.AbsTransform, NUMBERS, np.abs),
    "AffineTransform": (lambda: d.AffineTransform(t(0.5), t(-2.0)), NUMBERS, lambda x: 0.5 - 2 * x),
    "AffineTransform of numbers": (
        lambda: d.AffineTransform(0.5, -2.0),
        NUMBERS,
        lambda x: 0.5 - 2 * x,
    ),
    "AffineTransform of vectors": (
        lambda: d.AffineTransform(t([0.5, 0.0, 1.0]), t([2.0, 3.0, -1.0]), event_dim=1),
        NUMBERS,
        lambda x: np.array([0.5, 0.0, 1.0]) + np.array([2.0, 3.0, -1.0]) * x,
    ),
    "AffineTransform of vectors by a number": (
        lambda: d.AffineTransform(0.0, t(3.0), event_dim=1),
        NUMBERS,
        lambda x: 3 * x,
    ),
    "CatTransform": (
        lambda: d.CatTransform([d.ExpTransform(), d.TanhTransform()], dim=1, lengths=[1, 2]),
        NUMBERS,
        lambda x: np.concatenate([np.exp(x[:, :1]), np.tanh(x[:, 1:])], 1),
    ),
    "ComposeTransform": (
        lambda: d.ComposeTransform([d.AffineTransform(1.0, 0.5), d.ExpTransform()]),
        NUMBERS,
        lambda x: np.exp(1 + 0.5 * x),
    ),
    "ComposeTransform of vectors": (
        lambda: d.ComposeTransform([d.AffineTransform(1.0, 0.5), d.StickBreakingTransform()]),
        NUMBERS,
        lambda x: _broken_stick(1 + 0.5 * x),
    ),
    "CorrCholeskyTransform": (d.CorrCholeskyTransform, NUMBERS, None),
    "CumulativeDistributionTransform": (
        lambda: d.CumulativeDistributionTransform(d.Laplace(t(0.0), t(1.0))),
        NUMBERS,
        lambda x: 0.5 - 0.5 * np.sign(x) * np.expm1(-np.abs(x)),
    ),
    "ExpTransform": (d.ExpTransform, NUMBERS, np.exp),
    "IndependentTransform": (
        lambda: d.IndependentTransform(d.ExpTransform(), 1),
        NUMBERS,
        np.exp,
    ),
    "LowerCholeskyTransform": (
        d.LowerCholeskyTransform,
        [NUMBERS[0], NUMBERS[1], POSITIVE[0]],
        lambda x: np.tril(x, -1) + np.diag(np.exp(np.diag(x))),
    ),
    "PositiveDefiniteTransform": (
        d.PositiveDefiniteTransform,
        [NUMBERS[0], NUMBERS[1], POSITIVE[0]],
        lambda x: (lambda f: f @ f.T)(np.tril(x, -1) + np.diag(np.exp(np.diag(x)))),
    ),
    "PowerTransform": (lambda: d.PowerTransform(t(-1.5)), POSITIVE, lambda x: x**-1.5),
    "ReshapeTransform": (
        lambda: d.ReshapeTransform((2, 3), (6,)),
        NUMBERS,
        lambda x: x.reshape(6),
    ),
    "SigmoidTransform": (d.SigmoidTransform, NUMBERS, lambda x: 1 / (1 + np.exp(-x))),
    "SoftmaxTransform": (
        d.SoftmaxTransform,
        NUMBERS,
        lambda x: np.exp(x) / np.exp(x).sum(-1, keepdims=True),
    ),
    "SoftplusTransform": (d.SoftplusTransform, NUMBERS, lambda x: np.log1p(np.exp(x))),
    "StackTransform": (
        lambda: d.StackTransform([d.ExpTransform(), d.TanhTransform()], dim=0),
        NUMBERS,
        lambda x: np.stack([np.exp(x[0]), np.tanh(x[1])]),
    ),
    "StickBreakingTransform": (d.StickBreakingTransform, NUMBERS, lambda x: _broken_stick(x)),
    "TanhTransform": (d.TanhTransform, NUMBERS, np.tanh),
    "inverse": (lambda: d.ExpTransform().inv, POSITIVE, np.log),
    "inverse of several": (
        lambda: d.ComposeTransform([d.AffineTransform(1.0, 0.5), d.ExpTransform()]).inv,
        POSITIVE,
        lambda x: (np.log(x) - 1) / 0.5,
    ),
}
# Many arguments have one image, or the images are of less dimensions: no inverse, or no density.
NOT_BIJECTIVE = {
    "AbsTransform",
    "LowerCholeskyTransform",
    "PositiveDefiniteTransform",
    "SoftmaxTransform",
}


def _broken_stick(x: np.ndarray) -> np.ndarray:
    parts, left = [], np.ones(x.shape[:-1])
    for i in range(x.shape[-1]):
        share = 1 / (1 + np.exp(-x[..., i] + np.log(x.shape[-1] - i)))
        parts.append(left * share)
        left = left * (1 - share)
    return np.stack([*parts, left], -1)


@pytest.fixture(params=TRANSFORMS)
def name(request: pytest.FixtureRequest) -> str:
    return request.param


def _made(name: str) -> tuple[Transform, treadle.Tensor]:
    make, argument, _ = TRANSFORMS[name]
    return make(), t(argument)


def test_every_transform_is_here() -> None:
    classes = {n for n in d.transforms.__all__ if inspect.isclass(getattr(d, n))}
    assert classes - {"Transform"} == {n.split()[0] for n in TRANSFORMS} - {"inverse"}


def test_values(name: str) -> None:
    transform, x = _made(name)
    reference = TRANSFORMS[name][2]
    y = transform(x)
    assert transform.codomain.check(y).all()
    assert transform.domain.check(x).all()
    if reference is not None:
        np.testing.assert_allclose(y.numpy(), reference(x.numpy()), rtol=1e-12)


def test_correlation_factors() -> None:
    """The rows have length 1, and the first partial correlation is the correlation."""
    y = d.CorrCholeskyTransform()(t(NUMBERS)).numpy()
    np.testing.assert_allclose((y**2).sum(-1), 1, rtol=1e-12)
    np.testing.assert_allclose(y[:, 1, 0], np.tanh(np.asarray(NUMBERS)[:, 0]), rtol=1e-12)
    np.testing.assert_allclose(np.triu(y, 1), 0)


def test_way_back(name: str) -> None:
    transform, x = _made(name)
    y = transform(x)
    back = transform.inv(y)
    if transform.bijective:
        np.testing.assert_allclose(back.numpy(), x.numpy(), rtol=1e-9, atol=1e-12)
    else:
        np.testing.assert_allclose(transform(back).numpy(), y.numpy(), rtol=1e-12)
    assert transform.bijective == (name not in NOT_BIJECTIVE)
    assert transform.inv.inv is transform or transform.inv.inv == transform


def test_shapes(name: str) -> None:
    transform, x = _made(name)
    y = transform(x)
    assert tuple(transform.forward_shape(x.shape)) == tuple(y.shape)
    assert tuple(transform.inverse_shape(y.shape)) == tuple(x.shape)
    assert tuple(transform.inv.forward_shape(y.shape)) == tuple(x.shape)
    assert tuple(transform.inv.inverse_shape(x.shape)) == tuple(y.shape)


def _free(transform: Transform, y: treadle.Tensor) -> treadle.Tensor:
    """The coordinates of one image that determine the others."""
    if transform.codomain is constraints.simplex:
        return y[..., :-1]
    if transform.codomain is constraints.corr_cholesky:
        rows, columns = treadle.tril_indices(y.shape[-1], y.shape[-1], offset=-1)
        return y[..., rows, columns]
    return y


def test_change_of_volume(name: str) -> None:
    """The logarithm of the determinant of the matrix of slopes, for each value."""
    transform, x = _made(name)
    if name in NOT_BIJECTIVE:
        with pytest.raises(NotImplementedError):
            transform.log_abs_det_jacobian(x, transform(x))
        return
    got = transform.log_abs_det_jacobian(x, transform(x))
    event_dim = transform.domain.event_dim
    batch = tuple(x.shape[: x.dim() - event_dim])
    assert tuple(got.shape) == batch
    x.requires_grad_()
    free = _free(transform, transform(x))
    size = int(np.prod(x.shape[x.dim() - event_dim :]))
    # Slopes of each element by each; the values of a batch are independent.
    rows = [
        treadle.autograd.grad(free.flatten()[i], x, retain_graph=True)[0].flatten().numpy()
        for i in range(free.numel())
    ]
    whole = np.stack(rows)
    wanted = [
        np.linalg.slogdet(whole[i * size : (i + 1) * size, i * size : (i + 1) * size])[1]
        for i in range(len(whole) // size)
    ]
    np.testing.assert_allclose(got.detach().numpy(), np.reshape(wanted, batch), rtol=1e-9)
    y = transform(x.detach())
    back = transform.inv.log_abs_det_jacobian(y, x.detach()).detach()
    np.testing.assert_allclose(back.numpy(), -got.detach().numpy(), rtol=1e-9)


def test_sign_is_that_of_the_slope() -> None:
    for name, sign in {
        "ExpTransform": 1,
        "SigmoidTransform": 1,
        "SoftplusTransform": 1,
        "TanhTransform": 1,
        "CumulativeDistributionTransform": 1,
        "AffineTransform": -1,
        "AffineTransform of numbers": -1,
        "PowerTransform": -1,
        "ComposeTransform": 1,
        "IndependentTransform": 1,
        "inverse of several": 1,
    }.items():
        transform, x = _made(name)
        assert float(transform.sign) == sign
        smaller, larger = transform(x), transform(x + 1e-3)
        assert ((larger - smaller) * sign > 0).all()
    with pytest.raises(NotImplementedError):
        _ = d.AbsTransform().sign


def test_cache(name: str) -> None:
    """The argument of the last image comes back itself."""
    plain, x = _made(name)
    kept = plain.with_cache()
    assert kept.with_cache(1) is kept
    assert plain.with_cache(0) is plain
    y = kept(x)
    if name == "inverse of several":
        return  # its inverse is another object each time, with caches of its own
    if not isinstance(kept, d.ComposeTransform):
        assert kept(x) is y
    assert kept.inv(y) is x
    assert plain.inv(plain(x)) is not x or name == "AbsTransform"
    again = y.clone()
    assert kept.inv(again) is not x or name == "AbsTransform"
    with pytest.raises(ValueError, match="cache_size must be 0 or 1"):
        d.ExpTransform(cache_size=2)


def test_equality() -> None:
    assert d.ExpTransform() == d.ExpTransform()
    assert d.ExpTransform() != d.TanhTransform()
    assert d.ExpTransform().inv == d.ExpTransform().inv
    assert d.ExpTransform().inv != d.ExpTransform()
    assert d.AffineTransform(0.0, 1.0) == d.AffineTransform(0.0, 1.0)
    assert d.AffineTransform(0.0, t(2.0)) == d.AffineTransform(0.0, t(2.0))
    assert d.AffineTransform(0.0, 1.0) != d.AffineTransform(0.0, 2.0)
    assert d.AffineTransform(1.0, 1.0) != d.AffineTransform(0.0, 1.0)
    assert d.PowerTransform(t(2.0)) == d.PowerTransform(t(2.0))
    assert d.PowerTransform(t(2.0)) != d.PowerTransform(t(3.0))
    both = [d.ExpTransform(), d.AffineTransform(0.0, 1.0)]
    assert d.ComposeTransform(both) == d.ComposeTransform(list(both))
    assert d.ComposeTransform(both) != d.ComposeTransform(both[:1])
    assert len({d.ExpTransform(), d.ExpTransform()}) == 2  # hashed by identity


def test_representation() -> None:
    assert repr(d.ExpTransform()) == "ExpTransform()"
    assert repr(d.ExpTransform().inv) == "_InverseTransform(ExpTransform())"
    assert repr(d.ComposeTransform([d.ExpTransform(), d.AffineTransform(0, 1)])) == (
        "ComposeTransform(\n    ExpTransform(),\n    AffineTransform()\n)"
    )
    assert repr(d.IndependentTransform(d.ExpTransform(), 1)) == (
        "IndependentTransform(ExpTransform(), 1)"
    )


def test_pickled(name: str) -> None:
    transform, x = _made(name)
    _ = transform.inv
    again = pickle.loads(pickle.dumps(transform))
    np.testing.assert_array_equal(again(x).numpy(), transform(x).numpy())
    np.testing.assert_array_equal(
        again.inv(transform(x)).numpy(), transform.inv(transform(x)).numpy()
    )


def test_an_inverse_keeps_what_it_inverts() -> None:
    inverse = d.AffineTransform(t(1.0), t(2.0)).inv
    gc.collect()
    assert inverse(t(5.0)).item() == 2.0


def test_identity() -> None:
    x = t(NUMBERS)
    assert d.identity_transform(x) is x
    assert d.identity_transform.inv(x) is x
    assert (d.identity_transform.log_abs_det_jacobian(x, x) == 0).all()
    assert d.identity_transform.domain is constraints.real


def test_dimensions_of_values() -> None:
    compose = d.ComposeTransform([d.AffineTransform(0.0, 1.0), d.StickBreakingTransform()])
    assert compose.domain.event_dim == 1
    assert compose.codomain.event_dim == 1
    to_matrix = d.ComposeTransform([d.ExpTransform(), d.ReshapeTransform((6,), (2, 3))])
    assert (to_matrix.domain.event_dim, to_matrix.codomain.event_dim) == (1, 2)
    with pytest.raises(ValueError, match="domain.event_dim or .codomain.event_dim"):
        _ = to_matrix.event_dim
    assert d.ExpTransform().event_dim == 0


def test_refusals() -> None:
    with pytest.raises(ValueError, match="different numbers of elements"):
        d.ReshapeTransform((2, 3), (5,))
    with pytest.raises(ValueError, match="Too few dimensions"):
        d.ReshapeTransform((2, 3), (6,)).forward_shape((3,))
    with pytest.raises(ValueError, match="Shape mismatch"):
        d.ReshapeTransform((2, 3), (6,)).forward_shape((3, 2))
    with pytest.raises(ValueError, match="Too few dimensions"):
        d.StickBreakingTransform().forward_shape(())
    with pytest.raises(ValueError, match="Too few dimensions"):
        d.IndependentTransform(d.ExpTransform(), 2)(t([1.0]))
    with pytest.raises(ValueError, match="flattened lower-diagonal"):
        d.CorrCholeskyTransform().forward_shape((4,))
    with pytest.raises(ValueError, match="not square"):
        d.CorrCholeskyTransform().inverse_shape((3, 2))
    with pytest.raises(AssertionError):
        d.CatTransform([d.ExpTransform()], dim=0, lengths=[2])(t([1.0]))
    with pytest.raises(AssertionError):
        d.StackTransform([d.ExpTransform()], dim=0)(t([1.0, 2.0]))
    with pytest.raises(AssertionError):
        d.StackTransform([3])
    with pytest.raises(AssertionError):
        d.CatTransform([d.ExpTransform()], lengths=[1, 2])


# ---- From constraints ----

BIJECTIONS: dict[str, Any] = {
    "real": constraints.real,
    "positive": constraints.positive,
    "nonnegative": constraints.nonnegative,
    "greater_than": constraints.greater_than(2.0),
    "less_than": constraints.less_than(-1.0),
    "unit_interval": constraints.unit_interval,
    "interval": constraints.interval(-2.0, 3.0),
    "half_open_interval": constraints.half_open_interval(t(-2.0), t(3.0)),
    "simplex": constraints.simplex,
    "corr_cholesky": constraints.corr_cholesky,
    "independent": constraints.independent(constraints.positive, 1),
    "cat": constraints.cat([constraints.positive, constraints.real], dim=-1, lengths=[1, 2]),
    "stack": constraints.stack([constraints.positive, constraints.unit_interval], dim=0),
}
MAPS = {
    **BIJECTIONS,
    "lower_cholesky": constraints.lower_cholesky,
    "positive_definite": constraints.positive_definite,
    "positive_semidefinite": constraints.positive_semidefinite,
}
MATRICES = {"lower_cholesky", "positive_definite", "positive_semidefinite"}


@pytest.mark.parametrize("name", BIJECTIONS)
def test_biject_to(name: str) -> None:
    constraint = BIJECTIONS[name]
    transform = d.biject_to(constraint)
    x = t(NUMBERS)
    y = transform(x)
    assert transform.bijective
    assert constraint.check(y).all()
    np.testing.assert_allclose(transform.inv(y).numpy(), x.numpy(), rtol=1e-9, atol=1e-9)
    assert transform.log_abs_det_jacobian(x, y).isfinite().all()


@pytest.mark.parametrize("name", MAPS)
def test_transform_to(name: str) -> None:
    constraint = MAPS[name]
    x = t([NUMBERS[0], NUMBERS[1], POSITIVE[0]] if name in MATRICES else NUMBERS)
    y = d.transform_to(constraint)(x)
    assert constraint.check(y).all()
    again = d.transform_to(constraint)(d.transform_to(constraint).inv(y))
    np.testing.assert_allclose(again.numpy(), y.numpy(), rtol=1e-9)


def test_registries_know_these() -> None:
    assert set(d.biject_to._registry) == {type(c) for c in BIJECTIONS.values()}
    assert set(d.transform_to._registry) == {type(c) for c in MAPS.values()}
    with pytest.raises(NotImplementedError, match="Cannot transform _Boolean constraints"):
        d.biject_to(constraints.boolean)
    assert isinstance(d.biject_to(constraints.interval(0.0, 1.0)), d.SigmoidTransform)
    assert isinstance(d.biject_to(constraints.simplex), d.StickBreakingTransform)
    assert isinstance(d.transform_to(constraints.simplex), d.SoftmaxTransform)


def test_a_registry_of_a_program() -> None:
    registry = ConstraintRegistry()

    @registry.register(constraints.positive)
    def softplus(constraint: Any) -> Transform:
        return d.SoftplusTransform()

    registry.register(constraints.real, lambda constraint: d.identity_transform)
    assert isinstance(registry(constraints.greater_than(0.0)), d.SoftplusTransform)
    assert registry(constraints.real) is d.identity_transform
    with pytest.raises(TypeError, match="Expected constraint to be either a Constraint subclass"):
        registry.register(3, softplus)


# ---- Distributions seen through transforms ----


def test_a_sum_of_densities_is_one() -> None:
    """The density of normal numbers through tanh and a stretch."""
    dist = d.TransformedDistribution(
        d.Normal(t(0.3), t(0.8)), [d.TanhTransform(), d.AffineTransform(1.0, -2.0)]
    )
    x = t(np.linspace(-1, 3, 100_001)[1:-1])
    total = dist.log_prob(x).exp().sum().item() * 4 / 100_000
    assert abs(total - 1) < 1e-6
    p = t([0.1, 0.5, 0.9])
    np.testing.assert_allclose(dist.cdf(dist.icdf(p)).numpy(), p.numpy(), rtol=1e-9)
    assert dist.cdf(t(-0.99)) < dist.cdf(t(2.99))  # although the stretch turns around


def test_shapes_of_transformed_distributions() -> None:
    base = d.Normal(treadle.zeros(4, 3), 1.0)
    plain = d.TransformedDistribution(base, d.ExpTransform())
    assert (tuple(plain.batch_shape), tuple(plain.event_shape)) == ((4, 3), ())
    vectors = d.TransformedDistribution(base, [d.ExpTransform(), d.StickBreakingTransform()])
    assert (tuple(vectors.batch_shape), tuple(vectors.event_shape)) == ((4,), (4,))
    assert tuple(vectors.log_prob(vectors.sample((2,))).shape) == (2, 4)
    independent = d.TransformedDistribution(d.Independent(base, 1), d.ExpTransform())
    assert (tuple(independent.batch_shape), tuple(independent.event_shape)) == ((4,), (3,))
    assert independent.support.event_dim == 1
    wide = d.TransformedDistribution(d.Normal(0.0, 1.0), d.AffineTransform(treadle.zeros(5), 1.0))
    assert tuple(wide.batch_shape) == (5,)
    assert tuple(wide.sample((2,)).shape) == (2, 5)
    reshaped = d.TransformedDistribution(base, d.ReshapeTransform((4, 3), (2, 6)))
    assert tuple(reshaped.event_shape) == (2, 6)
    assert tuple(reshaped.log_prob(reshaped.sample()).shape) == ()


def test_what_is_no_transform() -> None:
    base = d.Normal(0.0, 1.0)
    with pytest.raises(ValueError, match="must be a Transform or list, but was 3"):
        d.TransformedDistribution(base, 3)
    with pytest.raises(ValueError, match="must be a Transform or a list of Transforms"):
        d.TransformedDistribution(base, [3])
    with pytest.raises(ValueError, match="shape with size at least 1"):
        d.TransformedDistribution(base, d.StickBreakingTransform())
