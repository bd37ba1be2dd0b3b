// The gradient of embedding's weight. The gradient of a row is the sum over its uses, in the order
// of the indices.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/backend/cuda/kernels/kernel.cuh"
#include "aten/ops/contiguous.h"
#include "aten/ops/embedding_dense_backward.h"
#include "aten/ops/indexing/cuda/deterministic_scatter.cuh"
#include "aten/ops/to.h"

namespace treadle::cuda {
namespace {

__device__ const char kBackward[] = "embedding_dense_backward";

// The row that an entry names; none for the padding.
struct Rows {
  const int64_t* index;
  int64_t rows, padding;
  FaultPlace fault;
  __device__ int64_t operator()(int64_t i) const {
    const int64_t row = index[i];
    if (row >= 0 && row < rows) return row == padding ? -1 : row;
    record_fault(fault, kIndexOutOfRange, kBackward, 0, rows, row);
    return -1;
  }
};

template <class T>
struct AddUses {
  using Value = Computed<T>;
  const T* grad;
  int64_t width;
  bool by_count;
  T* out;
  __device__ Value load(int64_t use, int64_t column) const {
    return widened(grad[use * width + column]);
  }
  __device__ Value join(Value a, Value b) const { return a + b; }
  __device__ void store(int64_t row, int64_t column, Value sum, int64_t count) const {
    out[row * width + column] = narrowed<T>(by_count ? sum / static_cast<Value>(count) : sum);
  }
};

template <class T>
void embedding_backward_cuda(const Tensor& grad_output, const Tensor& indices, int64_t num_weights,
                             int64_t padding_idx, bool scale_grad_by_freq, const Tensor& out) {
  if (out.numel() == 0) return;
  const Place place(out);
  succeed(cudaMemsetAsync(out.data(), 0, static_cast<size_t>(out.nbytes()), place.stream),
          "filling memory");
  const Tensor grad = aten::contiguous(grad_output);
  const Tensor index = aten::contiguous(aten::to(indices, ScalarType::Int64));
  const int64_t width = out.sizes()[1];
  const Rows rows{index.data_as<int64_t>(), num_weights, padding_idx, faults().place(place.device)};
  const SortedPairs pairs =
      sorted_entries("embedding_dense_backward", rows, index.numel(), num_weights, place);
  scatter_fold(pairs, num_weights, width,
               AddUses<T>{grad.data_as<T>(), width, scale_grad_by_freq, out.data_as<T>()}, place);
}

const auto backward_registered = register_cuda<aten::ops::embedding_dense_backward>(
    Floats(), []<class T>() { return &embedding_backward_cuda<T>; }, "embedding_backward_cuda");

}  // namespace
}  // namespace treadle::cuda
