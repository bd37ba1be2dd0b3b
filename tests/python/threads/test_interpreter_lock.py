"""Other threads run Python code while the library copies and while a device keeps a caller waiting;
a thread that is at work when the program ends does no harm.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import copy
import ctypes
import io
import os
import pickle
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any, Callable

import numpy as np
import pytest

import plugins
import treadle
from plugins import alone

# ---- large copies --------------------------------------------------------------------------------

LARGE = 3_000_000


def ticks_during(call: Callable[[], Any]) -> int:
    """How often another thread got to run Python code while `call` ran."""
    ticks, running, started = 0, True, threading.Event()

    def tick() -> None:
        nonlocal ticks
        while running:
            ticks += 1
            started.set()
            time.sleep(0)

    interval = sys.getswitchinterval()
    # Far longer than the call: the thread runs only where the call lets it.
    sys.setswitchinterval(30)
    thread = threading.Thread(target=tick)
    try:
        thread.start()
        started.wait()
        before = ticks
        call()
        return ticks - before
    finally:
        running = False
        sys.setswitchinterval(interval)
        thread.join()


def lets_others_run(call: Callable[[], Any]) -> bool:
    """On a machine with much to do, the other thread may come too late for one call."""
    return any(ticks_during(call) for _ in range(20))


flat = treadle.zeros(LARGE)
array = np.zeros(LARGE, dtype=np.float32)
COPIES: dict[str, Callable[[], Any]] = {
    "to(dtype)": lambda: flat.to(treadle.float64),
    "to(copy)": lambda: flat.to(treadle.float32, copy=True),
    "to(other)": lambda: flat.to(flat.new_empty(0, dtype=treadle.int32)),
    "double": lambda: flat.double(),
    "half": lambda: flat.half(),
    "type": lambda: flat.type(treadle.int16),
    "tensor(ndarray)": lambda: treadle.tensor(array),
    "tensor(ndarray, dtype)": lambda: treadle.tensor(array, dtype=treadle.float64),
    "as_tensor(ndarray, dtype)": lambda: treadle.as_tensor(array, dtype=treadle.float64),
    "asarray(copy)": lambda: treadle.asarray(array, copy=True),
    "tensor([ndarray])": lambda: treadle.tensor([array, array]),
    "new_tensor": lambda: flat.new_tensor(array),
    "clone": lambda: flat.clone(),
    "copy_": lambda: flat.copy_(flat + 1),
    "cat": lambda: treadle.cat([flat, flat]),
    "stack": lambda: treadle.stack([flat, flat]),
    "contiguous": lambda: flat.view(2000, -1).t().contiguous(),
    "index": lambda: flat[flat > 0],
    "index_put": lambda: flat.clone().__setitem__(flat > 0, 1),
    "fill": lambda: flat.__setitem__(slice(None), 0),
    "dlpack copy": lambda: flat.__dlpack__(copy=True),
    "add": lambda: flat + flat,
    "backward": lambda: flat.clone().requires_grad_().exp().sum().backward(),
    "Parameter.double": lambda: treadle.nn.Linear(2000, 2000).double(),
}


@pytest.mark.parametrize("name", COPIES)
def test_a_large_copy_lets_other_threads_run(name: str) -> None:
    assert lets_others_run(COPIES[name])


def test_saving_and_loading_let_other_threads_run() -> None:
    file = io.BytesIO()
    assert lets_others_run(lambda: treadle.save(flat, file))
    assert lets_others_run(lambda: (file.seek(0), treadle.load(file)))


# ---- devices -------------------------------------------------------------------------------------

# While `blocked` is set, whatever the backend is asked to do waits; but not for ever, so that a
# test that fails ends. Waits in vain are counted.
BLOCKING = """
#include <stdatomic.h>
#include <threads.h>

TREADLE_PLUGIN_EXPORT _Atomic int32_t blocked = 0, waiting = 0, in_vain = 0;

static void wait_here(void) {
  const struct timespec pause = {0, 1000000};
  if (!blocked) return;
  ++waiting;
  for (int i = 0; blocked && i < 5000; ++i) thrd_sleep(&pause, 0);
  if (blocked) ++in_vain;
  --waiting;
}
static treadle_status allocate(void* c, int32_t index, size_t nbytes, void** storage) {
  (void)c, (void)index;
  wait_here();
  *storage = malloc(nbytes);
  return *storage ? TREADLE_OK : TREADLE_OUT_OF_MEMORY;
}
static void deallocate(void* c, int32_t index, void* storage, size_t nbytes) {
  (void)c, (void)index, (void)nbytes;
  wait_here();
  free(storage);
}
static treadle_status copy(void* c, treadle_place to, treadle_place from, size_t nbytes,
                           int32_t non_blocking) {
  (void)c, (void)non_blocking;
  wait_here();
  memmove((char*)to.storage + to.offset, (char*)from.storage + from.offset, nbytes);
  return TREADLE_OK;
}
static treadle_status synchronize(void* c, int32_t index) {
  (void)c, (void)index;
  wait_here();
  return TREADLE_OK;
}
"""
START = """
  treadle_backend b;
  memset(&b, 0, sizeof b);
  b.size = sizeof b;
  b.flags = TREADLE_HOST_VISIBLE;
  b.name = "slow";
  b.allocate = &allocate;
  b.deallocate = &deallocate;
  b.copy = &copy;
  b.synchronize = &synchronize;
  treadle_device_type type;
  return api->register_backend(&b, &type);
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> str:
    source = plugins.c_plugin("slow", START, before=BLOCKING)
    return plugins.build(tmp_path_factory.mktemp("slow"), "slow", source)


def device_calls() -> dict[str, Callable[[], Any]]:
    x = treadle.ones(3, device="slow")
    wide = treadle.ones(4, 4, device="slow")
    index = treadle.tensor([0, 1]).to("slow")
    leaf = treadle.ones(3, device="slow").requires_grad_()
    here = treadle.ones(3)
    dying = [treadle.ones(3, device="slow") for _ in range(3)]
    return {
        "cpu": lambda: x.cpu(),
        "to(device)": lambda: here.to("slow"),
        "to(cpu)": lambda: x.to("cpu"),
        "item": lambda: x[0].item(),
        "float": lambda: float(x[0]),
        "int": lambda: int(x[0]),
        "bool": lambda: bool(x[0]),
        "tolist": lambda: x.tolist(),
        "numpy": lambda: x.numpy(force=True),
        "repr": lambda: repr(x),
        "format": lambda: f"{x[0]:.1f}",
        "add": lambda: x + x,
        "add a number": lambda: x + 1,
        "add in place": lambda: x.add_(1),
        "out": lambda: treadle.add(here.to("slow"), 1, out=x),
        "sum": lambda: x.sum(),
        "mm": lambda: wide @ wide,
        "max": lambda: wide.max(1),
        "zeros": lambda: treadle.zeros(3, device="slow"),
        "empty": lambda: treadle.empty(3, device="slow"),
        "zeros_like": lambda: treadle.zeros_like(x),
        "tensor": lambda: treadle.tensor([1.0, 2.0], device="slow"),
        "as_tensor": lambda: treadle.as_tensor(np.ones(2), device="slow"),
        "new_tensor": lambda: x.new_tensor([1.0]),
        "new_zeros": lambda: x.new_zeros(3),
        "default device": lambda: _in_default_device(),
        "index": lambda: x[index],
        "index with a mask": lambda: x[x > 0],
        "index_put": lambda: x.__setitem__(index, 2.0),
        "fill": lambda: x.__setitem__(0, 2.0),
        "clone": lambda: x.clone(),
        "contiguous": lambda: wide.t().contiguous(),
        "cat": lambda: treadle.cat([x, x]),
        "double": lambda: x.double(),
        "equal": lambda: treadle.equal(x, x),
        "backward": lambda: (leaf * 2).sum().backward(),
        "deepcopy": lambda: copy.deepcopy(x),
        "pickle": lambda: pickle.dumps(x),
        "save": lambda: treadle.save(x, io.BytesIO()),
        "Module.to": lambda: treadle.nn.Linear(2, 2).to("slow"),
        "synchronize": lambda: treadle.slow.synchronize(),
        "deallocate": lambda: dying.pop(),
        "deallocate of a list": lambda: dying.clear(),
        "out of a function": lambda: treadle.rand(3, device="slow"),
    }


def _in_default_device() -> treadle.Tensor:
    with treadle.device("slow"):
        return treadle.ones(3)


@alone
def test_a_device_that_blocks_holds_up_its_caller_alone(library: str) -> None:
    treadle.load_backend(library)
    plugin = ctypes.PyDLL(library)  # reading a number does not let go of the interpreter lock
    blocked, waiting, in_vain = (
        ctypes.c_int32.in_dll(plugin, name) for name in ("blocked", "waiting", "in_vain")
    )
    calls = device_calls()
    for call in list(calls.values())[:-3]:
        call()  # what is made at a first use
    failed = []
    for name, call in calls.items():
        errors: list = []

        def run() -> None:
            try:
                call()
            except BaseException as error:
                errors.append(error)

        in_vain.value = 0
        blocked.value = 1
        thread = threading.Thread(target=run)
        thread.start()
        reached = False
        while thread.is_alive() and not reached:
            time.sleep(0.001)
            reached = waiting.value > 0
        # The thread waits in the device, and this one is here.
        if not reached:
            failed.append(f"{name}: the device was not asked")
        blocked.value = 0
        thread.join()
        if in_vain.value or errors:
            failed.append(f"{name}: others stood still, {in_vain.value} times {errors}")
    assert not failed, "\n".join(failed)


# ---- the end of the program ----------------------------------------------------------------------

AT_WORK = {
    "operator": "x.exp().log().sum()",
    "copy": "x.double()",
    "backward": "(leaf * leaf).exp().sum().backward()",
    "hook": "(hooked * 2).sum().backward()",
    "custom function": "F.apply(leaf).sum().backward()",
    "hook that dies": "y = leaf * 2; y.register_hook(Dies()); y.sum().backward(); del y",
    "override": "(own + 1).sum()",
    "dispatch mode": "with Mode(): (x + 1).sum()",
    "saved tensors": "with saved_tensors_hooks(Dies(), Dies()): (leaf * leaf).sum().backward()",
    "array that dies": "treadle.from_numpy(array.view(Array)) + 1",
    "dying": "[treadle.nn.Parameter(x) for _ in range(3)]",
    "numpy": "treadle.from_numpy(x.numpy()).exp()",
}


@pytest.mark.parametrize("name", AT_WORK)
def test_a_daemon_thread_may_be_at_work_at_the_end(name: str) -> None:
    program = f"""
import sys, threading, time, numpy as np, treadle
from treadle.autograd.graph import saved_tensors_hooks
from treadle.utils._python_dispatch import TorchDispatchMode
sys.setswitchinterval(1e-5)
x = treadle.ones(400_000)
leaf = x.clone().requires_grad_()
hooked = x.clone().requires_grad_()
hooked.register_hook(lambda grad: grad * 2)
class F(treadle.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.exp()
    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.saved_tensors[0]
class Dies:
    def __call__(self, tensor):
        sum(range(1000))
        return tensor
    def __del__(self):
        sum(range(1000))
class Own(treadle.Tensor):
    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        sum(range(1000))
        return super().__torch_function__(function, types, args, kwargs or {{}})
own = x.as_subclass(Own)
class Mode(TorchDispatchMode):
    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        sum(range(1000))
        return function(*args, **(kwargs or {{}}))
class Array(np.ndarray):
    def __del__(self):
        sum(range(1000))
array = np.ones(4000, np.float32)
started = threading.Barrier(4)
def work():
    started.wait()
    while True:
        {AT_WORK[name]}
for _ in range(3):
    threading.Thread(target=work, daemon=True).start()
started.wait()
time.sleep(0.2)
print("end")
"""
    folder = str(Path(treadle.__file__).absolute().parents[1])
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-c", program],
            capture_output=True,
            text=True,
            timeout=120,
            env={**os.environ, "PYTHONPATH": folder, "OMP_NUM_THREADS": "2"},
        )
        assert (done.returncode, done.stdout, done.stderr) == (0, "end\n", "")
