// The rows (last dimension) of an index tensor, and their offsets in the tensors that gather and
// scatter pair with it.
//
// gather and scatter visit all coordinates of `index`. A tensor paired with it has the same
// coordinates except for `dim`, where the entry of `index` is the coordinate. IndexedRows holds the
// offset of each row in such a tensor without that part.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/tensor/tensor.h"

namespace treadle::cpu {

// Sizes or strides, where a 0-dim tensor counts as one of shape (1,).
inline DimVector at_least_1d(IntList values) {
  return values.empty() ? DimVector{1} : DimVector(values);
}

class IndexedRows {
 public:
  // `sizes` of the index tensor, `strides` of the paired one; `dim` is not negative. dim = -1: no
  // coordinate is replaced.
  IndexedRows(IntList sizes, IntList strides, int64_t dim)
      : sizes_(sizes.slice(0, sizes.size() - 1)), strides_(strides.slice(0, sizes.size() - 1)) {
    if (dim >= 0 && dim < static_cast<int64_t>(strides_.size())) strides_[dim] = 0;
    position_.resize(sizes_.size(), 0);
  }

  void seek(int64_t row) {
    unravel(sizes_, row, position_.data());
    offset_ = offset_of(strides_, position_.data());
  }
  void next() {
    for (size_t d = sizes_.size(); d-- > 0;) {
      offset_ += strides_[d];
      if (++position_[d] < sizes_[d]) return;
      offset_ -= position_[d] * strides_[d];
      position_[d] = 0;
    }
  }
  int64_t offset() const { return offset_; }

 private:
  DimVector sizes_, strides_, position_;
  int64_t offset_ = 0;
};

}  // namespace treadle::cpu
