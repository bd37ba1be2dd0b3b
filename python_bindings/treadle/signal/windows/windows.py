"""Windows, as in torch.signal.windows: `M` points of a function of one hump.

    treadle.signal.windows.hann(400, sym=False)    # periodic, for spectra

A symmetric window is the same from both ends; a periodic one is the symmetric one of M + 1 points
without its last. All windows take `sym`, `dtype`, `layout`, `device` and `requires_grad` by name,
beside what is their own.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import functools
import inspect
import math
from typing import Any, Callable, Iterable, Optional

from treadle import _C
from treadle._C import Tensor

__all__ = [
    "bartlett", "blackman", "cosine", "exponential", "gaussian", "general_cosine",
    "general_hamming", "hamming", "hann", "kaiser", "nuttall",
]  # fmt: skip

# The values at the points 0, 1, ... (float64), given also the number of steps from end to end: one
# less than there are points in a symmetric window, as many in a periodic one.
_Values = Callable[[Tensor, int], Tensor]


def _window(own: Callable[..., _Values]) -> Callable[..., Tensor]:
    """The window whose own settings, all by name, `own` turns into its values."""

    @functools.wraps(own, assigned=("__module__", "__name__", "__qualname__", "__doc__"))
    def window(
        M: int,
        *,
        sym: bool = True,
        dtype: Any = None,
        layout: Any = None,
        device: Any = None,
        requires_grad: bool = False,
        **settings: Any,
    ) -> Tensor:
        values = own(**settings)
        name = own.__name__
        dtype = _C.get_default_dtype() if dtype is None else dtype
        if M < 0:
            raise ValueError(f"{name}: expected M >= 0, got M = {M}")
        if layout is not None and layout != _C.strided:
            raise ValueError(f"{name}: expected layout = {_C.strided}, got layout = {layout}")
        if dtype not in (_C.float32, _C.float64):
            raise ValueError(f"{name}: expected dtype float32 or float64, got {dtype}")
        if M <= 1:
            points = _C.ones((M,), dtype=dtype, device=device)
        else:
            counts = _C.arange(M, dtype=_C.float64, device=device)
            points = values(counts, M - 1 if sym else M).to(dtype)
        return points.requires_grad_(requires_grad)

    signature = inspect.signature(window, follow_wrapped=False)
    points, *common, _ = signature.parameters.values()
    settings = inspect.signature(own).parameters.values()
    window.__signature__ = signature.replace(  # type: ignore[attr-defined]
        parameters=[points, *settings, *common]
    )
    return window


def _is_symmetric(n: Tensor, steps: int) -> bool:
    return steps < len(n)


@_window
def exponential(*, center: Optional[float] = None, tau: float = 1.0) -> _Values:
    """exp(-|n - center| / tau)."""
    if tau <= 0:
        raise ValueError(f"exponential: expected tau > 0, got tau = {tau}")

    def values(n: Tensor, steps: int) -> Tensor:
        if center is not None and _is_symmetric(n, steps):
            raise ValueError(
                f"exponential: expected center = None with sym = True, got center = {center}"
            )
        return _C.exp((n - (steps / 2 if center is None else center)).abs() / -tau)

    return values


@_window
def cosine() -> _Values:
    """Half a period of a sine, between its zeros."""
    return lambda n, steps: _C.sin((n + 0.5) * (math.pi / (steps + 1)))


@_window
def gaussian(*, std: float = 1.0) -> _Values:
    """exp(-((n - middle) / std)^2 / 2)."""
    if std <= 0:
        raise ValueError(f"gaussian: expected std > 0, got std = {std}")
    return lambda n, steps: _C.exp(((n - steps / 2) / std) ** 2 * -0.5)


@_window
def kaiser(*, beta: float = 12.0) -> _Values:
    """The window of the Bessel function i0; narrower the larger `beta` is."""
    if beta < 0:
        raise ValueError(f"kaiser: expected beta >= 0, got beta = {beta}")
    return lambda n, steps: _C.kaiser_window(
        len(n), not _is_symmetric(n, steps), beta, dtype=_C.float64, device=n.device
    )


@_window
def bartlett() -> _Values:
    """A triangle that is 0 at both ends."""
    return lambda n, steps: 1 - (n * (2 / steps) - 1).abs()


# ---- sums of cosines -----------------------------------------------------------------------------


def _cosines(weights: list[float]) -> _Values:
    """weights[0] - weights[1] cos(x) + weights[2] cos(2 x) - ..., over one period."""

    def values(n: Tensor, steps: int) -> Tensor:
        total = _C.zeros_like(n)
        for k, weight in enumerate(weights):
            total = total + _C.cos(n * (2 * math.pi * k / steps)) * ((-1) ** k * weight)
        return total

    return values


@_window
def general_cosine(*, a: Iterable[float]) -> _Values:
    """a[0] - a[1] cos(x) + a[2] cos(2 x) - ..., over one period."""
    weights = list(a)
    if not weights:
        raise ValueError("general_cosine: expected at least one coefficient, got none")
    return _cosines(weights)


@_window
def general_hamming(*, alpha: float = 0.54) -> _Values:
    """alpha - (1 - alpha) cos(x), over one period."""
    return _cosines([alpha, 1 - alpha])


@_window
def hamming() -> _Values:
    """0.54 - 0.46 cos(x), over one period."""
    return _cosines([0.54, 1 - 0.54])


@_window
def hann() -> _Values:
    """0.5 - 0.5 cos(x), over one period."""
    return _cosines([0.5, 0.5])


@_window
def blackman() -> _Values:
    """Three cosine terms, over one period."""
    return _cosines([0.42, 0.5, 0.08])


@_window
def nuttall() -> _Values:
    """Four cosine terms, over one period."""
    return _cosines([0.3635819, 0.4891775, 0.1365995, 0.0106411])
