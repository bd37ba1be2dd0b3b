// gather: out[i][j] = self[index[i][j]][j] for dim 0, and so on for other dimensions.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/ops/gather.h"
#include "aten/backend/cpu/element_bits.h"
#include "aten/ops/indexing/cpu/index_plan.h"
#include "aten/ops/indexing/cpu/indexed_rows.h"

namespace treadle::cpu {
namespace {

// to[k] = the element of entry first + k. All arguments are passed by value, because the compiler
// must assume that a write could change memory.
template <class Element>
[[gnu::always_inline]] inline void gather_run(const Element* from, int64_t step, int64_t across,
                                              const Entries entries, int64_t first, int64_t count,
                                              Element* to, bool far) {
  int64_t k = 0;
  if (across == 0 && step == 1) {
    for (; far && k < count - kAhead; ++k) {
      __builtin_prefetch(entries.unchecked(from, first + k + kAhead, 1));
      to[k] = from[entries[first + k]];
    }
#pragma GCC unroll 8
    for (; k < count; ++k) to[k] = from[entries[first + k]];
  } else {
#pragma GCC unroll 4
    for (; k < count; ++k) to[k] = from[entries[first + k] * step + k * across];
  }
}

template <class Element>
void gather_rows(const Tensor& self, int64_t dim, const CheckedIndex& index, const Tensor& out) {
  const DimVector sizes = at_least_1d(index.sizes());
  const DimVector strides = at_least_1d(self.strides());
  const int64_t last = static_cast<int64_t>(sizes.size()) - 1;
  const int64_t width = sizes.back();
  const int64_t step = strides[dim];
  const int64_t across = dim == last ? 0 : strides.back();
  const Element* const data = static_cast<const Element*>(self.data());
  Element* const target = static_cast<Element*>(out.data());
  // Gathers from one row of `self`, which each row of the index reads.
  const uint64_t row_bytes =
      static_cast<uint64_t>(self.sizes().empty() ? 1 : self.size(dim)) * sizeof(Element);
  const bool far = !stays_near(width, row_bytes);
  parallel_for(index.numel() / width, grain_for(width), [&](int64_t begin, int64_t end) {
    const Entries entries = index.entries();  // its own copy, which no write can reach
    IndexedRows rows(sizes, strides, dim);
    rows.seek(begin);
    for (int64_t row = begin; row < end; ++row, rows.next()) {
      const int64_t entry = row * width;
      gather_run(data + rows.offset(), step, across, entries, entry, width, target + entry, far);
    }
  });
}

template <class T>
void gather_cpu(const Tensor& self, int64_t dim, const Tensor& index, bool /*sparse_grad*/,
                const Tensor& out) {
  dim = wrap_dim("gather", dim, self.dim());
  if (index.numel() == 0) return;
  const int64_t size = at_least_1d(self.sizes())[dim];
  gather_rows<bits_of<T>>(self, dim, checked_index("gather", index, size, out), out);
}

const auto gather_registered = register_kernels<aten::ops::gather, DeviceType::CPU>(
    []<class T>() { return &gather_cpu<T>; }, "gather_cpu");

}  // namespace
}  // namespace treadle::cpu
