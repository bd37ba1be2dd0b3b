"""Kernels and fallbacks in Python for the device of a backend from outside.

The backend is a plug-in of memory and copies alone. It stays for as long as the process, so each
test is a program of its own.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from pathlib import Path

import pytest

import plugins

BEGIN = """
import sys
import treadle
from treadle.library import custom_op, Library
treadle.load_backend(sys.argv[1])
def cpu(x):
    return x.to("cpu")
x = treadle.tensor([1.0, 2.0]).to("pydev")
"""


@pytest.fixture(scope="module")
def backend(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The path of a plug-in with a device `pydev`."""
    start = """
      treadle_backend b = backend_named("pydev");
      treadle_device_type type;
      return api->register_backend(&b, &type);
    """
    text = plugins.c_plugin("pydev", start, before=plugins.C_BACKEND)
    folder: Path = tmp_path_factory.mktemp("pydev")
    return plugins.build(folder, "pydev", text)


def printed(backend: str, program: str) -> list[str]:
    return plugins.run_program(BEGIN + program, backend).splitlines()


def test_kernels_of_the_library_s_own_operators(backend: str) -> None:
    """The forms of an operator share the kernel; without it the fallback answers again."""
    program = """
def add(x, y, *, alpha=1):
    return (cpu(x) + cpu(y) * alpha + 100).to("pydev")
kernels = Library("aten", "IMPL", "pydev")
kernels.impl("add.Tensor", add)
kernels.impl("mm", lambda a, b: (cpu(a) @ cpu(b) + 100).to("pydev"))
kernels.impl("nonzero", lambda a: cpu(a).nonzero().to("pydev") + 100)
print((x + x).tolist(), (x + x).device)
print(treadle.add(x, x, alpha=2).tolist())
y = x.clone()
y += x
print(y.tolist())
out = treadle.empty(0, device="pydev")
treadle.add(x, x, out=out)
print(out.tolist())
m = treadle.eye(2).to("pydev")
print((m @ m).tolist())
print(treadle.nonzero(x).tolist())
w = x.clone().requires_grad_()
(w + x).sum().backward()
print(w.grad.tolist())
kernels._destroy()
print((x + x).tolist())
"""
    assert printed(backend, program) == [
        "[102.0, 104.0] pydev:0",
        "[103.0, 106.0]",
        "[102.0, 104.0]",
        "[102.0, 104.0]",
        "[[101.0, 100.0], [100.0, 101.0]]",
        "[[100], [101]]",
        "[1.0, 1.0]",
        "[2.0, 4.0]",
    ]


def test_mistakes(backend: str) -> None:
    program = """
def said(function, *args):
    try:
        function(*args)
    except RuntimeError as error:
        print(str(error).replace(__file__, "FILE") if "__file__" in globals() else error)
kernels = Library("aten", "IMPL")
f = lambda *args: args[0]
said(kernels.impl, "add.Tensor", f, "CPU")
said(kernels.impl, "reshape", f, "pydev")
said(kernels.impl, "add_.Tensor", f, "pydev")
kernels.impl("exp", lambda x: treadle.ones(5), "pydev")
said(treadle.exp, x)
"""
    assert printed(backend, program) == [
        "aten::add.Tensor: expected a device of a backend, for which Python can give kernels, got "
        "cpu",
        "aten::reshape: expected an operator with kernels of its own, got one made of others, "
        "which has none",
        "aten::add_.Tensor: expected the operator's first form, aten::add.Tensor, got another: "
        "they share their kernels",
        "exp: expected the kernel to return a tensor of sizes (2,), got (5,)",
    ]


def test_a_second_kernel_is_rejected(backend: str) -> None:
    program = """
kernels = Library("aten", "IMPL", "pydev")
kernels.impl("exp", lambda x: x)
try:
    kernels.impl("exp", lambda x: x)
except RuntimeError as error:
    print("expected one kernel for pydev" in str(error), "got a second at" in str(error))
print(treadle.exp(x).tolist())
"""
    assert printed(backend, program) == ["True True", "[1.0, 2.0]"]


def test_custom_operators(backend: str) -> None:
    """Kernels for the device, for all, and, where there is neither, the CPU's by the fallback."""
    program = """
@custom_op("pydev_t::everywhere", mutates_args=())
def everywhere(x: treadle.Tensor) -> treadle.Tensor:
    print("called on", x.device.type)
    return x + 1
@custom_op("pydev_t::on_cpu", mutates_args=(), device_types="cpu")
def on_cpu(x: treadle.Tensor) -> treadle.Tensor:
    print("called on", x.device.type)
    return x + 2
print(everywhere(x).tolist())
y = on_cpu(x)
print(y.tolist(), y.device.type)
@everywhere.register_kernel("pydev")
def _(x):
    return x + 10
print(everywhere(x).tolist())
everywhere.register_autograd(lambda ctx, grad: grad * 3)
w = x.clone().requires_grad_()
everywhere(w).sum().backward()
print(w.grad.tolist(), w.grad.device.type)
"""
    assert printed(backend, program) == [
        "called on pydev",
        "[2.0, 3.0]",
        "called on cpu",
        "[3.0, 4.0] pydev",
        "[11.0, 12.0]",
        "[3.0, 3.0] pydev",
    ]


def test_a_fallback_in_python(backend: str) -> None:
    program = """
def fallback(op, *args, **kwargs):
    print(op.name())
    args = [cpu(a) if isinstance(a, treadle.Tensor) else a for a in args]
    return op(*args, **kwargs).to("pydev")
everything = Library("_", "IMPL", "pydev")
everything.fallback(fallback)
print(treadle.exp(x * 0).tolist())
try:
    Library("_", "IMPL").fallback(fallback, "pydev")
except RuntimeError as error:
    print(str(error).rpartition(" at ")[0])
everything._destroy()
print(treadle.exp(x * 0).tolist())
"""
    assert printed(backend, program) == [
        "aten::mul.Scalar",
        "aten::exp",
        "[1.0, 1.0]",
        "fallback: expected one for the device pydev, got a second",
        "[1.0, 1.0]",
    ]
