// flip: reads some dimensions backwards.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/ops/flip.h"

#include "aten/backend/cpu/convert.h"
#include "aten/backend/cpu/dim_slices.h"
#include "aten/backend/cpu/element_bits.h"
#include "aten/ops/indexing/cpu/indexed_rows.h"

namespace treadle::cpu {
namespace {

// The function that copies elements of so many bytes at any distance.
template <size_t kItem>
simd::ConvertFn* copier() {
  constexpr ScalarType kOfBytes = kItem == 1   ? ScalarType::UInt8
                                  : kItem == 2 ? ScalarType::UInt16
                                  : kItem == 4 ? ScalarType::UInt32
                                  : kItem == 8 ? ScalarType::UInt64
                                               : ScalarType::Complex128;
  return simd::converter(kOfBytes, kOfBytes);
}

template <class Element>
void copy_strided(const Element* from, const DimVector& sizes, const DimVector& strides,
                  Element* to, int64_t rows) {
  constexpr auto kItem = static_cast<int64_t>(sizeof(Element));
  const int64_t width = sizes.back();
  simd::ConvertFn* const copy = copier<sizeof(Element)>();
  parallel_for(rows, grain_for(width), [&](int64_t begin, int64_t end) {
    IndexedRows walk(sizes, strides, -1);
    walk.seek(begin);
    for (int64_t row = begin; row < end; ++row, walk.next()) {
      copy(reinterpret_cast<const char*>(from + walk.offset()), strides.back() * kItem,
           reinterpret_cast<char*>(to + row * width), kItem, width);
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
