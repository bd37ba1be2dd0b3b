// Autocast by device. On a simulated "cuda", whose operators the CPU computes, an operator follows
// its entry's policy for CUDA; on the CPU, its policy for the CPU.
//
// SPDX-License-Identifier: Apache-2.0
#include "autograd/autocast.h"

#include "aten/engine/backends/fallback.h"
#include "aten/ops/addcmul.h"
#include "aten/ops/atan2.h"
#include "aten/ops/avg_pool3d.h"
#include "aten/ops/bilinear.h"
#include "aten/ops/binary_cross_entropy.h"
#include "aten/ops/einsum.h"
#include "aten/ops/exp.h"
#include "aten/ops/layer_norm.h"
#include "aten/ops/log_sigmoid.h"
#include "aten/ops/log_softmax.h"
#include "aten/ops/mm.h"
#include "aten/ops/mv.h"
#include "aten/ops/sigmoid.h"
#include "aten/ops/softmax.h"
#include "aten/ops/sum.h"
#include "aten/ops/to.h"
#include "autograd/test_support.h"
#include "core/device/testing_backend.h"
#include "core/dispatch/dispatcher.h"

namespace treadle::autocast {
namespace {

using autograd::testing::error_of;

constexpr ScalarType kHalf = ScalarType::Float16, kSingle = ScalarType::Float32;
constexpr Device kCuda{DeviceType::CUDA, 0};

class Autocast : public ::testing::Test {
 protected:
  Autocast() {
    if (backend_of(DeviceType::CUDA)) return;
    const DeviceType type = register_backend(std::make_unique<TestingBackend>("cuda"));
    Dispatcher::instance().register_device_fallback(
        type, boxed_kernel<&cpu_fallback>, KernelOrigin{KernelSource::Fallback, "a test", 0, ""});
  }
  ~Autocast() override {
    set_enabled(DeviceType::CPU, false);
    set_enabled(DeviceType::CUDA, false);
  }
  static Tensor on(Device device, ScalarType dtype, IntList sizes) {
    const Tensor t = empty_tensor(sizes, dtype, kCPU);
    std::memset(t.data(), 0, static_cast<size_t>(t.numel() * t.element_size()));
    return aten::to(t, device, dtype);
  }
  static Tensor half(Device device, IntList sizes = {2, 2}) { return on(device, kHalf, sizes); }
  static Tensor single(Device device, IntList sizes = {2, 2}) { return on(device, kSingle, sizes); }
};

TEST_F(Autocast, EachDeviceHasItsPolicy) {
  constexpr Policies some{.all = Policy::Float32, .cuda = Policy::Widest};
  EXPECT_EQ(some.on(DeviceType::CPU), Policy::Float32);
  EXPECT_EQ(some.on(DeviceType::CUDA), Policy::Widest);
  constexpr Policies one{.cuda = Policy::Lower};
  EXPECT_EQ(one.on(DeviceType::CPU), Policy::None);
  EXPECT_EQ(one.on(DeviceType::Meta), Policy::None);
  EXPECT_EQ(one.on(DeviceType::CUDA), Policy::Lower);
}

TEST_F(Autocast, OfWhatSixteenBitsAreTooFewForIsFloat32OnCuda) {
  set_enabled(DeviceType::CUDA, true);
  set_lower_dtype(DeviceType::CUDA, kHalf);
  const Tensor x = half(kCuda);
  EXPECT_EQ(aten::exp(x).dtype(), kSingle);
  EXPECT_EQ(aten::sum(x).dtype(), kSingle);
  EXPECT_EQ(aten::softmax(x, 0).dtype(), kSingle);
  EXPECT_EQ(aten::log_softmax(x, 0).dtype(), kSingle);
  EXPECT_EQ(aten::layer_norm(x, {2}).dtype(), kSingle);
  // An explicitly requested dtype wins.
  EXPECT_EQ(aten::softmax(x, 0, kHalf).dtype(), kHalf);
  // Neither these operators nor their components are on the list.
  EXPECT_EQ(aten::sigmoid(x).dtype(), kHalf);
  EXPECT_EQ(aten::log_sigmoid(x).dtype(), kHalf);
  EXPECT_EQ(aten::avg_pool3d(half(kCuda, {1, 2, 2, 2}), {2, 2, 2}).dtype(), kHalf);
}

TEST_F(Autocast, ProductsAreOfSixteenBitsAndOthersWidestOnCuda) {
  set_enabled(DeviceType::CUDA, true);
  set_lower_dtype(DeviceType::CUDA, kHalf);
  const Tensor x = single(kCuda), low = half(kCuda), v = single(kCuda, {2});
  EXPECT_EQ(aten::mm(x, low).dtype(), kHalf);
  EXPECT_EQ(aten::mv(x, v).dtype(), kHalf);
  EXPECT_EQ(aten::einsum("ij,jk->ik", {x, low}).dtype(), kHalf);
  EXPECT_EQ(aten::atan2(x, low).dtype(), kSingle);
  EXPECT_EQ(aten::atan2(low, low).dtype(), kHalf);
  EXPECT_EQ(aten::addcmul(low, low, x).dtype(), kSingle);
  EXPECT_EQ(aten::bilinear(low, x, single(kCuda, {3, 2, 2})).dtype(), kSingle);
}

TEST_F(Autocast, AnUnsafeLossIsRefusedOnCuda) {
  set_enabled(DeviceType::CUDA, true);
  const auto loss = [](Device d) { return aten::binary_cross_entropy(single(d), single(d)); };
  EXPECT_EQ(error_of(ErrorKind::Runtime, [&] { loss(kCuda); }),
            "binary_cross_entropy: expected a call outside of autocast(\"cuda\"), as it is unsafe "
            "to autocast, got one within it");
  EXPECT_EQ(loss(kCPU).dtype(), kSingle);
  set_enabled(DeviceType::CUDA, false);
  EXPECT_EQ(loss(kCuda).dtype(), kSingle);
}

TEST_F(Autocast, WithoutAPolicyThePartsGoByTheirOwn) {
  set_enabled(DeviceType::CPU, true);
  set_lower_dtype(DeviceType::CPU, kHalf);
  const Tensor x = single(kCPU), low = half(kCPU);
  EXPECT_EQ(aten::einsum("ij,jk->ik", {x, x}).dtype(), kHalf);  // by way of bmm
  EXPECT_EQ(aten::mv(x, single(kCPU, {2})).dtype(), kSingle);
  EXPECT_EQ(aten::exp(low).dtype(), kHalf);
  EXPECT_EQ(aten::sum(low).dtype(), kHalf);
  EXPECT_EQ(aten::softmax(low, 0).dtype(), kHalf);
  EXPECT_EQ(aten::layer_norm(low, {2}).dtype(), kHalf);
  // Gradients are recorded as without.
  autograd::set_requires_grad(x, true);
  EXPECT_TRUE(autograd::records(aten::exp(x)));
  // The other device's context is of no concern.
  EXPECT_EQ(aten::exp(half(kCuda)).dtype(), kHalf);
}

}  // namespace
}  // namespace treadle::autocast
