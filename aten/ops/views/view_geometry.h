// ViewGeometry: the location of a view's elements, as dimensions are cut, dropped or added.
//
//   ViewGeometry g(x);           // x of shape (4, 5)
//   g.slice(1, {0, 3, 2});       // x[:, ::2], shape (4, 3)
//   g.select(0, 3);              // x[3, ::2], shape (3,)
//   g.over(x);                   // the view
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "core/base/checked.h"
#include "core/tensor/tensor.h"

namespace treadle::shape {

// A stride times a factor, and an offset moved by some strides. They overflow only if the tensor
// has no elements, or one index along the dimension. Then any number is right.
inline int64_t times(int64_t stride, int64_t factor) {
  return (Checked(stride) * factor).value_or(1);
}
inline int64_t moved(int64_t offset, int64_t steps, int64_t stride) {
  return (Checked(steps) * stride + offset).value_or(offset);
}

// The indices first, first + step, ..., `length` of them.
struct SliceRange {
  int64_t first, length, step;
};
// The indices that start, end and step != 0 select in a dimension of `size`, as in Python. Negative
// ones count from the end, a part outside is cut off, and a negative step goes backwards.
inline SliceRange slice_range(std::optional<int64_t> start, std::optional<int64_t> end,
                              int64_t step, int64_t size) {
  const bool back = step < 0;
  const int64_t low = back ? -1 : 0, high = back ? size - 1 : size;
  const auto bound = [&](int64_t index) {
    if (index < 0) index += size;
    return index < low ? low : index > high ? high : index;
  };
  const int64_t first = start ? bound(*start) : back ? high : low;
  const int64_t last = end ? bound(*end) : back ? low : high;
  const int64_t apart = back ? first - last : last - first;
  if (apart <= 0) return {back && first < 0 ? 0 : first, 0, step};
  const uint64_t by = back ? -static_cast<uint64_t>(step) : static_cast<uint64_t>(step);
  return {first, static_cast<int64_t>(static_cast<uint64_t>(apart - 1) / by) + 1, step};
}

// The offset of a view after `steps` steps along a dimension. Without elements there is no address
// to point to.
inline int64_t moved_offset(int64_t offset, int64_t steps, int64_t stride, bool empty) {
  return empty ? offset : moved(offset, steps, stride);
}
// The stride of a dimension cut by `range`. A step beyond the end is never taken, whatever its
// size.
inline int64_t cut_stride(int64_t stride, const SliceRange& range) {
  return range.length > 1 ? times(stride, range.step) : stride;
}

class ViewGeometry {
 public:
  explicit ViewGeometry(const Tensor& t)
      : sizes_(t.sizes()),
        strides_(t.strides()),
        offset_(t.storage_offset()),
        empty_(t.numel() == 0) {}

  const DimVector& sizes() const { return sizes_; }

  // The view of `self`, whose geometry this was. RuntimeError if it is outside of the storage,
  // which was made smaller in the meantime.
  Tensor over(const Tensor& self) const {
    return alias_with_geometry(self, sizes_, strides_, offset_);
  }

  // One index, in [0, size), of dimension `d`, which is dropped.
  void select(size_t d, int64_t index) {
    move(index, strides_[d]);
    sizes_.erase(d);
    strides_.erase(d);
  }
  void slice(size_t d, const SliceRange& range) {
    sizes_[d] = range.length;
    empty_ |= range.length == 0;
    move(range.first, strides_[d]);
    strides_[d] = cut_stride(strides_[d], range);
  }
  // A new dimension of size 1 before dimension `d`.
  void unsqueeze(size_t d) {
    // The stride is that of a contiguous tensor of the new shape.
    const int64_t stride = d < strides_.size() ? times(strides_[d], sizes_[d]) : 1;
    sizes_.insert(d, 1);
    strides_.insert(d, stride);
  }

 private:
  void move(int64_t steps, int64_t stride) {
    offset_ = moved_offset(offset_, steps, stride, empty_);
  }

  DimVector sizes_, strides_;
  int64_t offset_;
  bool empty_;
};

}  // namespace treadle::shape
