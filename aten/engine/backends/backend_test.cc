// Operators on a device without kernels: copies of any strides, and the fallback in all forms.
//
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "aten/engine/backends/fallback.h"
#include "aten/ops/add.h"
#include "aten/ops/arange.h"
#include "aten/ops/fill_.h"
#include "aten/ops/mm.h"
#include "aten/ops/nonzero.h"
#include "aten/ops/rand.h"
#include "aten/ops/select.h"
#include "aten/ops/sort.h"
#include "aten/ops/sum.h"
#include "aten/ops/t.h"
#include "aten/ops/to.h"
#include "core/device/testing_backend.h"
#include "core/dispatch/call_counts.h"
#include "core/dispatch/dispatcher.h"

namespace treadle {
namespace {

Device toy() {
  static const DeviceType type = [] {
    const DeviceType t = register_backend(std::make_unique<TestingBackend>("toy_device"));
    Dispatcher::instance().register_device_fallback(
        t, boxed_kernel<&cpu_fallback>, KernelOrigin{KernelSource::Fallback, "a test", 0, ""});
    return t;
  }();
  return {type, 0};
}

Tensor there(const Tensor& t) {
  return aten::to(t, std::nullopt, std::nullopt, toy(), std::nullopt, false, false, std::nullopt);
}
std::vector<float> values(const Tensor& t) {
  const Tensor here = aten::to(t, std::nullopt, std::nullopt, kCPU, std::nullopt, false, false,
                               MemoryFormat::Contiguous);
  EXPECT_EQ(t.device(), toy());
  std::vector<float> v;
  EXPECT_EQ(here.dtype(), ScalarType::Float32);
  EXPECT_TRUE(here.is_contiguous());
  for (int64_t i = 0; i < here.numel(); ++i) v.push_back(here.data_as<float>()[i]);
  return v;
}
Tensor counting(IntList sizes) {
  const Tensor t = empty_cpu(sizes, ScalarType::Float32);
  for (int64_t i = 0; i < t.numel(); ++i) t.data_as<float>()[i] = static_cast<float>(i);
  return t;
}
using Floats = std::vector<float>;

int64_t counted(std::string_view name, CallRoute route) {
  for (const CallCount& c : call_counts(toy().type))
    if (c.op->info().name == name && c.route == route) return c.calls;
  return 0;
}
int64_t fallbacks(std::string_view name) { return counted(name, CallRoute::Fallback); }

TEST(Answers, KernelsOfABackendCountThemselves) {
  const std::string name(aten::ops::mm::op.info().name);
  auto* const own = new NativeCalls(toy().type, aten::ops::mm::op);
  EXPECT_EQ(counted(name, CallRoute::Native), 0);
  own->calls += 3;
  EXPECT_EQ(counted(name, CallRoute::Native), 3);
  EXPECT_EQ(counted(name, CallRoute::Fallback), 0);
  reset_call_counts(toy().type);
  EXPECT_EQ(counted(name, CallRoute::Native), 0);
  ++own->calls;
  EXPECT_EQ(counted(name, CallRoute::Native), 1);
  reset_call_counts(toy().type);
}

TEST(Fallback, RunsPointwiseOperatorsInAllForms) {
  const Tensor a = there(counting({2, 3})), b = there(counting({3}));
  EXPECT_EQ(values(aten::add(a, b)), (Floats{0, 2, 4, 3, 5, 7}));
  const Tensor out = there(counting({0}));
  aten::add_out(a, b, Scalar(1), out);
  EXPECT_EQ(values(out), (Floats{0, 2, 4, 3, 5, 7}));
  // A strided view. The elements around it must stay.
  const Tensor base = there(counting({3, 2}));
  aten::add_(aten::select(base, 1, 1), there(counting({3})));
  EXPECT_EQ(values(base), (Floats{0, 1, 2, 4, 4, 7}));
  EXPECT_GE(fallbacks("aten::add.Tensor"), 3);
}

TEST(Fallback, RunsReductionsAndKernels) {
  const Tensor a = there(counting({2, 3}));
  EXPECT_EQ(values(aten::sum(a, OptionalIntList(IntList{1}), false, std::nullopt)),
            (Floats{3, 12}));
  EXPECT_EQ(values(aten::mm(a, aten::t(a))), (Floats{5, 14, 14, 50}));
  EXPECT_EQ(aten::nonzero(a).sizes(), IntList({5, 2}));
  EXPECT_EQ(aten::nonzero(a).device(), toy());
  const auto [sorted, order] = aten::sort(a, 1, true);
  EXPECT_EQ(values(sorted), (Floats{2, 1, 0, 5, 4, 3}));
  EXPECT_EQ(order.device(), toy());
}

TEST(Fallback, WritesItsFirstArgument) {
  const Tensor base = there(counting({2, 2}));
  aten::fill_(aten::select(base, 1, 0), Scalar(9));
  EXPECT_EQ(values(base), (Floats{9, 1, 9, 3}));
}

TEST(Fallback, DrawsFromTheDevicesGenerator) {
  default_generator(toy())->seed(7);
  default_generator(kCPU)->seed(7);
  const auto uniform = [](Device d) {
    return aten::rand(IntList{4}, ScalarType::Float32, std::nullopt, d, std::nullopt);
  };
  const Tensor on_cpu = uniform(kCPU), again = uniform(kCPU);
  const Floats first = values(uniform(toy())), second = values(uniform(toy()));
  EXPECT_EQ(first, Floats(on_cpu.data_as<float>(), on_cpu.data_as<float>() + 4));
  EXPECT_EQ(second, Floats(again.data_as<float>(), again.data_as<float>() + 4));
}

TEST(Fallback, CanBeSwitchedOff) {
  const Tensor a = there(counting({2, 2}));
  allow_fallback(toy().type, false);
  try {
    aten::mm(a, a);
    ADD_FAILURE();
  } catch (const Error& e) {
    EXPECT_STREQ(e.what(),
                 "mm: expected a kernel of the device toy_device, got none, and falling back to "
                 "the cpu is switched off for it");
  }
  allow_fallback(toy().type, true);
}

TEST(Copies, ConvertAndKeepStrides) {
  const Tensor turned = aten::t(there(counting({2, 3})));
  EXPECT_EQ(values(turned), (Floats{0, 3, 1, 4, 2, 5}));
  const Tensor whole = aten::to(turned, ScalarType::Int64, false, true, std::nullopt);
  EXPECT_EQ(whole.device(), toy());
  EXPECT_EQ(values(aten::to(whole, ScalarType::Float32, false, true, std::nullopt)),
            (Floats{0, 3, 1, 4, 2, 5}));
}

}  // namespace
}  // namespace treadle
