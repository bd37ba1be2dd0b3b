// CPU kernels of tril and triu.
//
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>

#include "aten/ops/contiguous.h"
#include "aten/ops/tril.h"
#include "aten/ops/triu.h"
#include "core/threads/parallel.h"

namespace treadle::cpu {
namespace {

// Keeps columns [keep_begin, keep_end) of each row, which depend on the row alone.
template <class T>
void triangle(const Tensor& self, int64_t diagonal, const Tensor& out, bool upper) {
  if (out.numel() == 0) return;
  const Tensor input = aten::contiguous(self);
  const int64_t columns = self.sizes().back(), rows = self.sizes()[self.sizes().size() - 2];
  diagonal = std::clamp(diagonal, -rows - 1, columns + 1);
  const T* in = input.data_as<T>();
  T* o = out.data_as<T>();
  const int64_t grain = std::max<int64_t>(1, 32768 / columns);
  parallel_for(out.numel() / columns, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t row = i % rows;
      const int64_t first = upper ? std::clamp(row + diagonal, int64_t{0}, columns) : 0;
      const int64_t last = upper ? columns : std::clamp(row + diagonal + 1, int64_t{0}, columns);
      T* to = o + i * columns;
      std::fill(to, to + first, T());
      std::copy(in + i * columns + first, in + i * columns + last, to + first);
      std::fill(to + last, to + columns, T());
    }
  });
}

template <class T>
void tril_cpu(const Tensor& self, int64_t diagonal, const Tensor& out) {
  triangle<T>(self, diagonal, out, false);
}
template <class T>
void triu_cpu(const Tensor& self, int64_t diagonal, const Tensor& out) {
  triangle<T>(self, diagonal, out, true);
}

const auto tril_registered = register_kernels<aten::ops::tril, DeviceType::CPU>(
    []<class T>() { return &tril_cpu<T>; }, "tril_cpu");
const auto triu_registered = register_kernels<aten::ops::triu, DeviceType::CPU>(
    []<class T>() { return &triu_cpu<T>; }, "triu_cpu");

}  // namespace
}  // namespace treadle::cpu
