// Shapes that broadcast, and strides without gaps.
//
// SPDX-License-Identifier: Apache-2.0
#include "core/base/geometry.h"

#include "core/base/error.h"

namespace treadle {

std::optional<DimVector> broadcast_shape(IntList a, IntList b) {
  const IntList longer = a.size() >= b.size() ? a : b;
  const IntList shorter = a.size() >= b.size() ? b : a;
  const size_t lead = longer.size() - shorter.size();
  DimVector shape(longer);
  for (size_t d = 0; d < shorter.size(); ++d) {
    if (!broadcast_size(shape[lead + d], shorter[d])) return std::nullopt;
  }
  return shape;
}

bool is_expandable_to(IntList from, IntList to) {
  if (from.size() > to.size()) return false;
  const size_t lead = to.size() - from.size();
  for (size_t d = 0; d < from.size(); ++d) {
    if (from[d] != to[lead + d] && from[d] != 1) return false;
  }
  return true;
}

DimVector broadcast_strides(IntList shape, IntList sizes, IntList strides) {
  DimVector result(shape.size());
  const size_t lead = shape.size() - sizes.size();
  for (size_t d = 0; d < sizes.size(); ++d)
    result[lead + d] = sizes[d] == 1 && shape[lead + d] != 1 ? 0 : strides[d];
  return result;
}

DimVector contiguous_strides(IntList sizes) {
  DimVector strides(sizes.size());
  int64_t stride = 1;
  for (size_t d = sizes.size(); d-- > 0;) {
    strides[d] = stride;
    if (__builtin_mul_overflow(stride, std::max<int64_t>(sizes[d], 1), &stride)) [[unlikely]]
      fail_sizes(sizes);
  }
  return strides;
}

DimVector dense_strides(IntList sizes, IntList order) {
  DimVector strides(sizes.size());
  int64_t stride = 1;
  for (size_t i = order.size(); i-- > 0;) {
    const size_t d = static_cast<size_t>(order[i]);
    strides[d] = stride;
    stride *= std::max<int64_t>(sizes[d], 1);
  }
  return strides;
}

void fail_sizes(IntList sizes) {
  for (const int64_t size : sizes)
    check<ErrorKind::Runtime>(size >= 0, "expected sizes >= 0, got sizes = ", sizes);
  fail<ErrorKind::Runtime>("expected sizes whose bytes can be counted in 63 bits, got sizes = ",
                           sizes);
}

}  // namespace treadle
