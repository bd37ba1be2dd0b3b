"""A backend's own kernels: what they are given, may leave to Treadle, and may return; kernels for
the device of another plug-in; a device that is lost.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import shutil
import struct
from pathlib import Path

import pytest

import plugins
import treadle
from plugins import alone

# Each kernel insists on what the interface promises it.
SOURCE = r"""
#include <treadle/plugin.hpp>

#include <cstdlib>
#include <cstring>

namespace {
using namespace treadle::plugin;

treadle_device_type odd;

class Odd final : public Backend {
 public:
  void* allocate(int32_t, size_t nbytes) override { return std::malloc(nbytes); }
  void deallocate(int32_t, void* storage, size_t) override { std::free(storage); }
  bool copy(treadle_place to, treadle_place from, size_t nbytes, bool) override {
    std::memmove(static_cast<char*>(to.storage) + to.offset,
                 static_cast<char*>(from.storage) + from.offset, nbytes);
    return true;
  }
};

template <class F>
void each(const Tensor& a, const Tensor& b, const Tensor& out, F f) {
  for (const Tensor* t : {&a, &b}) {
    check(t->dtype() == DType::Float32, ErrorKind::Runtime, "a kernel for float32 got ",
          t->dtype());
    check(t->device().type == odd, ErrorKind::Runtime, "a kernel got another device");
    check(t->dim() == out.dim(), ErrorKind::Runtime, "a kernel got another shape");
  }
  check(out.dim() <= 2, ErrorKind::Runtime, "more than two dimensions");
  const int64_t rows = out.dim() > 1 ? out.size(0) : 1;
  const int64_t columns = out.dim() > 0 ? out.size(-1) : 1;
  const auto at = [](const Tensor& t, int64_t i, int64_t j) -> float& {
    const int64_t row = t.dim() > 1 ? t.stride(0) : 0, column = t.dim() > 0 ? t.stride(-1) : 0;
    return t.data<float>()[i * row + j * column];
  };
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j) at(out, i, j) = f(at(a, i, j), at(b, i, j));
}

void start() {
  BackendDescription description;
  description.name = "odd";
  description.host_visible = true;
  odd = register_backend<Odd>(description);
  const DType dtypes[] = {DType::Float32};
  register_kernel(
      "add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor", odd,
      [](const Tensor& a, const Tensor& b, const Number& alpha, const Tensor& out) {
        const float scale = alpha.to<float>();
        each(a, b, out, [=](float x, float y) { return x + scale * y; });
      },
      dtypes);
  register_kernel(
      "sub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor", odd,
      [](const Tensor& a, const Tensor& b, const Number& alpha, const Tensor& out) {
        if (alpha.to<double>() != 1) throw Declined();
        each(a, b, out, [](float x, float y) { return x - y; });
      },
      dtypes);
  register_kernel(
      "mul.Tensor(Tensor self, Tensor other) -> Tensor", odd,
      [](const Tensor&, const Tensor&, const Tensor&) {
        fail(ErrorKind::DeviceLost, "odd:0: the device does not answer");
      },
      dtypes);
  register_kernel(
      "neg(Tensor self) -> Tensor", odd,
      [](const Tensor& self, const Tensor&) { call("aten::neg", self); }, dtypes);
  register_kernel(
      "nonzero(Tensor self) -> Tensor", odd,
      [](const Tensor& self) {
        return self.numel() == 1 ? self : self.numel() == 2 ? Tensor()
                                        : empty({1, 1}, DType::Int64, Device::cpu());
      },
      dtypes);
}

}  // namespace

TREADLE_PLUGIN("odd", "1.0", start)
"""

# A plug-in with a kernel for the device of the other one.
GUEST = r"""
#include <treadle/plugin.hpp>

namespace {
using namespace treadle::plugin;

treadle_status found(void*, treadle_device_type device) {
  return guarded([&] {
    const DType dtypes[] = {DType::Float32};
    register_kernel(
        "exp(Tensor self) -> Tensor", device,
        [](const Tensor& self, const Tensor& out) {
          const Tensor x = contiguous(self);
          for (int64_t i = 0; i < out.numel(); ++i) out.data<float>()[i] = 2 * x.data<float>()[i];
        },
        dtypes);
  });
}

void start() { succeed(api().when_device("odd", &found, nullptr)); }

}  // namespace

TREADLE_PLUGIN("guest", "2.0", start)
"""


# A backend that reads the operands of generated kernels as the dtype that is computed in.
CARELESS = r"""
#include <treadle/evaluate.hpp>
#include <treadle/plugin.hpp>

#include <cstdlib>
#include <cstring>
#include <vector>

namespace {
using namespace treadle::plugin;

class Careless final : public Backend {
 public:
  void* allocate(int32_t, size_t nbytes) override { return std::malloc(nbytes); }
  void deallocate(int32_t, void* storage, size_t) override { std::free(storage); }
  bool copy(treadle_place to, treadle_place from, size_t nbytes, bool) override {
    std::memmove(static_cast<char*>(to.storage) + to.offset,
                 static_cast<char*>(from.storage) + from.offset, nbytes);
    return true;
  }
  bool pointwise(const treadle_pointwise_call& call) override {
    treadle_pointwise_call wrong = call;
    std::vector<treadle_operand> inputs(call.inputs, call.inputs + call.input_count);
    for (treadle_operand& input : inputs) {
      const auto own = static_cast<DType>(input.dtype), computed = static_cast<DType>(call.compute);
      if (item_size(own) >= item_size(computed)) input.dtype = call.compute;
    }
    wrong.inputs = inputs.data();
    return evaluate(wrong);
  }
};

void start() {
  BackendDescription description;
  description.name = "careless";
  description.host_visible = true;
  register_backend<Careless>(description);
}

}  // namespace

TREADLE_PLUGIN("careless", "1.0", start)
"""


@pytest.fixture(scope="module")
def careless(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("careless")
    return plugins.build(folder, "careless", CARELESS, suffix=".cc")


@pytest.fixture(scope="module")
def odd(tmp_path_factory: pytest.TempPathFactory) -> str:
    return plugins.build(tmp_path_factory.mktemp("odd"), "odd", SOURCE, suffix=".cc")


@pytest.fixture(scope="module")
def guest(tmp_path_factory: pytest.TempPathFactory) -> str:
    return plugins.build(tmp_path_factory.mktemp("guest"), "guest", GUEST, suffix=".cc")


def refusal(call: object, error: type) -> str:
    with pytest.raises(error) as caught:
        call()  # type: ignore[operator]
    assert type(caught.value) is error
    return str(caught.value)


@alone
def test_operands_of_pointwise_kernels_are_converted_and_expanded(odd: str) -> None:
    treadle.load_backend(odd)
    a = treadle.tensor([[1.5, -2.0, 3.0], [0.5, 4.0, 0.25]])
    others = [
        treadle.ones(2, 3),
        treadle.arange(3),
        treadle.tensor([[2], [-3]], dtype=treadle.int8),
        treadle.tensor([[True], [False]]),
        treadle.tensor(2.5, dtype=treadle.float64),
        treadle.tensor(7),
        treadle.ones(3, 2).t(),
    ]
    for other in others:
        there = [other.to("odd")] + ([other] if other.dim() == 0 else [])
        for b in there:
            for name in ("add", "sub"):
                call = getattr(treadle, name)
                assert treadle.equal(call(a.to("odd"), b).cpu(), call(a, other))
                assert treadle.equal(call(b, a.to("odd")).cpu(), call(other, a))
                out = treadle.empty(2, 3, device="odd")
                call(a.to("odd"), b, out=out)
                assert treadle.equal(out.cpu(), call(a, other))
            x = a.to("odd")
            x += b
            assert treadle.equal(x.cpu(), a + other)
    assert treadle.equal((a.to("odd") + 2).cpu(), a + 2)
    counts = treadle.backends.coverage("odd").as_dict()["native"]
    assert counts["add.Tensor"] > len(others) and counts["sub.Tensor"] > len(others)


@alone
def test_the_operators_own_tests_mix_dtypes(odd: str, careless: str) -> None:
    """They are all that tells whoever writes a backend that an operand is read as another dtype."""
    from treadle_testing import device, mixed
    from treadle_testing.catalogue import by_id

    for path in (odd, careless):
        treadle.load_backend(path)
    add = by_id()["add.Tensor"]
    device.use("odd")
    mixed.mixed_arguments_agree(add)
    assert treadle.backends.coverage("odd")["native"]["add.Tensor"] > 10
    device.use("careless")
    with pytest.raises(AssertionError, match="add.Tensor: operand .* as int"):
        mixed.mixed_arguments_agree(add)
    device.use("cpu")


@alone
def test_a_kernel_may_decline(odd: str) -> None:
    treadle.load_backend(odd)
    x = treadle.arange(4.0, device="odd")
    assert treadle.sub(x, x, alpha=3).tolist() == [0.0, -2.0, -4.0, -6.0]
    counts = treadle.backends.coverage("odd").as_dict()
    assert counts["fallback"]["sub.Tensor"] == 1 and "sub.Tensor" not in counts["native"]


@alone
def test_results_that_a_kernel_makes_are_looked_at(odd: str) -> None:
    treadle.load_backend(odd)
    for n, text in (
        (1, "nonzero: expected its kernel to return a new tensor, got an argument"),
        (2, "nonzero: expected its kernel to return a tensor on odd:0, got none"),
        (3, "nonzero: expected its kernel to return a tensor on odd:0, got one on cpu"),
    ):
        assert refusal(lambda: treadle.ones(n, device="odd").nonzero(), RuntimeError) == text


@alone
def test_a_kernel_that_calls_its_own_operator(odd: str) -> None:
    treadle.load_backend(odd)
    x = treadle.ones(2, device="odd")
    assert refusal(lambda: -x, RuntimeError) == (
        "neg: expected kernels that call each other at most 200 deep, got more; does the kernel "
        "call its own operator?"
    )


@alone
def test_a_lost_device(odd: str) -> None:
    treadle.load_backend(odd)
    assert issubclass(treadle.DeviceLostError, RuntimeError)
    x = treadle.ones(2, device="odd", requires_grad=True)
    text = "mul: odd:0: the device does not answer"
    assert refusal(lambda: x * x, treadle.DeviceLostError) == text
    # In backward, too, the message names the operator.
    y = (x + 1).exp().sum()
    assert refusal(y.backward, treadle.DeviceLostError).endswith(text)
    assert x.grad is None


@alone
def test_kernels_for_the_device_of_another_plug_in(odd: str, guest: str) -> None:
    treadle.load_backend(guest)
    treadle.load_backend(odd)
    assert treadle.ones(3, device="odd").exp().tolist() == [2.0, 2.0, 2.0]
    with pytest.raises(RuntimeError, match="expected the name of a device, got none"):
        treadle.load_backend(
            plugins.build(
                Path(guest).parent, "nameless", GUEST.replace('"odd"', '""'), suffix=".cc"
            )
        )


@alone
def test_kernels_for_a_device_that_is_there(odd: str, guest: str) -> None:
    treadle.load_backend(odd)
    treadle.load_backend(guest)
    assert treadle.ones(3, device="odd").exp().tolist() == [2.0, 2.0, 2.0]


def test_a_library_that_was_cut_short(odd: str, tmp_path: Path) -> None:
    whole = Path(odd).read_bytes()
    for length in (len(whole) - 1, len(whole) // 2, 5000, 100):
        path = tmp_path / f"cut_{length}.so"
        path.write_bytes(whole[:length])
        message = refusal(lambda: treadle.load_backend(path), RuntimeError)
        if length > 64:
            assert message.startswith(f"{path}: expected a whole shared library, of ")
            assert message.endswith(f" bytes or more, got one that ends after {length}")
    shutil.copy(__file__, tmp_path / "text.so")
    assert "expected a shared library that can be loaded" in refusal(
        lambda: treadle.load_backend(tmp_path / "text.so"), RuntimeError
    )


@alone
def test_a_segment_that_is_not_loaded_may_end_after_the_file(odd: str, tmp_path: Path) -> None:
    """As the one of a linker that counts the padding behind what becomes read-only."""
    data = bytearray(Path(odd).read_bytes())
    (first,) = struct.unpack_from("<Q", data, 32)
    (count,) = struct.unpack_from("<H", data, 56)
    relro = next(
        at
        for at in range(first, first + 56 * count, 56)
        if struct.unpack_from("<I", data, at)[0] == 0x6474E552
    )
    struct.pack_into("<Q", data, relro + 32, len(data))
    path = Path(tmp_path) / "padded.so"
    path.write_bytes(data)
    treadle.load_backend(path)
    assert treadle.ones(3, device="odd").tolist() == [1.0, 1.0, 1.0]
