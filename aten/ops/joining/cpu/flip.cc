// flip: reads some dimensions backwards.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/ops/flip.h"

#include <algorithm>

#include "aten/backend/cpu/dim_slices.h"
#include "aten/backend/cpu/element_bits.h"
#include "aten/ops/indexing/cpu/indexed_rows.h"

namespace treadle::cpu {
namespace {

template <class Element>
void copy_strided(const Element* from, const DimVector& sizes, const DimVector& strides,
                  Element* to, int64_t rows) {
  const int64_t width = sizes.back();
  const int64_t step = strides.back();
  parallel_for(rows, grain_for(width), [&](int64_t begin, int64_t end) {
    IndexedRows walk(sizes, strides, -1);
    walk.seek(begin);
    for (int64_t row = begin; row < end; ++row, walk.next()) {
      const Element* source = from + walk.offset();
      Element* target = to + row * width;
      if (step == 1) {
        std::copy(source, source + width, target);
      } else if (step == -1) {
        std::reverse_copy(source - width + 1, source + 1, target);
      } else {
        for (int64_t k = 0; k < width; ++k) target[k] = source[k * step];
      }
    }
  });
}

// A reversed dimension starts at its last element and has a negative stride.
template <class T>
void flip_cpu(const Tensor& self, IntList dims, const Tensor& out) {
  if (out.numel() == 0) return;
  DimVector strides = at_least_1d(self.strides());
  const DimVector sizes = at_least_1d(self.sizes());
  int64_t offset = 0;
  for (const int64_t d : wrap_dims("flip", OptionalIntList(dims), self.dim(), false)) {
    if (self.dim() == 0) break;
    offset += (sizes[d] - 1) * strides[d];
    strides[d] = -strides[d];
  }
  using Element = bits_of<T>;
  copy_strided(static_cast<const Element*>(self.data()) + offset, sizes, strides,
               static_cast<Element*>(out.data()), out.numel() / sizes.back());
}

const auto flip_registered = register_kernels<aten::ops::flip, DeviceType::CPU>(
    []<class T>() { return &flip_cpu<T>; }, "flip_cpu");

}  // namespace
}  // namespace treadle::cpu
