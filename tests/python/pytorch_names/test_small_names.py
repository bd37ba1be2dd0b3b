"""Small functions and methods of PyTorch's that stand alone."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import shutil
from typing import Any

import pytest

import treadle
from treadle import FileCheck
from treadle.jit.generate_bytecode import format_bytecode
from treadle.jit.mobile import validate_map_location
from treadle.jit.unsupported_tensor_ops import execWrapper
from treadle.utils import collect_env, cpp_extension
from treadle.utils.throughput_benchmark import format_time


def fails(kind: type, message: str, function: Any, *args: Any) -> None:
    with pytest.raises(kind) as error:
        function(*args)
    assert str(error.value) == message


def test_methods_of_other_tensors() -> None:
    x = treadle.ones(2, dtype=treadle.float16)
    assert x.dequantize().dtype == treadle.float32 and x.volatile is False
    for name in "int_repr q_per_channel_axis q_scale q_zero_point".split():
        fails(RuntimeError, f"{name}: expected a quantized tensor, got a strided one of "
              "treadle.float16",
              getattr(x, name))  # fmt: skip
    fails(RuntimeError, "qscheme: expected a quantized tensor, got one of treadle.float16",
          x.qscheme)  # fmt: skip
    fails(RuntimeError, "reinforce: expected treadle.distributions, got a method that was removed",
          x.reinforce, 1)  # fmt: skip
    assert x.grad_dtype == treadle.float16
    x.grad_dtype = treadle.float16
    with pytest.raises(NotImplementedError) as error:
        x.grad_dtype = treadle.float64
    assert str(error.value) == (
        "grad_dtype: expected treadle.float16, that of the tensor, got treadle.float64"
    )


@pytest.mark.parametrize("name", ["ipu", "mtia"])
def test_devices_that_are_not_there(name: str) -> None:
    for thing in (treadle.ones(2), treadle.nn.Linear(1, 1)):
        with pytest.raises(RuntimeError, match=f"got {name}, for which no backend is loaded$"):
            getattr(thing, name)()


def test_storages_on_devices_that_are_not_there() -> None:
    x = treadle.ones(2)
    for function, name in [(x.storage().hpu, "hpu"), (x.untyped_storage().hpu, "hpu"),
                           (x.untyped_storage().mps, "mps")]:  # fmt: skip
        with pytest.raises(RuntimeError, match=f"got {name}, for which no backend is loaded$"):
            function()


def test_texts_that_are_as_they_should() -> None:
    text = "a = linear(x)\nb = relu(a) ; c\nreturn b\n"
    FileCheck().check("linear").check_next("relu").check_same("c").check("return").run(text)
    FileCheck().check("a").check_not("softmax").check("return").run(text)
    FileCheck().check_count("a", 3).check_regex("r.turn").run(text)
    FileCheck().check_dag("relu").check_dag("linear").check("return").run(text)
    FileCheck().run("# CHECK: linear\n# CHECK-NEXT: relu\n", text)
    FileCheck().check_source_highlighted("x").run("f(x)\n  ~ <--- HERE\n")


@pytest.mark.parametrize(
    ("check", "message"),
    [
        (FileCheck().check("b").check("linear"), "expected 'linear' (check), got none in\n"),
        (FileCheck().check("a").check_not("=").check("relu"),
         "expected no '=' (not), got it at 2 in\n"),
        (FileCheck().check_count("b", 3), "expected 'b' (count) 3 times, got none in\n"),
        (FileCheck().check_count("b", 1, exactly=True),
         "expected no 'b' (count), got it at 20 in\n"),
        (FileCheck().check("a").check_next("a"),
         "expected 'a' on the next line, got it 0 lines on in\n"),
        (FileCheck().check("a").check_same("relu"),
         "expected 'relu' on the same line, got it 1 lines on in\n"),
        (FileCheck().check_regex("x+y"), "expected 'x+y' (regex), got none in\n"),
        (FileCheck().check_source_highlighted("b"),
         "expected 'b' (highlighted) with ~ below it, got none in\n"),
    ],
)  # fmt: skip
def test_texts_that_are_not(check: Any, message: str) -> None:
    text = "a = linear\nb = relu b"
    fails(RuntimeError, f"FileCheck: {message}{text}", check.run, text)


def test_a_text_without_checks() -> None:
    fails(RuntimeError, "FileCheck: expected checks, got none", FileCheck().run, "a")


def test_times() -> None:
    assert [format_time(time_us=5), format_time(time_us=5000.0), format_time(time_s=2)] == [
        "5.000us", "5.000ms", "2.000s",
    ]  # fmt: skip
    assert format_time(time_ms=0.5) == "500.000us" and format_time(time_ms=12.3456) == "12.346ms"
    fails(AssertionError, "format_time: expected one time, got 0", format_time)


def test_parts_of_compiled_programs() -> None:
    assert validate_map_location() is None
    assert validate_map_location("cpu") == treadle.device("cpu")
    fails(ValueError, "map_location: expected a device, its name or None, got int",
          validate_map_location, 3)  # fmt: skip
    names: dict = {}
    execWrapper("y = x + 1", {"x": 1}, names)
    assert names == {"y": 2}
    table: Any = [("code", [("a", 1), ("b", 0)]), ("constants", (1,)), ("sub", (("n", 3),))]
    assert format_bytecode(table) == {
        "code": [("a", 1), ("b", 0)], "constants": [1], "sub": {"n": 3},
    }  # fmt: skip
    fails(ValueError, "format_bytecode: expected pairs, got int", format_bytecode, 3)


def test_a_guard_of_dispatch_keys_has_both_names() -> None:
    assert treadle.ExcludeDispatchKeyGuard is treadle._C._ExcludeDispatchKeyGuard


def test_compilers() -> None:
    assert not cpp_extension.check_compiler_is_gcc("no-such-compiler")
    with pytest.warns(UserWarning, match="^no-such-compiler: expected a compiler of GCC or Clang"):
        fits, version = cpp_extension.get_compiler_abi_compatibility_and_version("no-such-compiler")
    assert not fits and str(version) == "0.0.0"
    if shutil.which("g++"):
        assert cpp_extension.check_compiler_is_gcc("g++")
        fits, version = cpp_extension.get_compiler_abi_compatibility_and_version("g++")
        assert fits and version >= "5.0"
    assert cpp_extension.is_ninja_available() == (shutil.which("ninja") is not None)
    if not cpp_extension.is_ninja_available():
        fails(RuntimeError, "ninja: expected the program to be installed, got none",
              cpp_extension.verify_ninja_availability)  # fmt: skip
    assert cpp_extension.remove_extension_h_precompiler_headers() is None
    fails(RuntimeError, "x: expected an extension in C++, got one for devices of Intel's",
          cpp_extension.SyclExtension, "x", [])  # fmt: skip


def test_reports_of_the_machine() -> None:
    def said(command: Any) -> Any:
        if command[0] == "/sbin/ldconfig":
            return 0, "  libcudnn.so.9 (libc6,x86-64) => /lib/libcudnn.so.9\n", ""
        if command[0] == "dpkg-query" and command[-1] == "libze1":
            return 0, "1.2", ""
        return 127, "", ""

    assert collect_env.get_cudnn_version(said) == "/lib/libcudnn.so.9" or str(
        collect_env.get_cudnn_version(said)
    ).endswith("libcudnn.so.9")
    assert collect_env.get_cudnn_version(lambda command: (1, "", "")) is None
    assert collect_env.get_intel_gpu_driver_version(said) == "* libze1: 1.2"
    assert collect_env.get_intel_gpu_onboard(said) == "N/A"
    assert collect_env.get_intel_gpu_detected(said) == "N/A"
    assert collect_env.TORCH_AVAILABLE and "mkl" in collect_env.ONEAPI_PATTERNS


def test_a_worker_of_a_pool() -> None:
    import queue

    from treadle.multiprocessing.pool import clean_worker

    class Pipe:
        """The methods of queues that a worker calls."""

        def __init__(self) -> None:
            self.items: Any = queue.Queue()
            self.get, self.put = self.items.get, self.items.put
            self._reader = self._writer = self

        def close(self) -> None: ...

    tasks, results = Pipe(), Pipe()
    tasks.put((0, 0, sum, ([1, 2],), {}))
    tasks.put(None)
    clean_worker(tasks, results)
    assert results.get() == (0, 0, (True, 3))
