// Divisors and layouts.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/backend/cuda/jit/geometry.h"

#include <algorithm>
#include <cstdlib>

namespace treadle::cuda {

// The smallest shift with 2^shift >= value, and the factor 2^32 (2^shift - value) / value + 1: the
// product's upper half and n add up to n * 2^shift / value.
FastDivisor::FastDivisor(uint32_t divisor) : value(divisor), factor(0), shift(0) {
  while ((uint64_t{1} << shift) < divisor) ++shift;
  factor = static_cast<uint32_t>(
      ((uint64_t{1} << 32) * ((uint64_t{1} << shift) - divisor)) / divisor + 1);
}

void StructBytes::add_divisor(int64_t value, bool narrow) {
  if (!narrow) {
    add(static_cast<uint64_t>(value));
    return;
  }
  const FastDivisor divisor(static_cast<uint32_t>(value));
  add(divisor.value);
  add(divisor.factor);
  add(divisor.shift);
}

bool is_narrow(int64_t count, IntList shape, const int64_t* const* strides, size_t operands) {
  constexpr int64_t kEnd = int64_t{1} << 31;
  // A block may look past the end by as many elements as it has.
  if (count >= kEnd - (int64_t{1} << 20)) return false;
  for (size_t k = 0; k < operands; ++k) {
    int64_t reach = 0;
    for (size_t d = 0; d < shape.size(); ++d) {
      const int64_t stride = std::abs(strides[k][d]);
      if (stride >= kEnd) return false;
      reach += stride * (shape[d] - 1);
      if (reach >= kEnd) return false;
    }
  }
  return true;
}

void StructBytes::add_number(const Scalar& number, ScalarType compute) {
  [&]<class... Ts>(TypeList<Ts...>) {
    (void)((scalar_type_of<Ts> == compute && (add(number.to<Ts>()), true)) || ...);
  }(AllTypes());
}

}  // namespace treadle::cuda
