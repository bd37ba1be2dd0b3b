"""Each part of the library used for the first time by two threads at once.

The objects made at a first use, modules that are imported late above all, must not be made under a
lock that the other thread waits for with the interpreter lock in its hand: such a program stands
still for ever. Each case runs in a process in which nothing was used before.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
import traceback

import pytest

import treadle

CASES = {
    "repr": "repr(x)",
    "str of a subclass": "str(treadle.nn.Parameter(x))",
    "format": "f'{x.sum():.3f}'",
    "add": "x + x",
    "index": "x[1:, None, [0, 1]]",
    "index_put": "x.clone()[x > 0] = 1",
    "compare": "x == x",
    "item": "x.sum().item()",
    "tolist": "x.tolist()",
    "autograd.Variable": "treadle.autograd.Variable(x)",
    "named result": "repr(x.max(dim=1))",
    "named types": "treadle.return_types.max",
    "size": "repr(x.shape), x.stride()",
    "numpy": "x.numpy()",
    "from numpy": "import numpy; treadle.from_numpy(numpy.ones(3)); treadle.tensor(numpy.ones(3))",
    "dlpack": "treadle.from_dlpack(x)",
    "storage": "x.untyped_storage().nbytes()",
    "pickle": "import pickle; pickle.loads(pickle.dumps(x))",
    "deepcopy": "import copy; copy.deepcopy(x)",
    "save": "import io; f = io.BytesIO(); treadle.save({'x': x}, f); f.seek(0); treadle.load(f)",
    "backward": "y = x.clone().requires_grad_(); (y * y).sum().backward()",
    "grad": "y = x.clone().requires_grad_(); treadle.autograd.grad(y.exp().sum(), y)",
    "grad_fn": "repr((x.clone().requires_grad_() * 2).grad_fn.next_functions)",
    "saved values": "dir((x.clone().requires_grad_() ** 2).grad_fn)",
    "tensor hook": """
y = x.clone().requires_grad_()
y.register_hook(lambda g: g * 2)
y.sum().backward()
""",
    "module hook": """
m = treadle.nn.Linear(3, 3)
m.register_full_backward_hook(lambda *a: None)
m(x).sum().backward()
""",
    "custom function": """
class F(treadle.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.exp()
    @staticmethod
    def backward(ctx, g):
        return g * ctx.saved_tensors[0]
F.apply(x.clone().requires_grad_()).sum().backward()
""",
    "saved tensors hooks": """
with treadle.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
    (x.clone().requires_grad_() ** 2).sum().backward()
""",
    "anomaly": """
with treadle.autograd.detect_anomaly(check_nan=True):
    (x.clone().requires_grad_() ** 2).sum().backward()
""",
    "vmap": "treadle.func.vmap(treadle.sin)(x)",
    "func.grad": "treadle.func.grad(lambda y: y.sin().sum())(x)",
    "jvp": "treadle.func.jvp(treadle.sin, (x,), (x,))",
    "autocast": "with treadle.autocast('cpu', dtype=treadle.bfloat16): x @ x",
    "default device": "with treadle.device('cpu'): treadle.ones(2)",
    "override": """
class T(treadle.Tensor):
    pass
y = x.as_subclass(T)
y + y, y.grad, treadle.add(y, x)
""",
    "function mode": """
class M(treadle.overrides.TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))
with M():
    x + x, treadle.max(x)
""",
    "operator by name": "treadle.ops.aten.add.Tensor(x, x)",
    "library": """
lib = treadle.library.Library(f"first{threading.get_ident()}", "DEF")
lib.define("f(Tensor x) -> Tensor")
lib.impl("f", lambda x: x + 1, "CompositeExplicitAutograd")
getattr(treadle.ops, f"first{threading.get_ident()}").f(x)
""",
    "custom_op": """
@treadle.library.custom_op(f"first{threading.get_ident()}::g", mutates_args=())
def g(x: treadle.Tensor) -> treadle.Tensor:
    return x + 1
g.register_autograd(lambda ctx, grad: grad, setup_context=lambda ctx, inputs, output: None)
g(x.clone().requires_grad_()).sum().backward()
""",
    "generator": "g = treadle.Generator(); g.manual_seed(1); treadle.rand(3, generator=g); "
    "treadle.randn(3)",
    "seed": "treadle.manual_seed(0); treadle.initial_seed()",
    "module": "repr(treadle.nn.Sequential(treadle.nn.Linear(3, 3), treadle.nn.ReLU())(x))",
    "optimiser": """
p = treadle.nn.Parameter(x.clone())
p.sum().backward()
treadle.optim.Adam([p]).step()
""",
    "data loader": "list(treadle.utils.data.DataLoader(treadle.utils.data.TensorDataset(x)))",
    "profiler": """
try:
    with treadle.profiler.profile() as p:
        x + x
except RuntimeError as e:
    str(e)  # the other thread records
""",
    "distribution": "treadle.distributions.Normal(0.0, 1.0).sample()",
    "checkpoint": """
import treadle.utils.checkpoint
y = x.clone().requires_grad_()
treadle.utils.checkpoint.checkpoint(lambda y: y.exp(), y, use_reentrant=False).sum().backward()
""",
    "linalg": "treadle.linalg.svd(x); treadle.linalg.inv(x @ x.T + treadle.eye(3))",
    "fft": "treadle.fft.fft(x)",
    "convolution": "treadle.nn.functional.conv2d(x[None, None], x[None, None])",
    "sparse": "x.to_sparse()",
    "explain": "import treadle._introspection.explain",
    "refused call": """
try:
    treadle.add(x, 'a')
except TypeError as e:
    str(e)
""",
    "refused shape": """
try:
    x @ treadle.ones(5)
except RuntimeError as e:
    str(e)
""",
    "no such device": """
try:
    x.to('nothing')
except (RuntimeError, ValueError) as e:
    str(e)
""",
}
LIMIT = 20  # seconds; a case takes a few milliseconds


def in_two_threads(name: str, report: int) -> None:
    """Run a case in two threads behind a barrier, and write what they raised."""
    sys.setswitchinterval(1e-6)
    code = compile(CASES[name].strip(), name, "exec")
    barrier = threading.Barrier(2)
    failed: list[str] = []
    x = treadle.ones(3, 3)

    def use() -> None:
        names = {"treadle": treadle, "threading": threading, "x": x}
        barrier.wait()
        try:
            exec(code, names)
        except BaseException:
            failed.append(traceback.format_exc())

    threads = [threading.Thread(target=use) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    os.write(report, "\n".join(failed).encode()[:60000])


def outcome(name: str) -> str:
    """The report of a forked process on a case: "" where it is well."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.close(read)
            in_two_threads(name, write)
            code = 0
        finally:
            os._exit(code)
    os.close(write)
    end = time.monotonic() + LIMIT
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            with os.fdopen(read, "rb") as text:
                said = text.read().decode()
            return said or ("" if status == 0 else f"the process ended with status {status}")
        time.sleep(0.005)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    os.close(read)
    return f"both threads stood still for {LIMIT} s"


def main() -> None:
    """Print what came of each case. Only the forked processes use the library."""
    print(json.dumps({name: outcome(name) for name in CASES}))


@pytest.fixture(scope="module")
def outcomes() -> dict:
    import plugins

    folder = os.path.dirname(os.path.abspath(__file__))
    return json.loads(plugins.run_program("import test_first_uses as t; t.main()", search=[folder]))


@pytest.mark.parametrize("name", CASES)
def test_two_threads_may_use_it_first(name: str, outcomes: dict) -> None:
    assert outcomes[name] == ""
