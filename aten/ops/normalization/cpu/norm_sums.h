// Common parts of the normalisations: parameters that may be absent, and the distribution of rows
// over threads.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <vector>

#include "aten/backend/cpu/long_sums.h"
#include "aten/ops/contiguous.h"
#include "core/tensor/tensor.h"

namespace treadle::cpu {

inline Tensor dense(const Tensor& t) { return t.defined() ? aten::contiguous(t) : t; }

// `count` contiguous elements of a weight or bias; each is `otherwise` if it is absent.
template <class T>
class Parameter {
 public:
  Parameter(const Tensor& t, int64_t count, T otherwise)
      : given_(dense(t)), absent_(t.defined() ? 0 : static_cast<size_t>(count), otherwise) {}
  const T* data() const { return given_.defined() ? given_.data_as<T>() : absent_.data(); }

 private:
  Tensor given_;
  std::vector<T> absent_;
};

// The number of rows of this length that repay a thread of their own.
inline int64_t grain_of(int64_t length) {
  return std::max<int64_t>(1, 32768 / std::max<int64_t>(1, length));
}

}  // namespace treadle::cpu
