// Operators that move or drop elements: flip, tril and triu.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/backend/cuda/kernels/axes.cuh"
#include "aten/backend/cuda/kernels/kernel.cuh"
#include "aten/ops/contiguous.h"
#include "aten/ops/flip.h"
#include "aten/ops/tril.h"
#include "aten/ops/triu.h"

namespace treadle::cuda {
namespace {

template <class Unit>
__global__ void read_strided(const Unit* from, Axes axes, Unit* out, int64_t n) {
  for_each_element(n, [=](int64_t i) { out[i] = from[axes.at(i)]; });
}

// A reversed dimension starts at its last element and has a negative stride.
template <class T>
void flip_cuda(const Tensor& self, IntList dims, const Tensor& out) {
  if (out.numel() == 0) return;
  DimVector strides(self.strides());
  int64_t first = 0;
  if (self.dim() > 0) {
    for (const int64_t d : wrap_dims("flip", OptionalIntList(dims), self.dim(), false)) {
      const auto at = static_cast<size_t>(d);
      first += (self.sizes()[at] - 1) * strides[at];
      strides[at] = -strides[at];
    }
  }
  const Place place(out);
  read_strided<<<blocks_for(out.numel()), kBlock, 0, place.stream>>>(
      static_cast<const Bits<T>*>(self.data()) + first, axes_over("flip", self.sizes(), strides),
      static_cast<Bits<T>*>(out.data()), out.numel());
  check_launched();
}

// Keeps the columns up to `diagonal` from the row's own, or from there on.
template <class Unit, bool upper>
__global__ void triangle_kernel(const Unit* from, Unit* out, int64_t n, int64_t rows,
                                int64_t columns, int64_t diagonal) {
  for_each_element(n, [=](int64_t i) {
    const int64_t line = i / columns, column = i - line * columns;
    const int64_t bound = line % rows + diagonal;
    out[i] = (upper ? column >= bound : column <= bound) ? from[i] : Unit{};
  });
}
template <class T, bool upper>
void triangle(const Tensor& self, int64_t diagonal, const Tensor& out) {
  if (out.numel() == 0) return;
  const Place place(out);
  const Tensor input = aten::contiguous(self);
  const int64_t columns = self.sizes().back(), rows = self.sizes()[self.sizes().size() - 2];
  triangle_kernel<Bits<T>, upper><<<blocks_for(out.numel()), kBlock, 0, place.stream>>>(
      static_cast<const Bits<T>*>(input.data()), static_cast<Bits<T>*>(out.data()), out.numel(),
      rows, columns, std::clamp(diagonal, -rows - 1, columns + 1));
  check_launched();
}
template <class T>
void tril_cuda(const Tensor& self, int64_t diagonal, const Tensor& out) {
  triangle<T, false>(self, diagonal, out);
}
template <class T>
void triu_cuda(const Tensor& self, int64_t diagonal, const Tensor& out) {
  triangle<T, true>(self, diagonal, out);
}

const auto flip_registered = register_cuda<aten::ops::flip>(
    AllTypes(), []<class T>() { return &flip_cuda<T>; }, "flip_cuda");
const auto tril_registered = register_cuda<aten::ops::tril>(
    AllTypes(), []<class T>() { return &tril_cuda<T>; }, "tril_cuda");
const auto triu_registered = register_cuda<aten::ops::triu>(
    AllTypes(), []<class T>() { return &triu_cuda<T>; }, "triu_cuda");

}  // namespace
}  // namespace treadle::cuda
