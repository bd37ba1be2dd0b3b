// What the normalisations share: parameters that may be absent, rows, and the gradients of
// parameters that each row meets once.
#pragma once

#include "aten/cuda/kernels/kernel.cuh"
#include "aten/ops/contiguous.h"

namespace treadle::cuda {

inline Tensor dense(const Tensor& t) { return t.defined() ? aten::contiguous(t) : t; }
template <class T>
const T* data_of(const Tensor& t) {
  return t.defined() ? t.data_as<T>() : nullptr;
}
// Element i of a parameter, or what stands for it where there is none.
template <class T>
__device__ inline Computed<T> parameter(const T* data, int64_t i, Computed<T> otherwise) {
  return data ? widened(data[i]) : otherwise;
}

struct NormRows {
  int64_t rows = 1, length = 1;
  NormRows(IntList input, IntList normalized) {
    for (const int64_t n : normalized) length *= n;
    for (size_t d = 0; d < input.size() - normalized.size(); ++d) rows *= input[d];
  }
};

// Of each column the sums over rows of g * (x - mean) * rstd and, where it is wanted, of g; a mean
// that is null is 0. Rows in 8 parts, of 32 columns each: a block's sums of the parts are added in
// order.
constexpr int kColumns = 32, kParts = kBlock / kColumns;
template <class T>
__global__ void parameter_gradients_kernel(const T* g, const T* x, const Computed<T>* mean,
                                           const Computed<T>* rstd, int64_t rows, int64_t length,
                                           T* grad_weight, T* grad_bias) {
  using C = Computed<T>;
  __shared__ C weights[kParts][kColumns], biases[kParts][kColumns];
  const int column = threadIdx.x % kColumns, part = threadIdx.x / kColumns;
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kColumns + column;
  C w = 0, b = 0;
  if (i < length) {
    for (int64_t r = part; r < rows; r += kParts) {
      const C slope = widened(g[r * length + i]), m = mean ? mean[r] : C(0);
      w += slope * (widened(x[r * length + i]) - m) * rstd[r];
      b += slope;
    }
  }
  weights[part][column] = w;
  biases[part][column] = b;
  __syncthreads();
  if (part != 0 || i >= length) return;
  for (int p = 1; p < kParts; ++p) {
    w += weights[p][column];
    b += biases[p][column];
  }
  grad_weight[i] = narrowed<T>(w);
  if (grad_bias) grad_bias[i] = narrowed<T>(b);
}
template <class T>
void parameter_gradients(const T* g, const T* x, const Computed<T>* mean, const Computed<T>* rstd,
                         const NormRows& s, T* grad_weight, T* grad_bias, cudaStream_t stream) {
  parameter_gradients_kernel<T>
      <<<static_cast<unsigned>((s.length + kColumns - 1) / kColumns), kBlock, 0, stream>>>(
          g, x, mean, rstd, s.rows, s.length, grad_weight, grad_bias);
  check_launched();
}

}  // namespace treadle::cuda
