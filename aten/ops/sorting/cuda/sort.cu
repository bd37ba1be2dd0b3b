// sort along a dimension, and mode, which finds the longest run of equal elements in sorted order.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/backend/cuda/kernels/sorted_lines.cuh"
#include "aten/ops/_sort_values.h"
#include "aten/ops/contiguous.h"
#include "aten/ops/mode.h"
#include "aten/ops/sort.h"

namespace treadle::cuda {
namespace {

template <class T>
void sort_into(const Tensor& self, int64_t dim, bool descending, const Tensor& values,
               int64_t* indices) {
  if (self.numel() == 0) return;
  const Place place(values);
  const Tensor input = aten::contiguous(self);
  const Lines lines = lines_of(self.sizes(), dim);
  const T* const from = input.data_as<T>();
  put_sorted(sorted_lines("sort", from, lines, descending, place), from, lines, lines.size, values,
             indices, place);
}
template <class T>
void sort_cuda(const Tensor& self, int64_t dim, bool descending, const Tensor& values,
               const Tensor& indices) {
  sort_into<T>(self, dim, descending, values, indices.data_as<int64_t>());
}
template <class T>
void sort_values_cuda(const Tensor& self, int64_t dim, bool descending, const Tensor& out) {
  sort_into<T>(self, dim, descending, out, nullptr);
}

// ---- mode: the smallest of the commonest elements, and the last of its positions ----

struct Run {
  int64_t length, begin;
};
struct Longer {
  __device__ Run operator()(const Run& a, const Run& b) const {
    if (a.length != b.length) return a.length > b.length ? a : b;
    return a.begin < b.begin ? a : b;
  }
};

// A block for each line.
template <class T>
__global__ void mode_kernel(const uint32_t* positions, const T* from, Lines lines, T* values,
                            int64_t* indices) {
  const int64_t line = blockIdx.x, first = line * lines.size;
  const auto value = [=](int64_t j) {
    return widened(from[lines.at(line, positions[first + j] - first)]);
  };
  Run mine{0, 0};
  for (int64_t j = threadIdx.x; j < lines.size; j += kBlock) {
    const auto v = value(j);
    if (j > 0 && value(j - 1) == v) continue;
    // The end of its run, by bisection. Equal elements are adjacent, and every NaN is a separate
    // element.
    int64_t low = j + 1, high = lines.size;
    while (low < high) {
      const int64_t middle = low + (high - low) / 2;
      if (value(middle) == v)
        low = middle + 1;
      else
        high = middle;
    }
    mine = Longer()(mine, Run{low - j, j});
  }
  const Run longest = folded_in_block(mine, Longer());
  if (threadIdx.x != 0) return;
  const int64_t index = positions[first + longest.begin + longest.length - 1] - first;
  values[line] = from[lines.at(line, index)];
  indices[line] = index;
}
template <class T>
void mode_cuda(const Tensor& self, int64_t dim, bool /*keepdim*/, const Tensor& values,
               const Tensor& indices) {
  if (values.numel() == 0) return;
  const Place place(values);
  const Tensor input = aten::contiguous(self);
  const Lines lines = lines_of(self.sizes(), dim);
  const T* const from = input.data_as<T>();
  const SortedPairs pairs = sorted_lines("mode", from, lines, false, place);
  mode_kernel<<<block_each(lines.count), kBlock, 0, place.stream>>>(
      static_cast<const uint32_t*>(pairs.positions()), from, lines, values.data_as<T>(),
      indices.data_as<int64_t>());
  check_launched();
}

const auto sort_registered = register_cuda<aten::ops::sort>(
    DeclaredTypes<aten::ops::sort>(), []<class T>() { return &sort_cuda<T>; }, "sort_cuda");
const auto sort_values_registered = register_cuda<aten::ops::_sort_values>(
    DeclaredTypes<aten::ops::_sort_values>(), []<class T>() { return &sort_values_cuda<T>; },
    "sort_values_cuda");
const auto mode_registered = register_cuda<aten::ops::mode>(
    DeclaredTypes<aten::ops::mode>(), []<class T>() { return &mode_cuda<T>; }, "mode_cuda");

}  // namespace
}  // namespace treadle::cuda
