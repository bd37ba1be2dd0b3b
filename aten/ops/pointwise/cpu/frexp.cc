// frexp: splits floating numbers into mantissa and exponent.
//
// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "aten/engine/structured.h"
#include "aten/ops/contiguous.h"
#include "aten/ops/frexp.h"
#include "core/threads/parallel.h"

namespace treadle::shape {

std::array<TensorSpec, 2> frexp(const char* /*op*/, const Tensor& self) {
  return {TensorSpec{DimVector(self.sizes()), self.dtype(), self.device()},
          TensorSpec{DimVector(self.sizes()), ScalarType::Int32, self.device()}};
}

}  // namespace treadle::shape

namespace treadle::cpu {
namespace {

constexpr int64_t kGrain = 32768;

template <class T>
void frexp_cpu(const Tensor& self, const Tensor& mantissa, const Tensor& exponent) {
  const Tensor input = aten::contiguous(self);
  const T* const from = input.data_as<T>();
  T* const parts = mantissa.data_as<T>();
  int32_t* const exponents = exponent.data_as<int32_t>();
  parallel_for(input.numel(), kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      int power = 0;  // the C library leaves it unset for infinities and NaN
      parts[i] = static_cast<T>(std::frexp(static_cast<compute_type<T>>(from[i]), &power));
      exponents[i] = std::isfinite(static_cast<compute_type<T>>(from[i])) ? power : 0;
    }
  });
}

const auto frexp_registered = register_kernels<aten::ops::frexp_Tensor, DeviceType::CPU>(
    []<class T>() { return &frexp_cpu<T>; }, "frexp_cpu");

}  // namespace
}  // namespace treadle::cpu
