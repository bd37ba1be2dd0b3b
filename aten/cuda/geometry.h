// What kernels are told about shapes: divisors of indices, and whether 32 bits hold all places.
// The layouts are those of device/values.cuh and device/pointwise.cuh.
#pragma once

#include <cstdint>
#include <vector>

#include "core/array_ref.h"
#include "core/scalar.h"
#include "core/scalar_type.h"

namespace treadle::cuda {

// A divisor of numbers below 2^31; see device/values.cuh.
struct FastDivisor {
  uint32_t value, factor, shift;
  explicit FastDivisor(uint32_t value);
  uint32_t quotient(uint32_t n) const {
    return static_cast<uint32_t>((((static_cast<uint64_t>(n) * factor) >> 32) + n) >> shift);
  }
};

// Bytes in the layout of a struct of numbers.
class StructBytes {
 public:
  template <class T>
  void add(T value) {
    const auto* first = reinterpret_cast<const char*>(&value);
    bytes_.insert(bytes_.end(), first, first + sizeof value);
  }
  // A divisor for indices of 32 bits, or of 64.
  void add_divisor(int64_t value, bool narrow);
  const std::vector<char>& bytes() const { return bytes_; }

 private:
  std::vector<char> bytes_;
};

// Whether the indices below `count`, and every place of these strides in bytes, fit 31 bits.
bool is_narrow(int64_t count, IntList shape, const int64_t* const* strides, size_t operands);

// The number as one of the dtype that is computed in.
void add_number(std::vector<char>& bytes, const Scalar& number, ScalarType compute);

}  // namespace treadle::cuda
