"""Memory that somebody looks at is not resized under him, and what a resize cut off is not used."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import copy
import gc
import pickle
import re
import subprocess
import sys
import textwrap
from typing import Any, Callable

import numpy as np
import pytest

import treadle
from treadle_testing.cases import dtypes_of, has_samples, in_suite, samples_of
from treadle_testing.catalogue import Operator, operators
from treadle_testing.sample import map_arrays, to_tensor

# ---- who holds memory --------------------------------------------------------------------------

EXPORTS: dict[str, Callable[[treadle.Tensor], Any]] = {
    "numpy": lambda x: x.numpy(),
    "numpy of a view": lambda x: x[3:5].numpy(),
    "a view of numpy": lambda x: x.numpy()[2:],
    "asarray": np.asarray,
    "asarray of a detached tensor": lambda x: np.asarray(x.detach()),
    "memoryview": lambda x: memoryview(x.untyped_storage()),
    "a part of a memoryview": lambda x: memoryview(x.untyped_storage())[4:8],
    "frombuffer of NumPy": lambda x: np.frombuffer(x.untyped_storage(), np.float32),
    "frombuffer": lambda x: treadle.frombuffer(x.untyped_storage(), dtype=treadle.float32),
    "from_numpy of numpy": lambda x: treadle.from_numpy(x.numpy()),
    "NumPy's from_dlpack": np.from_dlpack,
    "from_dlpack": treadle.from_dlpack,
    "a capsule": lambda x: x.__dlpack__(),
    "a capsule of version 1": lambda x: x.__dlpack__(max_version=(1, 0)),
}
HELD = r"(1 buffer \(a NumPy array or memoryview\)|1 DLPack capsule) holds"
RESIZES: dict[str, tuple[Callable[[treadle.Tensor], Any], str]] = {
    "resize_": (lambda x: x.resize_(1000), "^resize_: expected a storage that can be resized"),
    "resize_ of a view": (lambda x: x[2:].resize_(1000), "^resize_: expected a storage that can"),
    "resize_as_": (lambda x: x.resize_as_(treadle.zeros(1000)), "expected a storage that can be"),
    "a smaller storage": (lambda x: x.untyped_storage().resize_(0), "^resize_: expected a storage"),
    "a larger storage": (lambda x: x.untyped_storage().resize_(99), "^resize_: expected a storage"),
    "out= of a pointwise operator": (
        lambda x: treadle.add(treadle.ones(1000), 1, out=x),
        r"^add: expected an out of shape \(1000,\), for its storage cannot grow, got \(10,\)",
    ),
    "out= of a kernel": (
        lambda x: treadle.cumsum(treadle.ones(1000), 0, out=x),
        r"^cumsum: expected an out of shape \(1000,\), for its storage cannot grow, got \(10,\)",
    ),
    "out= of a reduction": (
        lambda x: treadle.sum(treadle.ones(1000, 2), 1, out=x),
        r"^sum: expected an out of shape \(1000,\), for its storage cannot grow, got \(10,\)",
    ),
    "out= of what is made of others": (
        lambda x: treadle.linspace(0, 1, 1000, out=x),
        r"^linspace: expected an out of shape \(1000,\), for its storage cannot grow",
    ),
}


@pytest.mark.parametrize("export", EXPORTS)
@pytest.mark.parametrize("resize", RESIZES)
def test_memory_that_is_held_is_not_resized(export: str, resize: str) -> None:
    x = treadle.arange(10.0)
    address, held = x.data_ptr(), EXPORTS[export](x)
    act, message = RESIZES[resize]
    with pytest.raises(RuntimeError, match=message) as info:
        act(x)
    assert re.search(HELD, str(info.value))
    assert x.data_ptr() == address and x.shape == (10,) and x.tolist() == list(range(10))
    del held, info
    gc.collect()
    act(x)


def test_the_message_counts_the_holders() -> None:
    x = treadle.arange(4.0)
    held = [x.numpy(), memoryview(x.untyped_storage()), np.from_dlpack(x)]
    with pytest.raises(RuntimeError) as info:
        x.resize_(100)
    assert str(info.value) == (
        "resize_: expected a storage that can be resized, got one that 2 buffers (NumPy arrays or "
        "memoryviews) and 1 DLPack capsule hold"
    )
    held[1].release()
    held[1:] = []
    with pytest.raises(RuntimeError) as info:
        x.untyped_storage().resize_(0)
    assert str(info.value) == (
        "resize_: expected a storage that can be resized, got one that 1 buffer (a NumPy array or "
        "memoryview) holds"
    )


def test_memory_of_others_says_whose_it_is() -> None:
    x = treadle.from_numpy(np.zeros(4))
    with pytest.raises(RuntimeError, match="got one over memory of another owner$"):
        x.untyped_storage().resize_(0)
    shared = treadle.zeros(4).share_memory_()
    with pytest.raises(RuntimeError, match="got one in memory that processes share$"):
        shared.resize_(100)


@pytest.mark.parametrize("export", EXPORTS)
def test_a_tensor_that_gets_other_memory_leaves_the_held_to_its_holder(export: str) -> None:
    for give in (
        lambda x: x.set_(treadle.zeros(1000)),
        lambda x: setattr(x, "data", treadle.zeros(1000)),
    ):
        x = treadle.full((100_000,), 7.0)
        held = EXPORTS[export](x)
        if export.startswith("a capsule"):
            held = treadle.from_dlpack(held)
        give(x)
        gc.collect()
        others = [treadle.full((100_000,), 3.0) for _ in range(8)]
        values = np.frombuffer(held, np.uint8) if isinstance(held, memoryview) else np.asarray(held)
        assert (np.ascontiguousarray(values).view(np.float32) == 7).all()
        del others


def test_resizing_within_the_memory_is_no_matter() -> None:
    x = treadle.arange(10.0)
    n = x.numpy()
    assert x.resize_(5).tolist() == [0, 1, 2, 3, 4]
    x.resize_(10)
    assert treadle.add(treadle.ones(4), 1, out=x) is x and x.shape == (4,)
    assert n.tolist() == [2, 2, 2, 2, 4, 5, 6, 7, 8, 9]


# ---- what a resize cut off -----------------------------------------------------------------------

CUT = "elements are in its storage|view inside its storage"


def cut(t: treadle.Tensor) -> treadle.Tensor:
    """The tensor over a storage that became too small for it."""
    t.untyped_storage().resize_(0)
    return t


def cut_view() -> treadle.Tensor:
    x = treadle.arange(10.0)
    y = x[5:]
    x.untyped_storage().resize_(16)
    return y


USES: dict[str, Callable[[treadle.Tensor], Any]] = {
    "sum": lambda y: y.sum(),
    "add": lambda y: y + 1,
    "add_": lambda y: y.add_(1),
    "add_ of it": lambda y: treadle.zeros(5).add_(y),
    "out": lambda y: treadle.add(treadle.ones(5), 1, out=y),
    "copy_": lambda y: y.copy_(treadle.zeros(5)),
    "copy_ of it": lambda y: treadle.zeros(5).copy_(y),
    "clone": lambda y: y.clone(),
    "cat": lambda y: treadle.cat([treadle.ones(3), y]),
    "stack": lambda y: treadle.stack([y, y]),
    "matmul": lambda y: treadle.ones(5, 5) @ y,
    "mm": lambda y: y.reshape(1, 5) @ treadle.ones(5, 2),
    "conv1d": lambda y: treadle.conv1d(y.view(1, 1, 5), treadle.ones(1, 1, 2)),
    "a view": lambda y: y[1:],
    "a view of another dtype": lambda y: y.view(treadle.int32),
    "an index": lambda y: y[treadle.tensor([0, 1])],
    "setting": lambda y: y.__setitem__(0, 1.0),
    "scatter_": lambda y: y.scatter_(0, treadle.tensor([0]), 1.0),
    "gather": lambda y: treadle.gather(y, 0, treadle.tensor([0])),
    "item": lambda y: y[0].item(),
    "tolist": lambda y: y.tolist(),
    "repr": repr,
    "numpy": lambda y: y.numpy(),
    "array": np.array,
    "dlpack": lambda y: y.__dlpack__(),
    "double": lambda y: y.double(),
    "sort": lambda y: y.sort(),
    "fill_": lambda y: y.fill_(1),
    "zero_": lambda y: y.zero_(),
    "normal_": lambda y: y.normal_(),
    "a list in place": lambda y: treadle._C._foreach_add_([y], 1.0),
    "pickle": pickle.dumps,
    "deepcopy": copy.deepcopy,
    "bool": lambda y: bool((y > 1).all()),
    "fft": lambda y: treadle.fft.fft(y),
    "unique": lambda y: treadle.unique(y),
    "equal": lambda y: treadle.equal(y, treadle.ones(5)),
}


@pytest.mark.parametrize("use", USES)
def test_a_tensor_that_a_resize_cut_off_raises_on_use(use: str) -> None:
    with pytest.raises(RuntimeError, match=CUT):
        USES[use](cut_view())


def test_a_tensor_that_a_resize_cut_off_can_be_asked_for_its_shape() -> None:
    y = cut_view()
    assert y.shape == (5,) and y.stride() == (1,) and y.data_ptr() == 0
    assert treadle.empty_like(y).shape == (5,)
    assert y.set_(treadle.zeros(3)).tolist() == [0, 0, 0]


def test_a_storage_that_grows_again_is_good_again() -> None:
    x = treadle.arange(4.0)
    x.untyped_storage().resize_(0)
    x.untyped_storage().resize_(16)
    x.fill_(3)
    assert x.tolist() == [3, 3, 3, 3] and x[1:].sum().item() == 9


@pytest.mark.parametrize("size", [0, 8])
def test_backward_with_a_saved_tensor_that_lost_its_memory_raises(size: int) -> None:
    w = treadle.ones(10, requires_grad=True)
    x = treadle.arange(10.0)
    loss = (w * x).sum()
    x.untyped_storage().resize_(size)
    with pytest.raises(RuntimeError, match=CUT):
        loss.backward()


def test_an_optimiser_over_cut_off_parameters_raises() -> None:
    for fused in (False, True):
        p = treadle.nn.Parameter(treadle.ones(10))
        p.grad = treadle.ones(10)
        optimiser = treadle.optim.SGD([p], lr=1.0, fused=fused)
        p.data.untyped_storage().resize_(0)
        with pytest.raises(RuntimeError, match=CUT):
            optimiser.step()


WITH_SAMPLES = [o for o in operators() if in_suite(o) and has_samples(o)]
READS = ("pointwise", "reduce")


@pytest.mark.parametrize("op", WITH_SAMPLES, ids=repr)
def test_no_operator_reads_or_writes_what_was_cut_off(op: Operator) -> None:
    """An exception, or no look at the elements; the process would not survive another outcome."""
    dtype = next((d for d in ("float32", "int64", "complex64") if d in dtypes_of(op)), None)
    dtype = dtype or dtypes_of(op)[0]
    tried = 0
    for sample in samples_of(op, dtype):
        makes = lambda a: to_tensor(a, dtype)  # noqa: E731
        for i, a in enumerate(sample.args):
            if not isinstance(a, np.ndarray) or a.size == 0:
                continue
            args = map_arrays(list(sample.args), makes)
            kwargs = {k: map_arrays(v, makes) for k, v in sample.kwargs.items()}
            args[i] = cut(args[i])
            tried += 1
            if op.kind in READS:
                with pytest.raises(RuntimeError, match=CUT):
                    op.function(*args, **kwargs)
                continue
            try:
                op.function(*args, **kwargs)
            except RuntimeError as error:
                assert "storage" in str(error) or not str(error).startswith("internal")
        if tried >= 4:
            return


# ---- what dies is not handed out -----------------------------------------------------------------


def run_alone(program: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr[-2000:]


def test_a_weak_reference_never_finds_a_tensor_that_dies() -> None:
    """The tensor dies on a thread of backward, which waits for the lock that this thread has."""
    run_alone(
        """
        import sys, threading, time, weakref
        import treadle as torch
        sys.setswitchinterval(1e-6)
        w = torch.ones(8, requires_grad=True)
        current, wrong, stop = [None], [], [False]
        def follow():
            while not stop[0]:
                found = current[0] and current[0]()
                if found is not None:
                    try:
                        if tuple(found.shape) != (8,) or float(found.sum()) != 8 or found.tag != 1:
                            wrong.append("another value")
                    except Exception as error:
                        wrong.append(repr(error))
                found = None
        thread = threading.Thread(target=follow)
        thread.start()
        end = time.monotonic() + 4
        while time.monotonic() < end and not wrong:
            t = torch.ones(8)
            t.tag = 1
            y = (t * w).sum()
            current[0] = weakref.ref(t)
            del t
            y.backward()
            del y
        stop[0] = True
        thread.join()
        assert not wrong, wrong[:3]
        """
    )


def test_a_retained_gradient_never_finds_a_tensor_that_dies() -> None:
    """The graph knows the tensor for its gradient, while another thread lets go of it."""
    run_alone(
        """
        import sys, threading, time
        import treadle as torch
        sys.setswitchinterval(1e-6)
        w = torch.ones(8, requires_grad=True)
        current, wrong, stop = [None], [], [False]
        def backward():
            while not stop[0]:
                if current[0] is not None:
                    x, z = current[0]
                    try:
                        (grad,) = torch.autograd.grad(z, x, retain_graph=True)
                        if grad.tolist() != [6] * 8:
                            wrong.append("another value")
                        z.backward(retain_graph=True)
                    except Exception as error:
                        wrong.append(repr(error))
        thread = threading.Thread(target=backward)
        thread.start()
        end = time.monotonic() + 4
        while time.monotonic() < end and not wrong:
            x = torch.ones(8, requires_grad=True)
            y = x * 2
            y.retain_grad()
            y.tag = 1
            z, last = (y * 3).sum(), (y * w).sum()
            current[0] = x, z
            del y
            torch.autograd.grad(last, w)  # which saved y, and lets go of it
            del last
        stop[0] = True
        thread.join()
        assert not wrong, wrong[:3]
        """
    )


def test_shared_memory_is_found_whole_or_opened_anew() -> None:
    run_alone(
        """
        import os, threading, time
        import treadle as torch
        first = torch.full((64,), 5, dtype=torch.uint8).share_memory_()
        fd, size = first.untyped_storage()._share_fd_cpu_()
        fd = os.dup(fd)
        del first
        Storage, wrong = type(torch.zeros(1).untyped_storage()), []
        end = time.monotonic() + 3
        def work():
            while time.monotonic() < end and not wrong:
                s = Storage._new_shared_fd_cpu(os.dup(fd), size)
                if not s.is_shared() or bytes(s) != bytes([5]) * 64:
                    wrong.append(s.is_shared())
        threads = [threading.Thread(target=work) for _ in range(3)]
        [t.start() for t in threads]
        [t.join() for t in threads]
        assert not wrong
        """
    )
