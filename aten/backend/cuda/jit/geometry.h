// The geometry that kernels receive: divisors of indices, and whether 32 bits hold all offsets. The
// layouts are those of aten/backend/cuda/device/values.cuh and
// aten/backend/cuda/device/pointwise.cuh.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>

#include "core/base/array_ref.h"
#include "core/base/error.h"
#include "core/base/scalar.h"
#include "core/base/scalar_type.h"

namespace treadle::cuda {

// A divisor of numbers below 2^31; see aten/backend/cuda/device/values.cuh.
struct FastDivisor {
  uint32_t value, factor, shift;
  explicit FastDivisor(uint32_t value);
  uint32_t quotient(uint32_t n) const {
    return static_cast<uint32_t>((((static_cast<uint64_t>(n) * factor) >> 32) + n) >> shift);
  }
};

// Consecutive bytes, in the layout of a struct of numbers; at most `most`.
template <size_t most>
class ByteList {
 public:
  template <class T>
  void add(const T& value) {
    check_internal(used_ + sizeof value <= most, "a list of bytes has room");
    std::memcpy(bytes_ + used_, &value, sizeof value);
    used_ += sizeof value;
  }
  std::string_view bytes() const { return {bytes_, used_}; }

 private:
  size_t used_ = 0;
  char bytes_[most];
};

// A struct as a kernel's argument.
class StructBytes : public ByteList<2048> {
 public:
  // A divisor for 32-bit indices, or for 64-bit ones.
  void add_divisor(int64_t value, bool narrow);
  // The number in the compute dtype.
  void add_number(const Scalar& number, ScalarType compute);
};

// Whether the indices below `count`, and every offset of these strides in bytes, fit 31 bits.
bool is_narrow(int64_t count, IntList shape, const int64_t* const* strides, size_t operands);

}  // namespace treadle::cuda
