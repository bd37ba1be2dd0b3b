// Resampling along one dimension, and its gradient. A table of the inputs of each output is made on
// the device (aten/ops/resampling/resample_taps.h). Then a thread adds up an element.
//
// The gradient of an input sums over the outputs that use it, in their order. These outputs are
// consecutive, because the inputs of an output never move back from one output to the next. So the
// first is found by bisection.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/backend/cuda/kernels/kernel.cuh"
#include "aten/ops/_resample.h"
#include "aten/ops/_resample_backward.h"
#include "aten/ops/contiguous.h"
#include "aten/ops/resampling/resample_taps.h"

namespace treadle::cuda {
namespace {

// Output o has taps o * most to o * most + count[o], between the inputs low[o] and high[o].
template <class C>
struct Table {
  int64_t most, rows;
  int64_t *index, *low, *high, *count;
  C* weight;
};

template <class C>
__global__ void fill_table(ResampleTaps taps, Table<C> table) {
  for_each_element(table.rows, [=](int64_t o) {
    int64_t n = 0, low = taps.in, high = -1;
    taps.of(o, [&](int64_t at, double w) {
      table.index[o * table.most + n] = at;
      table.weight[o * table.most + n] = static_cast<C>(w);
      low = at < low ? at : low;
      high = at > high ? at : high;
      ++n;
    });
    table.low[o] = low;
    table.high[o] = high;
    table.count[o] = n;
  });
}

// A table, and the memory that it lies in.
template <class C>
class TableMemory {
 public:
  TableMemory(const ResampleTaps& taps, const Tensor& beside, const Place& place) {
    const int64_t rows = taps.out, most = taps.most();
    numbers_ = empty_tensor({rows * (most + 3)}, ScalarType::Int64, beside.device());
    weights_ = empty_tensor({rows * most}, scalar_type_of<C>, beside.device());
    auto* const numbers = numbers_.data_as<int64_t>();
    table_ = {most,
              rows,
              numbers + 3 * rows,
              numbers,
              numbers + rows,
              numbers + 2 * rows,
              weights_.data_as<C>()};
    fill_table<<<blocks_for(rows), kBlock, 0, place.stream>>>(taps, table_);
    check_launched();
  }
  const Table<C>& table() const { return table_; }

 private:
  Tensor numbers_, weights_;
  Table<C> table_;
};

// (outer, in, inner) to (outer, rows, inner).
template <class T>
__global__ void resample_kernel(Table<Computed<T>> table, const T* from, T* to, int64_t n,
                                int64_t in, int64_t inner) {
  for_each_element(n, [=](int64_t i) {
    const int64_t x = i % inner, row = i / inner, o = row % table.rows;
    const T* const plane = from + row / table.rows * in * inner + x;
    const int64_t first = o * table.most;
    Computed<T> sum = 0;
    for (int64_t k = first; k < first + table.count[o]; ++k)
      sum += table.weight[k] * widened(plane[table.index[k] * inner]);
    to[i] = narrowed<T>(sum);
  });
}
// (outer, rows, inner) to (outer, in, inner).
template <class T>
__global__ void resample_backward_kernel(Table<Computed<T>> table, const T* grad, T* to, int64_t n,
                                         int64_t in, int64_t inner) {
  for_each_element(n, [=](int64_t i) {
    const int64_t x = i % inner, row = i / inner, at = row % in;
    const T* const plane = grad + row / in * table.rows * inner + x;
    int64_t first = 0, behind = table.rows;
    while (first < behind) {
      const int64_t middle = (first + behind) / 2;
      if (table.high[middle] < at)
        first = middle + 1;
      else
        behind = middle;
    }
    Computed<T> sum = 0;
    for (int64_t o = first; o < table.rows && table.low[o] <= at; ++o) {
      for (int64_t k = o * table.most; k < o * table.most + table.count[o]; ++k)
        if (table.index[k] == at) sum += table.weight[k] * widened(plane[o * inner]);
    }
    to[i] = narrowed<T>(sum);
  });
}

int64_t inner_of(const Tensor& t, int64_t dim) {
  int64_t inner = 1;
  for (int64_t d = dim + 1; d < t.dim(); ++d) inner *= t.size(d);
  return inner;
}

template <class T>
void resample_cuda(const Tensor& self, int64_t dim, int64_t size, std::string_view mode,
                   bool align_corners, std::optional<double> scale, const Tensor& out) {
  if (out.numel() == 0) return;
  dim = wrap_dim("_resample", dim, self.dim());
  const Tensor input = aten::contiguous(self);
  const int64_t in = self.size(dim);
  const Place place(out);
  const TableMemory<Computed<T>> memory({mode, in, size, align_corners, scale}, out, place);
  resample_kernel<T><<<blocks_for(out.numel()), kBlock, 0, place.stream>>>(
      memory.table(), input.data_as<T>(), out.data_as<T>(), out.numel(), in, inner_of(out, dim));
  check_launched();
}

template <class T>
void resample_backward_cuda(const Tensor& grad, int64_t dim, int64_t size, std::string_view mode,
                            bool align_corners, std::optional<double> scale, const Tensor& out) {
  if (out.numel() == 0) return;
  dim = wrap_dim("_resample_backward", dim, grad.dim());
  const Tensor input = aten::contiguous(grad);
  const Place place(out);
  const TableMemory<Computed<T>> memory({mode, size, grad.size(dim), align_corners, scale}, out,
                                        place);
  resample_backward_kernel<T><<<blocks_for(out.numel()), kBlock, 0, place.stream>>>(
      memory.table(), input.data_as<T>(), out.data_as<T>(), out.numel(), size, inner_of(out, dim));
  check_launched();
}

const auto resample_registered = register_cuda<aten::ops::_resample>(
    Floats(), []<class T>() { return &resample_cuda<T>; }, "resample_cuda");
const auto backward_registered = register_cuda<aten::ops::_resample_backward>(
    Floats(), []<class T>() { return &resample_backward_cuda<T>; }, "resample_backward_cuda");

}  // namespace
}  // namespace treadle::cuda
