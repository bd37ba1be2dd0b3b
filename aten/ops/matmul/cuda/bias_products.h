// Products of matrices with a bias added to each row, in one kernel, by cuBLASLt.
#pragma once

#include <cublas_api.h>

#include <cstdint>

namespace treadle::cuda {

// out = scale * op(a) op(b) + bias of float32 or 16-bit numbers, as cuBLAS sees matrices, by
// columns: op(a) (m, k), op(b) (k, n), out (m, n) dense, bias (m), added to each column.
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

// False where cuBLASLt has no kernel for it: nothing is queued then. Which kernel it is its
// heuristics say, once for each geometry; none whose sums depend on which block ends first, or
// which rounds parts of sums to 16 bits.
bool multiply_with_bias(const BiasProduct& product);

}  // namespace treadle::cuda
