"""Dtypes that a program registers: fixed-point numbers of 16 bits, and others whose conversions are
wrong. Tensors of them move as bits, show their values, and are computed with in a wider dtype.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import copy
import io
import pickle
import subprocess
import sys
import threading
from typing import Any, Callable

import numpy as np
import pytest

import treadle
from treadle import Tensor


def _from_bits(bits: Tensor) -> Tensor:
    return bits.to(treadle.float32) / 256


def _to_bits(values: Tensor) -> Tensor:
    rounded = (values * 256).nan_to_num(0.0).round()
    return rounded.clamp(-(2**15), 2**15 - 1).to(treadle.int16)


Q = treadle.library.register_dtype("test_q8_8", itemsize=2, from_bits=_from_bits, to_bits=_to_bits)
# Logarithms of powers of two, computed in float64.
LOG = treadle.library.register_dtype(
    "test_log",
    itemsize=8,
    from_bits=lambda bits: treadle.exp2(bits.to(treadle.float64)),
    to_bits=lambda values: values.log2().round().to(treadle.int64),
    computed=treadle.float64,
)


def error_of(call: Callable[[], object]) -> str:
    with pytest.raises((RuntimeError, TypeError, ValueError, NotImplementedError)) as error:
        call()
    return f"{type(error.value).__name__}: {error.value}"


def test_a_dtype_is_an_object_with_facts() -> None:
    assert repr(Q) == "treadle.test_q8_8" and isinstance(Q, treadle.dtype)
    assert (Q.itemsize, Q.is_floating_point, Q.is_complex, Q.is_signed) == (2, True, False, True)
    assert LOG.itemsize == 8 and Q != LOG and {Q: 1}[Q] == 1
    assert pickle.loads(pickle.dumps(Q)) is Q and copy.deepcopy(Q) is Q
    assert treadle.ones(2, dtype=Q).type() == "treadle.test_q8_8Tensor"


def test_every_element_is_the_value_that_the_conversion_says() -> None:
    patterns = np.arange(-(2**15), 2**15, dtype=np.int16)
    x = treadle.from_numpy(patterns).view(Q)
    assert x.dtype is Q
    np.testing.assert_array_equal(x.to(treadle.float32).numpy(), patterns / np.float32(256))
    assert treadle.equal(x.to(treadle.float32).to(Q).view(treadle.int16), x.view(treadle.int16))
    values = treadle.tensor([1 / 512, 3 / 512, 1e9, -1e9, float("nan")]).to(Q)
    assert values.view(treadle.int16).tolist() == [0, 2, 2**15 - 1, -(2**15), 0]


def test_tensors_are_made_copied_indexed_and_shown() -> None:
    x = treadle.tensor([[1.0, 2.5, -4.0], [8.0, 0.25, 0.5]], dtype=Q)
    assert repr(x) == (
        "tensor([[ 1.0000,  2.5000, -4.0000],\n        [ 8.0000,  0.2500,  0.5000]], "
        "dtype=treadle.test_q8_8)"
    )
    assert x[0, 1].item() == 2.5 and x.tolist() == [[1.0, 2.5, -4.0], [8.0, 0.25, 0.5]]
    w, index, mask = x.to(treadle.float32), treadle.tensor([1, 0]), x > 0.75
    assert mask.tolist() == [[True, True, False], [True, False, False]]
    calls: list[Callable[[Tensor], Tensor]] = [
        lambda t: t.clone(),
        lambda t: t.t().contiguous(),
        lambda t: t[:, ::2],
        lambda t: t[index],
        lambda t: t[mask],
        lambda t: treadle.cat([t, t]),
        lambda t: treadle.where(mask, t, t.flip(1)),
        lambda t: t.gather(1, treadle.tensor([[2], [0]])),
        lambda t: t.scatter(1, treadle.tensor([[2], [0]]), t.flip(1)),
        lambda t: t.masked_fill(mask, 3),
        lambda t: t.repeat(2, 2).roll(1, 1),
    ]
    for f in calls:
        assert f(x).dtype is Q and treadle.equal(f(x).to(treadle.float32), f(w))
    y = x.clone()
    y[0] = 2
    y[1, 1] = x[0, 2]
    assert y.tolist() == [[2.0, 2.0, 2.0], [8.0, -4.0, 0.5]]
    for again in (copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
        assert again.dtype is Q and again.tolist() == x.tolist()
    assert treadle.full((2,), 1.5, dtype=Q).tolist() == [1.5, 1.5]
    assert treadle.zeros_like(x).dtype is Q and treadle.empty(0, dtype=Q).exp().shape == (0,)
    assert x.to("meta").exp().dtype is Q
    assert treadle.tensor([4.0, 0.3], dtype=LOG).tolist() == [4.0, 0.25]
    assert treadle.tensor(8.0, dtype=LOG).item() == 8.0
    assert error_of(lambda: x.numpy()) == (
        "TypeError: numpy: expected a dtype that NumPy has, got treadle.test_q8_8"
    )


def test_files() -> None:
    x = treadle.tensor([1.0, 2.5], dtype=Q)
    file = io.BytesIO()
    treadle.save({"x": x, "part": x[1:], "dtype": Q}, file)
    file.seek(0)
    loaded = treadle.load(file)
    assert loaded["x"].tolist() == [1.0, 2.5] and loaded["dtype"] is Q
    assert loaded["part"].untyped_storage().data_ptr() == loaded["x"].data_ptr()
    assert error_of(lambda: pickle.loads(pickle.dumps(x).replace(b"test_q8_8", b"test_q7_9"))) == (
        "RuntimeError: expected a registered dtype, got 'test_q7_9'; register it first, as the "
        "program that wrote it did"
    )


def test_results_are_computed_wide_and_rounded() -> None:
    x = treadle.tensor([1.0, 2.5, -4.0], dtype=Q)
    w = x.to(treadle.float32)
    calls: list[Callable[[Tensor], Tensor]] = [
        lambda t: t + t,
        lambda t: t * 0.3,
        lambda t: 1 / t,
        lambda t: t.exp(),
        lambda t: t.sum(),
        lambda t: t.softmax(0),
        lambda t: t.outer(t) @ t,
        lambda t: treadle.nn.functional.layer_norm(t, (3,)),
        lambda t: t.cumsum(0),
    ]
    for f in calls:
        assert f(x).dtype is Q and treadle.equal(f(x), f(w).to(Q))
    assert (x == x).all() and x.argmax().item() == 1
    y = x.clone()
    assert y.mul_(2) is y and y.tolist() == [2.0, 5.0, -8.0]
    assert treadle.exp(w, out=y) is y and treadle.equal(y, w.exp().to(Q))
    assert (LOG_EXAMPLE() * LOG_EXAMPLE()).tolist() == [4.0, 0.25]


def LOG_EXAMPLE() -> Tensor:
    return treadle.tensor([2.0, 0.5], dtype=LOG)


def test_promotion() -> None:
    promote = treadle.promote_types
    assert promote(Q, treadle.int64) is Q and promote(treadle.bool, Q) is Q
    assert promote(Q, treadle.float16) is treadle.float32
    assert promote(Q, treadle.float64) is treadle.float64
    assert promote(Q, treadle.float8_e5m2) is treadle.float32
    assert promote(Q, LOG) is treadle.float64 and promote(LOG, treadle.float32) is treadle.float64
    assert promote(Q, treadle.complex64) is treadle.complex64
    x = treadle.ones(2, dtype=Q)
    assert (x + treadle.ones(2)).dtype is treadle.float32 and (x + 1.5).dtype is Q
    assert (x + treadle.tensor(1.5)).dtype is Q and (x + LOG_EXAMPLE()).dtype is treadle.float64


def test_gradients() -> None:
    w = treadle.tensor([1.0, 2.0], requires_grad=True)
    (w.to(Q) * treadle.tensor([3.0, 0.5], dtype=Q)).sum().backward()
    assert w.grad is not None and w.grad.tolist() == [3.0, 0.5]
    x = treadle.tensor([1.0, 2.0], dtype=Q, requires_grad=True)
    (x * x).sum().backward()
    assert x.grad is not None and x.grad.dtype is Q and x.grad.tolist() == [2.0, 4.0]


def test_several_threads() -> None:
    x, wrong = treadle.arange(100.0).to(Q), []

    def work() -> None:
        for _ in range(20):
            if (x + x).sum().item() != 127.99609375 or (x * 0.5)[2].item() != 1.0:
                wrong.append(x)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


class _Conversions:
    """Conversions that a test exchanges."""

    widen: Callable[[Tensor], Any] = staticmethod(lambda bits: bits.to(treadle.float32))
    narrow: Callable[[Tensor], Any] = staticmethod(lambda values: values.to(treadle.uint8))


WRONG = treadle.library.register_dtype(
    "test_wrong",
    itemsize=1,
    from_bits=lambda bits: _Conversions.widen(bits),
    to_bits=lambda values: _Conversions.narrow(values),
)


@pytest.mark.parametrize(
    "widen, said",
    [
        (lambda bits: None, "got None"),
        (lambda bits: bits, "got a uint8 tensor of shape (3,) on cpu"),
        (lambda bits: treadle.ones(2), "got a float32 tensor of shape (2,) on cpu"),
        (lambda bits: treadle.ones(3, device="meta"), "got a float32 tensor of shape (3,) on meta"),
    ],
)
def test_conversions_that_are_wrong(widen: Any, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    x = treadle.tensor([1.0, 2.0, 3.0], dtype=WRONG)
    before = x.view(treadle.uint8).tolist()
    monkeypatch.setattr(_Conversions, "widen", widen)
    text = "test_wrong.from_bits: expected a conversion to a float32 tensor of shape (3,), " + said
    assert error_of(lambda: x.to(treadle.float32)).endswith(text)
    assert error_of(lambda: x.add_(1)).endswith(text)
    assert x.view(treadle.uint8).tolist() == before


def test_errors_of_conversions_and_conversions_that_use_the_dtype(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    x = treadle.tensor([1.0, 2.0], dtype=WRONG)

    def raises(values: Tensor) -> Tensor:
        raise KeyError("no bits")

    monkeypatch.setattr(_Conversions, "narrow", raises)
    with pytest.raises(KeyError, match="no bits"):
        x.exp()
    monkeypatch.setattr(_Conversions, "widen", lambda bits: bits.view(WRONG).to(treadle.float32))
    with pytest.raises(RecursionError):
        x.exp()
    # A result that is not contiguous, of an operator with a history.
    monkeypatch.undo()
    leaf = treadle.ones(2, 2, requires_grad=True)
    monkeypatch.setattr(_Conversions, "widen", lambda bits: leaf[:, 0] * 7)
    assert x.to(treadle.float32).tolist() == [7.0, 7.0]


@pytest.mark.parametrize(
    "name, changed, said",
    [
        (
            "float32",
            {},
            "ValueError: register_dtype: expected a name that no dtype has, got 'float32'",
        ),
        ("long", {}, "ValueError: register_dtype: expected a name that no dtype has, got 'long'"),
        (
            "test_q8_8",
            {},
            "ValueError: register_dtype: expected a name that no dtype has, got 'test_q8_8'",
        ),
        (
            "a-b",
            {},
            "ValueError: register_dtype: expected a name of letters, digits and _, got 'a-b'",
        ),
        (
            "x",
            {"itemsize": 3},
            "ValueError: register_dtype: expected an itemsize of 1, 2, 4 or 8 bytes, got 3",
        ),
        (
            "x",
            {"computed": treadle.int64},
            "ValueError: register_dtype: expected to compute in float32 or float64, got int64",
        ),
        (
            "x",
            {"computed": 3},
            "TypeError: register_dtype: expected a dtype for computed, got int",
        ),
        (
            "x",
            {"to_bits": 3},
            "TypeError: register_dtype: expected a function for to_bits, got int",
        ),
    ],
)
def test_dtypes_that_are_refused(name: str, changed: dict, said: str) -> None:
    given = {"itemsize": 2, "from_bits": _from_bits, "to_bits": _to_bits, **changed}
    assert error_of(lambda: treadle.library.register_dtype(name, **given)) == said


def test_as_many_dtypes_as_there_is_room_for() -> None:
    program = (
        "import treadle\n"
        "for i in range(9):\n"
        "    treadle.library.register_dtype(f'd{i}', itemsize=4, from_bits=id, to_bits=id)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stderr.splitlines()[-1] == (
        "RuntimeError: register_dtype: expected at most 8 dtypes of 4 bytes, got one more, 'd8'"
    )
