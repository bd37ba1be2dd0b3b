"""treadle.fft and treadle.signal beside the operator tests: what is refused, long transforms, round
trips.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Callable

import numpy as np
import pytest
import scipy.signal

import treadle

fft = treadle.fft
windows = treadle.signal.windows
X = treadle.ones(4)
Z = treadle.ones(3, 4, dtype=treadle.complex64)

ERRORS: list[tuple[Callable[[], Any], type, str]] = [
    (lambda: fft.fft(treadle.tensor(1.0)), IndexError, "fft: expected a tensor with at least 1"),
    (lambda: fft.fft(X, dim=1), IndexError, "fft: .*range"),
    (lambda: fft.fft(X, n=0), RuntimeError, "fft: expected at least 1 point, got n = 0"),
    (lambda: fft.ifft(X, n=-5), RuntimeError, "ifft: expected at least 1 point, got n = -5"),
    (lambda: fft.fft(treadle.ones(3, 0)), RuntimeError, "fft: expected at least 1 point"),
    (
        lambda: fft.irfft(treadle.ones(1)),
        RuntimeError,
        "irfft: expected at least 1 point, got n = 0",
    ),
    (lambda: fft.rfft(Z), RuntimeError, "rfft: expected self of a dtype in|real dtype"),
    (lambda: fft.ihfftn(Z), RuntimeError, "ihfftn: expected self of a dtype in|real dtype"),
    (lambda: fft.fftn(Z, s=(1, 2, 3)), RuntimeError, "fftn: expected s of at most 2 entries"),
    (lambda: fft.fftn(Z, s=(1, 2), dim=0), RuntimeError, "fftn: expected s and dim of the same"),
    (lambda: fft.fftn(Z, dim=(0, 0)), RuntimeError, "fftn: .*(twice|multiple|once)"),
    (lambda: fft.rfftn(X, dim=()), RuntimeError, "rfftn: expected at least 1 dimension"),
    (lambda: fft.fft2(X), IndexError, "fft2: .*range"),
    (lambda: fft.irfft2(Z, s=(0, 4)), RuntimeError, "irfft2: expected at least 1 point, got s = 0"),
    (lambda: fft.fftfreq(0), Exception, "fftfreq: expected n > 0, got n = 0"),
    (lambda: fft.fftfreq(4, 0.0), ValueError, "fftfreq: expected d != 0, got d = 0"),
    (lambda: fft.rfftfreq(4, dtype=treadle.int64), RuntimeError, "rfftfreq: expected dtype in"),
    (lambda: fft.fftshift(X, dim=3), IndexError, "fftshift: .*range"),
    (lambda: fft.fft(X, out=treadle.ones(4)), RuntimeError, "fft"),
]


@pytest.mark.parametrize("call, error, message", ERRORS)
def test_errors(call: Callable[[], Any], error: type, message: str) -> None:
    with pytest.raises((error, NotImplementedError), match=message) as raised:
        call()
    assert len(str(raised.value).splitlines()) <= 6


def test_unknown_norm() -> None:
    with pytest.raises((RuntimeError, ValueError), match="norm"):
        fft.fft(X, norm="sideways")


@pytest.mark.parametrize("n", [2**62, 2**63 - 1, 2**59])
def test_too_many_points(n: int) -> None:
    """Refused before memory is asked for."""
    for f in (fft.fft, fft.rfft, fft.irfft, fft.hfft, fft.ihfft):
        with pytest.raises((RuntimeError, treadle.OutOfMemoryError)):
            f(X, n=n)
    with pytest.raises((RuntimeError, treadle.OutOfMemoryError)):
        fft.fftn(treadle.ones(2, 2), s=(n, n))


# Those from 2^18 on, except the last, have divisors by which a long slice is a matrix.
@pytest.mark.parametrize(
    "n", [2**17, 3 * 5 * 7 * 11 * 13, 99991, 2 * 99991, 177147, 2**18, 2 * 3**11, 300000, 4 * 99991]
)
def test_long(n: int) -> None:
    x = np.random.default_rng(n).standard_normal(n)
    t = treadle.from_numpy(x)
    expected = np.fft.fft(x)
    scale = np.abs(expected).max()
    np.testing.assert_allclose(fft.fft(t).numpy(), expected, atol=1e-14 * scale)
    np.testing.assert_allclose(fft.rfft(t).numpy(), expected[: n // 2 + 1], atol=1e-14 * scale)
    np.testing.assert_allclose(fft.irfft(fft.rfft(t), n=n).numpy(), x, atol=1e-13)
    np.testing.assert_allclose(
        fft.ihfft(t, norm="forward").numpy(), np.fft.rfft(x).conj(), atol=1e-14 * scale
    )
    np.testing.assert_allclose(fft.hfft(fft.ihfft(t), n=n).numpy(), x, atol=1e-13)
    np.testing.assert_allclose(fft.ifft(fft.fft(t), norm="backward").numpy(), x, atol=1e-13)
    single = fft.fft(t.to(treadle.float32)).numpy()
    np.testing.assert_allclose(single, expected, atol=2e-6 * scale)


def test_many_slices() -> None:
    """More than one block, along a dimension whose slices lie apart."""
    x = np.random.default_rng(0).standard_normal((5, 96, 700))
    for dim in (0, 1, 2):
        np.testing.assert_allclose(
            fft.fft(treadle.from_numpy(x), dim=dim).numpy(), np.fft.fft(x, axis=dim), atol=1e-11
        )
        half = fft.rfft(treadle.from_numpy(x), dim=dim)
        np.testing.assert_allclose(half.numpy(), np.fft.rfft(x, axis=dim), atol=1e-11)
        back = fft.irfft(half, n=x.shape[dim], dim=dim)
        np.testing.assert_allclose(back.numpy(), x, atol=1e-12)


def test_bits_do_not_depend_on_threads() -> None:
    x = treadle.randn(7, 300, 200, dtype=treadle.complex64)
    long = treadle.randn(2**18)
    before = treadle.get_num_threads()
    try:
        results = []
        for threads in (1, 2, 3):
            treadle.set_num_threads(threads)
            made = [fft.fftn(x), fft.irfftn(x), fft.rfft(long), fft.irfft(fft.fft(long))]
            results.append(b"".join(t.numpy().tobytes() for t in made))
    finally:
        treadle.set_num_threads(before)
    assert results[0] == results[1] == results[2]


def test_dtypes() -> None:
    for dtype, real in [
        (treadle.float16, treadle.float32),
        (treadle.bfloat16, treadle.float32),
        (treadle.int8, treadle.float32),
        (treadle.bool, treadle.float32),
        (treadle.float64, treadle.float64),
    ]:
        x = treadle.ones(4).to(dtype)
        assert fft.fft(x).dtype == fft.rfft(x).dtype == real.to_complex()
        assert fft.irfft(x).dtype == fft.hfft(x).dtype == real


def test_gradient_of_a_spectrum() -> None:
    """Parseval: the energy of the spectrum is that of the signal, and so are their gradients."""
    x = treadle.randn(9, dtype=treadle.float64, requires_grad=True)
    (fft.fft(x, norm="ortho").abs() ** 2).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), 2 * x.detach().numpy(), atol=1e-12)


def test_out() -> None:
    out = treadle.empty(3, dtype=treadle.complex64)
    assert fft.rfft(X, out=out) is out
    np.testing.assert_allclose(out.numpy(), np.fft.rfft(np.ones(4)), atol=1e-6)


# ---- short-time transforms ----

SIGNAL = treadle.randn(2, 400, dtype=treadle.float64)
STFT_ERRORS: list[tuple[Callable[[], Any], str]] = [
    (lambda: treadle.stft(SIGNAL, 16), "stft: expected return_complex to be given"),
    (lambda: treadle.stft(SIGNAL, 0, return_complex=True), "stft: expected n_fft > 0"),
    (lambda: treadle.stft(SIGNAL, -4, return_complex=True), "stft: expected n_fft > 0"),
    (lambda: treadle.stft(SIGNAL, 16, 0, return_complex=True), "stft: expected hop_length > 0"),
    (lambda: treadle.stft(SIGNAL, 2, return_complex=True), "stft: expected hop_length > 0"),
    (lambda: treadle.stft(SIGNAL, 16, 4, 17, return_complex=True), "stft: expected win_length in"),
    (
        lambda: treadle.stft(SIGNAL, 16, window=treadle.ones(8), return_complex=True),
        "stft: expected a window of shape",
    ),
    (
        lambda: treadle.stft(SIGNAL, 500, center=False, return_complex=True),
        "stft: expected n_fft of at most the 400 elements",
    ),
    (
        lambda: treadle.stft(SIGNAL, 900, return_complex=True),
        "stft: expected a signal longer than the 450 elements",
    ),
    (
        lambda: treadle.stft(treadle.ones(2, 2, 9), 4, return_complex=True),
        "stft: expected a signal of shape",
    ),
    (lambda: treadle.stft(SIGNAL, 2**62, return_complex=True), "stft: "),
    (lambda: treadle.istft(SIGNAL, 16), "istft: expected a complex tensor|dtype in"),
    (lambda: treadle.istft(Z, 16), "istft: expected 9 frequencies for n_fft = 16, got 3"),
    (lambda: treadle.istft(Z, 4, 2**62), "istft: expected a signal below"),
    (lambda: treadle.istft(Z[0], 4), "istft: expected a tensor of shape"),
    (
        lambda: treadle.istft(Z, 4, 9, center=False),
        "istft: expected windows that cover every point",
    ),
]


@pytest.mark.parametrize("call, message", STFT_ERRORS)
def test_stft_errors(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(
        (RuntimeError, NotImplementedError, treadle.OutOfMemoryError), match=message
    ):
        call()


@pytest.mark.parametrize("name", ["hann", "hamming", "blackman"])
@pytest.mark.parametrize("onesided", [True, False])
def test_round_trip(name: str, onesided: bool) -> None:
    window = getattr(treadle, f"{name}_window")(64, dtype=treadle.float64)
    kwargs: dict[str, Any] = dict(n_fft=64, hop_length=16, window=window, onesided=onesided)
    spectrum = treadle.stft(SIGNAL, **kwargs, return_complex=True)
    assert tuple(spectrum.shape) == (2, 33 if onesided else 64, 26)
    back = treadle.istft(spectrum, **kwargs, length=400)
    np.testing.assert_allclose(back.numpy(), SIGNAL.numpy(), atol=1e-12)


def test_stft_of_the_method() -> None:
    a = SIGNAL.stft(16, return_complex=True)
    assert treadle.equal(a, treadle.stft(SIGNAL, 16, return_complex=True))
    assert treadle.equal(a.istft(16), treadle.istft(a, 16))


# ---- windows ----

SCIPY = {
    "bartlett": ({}, {}),
    "blackman": ({}, {}),
    "cosine": ({}, {}),
    "exponential": ({"tau": 2.0}, {"tau": 2.0}),
    "gaussian": ({"std": 1.5}, {"std": 1.5}),
    "general_cosine": ({"a": [0.5, 0.3, 0.2]}, {"a": [0.5, 0.3, 0.2]}),
    "general_hamming": ({"alpha": 0.6}, {"alpha": 0.6}),
    "hamming": ({}, {}),
    "hann": ({}, {}),
    "kaiser": ({"beta": 5.0}, {"beta": 5.0}),
    "nuttall": ({}, {}),
}


@pytest.mark.parametrize("name", SCIPY)
@pytest.mark.parametrize("sym", [True, False])
def test_windows(name: str, sym: bool) -> None:
    ours, theirs = SCIPY[name]
    for m in (0, 1, 2, 7, 32):
        w = getattr(windows, name)(m, sym=sym, dtype=treadle.float64, **ours)
        expected = getattr(scipy.signal.windows, name)(m, sym=sym, **theirs)
        np.testing.assert_allclose(w.numpy(), expected, atol=1e-12)
        assert getattr(windows, name)(m, **ours).dtype == treadle.float32
    assert getattr(windows, name)(4, requires_grad=True, **ours).requires_grad
    with pytest.raises(ValueError, match="expected M >= 0, got M = -1"):
        getattr(windows, name)(-1, **ours)
    with pytest.raises(ValueError, match="expected dtype float32 or float64"):
        getattr(windows, name)(4, dtype=treadle.int64, **ours)


def test_windows_is_all_of_them() -> None:
    assert set(windows.__all__) == set(SCIPY)
