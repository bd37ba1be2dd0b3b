"""Threads: Python threads that call at once, settings of the thread count, results that do not
depend on either.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import treadle


@pytest.fixture(autouse=True)
def _restore_thread_count():  # type: ignore[no-untyped-def]
    threads = treadle.get_num_threads()
    yield
    treadle.set_num_threads(threads)


def test_thread_count_is_set_and_read() -> None:
    for n in (1, 2, 3, 8):
        treadle.set_num_threads(n)
        assert treadle.get_num_threads() == n


@pytest.mark.parametrize("n", [0, -1, 2**40, 1.5, "2", None])
def test_a_wrong_thread_count_is_refused(n: object) -> None:
    before = treadle.get_num_threads()
    with pytest.raises((ValueError, TypeError, OverflowError, RuntimeError)):
        treadle.set_num_threads(n)  # type: ignore[arg-type]
    assert treadle.get_num_threads() == before


def test_large_results_have_the_same_bits_at_any_thread_count() -> None:
    """Long enough that every count splits the work in another way, were the split to depend
    on it.
    """
    rng = np.random.default_rng(0)
    x = treadle.from_numpy(rng.standard_normal(300_001).astype(np.float32))
    m = treadle.from_numpy(rng.standard_normal((257, 511)).astype(np.float32))
    images = treadle.from_numpy(rng.standard_normal((5, 3, 33, 31)).astype(np.float32))
    weight = treadle.from_numpy(rng.standard_normal((7, 3, 3, 3)).astype(np.float32))
    narrow = x[:300_000].reshape(-1, 3)
    square = treadle.from_numpy(rng.standard_normal((300, 300)))
    qr, tau = treadle.geqrf(square)
    calls = {
        "geqrf": lambda: treadle.geqrf(square)[0],
        "geqrf of few columns": lambda: treadle.geqrf(narrow)[0],
        "qr": lambda: treadle.linalg.qr(square)[0],
        "ormqr": lambda: treadle.ormqr(qr, tau, square, left=False),
        "householder_product": lambda: treadle.linalg.householder_product(qr, tau),
        "lu": lambda: treadle.linalg.lu_factor(m)[0],
        "cholesky": lambda: treadle.linalg.cholesky(square @ square.t()),
        "ldl": lambda: treadle.linalg.ldl_factor(square + square.t())[0],
        "solve": lambda: treadle.linalg.solve(square, square.t()),
        "solve_triangular": lambda: treadle.linalg.solve_triangular(square, square.t(), upper=True),
        "inv": lambda: treadle.linalg.inv(square),
        "svd": lambda: treadle.linalg.svd(square)[0],
        "lstsq": lambda: treadle.linalg.lstsq(narrow[:, :2], narrow[:, 2:])[0],
        "eigh": lambda: treadle.linalg.eigh(square)[1],
        "sum": lambda: x.sum(),
        "mean": lambda: x.mean(),
        "var": lambda: x.var(),
        "exp": lambda: x.exp(),
        "sum_dim": lambda: m.sum(0),
        "sum_last": lambda: m.sum(1),
        "softmax": lambda: m.softmax(1),
        "cumsum": lambda: x.cumsum(0),
        "mm": lambda: m @ m.t(),
        "conv2d": lambda: treadle.conv2d(images, weight),
        "norm": lambda: x.norm(),
        "sort": lambda: x.sort()[1],
        "prod": lambda: m.prod(1),
        "logsumexp": lambda: m.logsumexp(0),
        "index_add": lambda: treadle.zeros(7).index_add(0, treadle.arange(300_001) % 7, x),
    }
    for name, call in calls.items():
        results = set()
        for n in (1, 2, 3, 8):
            treadle.set_num_threads(n)
            results.add(call().numpy().tobytes())
        assert len(results) == 1, name


def test_python_threads_call_at_once() -> None:
    rng = np.random.default_rng(0)
    data = [rng.standard_normal((120, 80)).astype(np.float32) for _ in range(8)]

    def work(a: np.ndarray) -> np.ndarray:
        x = treadle.from_numpy(a)
        for _ in range(30):
            y = (x @ x.t()).exp().sum(1).log().softmax(0)
        return y.numpy()

    alone = [work(a) for a in data]
    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(work, data))
    for a, b in zip(alone, together):
        assert a.tobytes() == b.tobytes()


def test_python_threads_run_backward_at_once() -> None:
    weight = treadle.randn(20, 20)

    def work(seed: int) -> bytes:
        g = treadle.Generator().manual_seed(seed)
        x = treadle.randn(10, 20, generator=g).requires_grad_()
        for _ in range(10):
            x.grad = None
            ((x @ weight).tanh() ** 2).sum().backward()
        return x.grad.numpy().tobytes()

    alone = [work(s) for s in range(8)]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(work, range(8))) == alone


def test_two_threads_accumulate_into_one_leaf() -> None:
    x = treadle.zeros(1000, requires_grad=True)
    barrier = threading.Barrier(4)

    def work() -> None:
        barrier.wait()
        for _ in range(25):
            (x * 2).sum().backward()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    np.testing.assert_array_equal(x.grad.numpy(), np.full(1000, 200.0))


def test_gradient_mode_belongs_to_the_thread() -> None:
    seen = []

    def work() -> None:
        seen.append(treadle.is_grad_enabled())

    with treadle.no_grad():
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        assert not treadle.is_grad_enabled()
    assert seen == [True]


def test_the_interpreter_runs_during_a_long_call() -> None:
    """The lock of the interpreter is released: another thread counts while a product is
    computed.
    """
    x = treadle.ones(900, 900)
    counts: list[int] = []
    stop = threading.Event()

    def count() -> None:
        n = 0
        while not stop.is_set():
            n += 1
        counts.append(n)

    thread = threading.Thread(target=count)
    thread.start()
    for _ in range(10):
        x @ x
    stop.set()
    thread.join()
    assert counts[0] > 100
