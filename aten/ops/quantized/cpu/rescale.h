// Loops over the whole numbers of quantized tensors.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/tensor/tensor.h"

namespace treadle::cpu {

// sums (rows, columns): result = (sums - input_zero * column_sums) * factors + added, at least 0
// with `relu`, in float32, or rounded to uint8 or int8 with a zero point.
struct Rescaling {
  const int32_t* column_sums;
  const float *factors, *added;  // one for each column; `added` may be null
  int64_t input_zero, output_zero;
  bool relu;
};
void rescale(const Rescaling& r, int64_t rows, int64_t columns, const int32_t* sums,
             const Tensor& out);

// Sums or products of as many numbers of uint8 or int8 as `out` has, all contiguous and of its
// dtype: out = round(f((a - a_zero) * a_scale, (b - b_zero) * b_scale) / scale) + zero.
struct Operand {
  const void* values;
  double scale;
  int64_t zero;
};
void add_or_multiply(bool multiply, const Operand& a, const Operand& b, double scale, int64_t zero,
                     bool relu, const Tensor& out);

}  // namespace treadle::cpu
