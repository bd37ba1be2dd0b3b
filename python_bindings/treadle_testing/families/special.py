"""Special functions that are composed of others, and the names that the module `special` gives to
operators of the main one."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Callable, Iterator

import numpy as np
from scipy import special

import treadle

from ..catalogue import by_id
from ..expression import pointwise_samples
from ..sample import REGISTRY, Maker, Sample, samples

SHAPES = [(3, 4), (), (0, 4), (67,)]

OTHER_NAMES = {
    "special_expm1": "expm1",
    "special_exp2": "exp2",
    "special_psi": "digamma",
    "special_digamma": "digamma",
    "special_gammaln": "lgamma",
    "special_erf": "erf",
    "special_erfc": "erfc",
    "special_erfinv": "erfinv",
    "special_i0": "i0",
    "special_expit": "sigmoid",
    "special_sinc": "sinc",
    "special_log1p": "log1p",
    "special_xlogy": "xlogy.Tensor",
    "special_xlogy.self_scalar": "xlogy.Scalar_Self",
    "special_xlogy.other_scalar": "xlogy.Scalar_Other",
    "special_polygamma": "polygamma",
}


def _same_as(target: str) -> Callable[[Maker], Iterator[Sample]]:
    return lambda make: pointwise_samples(by_id()[target], make)


for _name, _target in OTHER_NAMES.items():
    samples(_name)(_same_as(_target))


def _orders(
    reference: Callable[[Any, Any], Any], low: float
) -> Callable[[Maker], Iterator[Sample]]:
    """The derivative by the order is not known, so gradients are not compared."""

    def make_samples(make: Maker) -> Iterator[Sample]:
        for first, second in [((3, 4), (3, 4)), ((), ()), ((0, 4), (4,)), ((3, 1), (1, 67))]:
            yield Sample(make(first, low, 3), make(second, low, 3), grad=False, expect=reference)

    return make_samples


for _name in ("igamma", "special_gammainc"):
    samples(_name)(_orders(special.gammainc, 0.3))
for _name in ("igammac", "special_gammaincc"):
    samples(_name)(_orders(special.gammaincc, 0.3))
samples("special_zeta")(_orders(lambda s, q: special.zeta(np.float64(s), np.float64(q)), 1.3))


@samples("mvlgamma", "special_multigammaln")
def mvlgamma(make: Maker) -> Iterator[Sample]:
    for shape in SHAPES:
        for p in (1, 2, 4):
            yield Sample(
                make(shape, 2, 5),
                p,
                expect=lambda x, p: np.vectorize(
                    lambda v: special.multigammaln(v, p), otypes=[float]
                )(x),
            )


@samples("ldexp.Tensor")
def ldexp(make: Maker) -> Iterator[Sample]:
    def expect(x: Any, e: Any) -> Any:
        return x * np.power(2.0, e if np.iscomplexobj(e) else np.float64(e))

    for first, second in [((3, 4), (4,)), ((), ()), ((0, 4), (4,)), ((67,), (1,))]:
        yield Sample(make(first), make.rng.integers(-3, 4, second), expect=expect)
    yield Sample(make((3,)), make((3,)), expect=expect)


@samples("frexp.Tensor")
def frexp(make: Maker) -> Iterator[Sample]:
    for shape in SHAPES:
        yield Sample(make(shape, 0.6, 60), expect=lambda x: np.frexp(x), exact=True)


@samples("angle")
def angle(make: Maker) -> Iterator[Sample]:
    for shape in SHAPES:
        # NumPy has a narrow angle for narrow integers.
        yield Sample(
            make(shape), expect=lambda x: np.angle(x if np.iscomplexobj(x) else np.float64(x))
        )


@samples("isreal")
def isreal(make: Maker) -> Iterator[Sample]:
    for shape in SHAPES:
        x = make(shape)
        yield Sample(x, expect=np.isreal)
        yield Sample(np.real(x).astype(x.dtype), expect=np.isreal)


@samples("round.decimals")
def round_decimals(make: Maker) -> Iterator[Sample]:
    for shape in SHAPES:
        for decimals in (0,) if make.is_integral else (0, 2, -1):
            x = make(shape, -30, 30)
            yield Sample(x, decimals=decimals, expect=lambda x, decimals: np.round(x, decimals))


@samples("special_round")
def special_round(make: Maker) -> Iterator[Sample]:
    yield from round_decimals(make)
    yield Sample(make((3, 4), -30, 30), expect=np.round)


@samples("float_power.Scalar")
def float_power(make: Maker) -> Iterator[Sample]:
    for shape in SHAPES:
        yield Sample(1.5, make(shape), expect=lambda a, b: np.power(1.5, b))


for _name, _target in {
    "special_logit": "logit",
    "special_logsumexp": "logsumexp",
    "special_softmax": "softmax.int",
    "special_log_softmax": "log_softmax.int",
}.items():

    def _borrowed(make: Maker, target: str = _target) -> Iterator[Sample]:
        for sample in REGISTRY[target](make):
            if not any(isinstance(v, treadle.dtype) for v in sample.args):
                yield sample

    samples(_name)(_borrowed)
