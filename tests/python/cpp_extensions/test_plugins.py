"""Plug-ins: every mistake that a load can meet is rejected with both sides shown, nothing of it
stays registered, and what is right works, in C and in C++, by any compiler.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import re
from pathlib import Path
from typing import Callable

import pytest

import plugins
import treadle

MM = '"mm(Tensor self, Tensor mat2) -> Tensor"'

# For `before`: a kernel that is never called.
KERNEL = """
static treadle_status never(void* c, const treadle_value* a, size_t n, treadle_value* r, size_t m) {
  (void)c, (void)a, (void)n, (void)r, (void)m;
  return TREADLE_OK;
}
"""
# For `before`: a kernel that fills its result with the character it is registered with.
FILL = """
static const treadle_api* host;
static treadle_status fill(void* c, const treadle_value* a, size_t n, treadle_value* r, size_t m) {
  (void)r, (void)m;
  memset(host->data(a[n - 1].as.tensor), *(const char*)c,
         host->storage_nbytes(a[n - 1].as.tensor));
  return TREADLE_OK;
}
"""
# For `start`: a backend by the name `taken_back`, as `type`.
REGISTERED = """
  treadle_backend b = backend_named("taken_back");
  treadle_device_type type;
  treadle_status status = api->register_backend(&b, &type);
  if (status) return status;
"""


@pytest.fixture
def refused(tmp_path: Path) -> Callable[..., str]:
    """The error of loading a plug-in in C, with the path as PATH."""

    def load(name: str, start: str, *, before: str = "", version: object = 1) -> str:
        source = plugins.c_plugin(name, start, before=before, version=version)
        return said(plugins.build(tmp_path, name, source))

    return load


def said(path: str) -> str:
    before = treadle._C._backends(), treadle._C._loaded_plugins()
    with pytest.raises(RuntimeError) as caught:
        treadle.load_backend(path)
    assert (treadle._C._backends(), treadle._C._loaded_plugins()) == before
    return str(caught.value).replace(path, "PATH")


# ---- libraries that are no plug-ins --------------------------------------------------------------


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    assert said(str(tmp_path / "none.so")) == (
        "PATH: expected a shared library that can be loaded, got: cannot open shared object file: "
        "No such file or directory"
    )


def test_a_file_that_is_no_library(tmp_path: Path) -> None:
    path = tmp_path / "text.so"
    path.write_text("This is a text, and a long one, longer than the header of a library is: " * 20)
    assert said(str(path)) == (
        "PATH: expected a shared library that can be loaded, got: invalid ELF header"
    )


def test_a_library_that_is_no_plugin(tmp_path: Path) -> None:
    path = plugins.build(tmp_path, "other", "int answer(void); int answer(void) { return 42; }")
    assert said(path) == (
        "PATH: expected a plug-in, with a function treadle_plugin_entry, got a library without one"
    )


@pytest.mark.parametrize(
    "version, remedy",
    [
        (0, "install a newer plug-in, or an older Treadle"),
        (99, "install a newer Treadle, or an older plug-in"),
    ],
)
def test_another_version_of_the_interface(refused, version: int, remedy: str) -> None:
    text = refused("dated", "return TREADLE_OK;", version=version)
    assert re.sub(r"Treadle \d+\.\d+\.\d+", "Treadle", text) == (
        "plug-in 'dated' (PATH): expected one built for version 1 of the plug-in interface, which "
        f"Treadle has, got version {version}\n{remedy}"
    )


# ---- registrations -------------------------------------------------------------------------------


def test_an_error_takes_everything_back(refused) -> None:
    text = refused(
        "taker",
        REGISTERED
        + f"status = api->register_kernel({MM}, type, NULL, 0, &never, NULL);\n"
        + 'return status ? status : api->set_error(TREADLE_VALUE_ERROR, "no card was found");',
        before=plugins.C_BACKEND + KERNEL,
    )
    assert text == "plug-in 'taker' 1.0 (PATH) could not start: no card was found"
    with pytest.raises(RuntimeError, match="taken_back"):
        treadle.ones(2, device="taken_back")


def test_an_error_without_a_text(refused) -> None:
    assert refused("silent", "return TREADLE_RUNTIME_ERROR;") == (
        "plug-in 'silent' 1.0 (PATH) could not start: expected a plug-in's function to succeed, "
        "got an error without a text"
    )


def test_an_exception_of_cpp(tmp_path: Path) -> None:
    path = plugins.build(
        tmp_path,
        "thrower",
        """
        #include <treadle/plugin.hpp>
        static void start() { throw std::length_error("the queue is full"); }
        TREADLE_PLUGIN("thrower", "2.1", start)
        """,
        suffix=".cc",
    )
    assert said(path) == "plug-in 'thrower' 2.1 (PATH) could not start: the queue is full"


@pytest.mark.parametrize(
    "schema, text",
    [
        (
            "mmm(Tensor self, Tensor mat2) -> Tensor",
            "expected the name of an operator, got 'aten::mmm'; did you mean 'aten::bmm'?",
        ),
        (
            "mm(Tensor self, int mat2) -> Tensor",
            "aten::mm: expected a kernel for the operator's schema\n"
            "  mm(Tensor self, Tensor mat2) -> Tensor\n"
            "got one, at plug-in 'registrar' 1.0, for\n"
            "  mm(Tensor self, int mat2) -> Tensor",
        ),
        (
            "mm(Tensor self, Tensr mat2) -> Tensor",
            "expected the schema of a kernel, got one with an error:\n"
            "<string>:1:17: error: unknown type 'Tensr'; did you mean 'Tensor'?\n"
            "mm(Tensor self, Tensr mat2) -> Tensor\n"
            "                ^",
        ),
        (
            "matmul(Tensor self, Tensor other) -> Tensor",
            "aten::matmul: expected an operator with kernels of its own, got one made of others",
        ),
    ],
)
def test_a_kernel_that_does_not_fit(refused, schema: str, text: str) -> None:
    register = f'return api->register_kernel("{schema}", type, NULL, 0, &never, NULL);'
    message = refused("registrar", REGISTERED + register, before=plugins.C_BACKEND + KERNEL)
    assert message == "plug-in 'registrar' 1.0 (PATH) could not start: " + text


@pytest.mark.parametrize(
    "register, text",
    [
        (
            f"if (!(status = api->register_kernel({MM}, type, NULL, 0, &never, NULL)))"
            f" status = api->register_kernel({MM}, type, NULL, 0, &never, NULL)",
            "aten::mm: expected one kernel for taken_back, strided, bool, uint8, uint16, uint32, "
            "uint64, int8, int16, int32, int64, float16, bfloat16, float32, float64, complex64, "
            "complex128, got a second at plug-in 'twice' 1.0\n"
            "the first is at plug-in 'twice' 1.0",
        ),
        (
            f"status = api->register_kernel({MM}, 14, NULL, 0, &never, NULL)",
            "expected the type of a device that is registered, got 14",
        ),
        (
            f"(void)never; status = api->register_kernel({MM}, type, NULL, 0, NULL, NULL)",
            "mm(Tensor self, Tensor mat2) -> Tensor: expected a kernel to register, got none",
        ),
        (
            "(void)never; status = api->register_backend(&b, &type)",
            "expected a new device name, got 'taken_back', which plug-in 'twice' 1.0 has taken",
        ),
        (
            '(void)never; b.name = "cpu"; status = api->register_backend(&b, &type)',
            "expected a new device name, got 'cpu', which is taken",
        ),
        (
            '(void)never; b.name = "Two words"; status = api->register_backend(&b, &type)',
            "expected the name of a device to be at most 32 lower-case letters, digits and '_', a "
            "letter first, got "
            "'Two words'",
        ),
        (
            '(void)never; b.name = "other"; b.copy = NULL; '
            "status = api->register_backend(&b, &type)",
            "expected a backend with name, allocate, deallocate and copy, got one without copy",
        ),
        (
            '(void)never; b.name = "other"; b.pinned_allocate = (void*)b.allocate; '
            "status = api->register_backend(&b, &type)",
            "expected a backend with pinned_deallocate, which goes with pinned_allocate, got one "
            "without",
        ),
    ],
)
def test_registrations_that_do_not_fit(refused, register: str, text: str) -> None:
    start = REGISTERED + register + ";\nreturn status;"
    message = refused("twice", start, before=plugins.C_BACKEND + KERNEL)
    assert message == "plug-in 'twice' 1.0 (PATH) could not start: " + text


@pytest.mark.parametrize(
    "schema, text",
    [
        (
            "aten::mm(Tensor self) -> Tensor",
            "define: expected a new name of an operator, got aten::mm at plug-in 'definer' 1.0\n"
            "it is defined already at native_functions.yaml:LINE",
        ),
        (
            "twice(Tensor self) -> Tensor",
            "define: expected a schema that names a namespace, as my_ns::twice, got\n"
            "  twice(Tensor self) -> Tensor",
        ),
        (
            "my_ns::f(Tensor self -> Tensor",
            "define: expected the schema of an operator, got one with an error:\n"
            "<string>:1:21: error: expected ',' or ')' after argument 'self', got '->'; close the "
            "arguments with ')'\n"
            "my_ns::f(Tensor self -> Tensor\n"
            "                    ^",
        ),
    ],
)
def test_definitions_that_do_not_fit(refused, schema: str, text: str) -> None:
    start = """
      treadle_definition d = {.size = sizeof(treadle_definition), .kernel = &never};
      d.schema = "%s";
      return api->define_operator(&d);
    """
    message = refused("definer", start % schema, before=KERNEL)
    assert (
        re.sub(r"yaml:\d+", "yaml:LINE", message)
        == "plug-in 'definer' 1.0 (PATH) could not start: " + text
    )


# ---- the face in C++ -----------------------------------------------------------------------------


def test_a_function_that_does_not_fit(tmp_path: Path) -> None:
    """A misfit that the compiler cannot see: the function is compared with the schema."""
    path = plugins.build(
        tmp_path,
        "misfit",
        """
        #include <treadle/plugin.hpp>
        using namespace treadle::plugin;
        namespace {
        struct Nothing : Backend {
          void* allocate(int32_t, size_t) override { return nullptr; }
          void deallocate(int32_t, void*, size_t) override {}
          bool copy(treadle_place, treadle_place, size_t, bool) override { return false; }
        };
        }
        static void halves(const std::optional<Tensor>&, Ints, const Tensor&) {}
        static void start() {
          const treadle_device_type device = register_backend<Nothing>({"misfit"});
          register_kernel<&halves>(
              "frexp.Tensor(Tensor self) -> (Tensor mantissa, Tensor exponent)", device);
        }
        TREADLE_PLUGIN("misfit", "1.0", start)
        """,
        suffix=".cc",
    )
    assert said(path) == (
        "plug-in 'misfit' 1.0 (PATH) could not start: register_kernel: the function does not fit "
        "frexp.Tensor(Tensor self) -> (Tensor mantissa, Tensor exponent)\n"
        "  expected (Tensor self, Tensor out, Tensor out) -> ()\n"
        "  got      (Tensor, int[], Tensor) -> ()"
    )


FACE = """
#include <treadle/plugin.hpp>
namespace {
using namespace treadle::plugin;

// Every kind of parameter, and back as text in the message of an error.
std::tuple<Tensor, double> echo(
    const Tensor& t, const std::optional<Tensor>& none, const std::vector<Tensor>& list, int64_t i,
    std::optional<int64_t> j, double f, bool b, const Number& s, Ints ints, Span<const double> fs,
    std::array<bool, 2> bs, std::string_view text, DType dtype, std::optional<DType> no_dtype,
    Device device, MemoryFormat format, Generator generator) {
  check(!none && list.size() == 2 && !j && b && s.is_complex() && !no_dtype && !generator.handle,
        ErrorKind::Runtime, "wrong");
  fail(ErrorKind::Value, "i=", i, " f=", f, " s=", s.to<std::complex<double>>(), " ints=", ints,
       " floats=", fs, " bools=", bs[0], bs[1], " text=", text, " dtype=", dtype,
       " device=", device.type, ":", device.index, " format=", int(format),
       " sizes=", t.sizes(), " second=", list[1].size(-1));
}
std::vector<Tensor> twice(const Tensor& x) { return {x, call("aten::mul.Scalar", x, 2)}; }
std::tuple<Tensor, int64_t, double, bool> several(const Tensor& x) {
  return {x, x.numel(), 0.5, true};
}
Tensor raises(const Tensor& x, int64_t how) {
  switch (how) {
    case 0: return x.as_strided({100}, {1}, 0);          // the host's error
    case 1: throw std::out_of_range("out of range");
    case 2: throw std::bad_alloc();
    case 3: throw 3;
    case 4: x.accessor<double, 2>(); return x;
    case 5: x.accessor<float, 1>(); return x;
    case 6: parallel_for(100, 1, [](int64_t, int64_t) { fail(ErrorKind::Index, "in a piece"); });
            return x;
    case 7: return call("aten::mm", x, x);
    case 8: return Operator("aten::unheard_of")(x);
    case 9: return call<std::tuple<Tensor, Tensor>>("aten::neg", x), x;
    default: fail(ErrorKind::LinAlg, "singular");
  }
}
Tensor owner(const Tensor&) {
  auto data = std::make_shared<std::vector<float>>(6, 1.5f);
  return from_memory(data->data(), {2, 3}, DType::Float32, Device::cpu(), [data] {});
}
Tensor drawn(const Tensor&, Generator generator) {
  const auto a = reserve_random(generator, Device::cpu(), 3);
  const auto b = reserve_random(generator, Device::cpu(), 1);
  Tensor t = empty({1}, DType::Int64, Device::cpu());
  t.data<int64_t>()[0] = static_cast<int64_t>(b.offset - a.offset);
  return t;
}
void start() {
  define_operator(
      "face::echo(Tensor t, Tensor? none, Tensor[] list, int i, int? j, float f, bool b, Scalar s, "
      "int[] ints, float[] fs, bool[2] bs, str text, ScalarType dtype, ScalarType? no_dtype, "
      "Device device, MemoryFormat format, Generator? generator) -> (Tensor, float)", &echo);
  define_operator("face::twice(Tensor x) -> Tensor[]", &twice);
  define_operator("face::several(Tensor x) -> (Tensor, int, float, bool)", &several);
  define_operator("face::raises(Tensor x, int how) -> Tensor", &raises);
  define_operator("face::owner(Tensor x) -> Tensor", &owner);
  define_operator("face::drawn(Tensor x, Generator? generator=None) -> Tensor", &drawn);
}
}  // namespace
TREADLE_PLUGIN("face", "1.0", start)
"""


# A process loads a plug-in once, also where another worker's tests run between those that need it.
@pytest.fixture(scope="session")
def face(tmp_path_factory: pytest.TempPathFactory) -> object:
    path = plugins.build(tmp_path_factory.mktemp("face"), "face", FACE, suffix=".cc")
    treadle.load_backend(path)
    return treadle.ops.face


def test_values_arrive_as_they_were_given(face) -> None:
    x = treadle.ones(2, 3)
    with pytest.raises(ValueError) as caught:
        face.echo(
            x, None, [x, x.t()], 7, None, 0.25, True, 1 + 2j, [1, -2], [0.5], [True, False], "text",
            treadle.int8, None, treadle.device("cpu"), treadle.channels_last, None,
        )  # fmt: skip
    assert str(caught.value) == (
        "i=7 f=0.25 s=(1,2) ints=(1, -2) floats=(0.5,) bools=truefalse text=text dtype=int8 "
        "device=0:-1 format=2 sizes=(2, 3) second=2"
    )


def test_results_of_every_kind(face) -> None:
    x = treadle.ones(2)
    assert [t.tolist() for t in face.twice(x)] == [[1, 1], [2, 2]]
    same, count, half, true = face.several(x)
    assert (same.tolist(), count, half, true) == ([1, 1], 2, 0.5, True)
    assert face.owner(x).tolist() == [[1.5] * 3] * 2
    assert face.drawn(x).item() == 3


@pytest.mark.parametrize(
    "how, kind, text",
    [
        (1, IndexError, "out of range"),
        (2, treadle.OutOfMemoryError, "out of memory"),
        (3, RuntimeError, "an exception that is no std::exception"),
        (4, TypeError, "data: expected a tensor of float64, got float32"),
        (5, TypeError, "accessor: expected a tensor of 1 dimensions, got shape (2, 3)"),
        (6, IndexError, "in a piece"),
        (8, RuntimeError, "expected the name of an operator, got 'aten::unheard_of'"),
        (9, RuntimeError, "call: expected 2 results of aten::neg, got 1"),
        (10, treadle.linalg.LinAlgError, "singular"),
    ],
)
def test_errors_keep_their_kind(face, how: int, kind: type, text: str) -> None:
    with pytest.raises(kind) as caught:
        face.raises(treadle.ones(2, 3), how)
    assert type(caught.value) is kind
    assert str(caught.value) == text


def test_errors_of_the_host_pass_through(face) -> None:
    x = treadle.ones(2, 3)
    for how, direct in ((0, lambda: x.as_strided([100], [1])), (7, lambda: treadle.mm(x, x))):
        with pytest.raises(RuntimeError) as expected:
            direct()
        with pytest.raises(RuntimeError) as caught:
            face.raises(x, how)
        assert str(expected.value).partition(": ")[2] in str(caught.value)


def test_dtypes_may_have_kernels_of_their_own(tmp_path: Path) -> None:
    path = plugins.build(
        tmp_path,
        "dtypes",
        plugins.c_plugin(
            "dtypes",
            REGISTERED.replace("taken_back", "dtypes")
            + f"""
            const treadle_dtype singles[] = {{TREADLE_FLOAT32}}, doubles[] = {{TREADLE_FLOAT64}};
            host = api;
            if ((status = api->register_kernel({MM}, type, singles, 1, &fill, "1"))) return status;
            if ((status = api->register_kernel({MM}, type, doubles, 1, &fill, "2"))) return status;
            return api->register_kernel({MM}, type, NULL, 0, &fill, "3");
            """,
            before=plugins.C_BACKEND + FILL,
        ),
        flags=["-Wno-discarded-qualifiers"],
    )
    program = """
        import sys, treadle
        treadle.load_backend(sys.argv[1])
        for dtype in (treadle.float32, treadle.float64, treadle.int64, treadle.float32):
            x = treadle.ones(1, 1, dtype=dtype, device="dtypes")
            print(chr((x @ x).cpu().view(treadle.uint8)[0, 0].item()), end="")
    """
    assert plugins.run_program(program, path) == "1231"


def test_a_kernel_without_dtypes_is_for_those_declared(tmp_path: Path) -> None:
    """A call in another dtype never reaches it, and is refused as on the CPU."""
    schema = '"argmax(Tensor self, int? dim=None, bool keepdim=False) -> Tensor"'
    path = plugins.build(
        tmp_path,
        "declared",
        plugins.c_plugin(
            "declared",
            REGISTERED.replace("taken_back", "declared")
            + f"""
            host = api;
            return api->register_kernel({schema}, type, NULL, 0, &fill, "1");
            """,
            before=plugins.C_BACKEND + FILL,
        ),
        flags=["-Wno-discarded-qualifiers"],
    )
    program = """
        import sys, treadle
        treadle.load_backend(sys.argv[1])
        for dtype in (treadle.bool, treadle.uint64, treadle.float16, treadle.complex64):
            x = treadle.ones(2, dtype=dtype, device="declared")
            try:
                print(chr(x.argmax().cpu().view(1).view(treadle.uint8)[0].item()))
            except NotImplementedError as error:
                print(error)
    """
    declared = (
        "bool, uint8, uint16, uint32, uint64, int8, int16, int32, int64, float16, bfloat16, "
        "float32, float64"
    )
    assert plugins.run_program(program, path) == (
        "1\n1\n1\n"
        "argmax: expected a device, layout and dtype that has a kernel, got declared, strided, "
        f"complex64\nkernels exist for: cpu ({declared}); declared ({declared})\n"
    )
