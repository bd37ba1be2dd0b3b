"""Operator libraries and C++ extensions outside of the tree, built by treadle.utils.cpp_extension
with the package's own headers and libraries.

The compiler takes half a minute for the library here, so that nearly all of this is slow. Each
program with it runs in a process of its own.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

import plugins
from treadle.utils import _compiler, cpp_extension, operator_library

ENTRIES = """\
- func: squareplus(Tensor self, Scalar b=4) -> Tensor
  doc: The smooth rectifier (self + sqrt(self^2 + b)) / 2.
  forms: functional, inplace, out
  pointwise: 0.5 * (self + sqrt(self * self + b))
  promote: float
  autocast: float32
  dtypes: {all: [bool, real]}
  check: ['b >= 0']

- func: left_over(Tensor self, Tensor other) -> Tensor
  doc: One more than what a division leaves; integers by zero are an error.
  forms: functional, inplace, out
  pointwise: self % other + 1
  dtypes: {all: [integral, floating]}

- func: left_over_of_all.dim(Tensor self, int[1]? dim=None, bool keepdim=False) -> Tensor
  doc: What dividing a hundred by each element leaves.
  forms: functional, out
  reduce: {init: 0, step: acc + 100 % x, combine: a + b}
  promote: sum
  dtypes: {all: [int64, float32]}

- func: rotate_half(Tensor self, int dim=-1) -> Tensor
  doc: Halves of a dimension swapped, the first negated.
  forms: functional, out
  shape: halves(self, dim)
  dispatch: {CPU: rotate_half_cpu}
  dtypes: {CPU: floating}

- func: twice.Tensor(Tensor self) -> Tensor
  doc: Two times the tensor.
  pointwise: self + self
  dtypes: {all: any}

- func: twice.two(Tensor self, Tensor other) -> Tensor
  doc: Two times the sum of both.
  pointwise: self + self + other + other
  dtypes: {all: any}

- func: extremes(Tensor self) -> (Tensor low, Tensor high)
  doc: The least and the greatest element.
  dtypes: {all: floating}
  dtype_of: self

- func: sum_of_squares.dim(Tensor self, int[1]? dim=None, bool keepdim=False) -> Tensor
  doc: The sum of the squares along dimensions.
  forms: functional, out
  reduce: {init: 0, step: acc + x * x, combine: a + b}
  promote: sum
  dtypes: {all: floating}
"""
DERIVATIVES = """\
- name: squareplus(Tensor self, Scalar b=4) -> Tensor
  self: grad * squareplus(self, b) / sqrt(self * self + b)
- name: rotate_half(Tensor self, int dim=-1) -> Tensor
  self: neg(rotate_half(grad, dim))
- name: sum_of_squares.dim(Tensor self, int[1]? dim=None, bool keepdim=False) -> Tensor
  self: 2 * self * sum_backward(grad, self.sizes(), dim, keepdim)
"""
KERNELS = """\
#include "aten/ops/amax.h"
#include "aten/ops/amin.h"
#include "aten/ops/contiguous.h"
#include "aten/engine/structured.h"
#include "small_ops/functions.h"

namespace small_ops {

namespace shape {
TensorSpec halves(const char* op, const Tensor& self, int64_t dim) {
  const int64_t d = wrap_dim(op, dim, self.dim());
  check<ErrorKind::Runtime>(self.size(d) % 2 == 0, OpName(op),
                            "expected an even size in dimension ", dim, ", got ", self.size(d));
  return {self.sizes(), self.dtype()};
}
}  // namespace shape

namespace composite {
std::tuple<Tensor, Tensor> extremes(const Tensor& self) {
  return {aten::amin(self), aten::amax(self)};
}
}  // namespace composite

namespace {
template <class T>
void rotate_half_cpu(const Tensor& self, int64_t dim, const Tensor& out) {
  const int64_t d = wrap_dim("rotate_half", dim, self.dim());
  const Tensor x = aten::contiguous(self);
  int64_t inner = 1;
  for (int64_t i = d + 1; i < self.dim(); ++i) inner *= self.size(i);
  const int64_t half = self.size(d) / 2 * inner;
  for (int64_t start = 0; start < self.numel(); start += 2 * half) {
    for (int64_t i = 0; i < half; ++i) {
      out.data_as<T>()[start + i] = -x.data_as<T>()[start + half + i];
      out.data_as<T>()[start + half + i] = x.data_as<T>()[start + i];
    }
  }
}
const auto registered = register_kernels<ops::rotate_half, DeviceType::CPU>(
    []<class T>() { return &rotate_half_cpu<T>; }, "rotate_half_cpu");
}  // namespace

}  // namespace small_ops
"""
# An operator that is quick to compile.
ONE_ENTRY = ENTRIES[ENTRIES.index("- func: rotate_half") : ENTRIES.index("- func: twice.Tensor")]
ONE_DERIVATIVE = "".join(DERIVATIVES.splitlines(keepends=True)[2:4])
SHOW_ERRORS = """
import sys
sys.excepthook = lambda kind, error, _: sys.stderr.write(f"{kind.__name__}: {error}")
"""
LOAD = """
import treadle
from treadle.utils.cpp_extension import load
small_ops = load(
    "small_ops", ["ops.yaml", "kernels.cc"], derivatives="d.yaml", build_directory="build"
)
"""

pytestmark = [pytest.mark.slow, pytest.mark.builds]


def write(folder: Path, **replaced: str) -> None:
    for name, text in {"ops.yaml": ENTRIES, "d.yaml": DERIVATIVES, "kernels.cc": KERNELS}.items():
        (folder / name).write_text(replaced.get(name.partition(".")[0], text))


def run(folder: Path, program: str, fails: bool = False, **variables: str) -> str:
    """The output of the program; where it `fails`, the exception."""
    done = subprocess.run(
        [sys.executable, "-c", SHOW_ERRORS + textwrap.dedent(program)],
        cwd=folder,
        env={**os.environ, "MAX_JOBS": "2", **variables},
        capture_output=True,
        text=True,
    )
    assert (done.returncode != 0) == fails, done.stdout + done.stderr
    return done.stderr if fails else done.stdout


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which the library is built."""
    folder = tmp_path_factory.mktemp("library")
    write(folder)
    run(folder, LOAD)
    return folder


# ---- a library -----------------------------------------------------------------------------------


def test_forms_gradients_meta_overloads_and_contracts(library: Path) -> None:
    run(
        library,
        LOAD
        + """
from treadle.autograd import gradcheck, gradgradcheck
x = treadle.randn(3, 4, dtype=treadle.float64, requires_grad=True)
for f in (small_ops.squareplus, small_ops.rotate_half, small_ops.sum_of_squares):
    assert gradcheck(f, (x,)) and gradgradcheck(f, (x,))
assert small_ops.squareplus(x).grad_fn.name() == "SquareplusBackward0"
zeros, out = treadle.zeros(3), treadle.empty(0)
assert small_ops.squareplus(zeros, out=out) is out and out.tolist() == [1, 1, 1]
assert small_ops.squareplus_(zeros, b=16) is zeros and zeros.tolist() == [2, 2, 2]
assert small_ops.twice(zeros).tolist() == [4, 4, 4]
assert small_ops.twice(zeros, zeros).tolist() == [8, 8, 8]
assert small_ops.squareplus(treadle.empty(2, 3, device="meta")).shape == (2, 3)
assert small_ops.sum_of_squares(treadle.arange(4.0)).item() == 14
low, high = small_ops.extremes(treadle.arange(4.0))
assert (low, high) == (0, 3)
for call, kind, message in (
    (lambda: small_ops.squareplus(zeros, -1), RuntimeError,
     "squareplus: expected b >= 0, got b = -1"),
    (lambda: small_ops.rotate_half(treadle.ones(3)), RuntimeError,
     "rotate_half: expected an even size in dimension -1, got 3"),
    (lambda: small_ops.rotate_half(treadle.ones(4, dtype=treadle.int64)), NotImplementedError,
     "rotate_half: expected a device, layout and dtype that has a kernel, got cpu, strided, int64"
     "\\nkernels exist for: cpu (float16, bfloat16, float32, float64)"),
    (lambda: small_ops.twice("a"), TypeError,
     "twice(): expected one of:\\n  twice(Tensor input)\\n  twice(Tensor input, Tensor other)\\n"
     "got (str)"),
):
    try:
        call()
        raise SystemExit("no exception")
    except kind as error:
        assert str(error) == message, str(error)
""",
    )


def test_an_error_leaves_outputs_as_they_were(library: Path) -> None:
    """An integer divided by zero, in the middle of what a call writes."""
    run(
        library,
        LOAD
        + """
x, by = treadle.arange(1, 10001), treadle.full((10000,), 7)
by[6000] = 0
out = treadle.full((10000,), -1)
def raises(call):
    try:
        call()
    except RuntimeError as error:
        assert str(error) == "remainder: expected a non-zero divisor, got 0", error
        return
    raise SystemExit("no exception")
raises(lambda: small_ops.left_over(x, by, out=out))
assert (out == -1).all()
raises(lambda: small_ops.left_over_(x, by))
assert (x == treadle.arange(1, 10001)).all()
assert small_ops.left_over(x[:6000], by[:6000], out=out[:6000])[9] == 4
rows = by.reshape(100, 100)
sums = treadle.full((100,), -1)
raises(lambda: small_ops.left_over_of_all(rows, 1, out=sums))
assert (sums == -1).all()
assert small_ops.left_over_of_all(rows[:60], 1, out=sums[:60])[0] == 200
""",
    )


def test_a_library_is_found_where_treadles_own_operators_are(library: Path) -> None:
    """In treadle.ops, explain, pickles, overrides and autocast."""
    run(
        library,
        LOAD
        + """
import pickle
x = treadle.arange(4.0)
assert treadle.ops.small_ops.squareplus(x).tolist() == small_ops.squareplus(x).tolist()
assert "doc" not in (text := treadle._introspection.explain.describe(small_ops.rotate_half))
assert text.startswith("small_ops::rotate_half(Tensor self, int dim=-1) -> Tensor")
assert "kernels.cc:" in text and "d.yaml:3" in text
result = small_ops.extremes(x)
again = pickle.loads(pickle.dumps(result))
assert type(again) is type(result) is small_ops.return_types.extremes and again.high == 3
assert pickle.loads(pickle.dumps(small_ops.twice)) is small_ops.twice

class Logged(treadle.Tensor):
    calls = []
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        cls.calls.append(func)
        return super().__torch_function__(func, types, args, kwargs)
y = small_ops.twice(x.as_subclass(Logged))
assert type(y) is Logged and Logged.calls[-1] is small_ops.twice
with treadle.autocast("cpu", dtype=treadle.bfloat16):
    assert small_ops.squareplus(x.bfloat16()).dtype == treadle.float32
""",
    )


def test_the_same_library_is_not_built_again(library: Path) -> None:
    file = next((library / "build" / "gen" / "small_ops").glob("_C.*.so"))
    before = file.stat().st_mtime_ns
    printed = run(
        library,
        LOAD.replace('"build"', '"build", verbose=True')
        + """
again = load("small_ops", ["ops.yaml", "kernels.cc"], derivatives="d.yaml", build_directory="build")
assert again is small_ops
""",
    )
    assert printed == "" and file.stat().st_mtime_ns == before


def test_only_what_changed_is_compiled(library: Path) -> None:
    program = LOAD.replace('"build"', '"build", verbose=True')
    (library / "kernels.cc").write_text(KERNELS.replace("+ half + i] = ", "+ half + i] = 2 * "))
    try:
        printed = run(
            library,
            program + "assert small_ops.rotate_half(treadle.ones(2)).tolist() == [-1, 2]",
        )
    finally:
        (library / "kernels.cc").write_text(KERNELS)
    assert printed.count(" -c ") == 1 and "kernels.cc" in printed


def test_a_library_in_use_cannot_be_replaced(library: Path) -> None:
    message = run(
        library,
        LOAD + 'load("small_ops", ["ops.yaml", "kernels.cc"], extra_ldflags=["-Wl,-O1"], '
        'derivatives="d.yaml", build_directory="build")',
        fails=True,
    )
    assert message == (
        "RuntimeError: load: expected the library small_ops as this program loaded it, got other "
        "sources or options; operators cannot be taken out of a program: start it again"
    )


@pytest.mark.parametrize("compiler", plugins.compilers("clang++"))
def test_another_compiler(compiler: str, tmp_path: Path) -> None:
    write(tmp_path)
    run(
        tmp_path,
        LOAD
        + """
x = treadle.randn(3, 4, dtype=treadle.float64, requires_grad=True)
assert treadle.autograd.gradcheck(small_ops.rotate_half, (x,))
assert treadle.autograd.gradcheck(small_ops.squareplus, (x,))
assert type(small_ops.extremes(x)) is small_ops.return_types.extremes
place = treadle._introspection.explain.describe(small_ops.rotate_half)
assert "kernels.cc:%d" in place, place
try:
    small_ops.rotate_half(treadle.ones(3))
except RuntimeError as error:
    assert str(error).startswith("rotate_half: expected an even size")
"""
        % (1 + KERNELS[: KERNELS.index("const auto registered")].count("\n")),
        CXX=compiler,
    )


# ---- what does not fit ---------------------------------------------------------------------------


def copy_of(library: Path, folder: Path) -> Path:
    """The built package alone, in a folder from which it is imported."""
    shutil.copytree(library / "build" / "gen" / "small_ops", folder / "small_ops")
    return next((folder / "small_ops").glob("_C.*.so"))


def test_a_library_built_for_another_treadle(library: Path, tmp_path: Path) -> None:
    file = copy_of(library, tmp_path)
    ours = operator_library.stamp()
    assert operator_library.stamp_of(file) == ours
    stamp = f"{ours.version}:{ours.abi}:".encode()
    other = f"{ours.version[:-1]}9:{'0' * len(ours.abi)}:".encode()
    data = file.read_bytes()
    assert data.count(stamp) == 1
    file.write_bytes(data.replace(stamp, other))
    message = run(tmp_path, "import small_ops", fails=True)
    assert message == (
        f"ImportError: small_ops: expected a library built for {ours}, got one built for Treadle "
        f"{ours.version[:-1]}9 (ABI {'0' * len(ours.abi)}); build it again"
    )
    file.write_bytes(data.replace(b"treadle-library-stamp:", b"?" * 22))
    message = run(tmp_path, "import small_ops", fails=True)
    assert message == (
        f"ImportError: small_ops: expected a library built for {ours}, got a file without "
        f"Treadle's stamp: {file}"
    )
    file.unlink()
    message = run(tmp_path, "import small_ops", fails=True)
    assert message == (
        "ImportError: small_ops: expected the extension module small_ops._C beside the package's "
        "files, got none; compile the generated sources first"
    )


def without_extremes(kernels: str) -> str:
    before, _, after = kernels.partition("namespace composite {")
    return before + after.partition("}  // namespace composite\n")[2]


def test_a_function_that_no_file_defines(tmp_path: Path) -> None:
    rule = "halves(const char* op, const Tensor& self, int"
    wrong = KERNELS.replace(f"{rule}64_t", rule)
    write(tmp_path, ops=ONE_ENTRY, d=ONE_DERIVATIVE, kernels=without_extremes(wrong))
    message = run(tmp_path, LOAD, fails=True)
    assert message == (
        "ImportError: small_ops: expected a definition of small_ops::shape::halves(char const*, "
        "treadle::Tensor const&, long), got none; a file with kernels was not compiled with the "
        "others, or its file does not include the header of the operator, or the function is "
        "written with other arguments"
    )


def test_a_kernel_that_no_file_registers(tmp_path: Path) -> None:
    ops = ONE_ENTRY.replace("rotate_half_cpu", "rotate_half_cp")
    write(tmp_path, ops=ops, d=ONE_DERIVATIVE, kernels=without_extremes(KERNELS))
    line = 1 + ops[: ops.index("dispatch")].count("\n")
    assert run(tmp_path, LOAD, fails=True) == (
        "ImportError: small_ops: expected a kernel 'rotate_half_cp' for small_ops::rotate_half on "
        f"the CPU, as {tmp_path}/ops.yaml:{line} says, got 'rotate_half_cpu'; register it with "
        "register_kernels, by this name"
    )


def test_names_and_kernels_that_are_taken(library: Path, tmp_path: Path) -> None:
    """Two libraries of one name, and two kernels for one operator: both places are named."""
    twice = KERNELS.replace("const auto registered", "const auto again").replace(
        "}  // namespace\n\n}  // namespace small_ops",
        "const auto registered = register_kernels<ops::rotate_half, DeviceType::CPU>(\n"
        '    []<class T>() { return &rotate_half_cpu<T>; }, "rotate_half_cpu");\n'
        "}  // namespace\n\n}  // namespace small_ops",
    )
    write(tmp_path, ops=ONE_ENTRY, d=ONE_DERIVATIVE, kernels=without_extremes(twice))
    message = run(tmp_path, LOAD, fails=True)
    assert message.startswith(
        "ImportError: small_ops._C: small_ops::rotate_half: expected one kernel for cpu, strided, "
        "float16, bfloat16, float32, float64, got a second at "
    )
    assert message.count("kernels.cc:") == 2 and "\nthe first is at " in message
    package = tmp_path / "other"
    package.mkdir()
    copy_of(library, package)
    message = run(
        tmp_path,
        f"""
        import sys, importlib
        sys.path.insert(0, {str(package)!r})
        import small_ops
        for name in [n for n in sys.modules if n.startswith("small_ops")]:
            del sys.modules[name]
        sys.path[0] = {str(library / "build" / "gen")!r}
        importlib.invalidate_caches()
        import small_ops
        """,
        fails=True,
    )
    assert message.startswith(
        "ImportError: small_ops._C: expected a new operator name, got small_ops::"
    )
    assert "\nit is defined already at " in message


def test_the_compilers_first_error(tmp_path: Path) -> None:
    (tmp_path / "bad.cc").write_text("int f() {\n  return nothing;\n}\nint g() { return no; }\n")
    message = run(
        tmp_path,
        """
        from treadle.utils.cpp_extension import load
        load("bad", "bad.cc", build_directory="build")
        """,
        fails=True,
    )
    name, _, text = message.partition(": ")
    assert name == "CompilerError"
    assert text.splitlines()[0].startswith(f"{tmp_path}/bad.cc:2:10: error: ")
    assert "nothing" in text.splitlines()[0] and "return nothing;" in text.splitlines()[1]
    assert len(text.splitlines()) == 3 and issubclass(cpp_extension.CompilerError, RuntimeError)


def test_an_entry_with_an_error(tmp_path: Path) -> None:
    write(tmp_path, ops=ENTRIES.replace("promote: float", "promote: flaot"))
    message = run(tmp_path, LOAD, fails=True)
    assert message.partition("\n")[0] == (
        f"CodegenError: {tmp_path}/ops.yaml:5:12: error: unknown promotion "
        "'flaot'; did you mean 'float'?"
    )


# ---- extensions without operators ----------------------------------------------------------------

INLINE = '''
import treadle
from treadle.utils.cpp_extension import load_inline
SOURCE = """
#include <tuple>
using treadle::Tensor;
Tensor scaled(const Tensor& x, double by) { return treadle::aten::mul(x, by); }
std::tuple<Tensor, std::vector<int64_t>> described(Tensor x, std::optional<std::string> name) {
  std::vector<int64_t> sizes(x.sizes().begin(), x.sizes().end());
  if (name) sizes.push_back(static_cast<int64_t>(name->size()));
  return {x, sizes};
}
int small(int8_t n) { return n; }
void fails() { treadle::fail<treadle::ErrorKind::Index>("fails: expected nothing, got all"); }
"""
'''


def test_load_inline(tmp_path: Path) -> None:
    run(
        tmp_path,
        INLINE
        + """
m = load_inline("inline", SOURCE, functions={"scaled": "x times by.", "described": "", "small": "",
                "fails": ""}, build_directory="build", extra_cflags=["-O0"])
x = treadle.ones(2, requires_grad=True)
y = m.scaled(x, 3)
y.sum().backward()
assert y.tolist() == [3, 3] and x.grad.tolist() == [3, 3] and m.scaled.__doc__ == "x times by."
assert m.described(x, "ab")[1] == [2, 2] and m.described(x, None)[0] is x
for call, kind, message in (
    (lambda: m.scaled(x), TypeError, "scaled: expected 2 arguments, got 1"),
    (lambda: m.scaled(1, 2), TypeError, "scaled: expected argument 1 to be a Tensor, got int"),
    (lambda: m.scaled(x, "a"), TypeError, "scaled: expected argument 2 to be a float, got str"),
    (lambda: m.small(300), ValueError, "small: expected argument 1 to fit its C++ type, got 300"),
    (lambda: m.fails(), IndexError, "fails: expected nothing, got all"),
):
    try:
        call()
        raise SystemExit("no exception")
    except kind as error:
        assert str(error) == message, str(error)
changed = load_inline("inline", SOURCE.replace("(x, by)", "(x, 2 * by)"), functions="scaled",
                      build_directory="build", extra_cflags=["-O0"])
assert changed.scaled(x, 3).tolist() == [6, 6] and m.scaled(x, 3).tolist() == [3, 3]
""",
    )


def test_a_library_without_a_module_and_a_program(tmp_path: Path) -> None:
    (tmp_path / "main.cc").write_text(
        '#include <cstdio>\n#include "aten/ops/ones.h"\n#include "aten/ops/sum.h"\n'
        '#include "aten/ops/item.h"\n#include "core/base/scalar.h"\n'
        "int main() {\n  using namespace treadle;\n"
        '  std::printf("%g\\n", aten::item(aten::sum(aten::ones({2, 3}))).to<double>());\n}\n'
    )
    (tmp_path / "silent.cc").write_text("int silent = 1;\n")
    printed = run(
        tmp_path,
        """
        import subprocess
        from treadle.utils.cpp_extension import load
        program = load("main", "main.cc", build_directory="build", is_standalone=True)
        print(subprocess.run([program], capture_output=True, text=True, check=True).stdout.strip())
        print(load("silent", "silent.cc", build_directory="build", is_python_module=False))
        """,
    )
    assert printed == f"6\n{tmp_path}/build/silent.so\n"


def test_what_is_not_there() -> None:
    assert cpp_extension.CUDA_HOME is None
    cases: list[tuple[Any, str]] = [
        (
            lambda: cpp_extension.CUDAExtension("x", ["x.cu"]),
            "CUDAExtension: expected extensions in C++, got one for CUDA; this Treadle is built "
            "without CUDA",
        ),
        (
            lambda: cpp_extension.load("x", ["x.cu"]),
            "load: expected extensions in C++, got one for CUDA; this Treadle is built without "
            "CUDA: x.cu",
        ),
        (
            lambda: cpp_extension.include_paths("cuda"),
            "include_paths: expected extensions in C++, got one for CUDA; this Treadle is built "
            "without CUDA",
        ),
        (
            lambda: cpp_extension.load("x", ["none.cc"]),
            "load: expected the sources of x, got none at none.cc",
        ),
    ]
    for call, message in cases:
        with pytest.raises(OSError) as info:
            call()
        assert str(info.value) == message


def test_the_compiler_is_the_one_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", "clang++ -v")
    assert _compiler.compiler() == ["clang++", "-v"]
    monkeypatch.setenv("CXX", "no-such-compiler")
    with pytest.raises(RuntimeError) as info:
        _compiler.compiler()
    assert str(info.value) == (
        "expected a C++ compiler, got CXX=no-such-compiler, which was not found"
    )
    monkeypatch.delenv("CXX")
    monkeypatch.setenv("PATH", "")
    with pytest.raises(RuntimeError) as info:
        _compiler.compiler()
    assert str(info.value) == (
        "expected a C++ compiler, got none: neither CXX nor g++ nor clang++ names one; install "
        "one with: apt-get install g++"
    )
