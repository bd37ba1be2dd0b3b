// Geometry: small functions on shapes, strides and flat indices.
//
//   broadcast_shape({3, 1}, {4})                  // (3, 4)
//   broadcast_strides({3, 4}, {4}, {1})           // (0, 1)
//   offset_at({3, 4}, {1, 3}, 5)                  // element 5 is (1, 1): 1 * 1 + 1 * 3
//
// A flat index numbers the elements of a shape, the last dimension fastest. Products are not
// checked for overflow: the sizes are those of tensors that exist.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <optional>

#include "core/base/array_ref.h"

namespace treadle {

// ---- sizes ----

inline int64_t product(IntList sizes) {
  int64_t product = 1;
  for (const int64_t size : sizes) product *= size;
  return product;
}

// A shape seen along one dimension: outer x size x inner.
struct DimSlices {
  int64_t outer = 1, size = 1, inner = 1;
  int64_t count() const { return outer * inner; }
};
// `dim` may be negative; a 0-dim tensor is one slice of one element.
inline DimSlices dim_slices(IntList sizes, int64_t dim) {
  if (sizes.empty()) return {};
  const size_t d = static_cast<size_t>(dim < 0 ? dim + static_cast<int64_t>(sizes.size()) : dim);
  return {product(sizes.slice(0, d)), sizes[d], product(sizes.slice(d + 1))};
}

// ---- broadcasting ----

// Makes `size` what it and another size of the same dimension broadcast to; false where they do
// not.
constexpr bool broadcast_size(int64_t& size, int64_t other) {
  if (other == 1 || other == size) return true;
  if (size != 1) return false;
  size = other;
  return true;
}
// The shape that two shapes broadcast to; nothing where they do not.
std::optional<DimVector> broadcast_shape(IntList a, IntList b);
// Whether `from` broadcasts to exactly `to`.
bool is_expandable_to(IntList from, IntList to);
// The strides of a tensor of `sizes` that is seen with `shape`, to which `sizes` broadcasts.
DimVector broadcast_strides(IntList shape, IntList sizes, IntList strides);

// ---- strides ----

// RuntimeError where a size is negative, or there are more bytes than can be counted.
[[noreturn, gnu::cold]] void fail_sizes(IntList sizes);
// Calls fail_sizes() where their product overflows.
DimVector contiguous_strides(IntList sizes);
// Strides without gaps, in the order of the dimensions from the outermost to the innermost.
DimVector dense_strides(IntList sizes, IntList order);

// ---- flat indices ----

// The coordinates of an element, into `index` of as many entries as `sizes`.
inline void unravel(IntList sizes, int64_t flat, int64_t* index) {
  for (size_t d = sizes.size(); d-- > 0; flat /= sizes[d]) index[d] = flat % sizes[d];
}
inline DimVector unravel(IntList sizes, int64_t flat) {
  DimVector index(sizes.size());
  unravel(sizes, flat, index.data());
  return index;
}
inline int64_t offset_of(IntList strides, const int64_t* index) {
  int64_t offset = 0;
  for (size_t d = 0; d < strides.size(); ++d) offset += index[d] * strides[d];
  return offset;
}
// The offset of an element from its flat index.
inline int64_t offset_at(IntList sizes, IntList strides, int64_t flat) {
  int64_t offset = 0;
  for (size_t d = sizes.size(); d-- > 0; flat /= sizes[d]) offset += flat % sizes[d] * strides[d];
  return offset;
}
// Moves the coordinates to the first element of the next row, which the last dimension is.
inline void next_row(IntList sizes, int64_t* index) {
  size_t d = sizes.size() - 1;
  index[d] = 0;
  while (d-- > 0) {
    if (++index[d] < sizes[d]) return;
    index[d] = 0;
  }
}

}  // namespace treadle
