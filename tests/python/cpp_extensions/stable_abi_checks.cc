// An extension that uses every part of PyTorch's stable ABI, for test_stable_abi.py. It is compiled
// with Treadle's headers or with PyTorch's, and runs on both.
//
// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <memory>
#include <vector>

#include <torch/csrc/stable/accelerator.h>
#include <torch/csrc/stable/device.h>
#include <torch/csrc/stable/generator.h>
#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>
#include <torch/csrc/stable/pyobject.h>
#include <torch/csrc/stable/tensor.h>
#include <torch/headeronly/core/Dispatch_v2.h>
#include <torch/headeronly/core/TensorAccessor.h>

namespace {

namespace stable = torch::stable;
using stable::Device;
using stable::Tensor;
using torch::headeronly::DeviceType;
using torch::headeronly::IntHeaderOnlyArrayRef;
using torch::headeronly::Layout;
using torch::headeronly::MemoryFormat;
using torch::headeronly::ScalarType;

// ---- every function of ops.h, on a float matrix and a matrix of integers

std::vector<Tensor> operators(Tensor x, Tensor y) {
  std::vector<Tensor> results;
  const auto keep = [&](const Tensor& t) { results.push_back(stable::clone(t)); };
  Tensor e = stable::empty_like(x);
  stable::fill_(e, 2.5);
  keep(e);
  stable::zero_(e);
  keep(e);
  stable::copy_(e, x);
  keep(e);
  keep(stable::narrow(x, 1, 1, 2));
  keep(stable::transpose(x, 0, 1));
  keep(stable::flatten(x));
  keep(stable::unsqueeze(x, 1));
  keep(stable::squeeze(stable::unsqueeze(x, 0), 0));
  keep(stable::select(x, 0, 1));
  keep(stable::matmul(x, stable::transpose(x, 0, 1)));
  keep(stable::amax(x, 1, true));
  keep(stable::amax(x, {0, 1}));
  keep(stable::pad(x, {1, 2}, "constant", 7.0));
  keep(stable::full({2, 2}, 3.0, ScalarType::Double, Layout::Strided, Device(DeviceType::CPU)));
  keep(stable::new_zeros(x, {2, 3}, ScalarType::Int));
  keep(stable::fill_(stable::new_empty(x, {4}), 1.0));
  Tensor made = stable::empty({2, 2}, ScalarType::Half, std::nullopt, Device("cpu"));
  keep(stable::fill_(made, 0.5));
  keep(stable::reshape(x, {-1}));
  keep(stable::view(x, {x.numel()}));
  keep(stable::view(y, ScalarType::Double));
  keep(stable::permute(x, {1, 0}));
  keep(stable::contiguous(stable::transpose(x, 0, 1)));
  keep(stable::to(x, ScalarType::Double));
  keep(stable::to(x, Device(DeviceType::CPU), false, true));
  keep(stable::sum(x));
  const int64_t dim = 0;
  keep(stable::sum(x, IntHeaderOnlyArrayRef(&dim, size_t{1}), true, ScalarType::Double));
  Tensor out = stable::empty({x.size(1)}, ScalarType::Float);
  keep(stable::sum_out(out, x, IntHeaderOnlyArrayRef(&dim, size_t{1})));
  keep(stable::subtract(x, x, 0.25));
  keep(stable::bitwise_and(y, y));
  keep(stable::bitwise_or(y, y));
  keep(stable::bitwise_left_shift(y, y));
  keep(stable::bitwise_right_shift(y, y));
  keep(stable::index_select(x, 1, stable::select(y, 0, 0)));
  keep(stable::floor_divide(x, x));
  const auto [sorted, order] = stable::sort(x, 1, true);
  keep(sorted);
  keep(order);
  keep(std::get<1>(stable::sort(x, std::optional<bool>(true), 0)));
  STD_TORCH_CHECK(!stable::is_pinned(x), "a tensor that is not pinned");
  return results;
}

// ---- facts of a tensor

std::vector<int64_t> facts(Tensor x) {
  STD_TORCH_CHECK(x.device() == Device("cpu") && x.is_cpu() && !x.is_cuda(), "on the CPU");
  STD_TORCH_CHECK(x.layout() == Layout::Strided && x.defined() && x.has_storage(), "strided");
  STD_TORCH_CHECK(!Tensor().defined(), "an undefined tensor");
  return {x.dim(),
          x.numel(),
          x.size(-1),
          x.sizes()[0],
          x.stride(0),
          x.strides()[1],
          x.storage_offset(),
          static_cast<int64_t>(x.element_size()),
          x.is_contiguous(),
          x.get_device_index(),
          static_cast<int64_t>(x.scalar_type())};
}

// ---- every type of a schema, there and back

using Echoed = std::tuple<Tensor, int64_t, double, bool, std::string, std::vector<int64_t>,
                          std::vector<double>, int64_t, std::vector<Tensor>,
                          std::vector<std::optional<Tensor>>, ScalarType, Device, Layout,
                          MemoryFormat, std::optional<int64_t>, std::optional<std::string>,
                          std::optional<std::vector<int64_t>>, std::optional<Tensor>>;
Echoed echo(const Tensor& t, int64_t i, double f, bool b, std::string_view s,
            IntHeaderOnlyArrayRef li, std::vector<double> lf, std::vector<bool> lb,
            std::vector<Tensor> lt, std::vector<std::optional<Tensor>> lo, ScalarType dtype,
            Device device, Layout layout, MemoryFormat format, std::optional<int64_t> oi,
            const std::optional<std::string>& os, std::optional<IntHeaderOnlyArrayRef> ol,
            std::optional<Tensor> ot) {
  int64_t trues = 0;  // no list of bools is returned
  for (const bool v : lb) trues += v;
  std::optional<std::vector<int64_t>> list;
  if (ol) list = ol->vec();
  return {t,  i,     f,      b,      std::string(s), li.vec(), lf, trues, lt,
          lo, dtype, device, layout, format,         oi,       os, list,  ot};
}

// ---- loops: how often each number was seen; an error in a piece

Tensor count(int64_t n, int64_t grain) {
  Tensor result = stable::new_zeros(stable::empty({1}), {n}, ScalarType::Long);
  int64_t* const data = result.mutable_data_ptr<int64_t>();
  std::atomic<uint32_t> highest{0};
  stable::parallel_for(0, n, grain, [&](int64_t begin, int64_t end) {
    uint32_t index = 0;
    torch_get_thread_idx(&index);
    uint32_t known = highest;
    while (index > known && !highest.compare_exchange_weak(known, index)) {
    }
    for (int64_t i = begin; i < end; ++i) ++data[i];
  });
  STD_TORCH_CHECK(highest < stable::get_num_threads(), "a thread's number below their count");
  return result;
}
void fail_in_loop() {
  stable::parallel_for(0, 1000, 1, [](int64_t begin, int64_t) {
    if (begin >= 0) throw std::runtime_error("in a piece");
  });
}

// ---- memory of the extension

std::atomic<int64_t> freed{0};
Tensor blob(int64_t n) {
  auto* const data = new float[static_cast<size_t>(n)];
  for (int64_t i = 0; i < n; ++i) data[i] = static_cast<float>(i);
  const auto kept = std::make_shared<int>(0);
  return stable::from_blob(data, {n}, {1}, Device(DeviceType::CPU), ScalarType::Float,
                           [kept](void* memory) {
                             delete[] static_cast<float*>(memory);
                             ++freed;
                           });
}
int64_t freed_count() { return freed; }

// ---- elements by dtype and index

Tensor twice(Tensor x) {
  Tensor result = stable::contiguous(stable::clone(x));
  THO_DISPATCH_V2(result.scalar_type(), "twice", AT_WRAP([&] {
                    scalar_t* const data = result.mutable_data_ptr<scalar_t>();
                    for (int64_t i = 0, n = result.numel(); i < n; ++i) data[i] = data[i] + data[i];
                  }),
                  AT_EXPAND(AT_INTEGRAL_TYPES), AT_EXPAND(AT_FLOATING_TYPES), ScalarType::BFloat16);
  return result;
}
double at(Tensor x, int64_t i, int64_t j) {
  const torch::headeronly::HeaderOnlyTensorAccessor<double, 2> a(
      x.mutable_data_ptr<double>(), x.sizes().data(), x.strides().data());
  return a[i][j];
}

// ---- writing to an argument; kernels by device, for all devices, on a layer

void add_one_(Tensor x) {
  stable::copy_(x, stable::subtract(x, stable::fill_(stable::empty_like(x), 1.0), -1.0));
}
Tensor on_cpu(Tensor x) { return stable::fill_(stable::empty_like(x), 1.0); }
Tensor on_meta(Tensor x) { return stable::new_empty(x, {7}); }
Tensor everywhere(Tensor x) { return stable::fill_(stable::empty_like(x), 3.0); }
Tensor composed(Tensor x) { return stable::matmul(x, x); }

// ---- errors

Tensor fail_inside(Tensor x) { return stable::reshape(x, {-7}); }
Tensor fail_check(Tensor x) {
  STD_TORCH_CHECK(x.dim() == 9, "expected nine dimensions, got ", x.dim());
  return x;
}
void throw_number() { throw 7; }
Tensor of_one(Tensor x) { return x; }
void guard() { const stable::accelerator::DeviceGuard guard(0); }
void unknown_operator(Tensor x) {
  StableIValue stack[1] = {stable::detail::from(x)};
  STABLE_TORCH_ERROR_CODE_CHECK(
      torch_call_dispatcher("aten::no_such_name", "", stack, TORCH_ABI_VERSION));
}
void scalar_argument(Tensor x) {
  StableIValue stack[2] = {stable::detail::from(x), stable::detail::from(2.0)};
  STABLE_TORCH_ERROR_CODE_CHECK(
      torch_call_dispatcher("aten::mul", "Scalar", stack, TORCH_ABI_VERSION));
}
Tensor with_scalar(Tensor x, std::vector<Tensor>, double) { return x; }
// The second result is no tensor.
void no_result(StableIValue* stack, uint64_t, uint64_t) {
  stack[2] = stable::detail::from(stable::clone(stable::detail::to<Tensor>(stack[0])));
  stack[0] = stable::detail::from(stable::empty({100000}));
  stack[1] = 0;
}
void warn(std::string text) { aoti_torch_warn("warn", "checks.cc", 7, text.c_str()); }

STABLE_TORCH_LIBRARY(stable_checks, m) {
  m.def("operators(Tensor x, Tensor y) -> Tensor[]");
  m.def("facts(Tensor x) -> int[]");
  m.def(
      "echo(Tensor t, int i, float f, bool b, str s, int[] li, float[] lf, bool[] lb, Tensor[] lt, "
      "Tensor?[] lo, ScalarType dtype, Device device, Layout layout, MemoryFormat format, int? oi, "
      "str? os, int[]? ol, Tensor? ot) -> (Tensor, int, float, bool, str, int[], float[], int, "
      "Tensor[], Tensor?[], ScalarType, Device, Layout, MemoryFormat, int?, str?, int[]?, "
      "Tensor?)");
  m.def("count(int n, int grain) -> Tensor");
  m.def("fail_in_loop() -> ()");
  m.def("blob(int n) -> Tensor");
  m.def("freed() -> int");
  m.def("twice(Tensor x) -> Tensor", {at::Tag::pointwise, at::Tag::pt2_compliant_tag});
  m.def("at(Tensor x, int i, int j) -> float");
  m.def("add_one_(Tensor(a!) x) -> ()");
  m.def("by_device(Tensor x) -> Tensor");
  m.def("everywhere(Tensor x) -> Tensor");
  m.def("composed(Tensor x) -> Tensor");
  m.def("fail_inside(Tensor x) -> Tensor");
  m.def("fail_check(Tensor x) -> Tensor");
  m.def("throw_number() -> ()");
  m.def("wrong_count(Tensor x, Tensor y) -> Tensor");
  m.def("guard() -> ()");
  m.def("unknown_operator(Tensor x) -> ()");
  m.def("scalar_argument(Tensor x) -> ()");
  m.def("with_scalar(Tensor x, Tensor[] list, Scalar s) -> Tensor");
  m.def("no_result(Tensor x) -> (Tensor, Tensor, Tensor)");
  m.def("warn(str text) -> ()");
  m.set_python_module("stable_checks_fake");
}
STABLE_TORCH_LIBRARY_IMPL(stable_checks, CPU, m) {
  m.impl("operators", TORCH_BOX(&operators));
  m.impl("facts", TORCH_BOX(&facts));
  m.impl("echo", TORCH_BOX(&echo));
  m.impl("twice", TORCH_BOX(&twice));
  m.impl("at", TORCH_BOX(&at));
  m.impl("add_one_", TORCH_BOX(&add_one_));
  m.impl("by_device", TORCH_BOX(&on_cpu));
  m.impl("fail_inside", TORCH_BOX(&fail_inside));
  m.impl("fail_check", TORCH_BOX(&fail_check));
  m.impl("wrong_count", TORCH_BOX(&of_one));
  m.impl("unknown_operator", TORCH_BOX(&unknown_operator));
  m.impl("scalar_argument", TORCH_BOX(&scalar_argument));
  m.impl("with_scalar", TORCH_BOX(&with_scalar));
  m.impl("no_result", &no_result);
}
STABLE_TORCH_LIBRARY_IMPL(stable_checks, Meta, m) { m.impl("by_device", TORCH_BOX(&on_meta)); }
STABLE_TORCH_LIBRARY_IMPL(stable_checks, CompositeExplicitAutograd, m) {
  m.impl("everywhere", TORCH_BOX(&everywhere));
  m.impl("count", TORCH_BOX(&count));
  m.impl("fail_in_loop", TORCH_BOX(&fail_in_loop));
  m.impl("blob", TORCH_BOX(&blob));
  m.impl("freed", TORCH_BOX(&freed_count));
  m.impl("throw_number", TORCH_BOX(&throw_number));
  m.impl("guard", TORCH_BOX(&guard));
  m.impl("warn", TORCH_BOX(&warn));
}
STABLE_TORCH_LIBRARY_IMPL(stable_checks, CompositeImplicitAutograd, m) {
  m.impl("composed", TORCH_BOX(&composed));
}
// A library whose kernel comes before the definition, and one for a device that is not here.
Tensor early(Tensor x) { return stable::clone(x); }
STABLE_TORCH_LIBRARY_IMPL(stable_later, CPU, m) { m.impl("early", TORCH_BOX(&early)); }
STABLE_TORCH_LIBRARY_IMPL(stable_later, XPU, m) { m.impl("early", TORCH_BOX(&early)); }
STABLE_TORCH_LIBRARY_FRAGMENT(stable_later, m) { m.def("early(Tensor x) -> Tensor"); }

}  // namespace

// ---- Python objects, for ctypes

#define EXPORT extern "C" __attribute__((visibility("default")))

EXPORT bool stable_checks_is_tensor(void* object) { return stable::is_tensor_pyobject(object); }
// A tensor that is twice the given one.
EXPORT void* stable_checks_twice(void* object) {
  return stable::tensor_to_pyobject(twice(stable::tensor_from_pyobject(object)));
}
EXPORT void* stable_checks_dtype(void* object) {
  return stable::dtype_to_pyobject(stable::dtype_from_pyobject(object));
}
EXPORT void* stable_checks_device(void* object) {
  return stable::device_to_pyobject(stable::device_from_pyobject(object));
}
// The results of functions that are given what they refuse.
EXPORT int32_t stable_checks_loop() {
  return torch_parallel_for(
      INT64_MIN, INT64_MAX, 1, [](int64_t, int64_t, void*) {}, nullptr);
}
EXPORT int32_t stable_checks_no_memory() {
  const int64_t n = 3, one = 1;
  AtenTensorHandle made = nullptr;
  return aoti_torch_create_tensor_from_blob(nullptr, 1, &n, &one, 0, aoti_torch_dtype_float32(),
                                            aoti_torch_device_type_cpu(), 0, &made);
}
// The result of a call with a version that there is none of.
EXPORT int32_t stable_checks_version(uint64_t version) {
  StableIValue stack[1] = {stable::detail::from(stable::empty({1}))};
  return torch_call_dispatcher("aten::zero_", "", stack, version);
}
