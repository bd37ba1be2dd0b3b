// Fills the new memory of a storage with NaN, or with the largest integer.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/ops/creation/new_memory.h"

#include <limits>

#include "aten/ops/_fill_.h"

namespace treadle::composite {

void fill_new_memory(const Tensor& t, size_t from) {
  const int64_t item = t.element_size();
  const int64_t first = (static_cast<int64_t>(from) + item - 1) / item;
  const int64_t count = static_cast<int64_t>(t.storage()->nbytes()) / item - first;
  if (count <= 0 || t.is_meta()) return;
  Scalar value(std::numeric_limits<double>::quiet_NaN());
  visit_type(AllTypes(), t.dtype(), [&]<class T>() {
    if constexpr (std::is_integral_v<T>) value = Scalar(std::numeric_limits<T>::max());
  });
  aten::_fill_(alias_as(t, t.dtype(), {count}, {1}, first), value);
}

}  // namespace treadle::composite
