// Numbers of 4 bits, two in a byte: to float32, and from it.
//
// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "aten/engine/stored_types.h"
#include "aten/engine/structured.h"
#include "aten/ops/_float4_bytes.h"
#include "aten/ops/_float4_values.h"
#include "aten/ops/contiguous.h"
#include "core/base/checked.h"
#include "core/threads/parallel.h"

namespace treadle::shape {

TensorSpec float4_values(const char* op, const Tensor& self) {
  check<ErrorKind::Runtime>(self.dim() > 0, OpName(op),
                            "expected a tensor of at least 1 dimension, got shape ", self.sizes());
  DimVector sizes(self.sizes());
  const Checked values = Checked(sizes.back()) * 2;
  check<ErrorKind::Runtime>(values.fits(), OpName(op),
                            "expected twice as many elements to be counted in 63 bits, got shape ",
                            self.sizes());
  sizes.back() = values.value();
  return {sizes, ScalarType::Float32, self.device()};
}

TensorSpec float4_bytes(const char* op, const Tensor& self) {
  check<ErrorKind::Runtime>(self.dim() > 0 && self.sizes().back() % 2 == 0, OpName(op),
                            "expected a last dimension of even size, got shape ", self.sizes());
  DimVector sizes(self.sizes());
  sizes.back() /= 2;
  return {sizes, ScalarType::UInt8, self.device()};
}

}  // namespace treadle::shape

namespace treadle::cpu {
namespace {

constexpr int64_t kGrain = 32 * 1024;

template <class T>
void float4_values_cpu(const Tensor& self, const Tensor& out) {
  static const auto pairs = [] {
    std::array<std::array<float, 2>, 256> table{};
    for (size_t i = 0; i < 256; ++i) {
      const auto bits = static_cast<uint8_t>(i);
      table[i] = {float4_value(bits & 15), float4_value(bits >> 4)};
    }
    return table;
  }();
  const Tensor bytes = aten::contiguous(self);
  const T* const from = bytes.data_as<T>();
  float* const to = out.data_as<float>();
  parallel_for(bytes.numel(), kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      to[2 * i] = pairs[from[i]][0];
      to[2 * i + 1] = pairs[from[i]][1];
    }
  });
}

template <class T>
void float4_bytes_cpu(const Tensor& self, const Tensor& out) {
  const Tensor values = aten::contiguous(self);
  const T* const from = values.data_as<T>();
  uint8_t* const to = out.data_as<uint8_t>();
  parallel_for(out.numel(), kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      to[i] = static_cast<uint8_t>(float4_bits(from[2 * i]) | float4_bits(from[2 * i + 1]) << 4);
  });
}

const auto values_registered = register_kernels<aten::ops::_float4_values, DeviceType::CPU>(
    []<class T>() { return &float4_values_cpu<T>; }, "float4_values_cpu");
const auto bytes_registered = register_kernels<aten::ops::_float4_bytes, DeviceType::CPU>(
    []<class T>() { return &float4_bytes_cpu<T>; }, "float4_bytes_cpu");

}  // namespace
}  // namespace treadle::cpu
