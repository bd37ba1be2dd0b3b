"""Random operators: calls and the shapes they give. tests/python/operators/test_random.py looks at
the numbers themselves.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Callable, Iterator

import numpy as np
import scipy.integrate
import scipy.special

import treadle

from ..sample import NUMPY_TYPES, Maker, Sample, samples


def _dtype(make: Maker) -> treadle.dtype:
    return getattr(treadle, make.dtype)


def _random(*args: Any, shape: tuple[int, ...], dtype: str, **kwargs: Any) -> Sample:
    """A sample whose result has a known shape and dtype only."""
    return Sample(
        *args,
        grad=False,
        shape_only=True,
        expect=lambda *_, **__: np.zeros(shape, dtype=NUMPY_TYPES[dtype]),
        **kwargs,
    )


SHAPES: tuple[tuple[int, ...], ...] = ((3, 4), (), (0, 4), (70,))


def _filler(*args: Any, **kwargs: Any) -> Callable[[Maker], Iterator[Sample]]:
    def make_samples(make: Maker) -> Iterator[Sample]:
        for shape in SHAPES:
            yield _random(make(shape), *args, shape=shape, dtype=make.dtype, **kwargs)

    return make_samples


samples("uniform_")(_filler(-1.0, 2.0))
samples("normal_")(_filler(1.0, 2.0))
samples("exponential_")(_filler(1.5))
samples("cauchy_")(_filler(1.0, 2.0))
samples("log_normal_")(_filler(0.0, 0.5))
samples("geometric_")(_filler(0.4))
samples("bernoulli_.float")(_filler(0.3))
samples("random_")(_filler())


@samples("random_.to")
def random_to(make: Maker) -> Iterator[Sample]:
    yield from _filler(2 if make.dtype == "bool" else 7)(make)


@samples("random_.from")
def random_from(make: Maker) -> Iterator[Sample]:
    low, high = (0, 2) if make.dtype == "bool" else (1, 7) if make.is_unsigned else (-7, 7)
    yield from _filler(low, high)(make)


@samples("bernoulli_.Tensor")
def bernoulli_tensor(make: Maker) -> Iterator[Sample]:
    yield _random(make((3, 4)), Maker("float64")((4,), 0, 1), shape=(3, 4), dtype=make.dtype)


@samples("bernoulli")
def bernoulli(make: Maker) -> Iterator[Sample]:
    for shape in SHAPES:
        yield _random(make(shape, 0, 1), shape=shape, dtype=make.dtype)


@samples("bernoulli.p")
def bernoulli_p(make: Maker) -> Iterator[Sample]:
    for shape in SHAPES:
        yield _random(make(shape), 0.3, shape=shape, dtype=make.dtype)


def _sized(*before: Any, generator: bool = False) -> Callable[[Maker], Iterator[Sample]]:
    def make_samples(make: Maker) -> Iterator[Sample]:
        for shape in SHAPES:
            sample = _random(*before, list(shape), shape=shape, dtype=make.dtype)
            sample.kwargs["dtype"] = _dtype(make)
            if generator:
                sample.kwargs["generator"] = None
            yield sample

    return make_samples


samples("rand")(_sized())
samples("rand.generator")(_sized(generator=True))
samples("randn")(_sized())
samples("randn.generator")(_sized(generator=True))
samples("normal.float_float")(_sized(1.0, 2.0))
samples("rand_like")(_filler())
samples("randn_like")(_filler())
samples("rand_like.generator")(_filler(generator=None))
samples("randn_like.generator")(_filler(generator=None))


# (name, how it is called, whether with a lower end, further words)
for _name, _of, _low, _more in (
    ("randint", _sized, False, {}),
    ("randint.generator", _sized, False, {"generator": True}),
    ("randint.low", _sized, True, {}),
    ("randint.low_generator", _sized, True, {"generator": True}),
    ("randint_like", _filler, False, {}),
    ("randint_like.low_dtype", _filler, True, {}),
    ("randint_like.generator", _filler, False, {"generator": None}),
    ("randint_like.low_generator_dtype", _filler, True, {"generator": None}),
):

    @samples(_name)
    def integers(
        make: Maker, of: Any = _of, low: bool = _low, more: dict[str, Any] = _more
    ) -> Iterator[Sample]:
        below = 2 if make.dtype == "bool" else 9
        yield from of(*((below // 3,) if low else ()), below, **more)(make)


@samples("randint_like.Tensor")
def integers_below_a_tensor(make: Maker) -> Iterator[Sample]:
    yield from _filler(np.asarray(2 if make.dtype == "bool" else 9))(make)


def _permutation(**extra: Any) -> Callable[[Maker], Iterator[Sample]]:
    def make_samples(make: Maker) -> Iterator[Sample]:
        for n in (7, 0, 1, 120):
            sample = _random(n, shape=(n,), dtype=make.dtype, **extra)
            sample.kwargs["dtype"] = _dtype(make)
            yield sample

    return make_samples


samples("randperm")(_permutation())
samples("randperm.generator")(_permutation(generator=None))


@samples("multinomial")
def multinomial(make: Maker) -> Iterator[Sample]:
    yield _random(make((5,), 0.1, 1), 3, shape=(3,), dtype="int64")
    yield _random(make((2, 5), 0.1, 1), 8, True, shape=(2, 8), dtype="int64")
    yield _random(make((2, 5), 0.1, 1), 5, shape=(2, 5), dtype="int64")


@samples("normal.Tensor_float")
def normal_tensor_float(make: Maker) -> Iterator[Sample]:
    yield _random(make((3, 4)), 2.0, shape=(3, 4), dtype=make.dtype)


@samples("normal.float_Tensor")
def normal_float_tensor(make: Maker) -> Iterator[Sample]:
    yield _random(0.5, make((3, 4), 0.1, 2), shape=(3, 4), dtype=make.dtype)


@samples("normal.Tensor_Tensor")
def normal_tensor_tensor(make: Maker) -> Iterator[Sample]:
    yield _random(make((3, 4)), make((4,), 0.1, 2), shape=(3, 4), dtype=make.dtype)


@samples("poisson")
def poisson(make: Maker) -> Iterator[Sample]:
    for shape in SHAPES:
        yield _random(make(shape, 0, 30), shape=shape, dtype=make.dtype)


@samples("binomial")
def binomial(make: Maker) -> Iterator[Sample]:
    for count, prob in [((3, 4), (4,)), ((), (70,)), ((), ()), ((0, 4), (4,))]:
        shape = np.broadcast_shapes(count, prob)
        trials = np.asarray(np.floor(make(count, 0, 50)))
        yield _random(trials, make(prob, 0, 1), shape=shape, dtype=make.dtype)


@samples("_standard_gamma")
def standard_gamma(make: Maker) -> Iterator[Sample]:
    for shape in SHAPES:
        yield _random(make(shape, 0.1, 9), shape=shape, dtype=make.dtype, implicit=True)


@samples("_sample_dirichlet")
def sample_dirichlet(make: Maker) -> Iterator[Sample]:
    for shape in SHAPES:
        yield _random(make(shape, 0.1, 9), shape=shape, dtype=make.dtype, implicit=True)


def _gamma_slope(a: float, z: float) -> float:
    """-(dP(a, z) / da) / p(z; a) for the incomplete gamma function P, whose derivative by a is an
    integral of the logarithm against the density p.
    """
    psi = scipy.special.digamma(a)

    def below(u: float) -> float:  # at z exp(-u)
        return np.exp(-a * u - z * np.expm1(-u)) * (psi - np.log(z) + u)

    return z * scipy.integrate.quad(below, 0, 40 / a, epsabs=0, epsrel=1e-12, limit=400)[0]


def _beta_slope(x: float, a: float, total: float) -> float:
    """-(dI_x(a, b) / da) / p(x; a, b) / (1 - x) for the incomplete beta function I."""
    b = total - a
    mean = scipy.special.digamma(a) - scipy.special.digamma(total)  # of the logarithm

    def below(u: float) -> float:  # at x exp(-u)
        rest = ((1 - x * np.exp(-u)) / (1 - x)) ** (b - 1)
        return np.exp(-a * u) * rest * (mean - np.log(x) + u)

    integral = scipy.integrate.quad(below, 0, 40 / a, epsabs=0, epsrel=1e-12, limit=400)[0]
    return x / (1 - x) * integral


@samples("_standard_gamma_grad")
def standard_gamma_grad(make: Maker) -> Iterator[Sample]:
    for shape in ((3, 4), (), (0, 4)):
        yield Sample(
            make(shape, 0.5, 5),
            make(shape, 0.25, 8),
            grad=False,
            expect=np.vectorize(_gamma_slope, otypes=[np.float64]),
        )


@samples("_dirichlet_grad")
def dirichlet_grad(make: Maker) -> Iterator[Sample]:
    for shape in ((3, 4), (), (0, 4)):
        yield Sample(
            make(shape, 0.125, 0.875),
            make(shape, 0.5, 3),
            make(shape, 4, 6),
            grad=False,
            expect=np.vectorize(_beta_slope, otypes=[np.float64]),
        )
