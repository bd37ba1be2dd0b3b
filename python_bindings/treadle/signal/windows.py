"""Windows, as in torch.signal.windows: `M` points of a function of one hump.

    treadle.signal.windows.hann(400, sym=False)    # periodic, for spectra

A symmetric window is the same from both ends; a periodic one is the symmetric one of M + 1 points
without its last.
"""

from __future__ import annotations

import math
from typing import Any, Callable, Iterable, Optional

from treadle import _C
from treadle._C import Tensor

__all__ = [
    "bartlett", "blackman", "cosine", "exponential", "gaussian", "general_cosine",
    "general_hamming", "hamming", "hann", "kaiser", "nuttall",
]  # fmt: skip


def _window(
    name: str,
    M: int,
    sym: bool,
    dtype: Any,
    layout: Any,
    device: Any,
    requires_grad: bool,
    values: Callable[[Tensor, int], Tensor],
) -> Tensor:
    """values(0, 1, ... as float64, the number of steps from end to end), in the dtype asked for."""
    dtype = _C.get_default_dtype() if dtype is None else dtype
    if M < 0:
        raise ValueError(f"{name}: expected M >= 0, got M = {M}")
    if layout is not None and layout != _C.strided:
        raise ValueError(f"{name}: expected layout = treadle.strided, got layout = {layout}")
    if dtype not in (_C.float32, _C.float64):
        raise ValueError(f"{name}: expected dtype float32 or float64, got {dtype}")
    if M <= 1:
        window = _C.ones((M,), dtype=dtype, device=device)
    else:
        counts = _C.arange(M, dtype=_C.float64, device=device)
        window = values(counts, M - 1 if sym else M).to(dtype)
    return window.requires_grad_(requires_grad)


def _center(name: str, center: Optional[float], sym: bool, steps: int) -> float:
    if center is None:
        return steps / 2
    if sym:
        raise ValueError(f"{name}: expected center = None with sym = True, got center = {center}")
    return center


def exponential(
    M: int,
    *,
    center: Optional[float] = None,
    tau: float = 1.0,
    sym: bool = True,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """exp(-|n - center| / tau)."""
    if tau <= 0:
        raise ValueError(f"exponential: expected tau > 0, got tau = {tau}")

    def values(n: Tensor, steps: int) -> Tensor:
        return _C.exp((n - _center("exponential", center, sym, steps)).abs() / -tau)

    return _window("exponential", M, sym, dtype, layout, device, requires_grad, values)


def cosine(
    M: int,
    *,
    sym: bool = True,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Half a period of a sine, between its zeros."""

    def values(n: Tensor, steps: int) -> Tensor:
        return _C.sin((n + 0.5) * (math.pi / (steps + 1)))

    return _window("cosine", M, sym, dtype, layout, device, requires_grad, values)


def gaussian(
    M: int,
    *,
    std: float = 1.0,
    sym: bool = True,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """exp(-((n - middle) / std)^2 / 2)."""
    if std <= 0:
        raise ValueError(f"gaussian: expected std > 0, got std = {std}")

    def values(n: Tensor, steps: int) -> Tensor:
        return _C.exp(((n - steps / 2) / std) ** 2 * -0.5)

    return _window("gaussian", M, sym, dtype, layout, device, requires_grad, values)


def kaiser(
    M: int,
    *,
    beta: float = 12.0,
    sym: bool = True,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """The window of the Bessel function i0; narrower the larger `beta` is."""
    if beta < 0:
        raise ValueError(f"kaiser: expected beta >= 0, got beta = {beta}")

    def values(n: Tensor, steps: int) -> Tensor:
        return _C.kaiser_window(M, not sym, beta, dtype=_C.float64, device=device)

    return _window("kaiser", M, sym, dtype, layout, device, requires_grad, values)


def general_cosine(
    M: int,
    *,
    a: Iterable[float],
    sym: bool = True,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """a[0] - a[1] cos(x) + a[2] cos(2 x) - ..., over one period."""
    weights = list(a)
    if not weights:
        raise ValueError("general_cosine: expected at least one coefficient, got none")

    def values(n: Tensor, steps: int) -> Tensor:
        total = _C.zeros_like(n)
        for k, weight in enumerate(weights):
            total = total + _C.cos(n * (2 * math.pi * k / steps)) * ((-1) ** k * weight)
        return total

    return _window("general_cosine", M, sym, dtype, layout, device, requires_grad, values)


def general_hamming(
    M: int,
    *,
    alpha: float = 0.54,
    sym: bool = True,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """alpha - (1 - alpha) cos(x), over one period."""
    return general_cosine(
        M,
        a=[alpha, 1.0 - alpha],
        sym=sym,
        dtype=dtype,
        layout=layout,
        device=device,
        requires_grad=requires_grad,
    )


def hamming(
    M: int,
    *,
    sym: bool = True,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """0.54 - 0.46 cos(x), over one period."""
    return general_hamming(
        M, sym=sym, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad
    )


def hann(
    M: int,
    *,
    sym: bool = True,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """0.5 - 0.5 cos(x), over one period."""
    return general_hamming(
        M,
        alpha=0.5,
        sym=sym,
        dtype=dtype,
        layout=layout,
        device=device,
        requires_grad=requires_grad,
    )


def blackman(
    M: int,
    *,
    sym: bool = True,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Three cosine terms, over one period."""
    return general_cosine(
        M,
        a=[0.42, 0.5, 0.08],
        sym=sym,
        dtype=dtype,
        layout=layout,
        device=device,
        requires_grad=requires_grad,
    )


def bartlett(
    M: int,
    *,
    sym: bool = True,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """A triangle that is 0 at both ends."""

    def values(n: Tensor, steps: int) -> Tensor:
        return 1 - (n * (2 / steps) - 1).abs()

    return _window("bartlett", M, sym, dtype, layout, device, requires_grad, values)


def nuttall(
    M: int,
    *,
    sym: bool = True,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Four cosine terms, over one period."""
    return general_cosine(
        M,
        a=[0.3635819, 0.4891775, 0.1365995, 0.0106411],
        sym=sym,
        dtype=dtype,
        layout=layout,
        device=device,
        requires_grad=requires_grad,
    )
