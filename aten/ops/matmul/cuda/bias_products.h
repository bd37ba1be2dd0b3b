// Products of matrices with a bias added to each row, in one kernel, by cuBLASLt.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cublas_api.h>

#include <cstdint>

namespace treadle::cuda {

// out = scale * op(a) op(b) + bias of float32 or 16-bit numbers, by columns as in cuBLAS: op(a) (m,
// k), op(b) (k, n), out (m, n) dense, bias (m), added to each column.
struct BiasProduct {
  int device;
  cudaStream_t stream;
  cudaDataType_t data;
  cublasComputeType_t compute;
  bool a_transposed, b_transposed;
  int64_t m, n, k, a_leading, b_leading;
  const void *a, *b, *bias;
  void* out;
  float scale;
};

// False, with nothing queued, if cuBLASLt has no kernel for it. cuBLASLt's heuristics choose the
// kernel, once for each geometry. Kernels are excluded if their sums depend on the order in which
// blocks end, or if they round partial sums to 16 bits.
bool multiply_with_bias(const BiasProduct& product);

}  // namespace treadle::cuda
