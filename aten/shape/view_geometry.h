// ViewGeometry: where the elements of a view lie, as dimensions are cut, dropped or added.
//
//   ViewGeometry g(x);           // x of shape (4, 5)
//   g.slice(1, 0, 5, 2);         // x[:, ::2], shape (4, 3)
//   g.select(0, 3);              // x[3, ::2], shape (3,)
//   g.over(x);                   // the view
#pragma once

#include "core/checked.h"
#include "core/tensor.h"

namespace treadle::shape {

// A stride times a factor, an offset moved by some strides. These overflow only where the tensor
// has no elements or one index along the dimension: there any number would do.
inline int64_t times(int64_t stride, int64_t factor) {
  return (Checked(stride) * factor).value_or(1);
}
inline int64_t moved(int64_t offset, int64_t steps, int64_t stride) {
  return (Checked(steps) * stride + offset).value_or(offset);
}

class ViewGeometry {
 public:
  explicit ViewGeometry(const Tensor& t)
      : sizes_(t.sizes()),
        strides_(t.strides()),
        offset_(t.storage_offset()),
        empty_(t.numel() == 0) {}

  const DimVector& sizes() const { return sizes_; }

  // The view of `self`, whose geometry this was. RuntimeError where it is outside of the storage,
  // which was made smaller then.
  Tensor over(const Tensor& self) const {
    return alias_with_geometry(self, sizes_, strides_, offset_);
  }

  // One index, in [0, size), of dimension `d`, which goes.
  void select(size_t d, int64_t index) {
    move(index, strides_[d]);
    sizes_.erase(d);
    strides_.erase(d);
  }
  // Every `step`-th index from `first` to before `last`; 0 <= first <= last <= size, step > 0.
  void slice(size_t d, int64_t first, int64_t last, int64_t step) {
    const int64_t count = last - first;
    const int64_t length = step == 1 || count == 0 ? count : (count - 1) / step + 1;
    sizes_[d] = length;
    empty_ |= length == 0;
    move(first, strides_[d]);
    // A step beyond the end is never taken, whatever it is.
    if (length > 1) strides_[d] = times(strides_[d], step);
  }
  // A new dimension of size 1 before dimension `d`.
  void unsqueeze(size_t d) {
    // What a contiguous tensor of the new shape has there.
    const int64_t stride = d < strides_.size() ? times(strides_[d], sizes_[d]) : 1;
    sizes_.insert(d, 1);
    strides_.insert(d, stride);
  }

 private:
  void move(int64_t steps, int64_t stride) {
    // Without elements there is no place to point to.
    if (!empty_) offset_ = moved(offset_, steps, stride);
  }

  DimVector sizes_, strides_;
  int64_t offset_;
  bool empty_;
};

// Where an index that may be negative lies, cut off at the ends: in [0, size].
inline int64_t clamped(int64_t index, int64_t size) {
  if (index < 0) index += size;
  return index < 0 ? 0 : index > size ? size : index;
}

}  // namespace treadle::shape
