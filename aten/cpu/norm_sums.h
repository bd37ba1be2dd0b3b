// Shared by the normalisations: parameters that may be absent, and how rows are shared out.
#pragma once

#include <algorithm>

#include "aten/cpu/long_sums.h"
#include "aten/ops/contiguous.h"
#include "core/tensor.h"

namespace treadle::cpu {

// Element i of a weight or bias, or what stands for it where there is none.
template <class T>
compute_type<T> parameter(const Tensor& t, int64_t i, compute_type<T> otherwise) {
  return t.defined() ? static_cast<compute_type<T>>(t.data_as<T>()[i]) : otherwise;
}
inline Tensor dense(const Tensor& t) { return t.defined() ? aten::contiguous(t) : t; }

// How many rows of this length are worth a thread of their own.
inline int64_t grain_of(int64_t length) {
  return std::max<int64_t>(1, 32768 / std::max<int64_t>(1, length));
}

}  // namespace treadle::cpu
