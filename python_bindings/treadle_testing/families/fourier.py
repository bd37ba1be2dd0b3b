"""Fourier transforms against numpy.fft, windows and short-time transforms against scipy.signal."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Callable, Iterator, Optional

import numpy as np
import scipy.fft
import scipy.signal

import treadle

from ..sample import Maker, Sample, samples

NORMS = (None, "forward", "backward", "ortho")
# A power of two, products of small primes, primes that need a detour, one.
LENGTHS = (8, 12, 30, 49, 97, 1)


def _wide(x: Any) -> Any:
    return x.astype(np.float64) if x.dtype.kind in "biu" else x


def _loose(make: Maker) -> float:
    # Inputs of 16 bits are exact in the 32 bits that the result has.
    return 0.05 if make.dtype in ("float16", "bfloat16") else 4


def _one(name: str, odd_sizes: bool) -> None:
    """Samples of a transform along one dimension."""
    reference = getattr(scipy.fft, name)

    def expect(x: Any, n: Optional[int] = None, dim: int = -1, norm: Optional[str] = None) -> Any:
        return reference(_wide(x), n, dim, norm)

    @samples(f"fft_{name}")
    def make_samples(make: Maker) -> Iterator[Sample]:
        loose = _loose(make)
        for length in LENGTHS:
            if odd_sizes and length == 1:
                continue  # 2 * (1 - 1) points would be none
            yield Sample(make((length,)), expect=expect, grad=length < 20, loose=loose)
        for shape, n, dim in [
            ((3, 4), None, 0),
            ((2, 3, 4), None, 1),
            ((3, 5), 8, -1),
            ((3, 8), 5, 1),
            ((4, 3), 7, -2),
            ((0, 4), None, 1),
            ((0, 4), 6, 0),
            ((2, 70), 4, 0),
        ]:
            yield Sample(make(shape), n, dim, expect=expect, grad=n != 4, loose=loose)
        for norm in NORMS:
            yield Sample(make((2, 6)), None, -1, norm, expect=expect, loose=loose)
            yield Sample(make((6,)), n=5, norm=norm, expect=expect, loose=loose)


for _name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft"):
    _one(_name, _name in ("irfft", "hfft"))


# Over several dimensions.
def _many(name: str, suffix: str, halves: bool) -> None:
    reference = getattr(scipy.fft, name + suffix)

    def expect(x: Any, s: Any = None, dim: Any = None, norm: Optional[str] = None) -> Any:
        if dim is None and suffix == "2":
            dim = (-2, -1)
        if dim == []:
            return np.asarray(x, dtype=np.complex128)
        return reference(_wide(x), s, dim, norm)

    @samples(f"fft_{name}{suffix}")
    def make_samples(make: Maker) -> Iterator[Sample]:
        loose = _loose(make)
        for shape, s, dim in [
            ((3, 4), None, None),
            ((2, 3, 4), None, None),
            ((2, 3, 4), None, [0, 2]),
            ((2, 3, 4), [3, 5], [-1, 0]),
            ((3, 4), [2, 6], None if suffix == "n" else [0, 1]),
            ((4, 5, 6), [2, 2, 4], [2, 1, 0]),
            ((0, 4, 2), None, [1, 2]),
        ]:
            kwargs = {} if dim is None else {"dim": dim}
            yield Sample(make(shape), s, expect=expect, grad=len(shape) < 3, loose=loose, **kwargs)
        for norm in NORMS:
            yield Sample(make((3, 4)), norm=norm, expect=expect, loose=loose)
        if name in ("fft", "ifft"):
            yield Sample(make((3, 4)), dim=[], expect=expect, loose=loose)
        if suffix == "n":
            yield Sample(make((2, 3, 4)), [4], expect=expect, loose=loose)


for _name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft"):
    for _suffix in ("2", "n"):
        _many(_name, _suffix, _name in ("irfft", "hfft"))


def _freq(name: str) -> None:
    reference = getattr(np.fft, name)

    @samples(f"fft_{name}")
    def make_samples(make: Maker) -> Iterator[Sample]:
        def expect(n: int, d: float, dtype: treadle.dtype) -> Any:
            return reference(n, d) * (1 + 0j if dtype.is_complex else 1)

        dtype = getattr(treadle, make.dtype)
        for n, d in [(1, 1.0), (2, 0.5), (7, 1.0), (8, 0.1), (100, 2.5), (5, -1.0)]:
            yield Sample(n, d, dtype=dtype, expect=expect)
        yield Sample(6, expect=reference)
        yield Sample(6, 0.5, expect=reference)


def _shift(name: str) -> None:
    reference = getattr(np.fft, name)

    @samples(f"fft_{name}")
    def make_samples(make: Maker) -> Iterator[Sample]:
        for shape, dim in [
            ((5,), None),
            ((4,), [0]),
            ((3, 4), None),
            ((3, 4), [-1]),
            ((2, 3, 4), [0, 2]),
            ((0, 3), None),
            ((3, 4), []),
        ]:
            yield Sample(make(shape), dim, expect=reference)
        yield Sample(make((3, 4)), expect=reference)
        yield Sample(make(()), expect=lambda x: x)


for _name in ("fftfreq", "rfftfreq"):
    _freq(_name)
for _name in ("fftshift", "ifftshift"):
    _shift(_name)


# Windows: (operator, what further arguments it takes, SciPy's window and its arguments from those).
def _window(operator: str, name: str, cases: list[tuple[Any, ...]], of: Callable[..., Any]) -> None:
    @samples(operator)
    def make_samples(make: Maker) -> Iterator[Sample]:
        def expect(length: int, periodic: bool = True, *more: float, dtype: Any = None) -> Any:
            if length == 0:
                return np.zeros(0)
            return scipy.signal.get_window(of(*more), length, fftbins=periodic)

        for length in (0, 1, 2, 5, 8, 33):
            for case in cases:
                dtype = getattr(treadle, make.dtype)
                yield Sample(length, *case, dtype=dtype, expect=expect)


_FLAGS = [(True,), (False,)]
for _name in ("bartlett", "blackman", "hann", "hamming"):
    _window(f"{_name}_window", _name, [()], lambda name=_name: name)
    _window(f"{_name}_window.periodic", _name, _FLAGS, lambda name=_name: name)
_window("kaiser_window", "kaiser", [()], lambda: ("kaiser", 12.0))
_window("kaiser_window.periodic", "kaiser", _FLAGS, lambda: ("kaiser", 12.0))
_window(
    "kaiser_window.beta",
    "kaiser",
    [(True, 5.0), (False, 0.5), (True, 0.0)],
    lambda beta: ("kaiser", beta),
)
_window(
    "hamming_window.periodic_alpha",
    "hamming",
    [(True, 0.54), (False, 0.54)],
    lambda alpha: "hamming",
)
_window(
    "hamming_window.periodic_alpha_beta",
    "hamming",
    [(True, 0.6, 0.4), (False, 0.5, 0.5)],
    lambda alpha, beta: ("general_hamming", alpha),
)


def _frames(x: Any, n_fft: int, hop: int, window: Any, center: bool, mode: str) -> Any:
    """(batch, frames, n_fft): the pieces of the signal, times the window."""
    if center:
        pad = [(0, 0)] * (x.ndim - 1) + [(n_fft // 2, n_fft // 2)]
        names = {"reflect": "reflect", "constant": "constant", "replicate": "edge"}
        x = np.pad(x, pad, mode=names.get(mode, "wrap"))
    count = (x.shape[-1] - n_fft) // hop + 1
    return np.stack([x[..., i * hop : i * hop + n_fft] * window for i in range(count)], -2)


def _stft(
    x: Any,
    n_fft: int,
    hop_length: Optional[int] = None,
    win_length: Optional[int] = None,
    window: Any = None,
    center: bool = True,
    pad_mode: str = "reflect",
    normalized: bool = False,
    onesided: Optional[bool] = None,
    return_complex: Optional[bool] = None,
) -> Any:
    hop = n_fft // 4 if hop_length is None else hop_length
    win = n_fft if win_length is None else win_length
    values = np.ones(win) if window is None else window
    before = (n_fft - win) // 2
    values = np.pad(values, (before, n_fft - win - before))
    pieces = _frames(x, n_fft, hop, values, center, pad_mode)
    complex_ = np.iscomplexobj(pieces)
    half = not complex_ if onesided is None else onesided
    spectrum = (np.fft.rfft if half else np.fft.fft)(pieces, norm="ortho" if normalized else None)
    result = np.swapaxes(spectrum, -1, -2)
    return result if return_complex is not False else np.stack([result.real, result.imag], -1)


@samples("stft.center")
def stft(make: Maker) -> Iterator[Sample]:
    loose = 4 if make.dtype in ("float32", "float64", "complex64", "complex128") else 0.1
    wide = make.is_complex or make.dtype == "float64"
    window = Maker(make.dtype if wide else "float32")((8,), 0.5, 1.0)
    plain = make((20,))
    real = not make.is_complex
    yield Sample(plain, 8, return_complex=True, expect=_stft, loose=loose)
    yield Sample(make((2, 20)), 8, 3, None, window, return_complex=True, expect=_stft, loose=loose)
    yield Sample(plain, 8, 4, 5, window[:5], return_complex=True, expect=_stft, loose=loose)
    yield Sample(plain, 8, center=False, return_complex=True, expect=_stft, loose=loose)
    yield Sample(plain, 7, 2, normalized=True, return_complex=True, expect=_stft, loose=loose)
    for mode in ("constant", "replicate", "circular"):
        yield Sample(plain, 8, pad_mode=mode, return_complex=True, expect=_stft, loose=loose)
    yield Sample(plain, 8, return_complex=False, expect=_stft, loose=loose)
    if real:
        yield Sample(plain, 8, onesided=False, return_complex=True, expect=_stft, loose=loose)


@samples("istft")
def istft(make: Maker) -> Iterator[Sample]:
    """Spectra of signals, so that the signal is what comes back."""
    wide = make.dtype == "complex128"
    rng = np.random.default_rng(3)
    for batch, kwargs, length in [
        ((), {}, 24),
        ((2,), {"hop_length": 2}, 20),
        ((2,), {"normalized": True}, 24),
        ((), {"win_length": 6, "hop_length": 2}, 20),
        ((2,), {"onesided": False}, 24),
        ((), {"length": 19}, 24),
        ((), {"center": False}, 24),
    ]:
        signal = rng.uniform(-1, 1, (*batch, length))
        forward = {k: v for k, v in kwargs.items() if k != "length"}
        spectrum = _stft(signal, 8, **forward)
        spectrum = spectrum.astype(np.complex128 if wide else np.complex64)
        wanted = signal[..., : kwargs.get("length", length)]
        yield Sample(spectrum, 8, expect=lambda x, n, wanted=wanted, **_: wanted, loose=8, **kwargs)
        if kwargs.get("onesided") is False:  # a real signal is that of the first half alone
            spectrum = spectrum.copy()
            spectrum[..., 5:, :] += 1
            yield Sample(
                spectrum, 8, expect=lambda x, n, wanted=wanted, **_: wanted, loose=8, **kwargs
            )
