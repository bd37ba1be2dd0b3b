"""References of special functions that are more than a function of SciPy."""

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
    "spherical_bessel_j0": lambda x: special.spherical_jn(0, x),
    "airy_ai": lambda x: special.airy(x)[0],
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
}
