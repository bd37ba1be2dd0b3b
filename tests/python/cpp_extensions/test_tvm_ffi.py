"""Functions of tvm-ffi as kernels, and operators as functions of tvm-ffi."""

# SPDX-License-Identifier: Apache-2.0

import importlib.util
import subprocess

import pytest

import treadle
from treadle.utils import tvm_ffi

# Written after the published C interface alone: no header of tvm-ffi is used.
SOURCE = r"""
#include <cstdint>
#include <cstring>

struct DLTensor {
  void* data;
  struct { int32_t type, id; } device;
  int32_t ndim;
  struct { uint8_t code, bits; uint16_t lanes; } dtype;
  int64_t *shape, *strides;
  uint64_t byte_offset;
};
struct Any {
  int32_t type;
  uint32_t padding;
  union { int64_t i; double f; void* p; const char* s; } v;
};

static int64_t numel(const DLTensor* t) {
  int64_t n = 1;
  for (int d = 0; d < t->ndim; ++d) n *= t->shape[d];
  return n;
}
static int64_t at(const DLTensor* t, int64_t i) {
  int64_t offset = 0;
  for (int d = t->ndim; d-- > 0; i /= t->shape[d]) offset += i % t->shape[d] * t->strides[d];
  return offset;
}
static float* floats(const Any& a) {
  return reinterpret_cast<float*>(static_cast<DLTensor*>(a.v.p)->data);
}
#define EXPORT(name) \
  extern "C" int __tvm_ffi_##name(void*, const Any* args, int32_t count, Any* result)

// out = max(x, low)
EXPORT(clamp_cpu) {
  const auto* x = static_cast<const DLTensor*>(args[0].v.p);
  const auto* out = static_cast<const DLTensor*>(args[count - 1].v.p);
  const double low = args[1].type == 1 ? static_cast<double>(args[1].v.i) : args[1].v.f;
  for (int64_t i = 0, n = numel(x); i < n; ++i) {
    const float value = floats(args[0])[at(x, i)];
    floats(args[count - 1])[at(out, i)] = value < low ? static_cast<float>(low) : value;
  }
  return 0;
}
EXPORT(nothing) { return 0; }
EXPORT(fails) { return -1; }
// What it was given, as a number.
EXPORT(kinds) {
  result->type = 1;
  result->v.i = 0;
  for (int i = 0; i < count; ++i) result->v.i = result->v.i * 10 + args[i].type;
  return 0;
}
EXPORT(length) {
  result->type = 3;
  result->v.f = static_cast<double>(std::strlen(args[0].v.s));
  return 0;
}
"""
# The functions of libtvm_ffi that it calls.
RAISING = r"""
#include <cstdint>
extern "C" void TVMFFIErrorSetRaisedFromCStr(const char* kind, const char* message);
extern "C" int __tvm_ffi_raises(void*, const void*, int32_t, void*) {
  TVMFFIErrorSetRaisedFromCStr("ValueError", "expected a good day, got rain");
  return -1;
}
"""

# Functions that take lists, with the part of libtvm_ffi that makes these.
LISTS = (
    SOURCE
    + r"""
#include <string>
#include <vector>
struct Managed {
  uint32_t version[2];
  void* context;
  void (*deleter)(Managed*);
  uint64_t flags;
  DLTensor tensor;
};
struct Array { std::vector<Any> values; Managed* tensor; };
static int live = 0;
extern "C" {
struct Bytes { const char* data; size_t size; };
int TVMFFIFunctionGetGlobal(const Bytes* name, void** out) {
  *out = std::string(name->data, name->size) == "ffi.Array" ? &live : nullptr;
  return 0;
}
int TVMFFIFunctionCall(void*, const Any* args, int32_t count, Any* result) {
  if (count > 4) return -1;
  ++live;
  result->type = 71;
  result->v.p = new Array{{args, args + count}, nullptr};
  return 0;
}
int TVMFFITensorFromDLPackVersioned(Managed* from, int32_t, int32_t, void** out) {
  ++live;
  *out = new Array{{}, from};
  return 0;
}
int TVMFFIObjectDecRef(void* object) {
  --live;
  auto* a = static_cast<Array*>(object);
  if (a->tensor) a->tensor->deleter(a->tensor);
  delete a;
  return 0;
}
}
// The sum of numbers, and of the numbers of elements of tensors, in lists of lists.
static double sum(const Any& a) {
  if (a.type == 3) return a.v.f;
  if (a.type == 70) return static_cast<double>(numel(&static_cast<Array*>(a.v.p)->tensor->tensor));
  double total = 0;
  if (a.type == 71)
    for (const Any& item : static_cast<Array*>(a.v.p)->values) total += sum(item);
  else if (a.type != 0)
    total = static_cast<double>(a.v.i);
  return total;
}
EXPORT(sum) {
  result->type = 3;
  result->v.f = sum(args[0]);
  return 0;
}
EXPORT(live) {
  result->type = 1;
  result->v.i = live;
  return 0;
}
// out = x * (the sum of the list)
EXPORT(scale) {
  const auto* x = static_cast<const DLTensor*>(args[0].v.p);
  for (int64_t i = 0, n = numel(x); i < n; ++i)
    floats(args[count - 1])[i] = floats(args[0])[at(x, i)] * static_cast<float>(sum(args[1]));
  return 0;
}
"""
)


def _compile(folder, name, source, *more):
    (folder / f"{name}.cc").write_text(source)
    library = folder / f"lib{name}.so"
    command = ["c++", "-std=c++17", "-O1", "-shared", "-fPIC", str(folder / f"{name}.cc")]
    subprocess.run([*command, "-o", str(library), *more], check=True)
    return str(library)


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    return _compile(tmp_path_factory.mktemp("tvm"), "mine", SOURCE)


def test_functions_are_called(library):
    clamp = tvm_ffi.load_kernel(library, "clamp_cpu")
    x, out = treadle.tensor([[-1.0, 2.0], [3.0, -4.0]]).t(), treadle.empty(2, 2)
    assert clamp(x, 0, out=out) is None
    assert out.tolist() == [[0, 3], [2, 0]]
    assert clamp(x, -1.5, out) is None
    assert out.tolist() == [[-1, 3], [2, -1.5]]
    kinds = tvm_ffi.load_kernel(library, "kinds")
    assert kinds(None, 1, True, 1.5, x, "a", out=[x, x]) == 1237877
    assert tvm_ffi.load_kernel(library, "length")("seven") == 5.0


def test_what_cannot_be_called_is_refused(library, tmp_path):
    for call, kind, message in (
        (
            lambda: tvm_ffi.load_kernel(library, "absent"),
            ValueError,
            f"tvm_ffi: expected a function 'absent', the symbol __tvm_ffi_absent, in {library}, "
            "got none",
        ),
        (
            lambda: tvm_ffi.load_kernel(tmp_path / "no.so", "f"),
            RuntimeError,
            f"tvm_ffi: expected a library that can be loaded, got: {tmp_path}/no.so: cannot open "
            "shared object file: No such file or directory",
        ),
        (
            lambda: tvm_ffi.load_kernel(library, "nothing")(object()),
            TypeError,
            "nothing: expected tensors, numbers, texts, dtypes, devices, None or lists of these, "
            "got object",
        ),
        (
            lambda: tvm_ffi.load_kernel(library, "nothing")([1, 2]),
            RuntimeError,
            "nothing: expected a library that is linked with libtvm_ffi, which makes lists, got "
            "one that is not, and a list",
        ),
        (
            lambda: tvm_ffi.load_kernel(library, "nothing")("a\0b"),
            ValueError,
            "nothing: expected a text without null characters, got one of 3 bytes with one",
        ),
        (
            lambda: tvm_ffi.load_kernel(library, "nothing")(treadle.device("meta")),
            ValueError,
            "nothing: expected the device cpu, got meta",
        ),
        (
            lambda: tvm_ffi.load_kernel(library, "nothing")(out=treadle.ones(1).expand(3)),
            RuntimeError,
            "nothing: expected to write a tensor whose elements do not share memory, got sizes = "
            "(3,), strides = (0,); clone() it first",
        ),
        (
            lambda: tvm_ffi.load_kernel(library, "nothing")(other=1),
            TypeError,
            "nothing: expected no argument by name but out, got other",
        ),
        (
            lambda: tvm_ffi.load_kernel(library, "nothing")(*[1] * 40),
            ValueError,
            "nothing: expected at most 32 arguments, got more",
        ),
        (
            lambda: tvm_ffi.load_kernel(library, "nothing")(*[treadle.ones(2)] * 33),
            ValueError,
            "nothing: expected at most 32 arguments, got more",
        ),
        (
            lambda: tvm_ffi.load_kernel(library, "nothing")(treadle.empty(2, device="meta")),
            RuntimeError,
            "nothing: expected a strided tensor on the cpu, got one on meta of layout strided",
        ),
        (
            lambda: tvm_ffi.load_kernel(library, "fails")(),
            RuntimeError,
            "fails: expected the kernel to return 0, got -1, without the text of an error",
        ),
        (
            lambda: tvm_ffi.split_kernel("libmine.so"),
            ValueError,
            "tvm_ffi: expected a library and its function, as libmine.so:relu_cpu, got "
            "'libmine.so'",
        ),
    ):
        with pytest.raises(kind) as error:
            call()
        assert str(error.value) == message


@pytest.fixture(scope="module")
def lists(tmp_path_factory):
    return _compile(tmp_path_factory.mktemp("tvm"), "lists", LISTS)


def test_lists_are_given_and_released(lists):
    total, live = (tvm_ffi.load_kernel(lists, name) for name in ("sum", "live"))
    x = treadle.ones(2, 3)
    for given, wanted in (
        ([1, 2, 3], 6),
        ((), 0),
        ([0.5, True, None], 1.5),
        ([[1, 2], [3, [4]]], 10),
        ([x, x.t(), treadle.ones(1)], 13),
    ):
        assert total(given) == wanted
    with pytest.raises(RuntimeError, match="sum: expected the kernel to return 0, got -1"):
        total([[1], [x], [1, 2, 3, 4, 5]])
    assert live() == 0
    x.resize_(9)  # nobody holds its memory
    kinds = tvm_ffi.load_kernel(lists, "kinds")
    assert kinds(treadle.float16, treadle.device("cpu"), [1]) == 5 * 100 + 6 * 10 + 71
    scale = tvm_ffi.load_kernel(lists, "scale")
    version = x._version
    assert scale(treadle.ones(9), [1, 1.5], out=x) is None
    assert x.tolist() == [2.5] * 9 and x._version == version + 1
    with treadle.library._scoped_library("tvm_lists", "DEF") as defined:
        defined.define("scale(Tensor x, int[] by) -> Tensor")
        treadle.library.register_fake("tvm_lists::scale", lambda x, by: x.new_empty(x.shape))
        treadle.library.impl_tvm_ffi("tvm_lists::scale", f"{lists}:scale", lib=defined)
        assert treadle.ops.tvm_lists.scale(treadle.ones(2), [2, 3]).tolist() == [5, 5]
    assert live() == 0


def test_a_kernel_of_an_operator_that_a_program_defines(library):
    with treadle.library._scoped_library("tvm_test", "DEF") as defined:
        defined.define("clamped(Tensor x, float low=0.) -> Tensor")
        treadle.library.register_fake("tvm_test::clamped", lambda x, low=0.0: x.new_empty(x.shape))
        treadle.library.impl_tvm_ffi("tvm_test::clamped", f"{library}:clamp_cpu", lib=defined)
        clamped = treadle.ops.tvm_test.clamped
        assert clamped(treadle.tensor([-1.0, 2.0])).tolist() == [0, 2]
        assert clamped(treadle.tensor([[-1.0, 2.0]]).t(), low=1.0).tolist() == [[1], [2]]
        assert clamped(treadle.ones(3, device="meta")).shape == (3,)
        with pytest.raises(ValueError) as error:
            treadle.library.impl_tvm_ffi("tvm_test::clamped", f"{library}:fails", device="meta")
        assert str(error.value) == "impl_tvm_ffi: expected the device CPU, got 'meta'"


def test_errors_have_the_text_of_the_function(tmp_path):
    runtime = tvm_ffi._runtime()
    if runtime is None:
        # As where the package is not installed: the library cannot be loaded.
        broken = _compile(tmp_path, "raising", RAISING, "-Wl,-z,now")
        with pytest.raises(RuntimeError) as error:
            tvm_ffi.load_kernel(broken, "raises")
        assert str(error.value).endswith(
            "undefined symbol: TVMFFIErrorSetRaisedFromCStr\n"
            "it needs libtvm_ffi, of the package apache-tvm-ffi (pip install apache-tvm-ffi)"
        )
        return
    linked = _compile(tmp_path, "raising", RAISING, str(runtime))
    with pytest.raises(ValueError) as error:
        tvm_ffi.load_kernel(linked, "raises")()
    assert str(error.value) == "raises: expected a good day, got rain"


def test_operators_as_functions():
    if importlib.util.find_spec("tvm_ffi") is None:
        with pytest.raises(ImportError) as error:
            tvm_ffi.function("relu")
        assert str(error.value) == (
            "tvm_ffi.function: expected the package apache-tvm-ffi (pip install apache-tvm-ffi), "
            "got none"
        )
        return
    import numpy as np
    import tvm_ffi as package

    relu = tvm_ffi.function("relu")
    assert isinstance(relu, package.Function)
    given = np.array([-1.0, 2.0], np.float32)
    result = relu(package.from_dlpack(given))
    np.testing.assert_array_equal(np.from_dlpack(result), [0, 2])
    assert treadle.from_dlpack(tvm_ffi.function("add.Tensor")(result, result)).tolist() == [0, 4]
    with pytest.raises(ValueError, match="expected an operator, got 'relux'"):
        tvm_ffi.function("relux")


ENTRIES = """\
# ---- Activations ----
- func: clamped(Tensor self, float low=0.0) -> Tensor
  forms: functional, inplace, out
  shape: same_as(self)
  dispatch: {CPU: "tvm_ffi:%s:clamp_cpu"}
  dtypes: {CPU: [float32]}
  check: ['low <= 1000000']
  doc: The larger of each element and `low`.
- func: scaled(Tensor self, int[] by) -> Tensor
  forms: functional, out
  shape: same_as(self)
  dispatch: {CPU: "tvm_ffi:%s:scale"}
  dtypes: {CPU: [float32]}
  check: ['any(by)']
  doc: The product of each element and the sum of `by`.
"""
FORMULAS = """\
- name: clamped(Tensor self, float low=0.0) -> Tensor
  self: grad * (self >= low)
"""


@pytest.mark.slow
def test_a_kernel_of_an_entry(library, lists, tmp_path):
    from treadle.utils.cpp_extension import load

    (tmp_path / "entries.yaml").write_text(ENTRIES % (library, lists))
    (tmp_path / "d.yaml").write_text(FORMULAS)
    operators = load(
        "tvm_entries",
        [str(tmp_path / "entries.yaml")],
        derivatives=str(tmp_path / "d.yaml"),
        build_directory=str(tmp_path / "build"),
        extra_cflags=["-O0"],
    )
    x = treadle.tensor([[-1.0, 2.0], [0.5, -3.0]])
    assert operators.clamped(x.t(), 0.25).tolist() == [[0.25, 0.5], [2, 0.25]]
    out = treadle.empty(2, 2).t()
    assert operators.clamped(x, out=out) is out and out.tolist() == [[0, 2], [0.5, 0]]
    leaf = x.clone().requires_grad_()
    operators.clamped(leaf).sum().backward()
    assert leaf.grad.tolist() == [[0, 1], [1, 0]]
    assert operators.clamped(x.to("meta")).shape == (2, 2)
    with pytest.raises(NotImplementedError, match="kernels exist for: cpu .float32."):
        operators.clamped(x.double())
    assert operators.scaled(x, [1, 2]).equal(3 * x)
    assert tvm_ffi.load_kernel(lists, "live")() == 0
    operators.clamped_(x)
    assert x.tolist() == [[0, 2], [0.5, 0]]
