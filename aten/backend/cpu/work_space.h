// Memory for the intermediate values of a kernel.
//
//   const WorkSpace<float> columns(rows * width);
//   transpose_copy(..., columns.data(), rows);
//
// It comes from Treadle's allocator, which keeps pages between calls. The system maps and clears
// the pages of a large vector anew in each call.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/tensor/tensor.h"

namespace treadle::cpu {

// `count` elements, whose values are not set.
template <class T>
class WorkSpace {
 public:
  explicit WorkSpace(int64_t count) : held_(empty_cpu({count}, scalar_type_of<T>)) {}

  T* data() const { return static_cast<T*>(held_.data()); }
  T& operator[](int64_t i) const { return data()[i]; }

 private:
  Tensor held_;
};

}  // namespace treadle::cpu
