// Common parts of the normalisations: parameters that may be absent, rows, and the gradients of
// parameters to which each row contributes once.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "aten/backend/cuda/kernels/kernel.cuh"
#include "aten/ops/contiguous.h"

namespace treadle::cuda {

inline Tensor dense(const Tensor& t) { return t.defined() ? aten::contiguous(t) : t; }
template <class T>
const T* data_of(const Tensor& t) {
  return t.defined() ? t.data_as<T>() : nullptr;
}
// Element i of a parameter, or its default if the parameter is absent.
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

template <class C>
struct Moments {
  C mean, rstd;
};
// The moments of a row, computed by a block.
template <class T>
__device__ inline Moments<Computed<T>> moments_of(const T* x, int64_t length, Computed<T> eps) {
  using C = Computed<T>;
  C sum = 0;
  for (int64_t i = threadIdx.x; i < length; i += kBlock) sum += widened(x[i]);
  const C mean = folded_in_block(sum, Plus()) / static_cast<C>(length);
  C squares = 0;
  for (int64_t i = threadIdx.x; i < length; i += kBlock) {
    const C d = widened(x[i]) - mean;
    squares += d * d;
  }
  const C variance = folded_in_block(squares, Plus()) / static_cast<C>(length);
  return {mean, C(1) / sqrt(variance + eps)};
}

// For each column the sums over rows of g * (x - mean) * rstd and, if requested, of g. A null mean
// is 0. A block computes 32 columns of a piece of the rows, in 8 parts whose sums it adds in order.
// The number of pieces depends only on sizes, and they are joined in order too.
constexpr int kColumns = 32, kParts = kBlock / kColumns;
template <class T>
__global__ void parameter_sums_kernel(const T* g, const T* x, const Computed<T>* mean,
                                      const Computed<T>* rstd, int64_t rows, int64_t length,
                                      int64_t piece, Computed<T>* weights, Computed<T>* biases) {
  using C = Computed<T>;
  __shared__ C weight_parts[kParts][kColumns], bias_parts[kParts][kColumns];
  const int column = threadIdx.x % kColumns, part = threadIdx.x / kColumns;
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kColumns + column;
  const int64_t begin = blockIdx.y * piece, end = begin + piece < rows ? begin + piece : rows;
  C w = 0, b = 0;
  if (i < length) {
#pragma unroll 4
    for (int64_t r = begin + part; r < end; r += kParts) {
      const C slope = widened(g[r * length + i]), m = mean ? mean[r] : C(0);
      w += slope * (widened(x[r * length + i]) - m) * rstd[r];
      b += slope;
    }
  }
  weight_parts[part][column] = w;
  bias_parts[part][column] = b;
  __syncthreads();
  if (part != 0 || i >= length) return;
  for (int p = 1; p < kParts; ++p) {
    w += weight_parts[p][column];
    b += bias_parts[p][column];
  }
  weights[blockIdx.y * length + i] = w;
  biases[blockIdx.y * length + i] = b;
}
template <class T>
__global__ void join_parameters_kernel(const Computed<T>* weights, const Computed<T>* biases,
                                       int64_t pieces, int64_t length, T* grad_weight,
                                       T* grad_bias) {
  using C = Computed<T>;
  for_each_element(length, [=](int64_t i) {
    C w = 0, b = 0;
    for (int64_t p = 0; p < pieces; ++p) {
      w += weights[p * length + i];
      b += biases[p * length + i];
    }
    grad_weight[i] = narrowed<T>(w);
    if (grad_bias) grad_bias[i] = narrowed<T>(b);
  });
}
// g and x are contiguous, and so are mean, which may be undefined, and rstd, with one number for
// each row. grad_bias may be undefined, too.
template <class T>
void parameter_gradients(const Tensor& g, const Tensor& x, const Tensor& mean, const Tensor& rstd,
                         const NormRows& s, const Tensor& grad_weight, const Tensor& grad_bias,
                         cudaStream_t stream) {
  using C = Computed<T>;
  constexpr int64_t kBlocks = 512, kFewestRows = 64;
  const int64_t columns = (s.length + kColumns - 1) / kColumns;
  const int64_t most =
      std::max<int64_t>(1, std::min(kBlocks / columns, (s.rows + kFewestRows - 1) / kFewestRows));
  const int64_t piece = std::max<int64_t>(1, (s.rows + most - 1) / most);
  const int64_t pieces = std::max<int64_t>(1, (s.rows + piece - 1) / piece);
  const Tensor room = empty_tensor({2, pieces, s.length}, rstd.dtype(), g.device());
  C *const weights = room.data_as<C>(), *const biases = weights + pieces * s.length;
  parameter_sums_kernel<T>
      <<<dim3(block_each(columns), static_cast<unsigned>(pieces)), kBlock, 0, stream>>>(
          g.data_as<T>(), x.data_as<T>(), data_of<C>(mean), rstd.data_as<C>(), s.rows, s.length,
          piece, weights, biases);
  check_launched();
  join_parameters_kernel<T><<<blocks_for(s.length), kBlock, 0, stream>>>(
      weights, biases, pieces, s.length, grad_weight.data_as<T>(),
      grad_bias.defined() ? grad_bias.data_as<T>() : nullptr);
  check_launched();
}

}  // namespace treadle::cuda
