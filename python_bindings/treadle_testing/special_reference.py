"""What SciPy calls the special functions that `pointwise:` expressions name."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Callable, Mapping

import numpy as np
from scipy import special


def _polynomial(evaluate: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Degrees are cut to integers, and of a negative one the polynomial is 0."""

    def f(x: Any, n: Any) -> Any:
        degree = np.trunc(np.asarray(n, dtype=np.float64))
        value = evaluate(np.maximum(degree, 0), np.asarray(x, dtype=np.float64))
        return np.where(degree < 0, 0.0, value)

    return f


def _each(evaluate: Callable[[int, float], float]) -> Callable[[Any, Any], Any]:
    """For functions that take one integer degree."""
    return np.vectorize(lambda n, x: evaluate(int(n), x), otypes=[np.float64])


def _third(n: Any, x: Any) -> Any:
    """Chebyshev's third kind, by the second."""
    below = np.where(n > 0, special.eval_chebyu(np.maximum(n - 1, 0), x), 0)
    return special.eval_chebyu(n, x) - below


def _fourth(n: Any, x: Any) -> Any:
    below = np.where(n > 0, special.eval_chebyu(np.maximum(n - 1, 0), x), 0)
    return special.eval_chebyu(n, x) + below


SPECIAL: Mapping[str, Callable[..., Any]] = {
    "i0": special.i0,
    "i0e": special.i0e,
    "i1": special.i1,
    "i1e": special.i1e,
    "bessel_j0": special.j0,
    "bessel_j1": special.j1,
    "bessel_y0": special.y0,
    "bessel_y1": special.y1,
    "bessel_k0": special.k0,
    "bessel_k1": special.k1,
    "scaled_bessel_k0": special.k0e,
    "scaled_bessel_k1": special.k1e,
    "spherical_bessel_j0": lambda x: special.spherical_jn(0, x),
    "airy_ai": lambda x: special.airy(x)[0],
    "erfcx": special.erfcx,
    "ndtr": special.ndtr,
    "log_ndtr": special.log_ndtr,
    "ndtri": special.ndtri,
    "zeta": special.zeta,
    "polygamma": special.polygamma,
    "igamma": special.gammainc,
    "igammac": special.gammaincc,
    "chebyshev_t": _polynomial(special.eval_chebyt),
    "chebyshev_u": _polynomial(special.eval_chebyu),
    "chebyshev_v": _polynomial(_third),
    "chebyshev_w": _polynomial(_fourth),
    "shifted_chebyshev_t": _polynomial(special.eval_sh_chebyt),
    "shifted_chebyshev_u": _polynomial(special.eval_sh_chebyu),
    "shifted_chebyshev_v": _polynomial(lambda n, x: _third(n, 2 * x - 1)),
    "shifted_chebyshev_w": _polynomial(lambda n, x: _fourth(n, 2 * x - 1)),
    "hermite_h": _polynomial(_each(special.eval_hermite)),
    "hermite_he": _polynomial(_each(special.eval_hermitenorm)),
    "laguerre_l": _polynomial(special.eval_laguerre),
    "legendre_p": _polynomial(special.eval_legendre),
    "sinc": np.sinc,
    "logaddexp2": np.logaddexp2,
    "gcd": np.gcd,
    "lcm": np.lcm,
    "signbit": lambda x: np.signbit(x) if np.asarray(x).dtype.kind == "f" else np.asarray(x) < 0,
}

# Ranges in which they are defined and smooth.
SPECIAL_DOMAINS: Mapping[str, tuple[float, float]] = {
    "bessel_y0": (0.3, 3),
    "bessel_y1": (0.3, 3),
    "bessel_k0": (0.3, 3),
    "bessel_k1": (0.3, 3),
    "scaled_bessel_k0": (0.3, 3),
    "scaled_bessel_k1": (0.3, 3),
    "bessel_j1": (0.3, 3),
    "i1": (0.3, 3),
    "i0e": (0.3, 3),
    "i1e": (0.3, 3),
    "spherical_bessel_j0": (0.3, 3),
    "sinc": (0.3, 3),
    "ndtri": (0.1, 0.9),
    "zeta": (1.3, 3),
    "polygamma": (0.3, 3),
    "igamma": (0.3, 3),
    "igammac": (0.3, 3),
}
