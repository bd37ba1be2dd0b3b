// Matrix products, for the operators and for convolutions.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "device.h"

namespace treadle_opencl {

// A batch of matrices in a tensor: strides of batch, row and column in elements, from `offset`
// elements after the tensor's first.
struct Matrices {
  treadle::plugin::Tensor tensor;
  int64_t batch_stride, row_stride, column_stride;
  int64_t offset = 0;
};

// out[b, i, j] = beta * bias[b, i, j] + alpha * sum_k left[b, i, k] * right[b, k, j], where `out`
// is a contiguous run of batches * rows * columns elements at an offset in a tensor. An undefined
// bias adds nothing. All of one dtype.
void multiply(int64_t batches, int64_t rows, int64_t columns, int64_t depth, Matrices left,
              Matrices right, const treadle::plugin::Tensor& out, int64_t out_offset = 0,
              const treadle::plugin::Number& alpha = 1, const Matrices& bias = {},
              const treadle::plugin::Number& beta = 0);

}  // namespace treadle_opencl
