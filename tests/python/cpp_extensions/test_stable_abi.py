"""Extensions for PyTorch's stable ABI: one that uses every part of it, and bad ones.

The extension is compiled once, with the package's headers. On PyTorch this file's checks of it run
by `STABLE_CHECKS=checks.so python test_stable_abi.py`.
"""

# SPDX-License-Identifier: Apache-2.0

import ctypes
import gc
import os
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

if __name__ == "__main__":
    import torch
else:
    import treadle as torch

SOURCE = Path(__file__).with_name("stable_abi_checks.cc")


@pytest.fixture(scope="session")  # a library stays loaded, and may be loaded once
def checks(tmp_path_factory):
    """The operators of the extension."""
    return load(build(tmp_path_factory.mktemp("checks")))


def build(folder):
    from treadle.utils import cpp_extension

    return cpp_extension.load(
        "stable_checks", str(SOURCE), extra_cflags=["-O0"], build_directory=str(folder),
        is_python_module=False,
    )  # fmt: skip


def load(path):
    torch.ops.load_library(path)
    torch.ops.stable_checks.library = path
    return torch.ops.stable_checks


def test_operators_of_the_library(checks):
    x = torch.tensor([[1.5, -2.0, 3.0, 0.25], [4.0, 5.0, -6.0, 7.0]])
    y = torch.tensor([[0, 2, 1], [3, 1, 2]])
    expected = [
        torch.full((2, 4), 2.5), torch.zeros(2, 4), x, x[:, 1:3], x.T, x.flatten(),
        x.unsqueeze(1), x, x[1], x @ x.T, x.amax(1, True), x.amax(),
        torch.nn.functional.pad(x, (1, 2), value=7.0), torch.full((2, 2), 3.0, dtype=torch.float64),
        torch.zeros(2, 3, dtype=torch.int32), torch.ones(4),
        torch.full((2, 2), 0.5, dtype=torch.float16), x.reshape(-1), x.view(8),
        y.view(torch.float64), x.permute(1, 0), x.T.contiguous(), x.double(), x, x.sum(),
        x.sum(0, True, dtype=torch.float64), x.sum(0), x - 0.25 * x, y & y, y | y, y << y, y >> y,
        x.index_select(1, y[0]), x // x, x.sort(1, True)[0], x.sort(1, True)[1],
        x.sort(dim=0, stable=True)[1],
    ]  # fmt: skip
    found = checks.operators(x, y)
    assert len(found) == len(expected)
    for i, (result, right) in enumerate(zip(found, expected)):
        assert result.dtype == right.dtype and result.shape == right.shape, i
        assert torch.equal(result, right), i


def test_facts_of_a_tensor(checks):
    x = torch.zeros(6, 8)[1:3, ::2]
    assert checks.facts(x) == [2, 8, 4, 2, 8, 2, 8, 4, 0, -1, 6]


def test_every_type_goes_there_and_back(checks):
    t = torch.ones(2)
    arguments = [
        t, 2**40 + 1, 0.1, True, "tëxt\0x", [1, -2], [0.5], [True, False, True], [t, t + 1],
        [t, None], torch.bfloat16, torch.device("cpu"), torch.strided, torch.channels_last, 5, "s",
        [7], t,
    ]  # fmt: skip
    found = checks.echo(*arguments)
    assert found[0] is t and found[17] is t
    assert list(found[1:7]) == arguments[1:7] and found[7] == 2
    assert found[8][0] is t and torch.equal(found[8][1], t + 1)
    assert found[9][0] is t and found[9][1] is None
    # PyTorch gives a dtype, a layout and a format as their numbers.
    assert found[10] in (torch.bfloat16, 15) and found[11] == torch.device("cpu")
    assert found[12] in (torch.strided, 0) and found[13] in (torch.channels_last, 2)
    assert list(found[14:17]) == [5, "s", [7]]
    absent = [*arguments[:14], None, None, None, None]
    assert list(checks.echo(*absent)[14:]) == [None] * 4


def test_loops_reach_each_number_once(checks):
    before = torch.get_num_threads()
    try:
        for threads in (1, 3):
            torch.set_num_threads(threads)
            for n, grain in ((0, 1), (1, 1), (1000, 1), (100_000, 100), (70, 1000)):
                assert torch.equal(checks.count(n, grain), torch.ones(n, dtype=torch.int64))
            with pytest.raises(RuntimeError, match="in a piece"):
                checks.fail_in_loop()
    finally:
        torch.set_num_threads(before)


def test_memory_of_the_extension_is_freed_once(checks):
    before = checks.freed()
    x = checks.blob(5)
    part = x[2:]
    del x
    gc.collect()
    assert part.tolist() == [2, 3, 4] and checks.freed() == before
    del part
    gc.collect()
    assert checks.freed() == before + 1


def test_dtypes_and_elements(checks):
    for dtype in (torch.uint8, torch.int64, torch.float32, torch.float64, torch.bfloat16):
        x = torch.arange(4).to(dtype)
        assert torch.equal(checks.twice(x), x + x)
    with pytest.raises(RuntimeError, match="twice"):
        checks.twice(torch.ones(1, dtype=torch.complex64))
    assert checks.at(torch.arange(6.0, dtype=torch.float64).reshape(2, 3).T, 2, 1) == 5


def test_a_written_argument_has_a_new_version(checks):
    x = torch.zeros(3)
    version = x._version
    assert checks.add_one_(x) is None
    assert x.tolist() == [1, 1, 1] and x._version > version


def test_kernels_by_device(checks):
    x = torch.zeros(3)
    assert checks.by_device(x).tolist() == [1, 1, 1]
    assert checks.by_device(x.to("meta")).shape == (7,)
    assert checks.everywhere(x).tolist() == [3, 3, 3]
    assert torch.ops.stable_later.early(x).tolist() == [0, 0, 0]


def test_gradients(checks):
    x = torch.eye(2, dtype=torch.float64).requires_grad_()
    checks.composed(x).sum().backward()  # a composite: of operators with derivatives
    assert torch.equal(x.grad, 2 * torch.ones(2, 2, dtype=torch.float64))

    def backward(ctx, grad):
        return 2 * grad

    torch.library.register_autograd("stable_checks::twice", backward)
    x = torch.arange(3.0).requires_grad_()
    (checks.twice(x) * torch.arange(3.0)).sum().backward()
    assert x.grad.tolist() == [0, 2, 4]


def test_a_fake_kernel_from_python(checks):
    torch.library.register_fake("stable_checks::fail_check", lambda x: x.new_empty(4))
    assert checks.fail_check(torch.zeros(2, device="meta")).shape == (4,)
    if __name__ != "__main__":
        assert treadle_module() == "stable_checks_fake"


def treadle_module():
    from treadle import _stable_abi

    return _stable_abi.module_of["stable_checks"]


def test_tags(checks):
    tags = checks.twice.default.tags
    assert torch.Tag.pointwise in tags and torch.Tag.pt2_compliant_tag in tags


def test_errors_are_exceptions_with_their_reason(checks):
    x = torch.zeros(2)
    cases = {
        "nine dimensions, got 1": lambda: checks.fail_check(x),
        "-7": lambda: checks.fail_inside(x),
        "no_such_name": lambda: checks.unknown_operator(x),
        "Scalar": lambda: checks.scalar_argument(x),
        "2": lambda: checks.wrong_count(x, x),
    }
    for text, call in cases.items():
        with pytest.raises(RuntimeError) as found:
            call()
        assert text in str(found.value), str(found.value)


def test_errors_of_the_extension_itself(checks):
    x = torch.zeros(2)
    texts = {
        checks.throw_number: "stable_checks::throw_number: expected a kernel that throws "
        "std::exception, got another exception",
        checks.guard: "expected a device beside the CPU, whose backend is loaded, got none",
        lambda: checks.wrong_count(x, x): "expected a kernel of 2 arguments, as the schema has, "
        "got one of 1",
        lambda: checks.fail_inside(x): "stable_checks::fail_inside: reshape: expected sizes >= -1, "
        "got shape = (-7,)",
    }
    for call, text in texts.items():
        with pytest.raises(RuntimeError) as found:
            call()
        assert text in str(found.value)
    library = ctypes.CDLL(checks.library)
    library.torch_exception_get_what.restype = ctypes.c_char_p
    for version, text in {0: b"0.0", 3 << 56: b"3.0", 2 << 56 | 8 << 48: b"2.8"}.items():
        assert library.stable_checks_version(ctypes.c_uint64(version)) == 1
        assert library.torch_exception_get_what() == (
            b"aten::zero_: expected an extension that was built with PyTorch 2.9 or later of this "
            b"major version, got version " + text
        )
    assert library.stable_checks_version(ctypes.c_uint64(2 << 56 | 9 << 48)) == 0
    assert library.stable_checks_loop() == 1
    assert library.torch_exception_get_what() == (
        b"torch_parallel_for: expected fewer than 2^63 steps, got those from -9223372036854775808 "
        b"to 9223372036854775807"
    )
    assert library.stable_checks_no_memory() == 1
    assert library.torch_exception_get_what() == (
        b"expected memory of 12 bytes, got a null pointer"
    )


def test_errors_by_the_library_itself_leave_nothing(checks):
    """Of a call with one value that is refused, the others are freed."""
    before = torch._C._memory_stats()["current_bytes"]
    for _ in range(3):
        x = torch.zeros(100_000)
        with pytest.raises(RuntimeError) as found:
            checks.with_scalar(x, [x, torch.zeros(100_000)], 2.0)
        assert str(found.value) == (
            "stable_checks::with_scalar: expected values that PyTorch's stable ABI can carry, got "
            "Scalar for 's'"
        )
        with pytest.raises(ValueError) as found:
            checks.no_result(x)
        assert str(found.value) == (
            "stable_checks::no_result: expected a tensor, got a null pointer"
        )
    del x, found
    gc.collect()
    assert torch._C._memory_stats()["current_bytes"] <= before


def test_python_objects(checks):
    library = ctypes.PyDLL(checks.library)
    for name in ("twice", "dtype", "device"):
        function = getattr(library, f"stable_checks_{name}")
        function.restype, function.argtypes = ctypes.py_object, [ctypes.py_object]
    assert library.stable_checks_twice(torch.ones(2)).tolist() == [2, 2]
    assert library.stable_checks_dtype(torch.int16) is torch.int16
    assert library.stable_checks_device(torch.device("cpu")) == torch.device("cpu")
    is_tensor = library.stable_checks_is_tensor
    is_tensor.restype, is_tensor.argtypes = ctypes.c_bool, [ctypes.py_object]
    assert is_tensor(torch.ones(1)) and not is_tensor(3)


def test_a_warning(checks):
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        checks.warn("mind the gap")
    # PyTorch shows it without Python, where it can.
    assert __name__ == "__main__" or [str(w.message) for w in seen] == ["mind the gap"]


@pytest.mark.slow
def test_the_example_runs_on_both_libraries(tmp_path):
    """On PyTorch where $TREADLE_REFERENCE names an interpreter that has it."""
    from treadle.utils import cpp_extension

    folder = SOURCE.parents[3] / "examples" / "binary_extension"
    library = cpp_extension.load(
        "rms_norm", str(folder / "rms_norm.cc"), build_directory=str(tmp_path),
        is_python_module=False,
    )  # fmt: skip
    program = [str(folder / "rms_norm.py"), library]
    commands = [[sys.executable, "-m", "treadle.run", *program]]
    reference = os.environ.get("TREADLE_REFERENCE")
    if reference:
        commands.append(["env", "-u", "PYTHONPATH", reference, *program])
    for command in commands:
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.stdout == "rms_norm: the values and gradients are right\n", done.stderr


if __name__ == "__main__":
    # On PyTorch, or by hand: without pytest's collection of a package that is not there.
    operators = load(os.environ["STABLE_CHECKS"])
    for test_name, test in list(globals().items()):
        if test_name.startswith("test_") and test.__code__.co_varnames[:1] == ("checks",):
            if "itself" in test_name:
                continue  # PyTorch ends the process, or says otherwise
            try:
                test(operators)
            except Exception as error:
                print("FAILED", test_name, type(error).__name__, str(error)[:300])
            else:
                print("passed", test_name)
