"""Extensions for PyTorch's stable ABI that are refused, with the exact texts; how others are seen
by the rest of the package."""

# SPDX-License-Identifier: Apache-2.0

import ctypes
import os
import subprocess
import sys
from pathlib import Path

import pytest

import treadle
from treadle import _stable_abi

FOLDER = Path(__file__).parent
CASES = "GOOD MISSING CPLUSPLUS TWICE SECOND_DEF SCHEMA KEY OLD OWN KERNELS".split()


@pytest.fixture(scope="module")
def build(tmp_path_factory):
    """A function that compiles a case; gives the file."""
    folder = tmp_path_factory.mktemp("refused")

    def build(case, *flags, name=None):
        target = folder / (name or f"{case.lower()}.so")
        numbers = [f"-D{name}={i}" for i, name in enumerate(CASES)]
        command = ["cc", "-shared", "-fPIC", *numbers, f"-DCASE={case}", *flags]
        command += [str(FOLDER / "stable_abi_bad.c"), "-o", str(target)]
        command += ["-Wl,--no-as-needed", f"{_stable_abi.FOLDER}/libtorch.so"]
        command += [f"{_stable_abi.FOLDER}/libtorch_cpu.so"]
        subprocess.run(command, check=True)
        return target

    return build


REFUSED = {
    "TWICE": "twice.so: stable_twice::f: expected one definition of an operator, got a second\n"
    "  stable_twice::f(Tensor x, int n) -> Tensor  at b.c:2\nit is defined already as\n"
    "  stable_twice::f(Tensor x) -> Tensor  at a.c:1",
    "SECOND_DEF": "second_def.so: expected one DEF of the namespace 'stable_def', got a second at "
    "b.c:2\nit is defined already at a.c:1; FRAGMENT adds to it",
    "SCHEMA": "schema.so: define: expected the schema of an operator, got one with an error:\n"
    "<string>:1:18: error: unknown type 'Tensr'; did you mean 'Tensor'?\n"
    "stable_schema::f(Tensr x) -> Tensor\n                 ^",
    "KEY": "key.so: expected a dispatch key, got 'Abacus'",
    "OLD": "old.so: f: expected an extension that was built with PyTorch 2.9 or later of this "
    "major version, got version 2.8",
    "OWN": "own.so: aten::add.Tensor: expected a kernel of an operator's first form for a device "
    "of a backend, got one at a.c:1",
    "KERNELS": "kernels.so: stable_kernels::f: expected one kernel for the device cpu, got a "
    "second at a.c:2\nthe first is at a.c:2",
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_refused_registration_leaves_nothing(build, case):
    path = build(case)
    for _ in range(2):  # the system keeps the file, so it is refused again
        with pytest.raises(RuntimeError) as found:
            treadle.ops.load_library(path)
        assert str(found.value) == REFUSED[case]
    namespace = f"stable_{case.lower()}"
    assert not [n for n in treadle._C._operator_names() if n.startswith(namespace)]


def test_a_missing_function_is_named(build):
    with pytest.raises(ImportError) as found:
        treadle.ops.load_library(build("MISSING"))
    assert str(found.value) == (
        "missing.so: expected functions of the stable ABI as PyTorch 2.15 has it, got "
        "torch_of_the_future; they are of a newer version, or are for programs that PyTorch "
        "compiles ahead of time"
    )
    with pytest.raises(ImportError) as found:
        treadle.ops.load_library(build("CPLUSPLUS"))
    assert str(found.value) == (
        "cplusplus.so: expected an extension that calls PyTorch by its stable ABI, got one that "
        "needs 1 of its C++ functions, such as\n  c10::Error::what() const"
    )


def test_a_loaded_operator_is_like_others(build, capsys):
    path = build("GOOD")
    treadle.ops.load_library(path)
    treadle.ops.load_library(path)  # once is enough
    x = treadle.zeros(2)
    seven = treadle.ops.stable_good.seven
    assert seven(x) == 7
    assert str(seven.default._schema) == "stable_good::seven(Tensor x) -> int"
    with treadle.profiler.profile() as profile:
        seven(x)
    assert "stable_good::seven" in [e.key for e in profile.key_averages()]
    treadle.explain(seven)
    assert capsys.readouterr().out.splitlines()[:3] == [
        "stable_good::seven(Tensor x) -> int",
        "  declared            good.c:3",
        "  kernels             cpu: good.c:4",
    ]
    with pytest.raises(NotImplementedError, match="expected a kernel for the device meta"):
        seven(x.to("meta"))


def test_a_load_within_a_load_has_its_own_errors():
    abi = _stable_abi._abi()

    def define(namespace, schema):
        library = ctypes.c_void_p()
        abi.aoti_torch_library_init_def(namespace, b"a.c", 1, ctypes.byref(library))
        assert abi.aoti_torch_library_def(library, schema) == 0

    nothing = _stable_abi.Needs()
    with pytest.raises(RuntimeError) as error:
        with _stable_abi.registrations("outer.so", nothing):
            define(b"stable_outer", b"f(Tensr x) -> Tensor")
            with _stable_abi.registrations("inner.so", nothing):
                define(b"stable_inner", b"f(Tensor x) -> Tensor")
    assert "outer.so: define: expected the schema" in str(error.value)
    names = treadle._C._operator_names()
    assert "stable_inner::f" in names and not [n for n in names if n.startswith("stable_outer")]


def test_a_module_is_an_extension_too(build):
    """An extension that Python imports, by a program that says `import torch`."""
    module = build("GOOD", "-DMODULE", name="stable_module.abi3.so")
    code = (
        "import torch, stable_module\n"
        "print(torch.ops.stable_good.seven(torch.zeros(2)), stable_module.__name__)\n"
    )
    program = module.with_name("program.py")
    program.write_text(code)
    done = subprocess.run(
        [sys.executable, "-m", "treadle.run", str(program)],
        env=dict(os.environ, PYTHONPATH=f"{os.environ.get('PYTHONPATH', '')}:{module.parent}"),
        capture_output=True,
        text=True,
    )
    assert done.stdout == "7 stable_module\n", done.stderr


def test_nothing_is_loaded_before_it_is_needed():
    code = (
        "import treadle, sys\n"
        "assert 'treadle._stable_abi' not in sys.modules\n"
        "assert 'stable_abi' not in open('/proc/self/maps').read()\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
