"""Threads that take memory or geometry away from under an operator of another thread.

Each case runs in a process of its own: where it fails, it ends the process.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

PROGRAM = """
import threading, time
import treadle

treadle.set_num_threads(1)
N = 4_000_000
other = treadle.ones(N)
shared = {{"x": treadle.full((N,), 2.0)}}
x = shared["x"]
over = threading.Event()
seen, refused = [], []

def read():
    while not over.is_set():
        try:
            {read}
        except RuntimeError as error:
            refused.append(str(error))
    seen.append(True)

readers = [threading.Thread(target=read) for _ in range(2)]
for reader in readers:
    reader.start()
end = time.monotonic() + 1.5
count = 0
while time.monotonic() < end:
    time.sleep(0.002)
    {change}
    count += 1
over.set()
for reader in readers:
    reader.join()
assert len(seen) == 2 and count > 0
for text in refused:
    assert "smaller" in text or "shape" in text or "size" in text, text
print("done")
"""

READS = {
    "pointwise": "(x * 2.0 + 1.0).sum()",
    "reduce": "x.sum()",
    "copy": "x.clone()",
    "compare": "(x == other).all()",
}
CHANGES = {
    "storage is emptied": (
        "x.untyped_storage().resize_(0); x.resize_(0); x.resize_(N); x.fill_(2.0)"
    ),
    "resize_": "x.resize_(8); x.resize_(N); x.fill_(2.0)",
    "data": "x.data = treadle.full((16,), 2.0); x.data = treadle.full((N,), 2.0)",
    "set_": "x.set_(treadle.full((16,), 2.0)); x.set_(treadle.full((N,), 2.0))",
    "out grows": "x.data = treadle.empty(0); treadle.add(other, other, out=x)",
    "geometry": "x.data = x.view(2, N // 2); x.t_(); x.data = x.reshape(N)",
    "shared": "x.share_memory_(); x.data = treadle.full((N,), 2.0)",
}


def _run(program: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0 and done.stdout.strip() == "done", (
        done.returncode,
        done.stderr[-2000:],
    )


@pytest.mark.slow
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("read", READS)
def test_no_change_pulls_memory_away_under_an_operator(read: str, change: str) -> None:
    _run(PROGRAM.format(read=READS[read], change=CHANGES[change]))


def test_two_backward_passes_whose_hooks_resize_do_not_wait_for_each_other() -> None:
    _run(
        """
        import threading
        import treadle

        def work():
            for _ in range(20):
                scratch = treadle.zeros(4)
                w = treadle.ones(100_000, requires_grad=True)
                y = w * 2.0
                y.register_hook(lambda g: scratch.resize_(8).numel() and None)
                (y * y).sum().backward()
                assert scratch.numel() == 8

        threads = [threading.Thread(target=work) for _ in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join(60)
            assert not t.is_alive()
        print("done")
        """
    )


def test_a_long_backward_pass_lets_a_resize_of_another_thread_go_between() -> None:
    """A pass of many operators is one call; the other thread need not wait for its end."""
    _run(
        """
        import threading, time
        import treadle

        treadle.set_num_threads(1)
        w = treadle.ones(200_000, requires_grad=True)
        y = w
        for _ in range(500):
            y = y.sin()
        total = y.sum()
        ended = []
        def backward():
            total.backward()
            ended.append(time.monotonic())
        thread = threading.Thread(target=backward)
        thread.start()
        waits = []
        scratch = treadle.zeros(4)
        while thread.is_alive():
            begin = time.monotonic()
            scratch.resize_(8 if scratch.numel() == 4 else 4)
            waits.append((begin, time.monotonic()))
            time.sleep(0.005)
        assert sum(end < ended[0] for begin, end in waits) >= 3, len(waits)
        print("done")
        """
    )
