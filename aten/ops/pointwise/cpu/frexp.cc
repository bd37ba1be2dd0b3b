// frexp: splits floating numbers into mantissa and exponent.
//
// SPDX-License-Identifier: Apache-2.0
#include <bit>
#include <limits>
#include <type_traits>

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

template <class C>
struct Parts {
  C mantissa;
  int32_t exponent;
};
// By masks of the bits, so that a loop of it is one of vectors. Zeros, infinities and NaN keep
// their value and have the exponent 0.
template <class C>
Parts<C> parts_of(C value) {
  using Bits = std::conditional_t<sizeof(C) == 4, int32_t, int64_t>;
  constexpr int kDigits = std::numeric_limits<C>::digits - 1;
  constexpr Bits kHalf = std::numeric_limits<C>::max_exponent - 2, kAll = 2 * kHalf + 3;
  constexpr C kUp = static_cast<C>(Bits(1) << kDigits);
  const Bits given = std::bit_cast<Bits>(value), scaled = std::bit_cast<Bits>(value * kUp);
  const Bits is_small = -static_cast<Bits>((given & kAll << kDigits) == 0);
  const Bits normal = given ^ ((given ^ scaled) & is_small);
  const Bits power = normal >> kDigits & kAll;
  const Bits is_kept = -static_cast<Bits>((power == 0) | (power == kAll));
  const Bits fraction = (normal & ~(kAll << kDigits)) | kHalf << kDigits;
  return {std::bit_cast<C>(fraction ^ ((fraction ^ given) & is_kept)),
          static_cast<int32_t>((power - kHalf - (is_small & kDigits)) & ~is_kept)};
}

template <class T>
void frexp_cpu(const Tensor& self, const Tensor& mantissa, const Tensor& exponent) {
  const Tensor input = aten::contiguous(self);
  const T* const from = input.data_as<T>();
  T* const mantissas = mantissa.data_as<T>();
  int32_t* const exponents = exponent.data_as<int32_t>();
  parallel_for(input.numel(), kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const auto parts = parts_of(static_cast<compute_type<T>>(from[i]));
      mantissas[i] = static_cast<T>(parts.mantissa);
      exponents[i] = parts.exponent;
    }
  });
}

const auto frexp_registered = register_kernels<aten::ops::frexp_Tensor, DeviceType::CPU>(
    []<class T>() { return &frexp_cpu<T>; }, "frexp_cpu");

}  // namespace
}  // namespace treadle::cpu
