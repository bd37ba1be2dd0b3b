// Shape rules of the kernels for compressed sparse matrices.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "aten/engine/structured.h"
#include "aten/ops/_csr_coordinates.h"
#include "aten/ops/_csr_dense.h"
#include "aten/ops/_csr_mm.h"
#include "aten/ops/_csr_mv_turned.h"
#include "aten/ops/_csr_row_dots.h"
#include "aten/ops/_csr_sampled_mm.h"
#include "aten/ops/_csr_triangular_solve.h"

namespace treadle::shape {

TensorSpec csr_coordinates(const char* op, const Tensor& crow, const Tensor& col);
TensorSpec csr_dense(const char* op, const Tensor& values, const Tensor& crow, const Tensor& col,
                     int64_t columns, bool by_rows);
TensorSpec csr_mm(const char* op, const Tensor& values, const Tensor& crow, const Tensor& col,
                  const Tensor& dense);
TensorSpec csr_mv_turned(const char* op, const Tensor& values, const Tensor& crow,
                         const Tensor& col, const Tensor& vector, int64_t columns);
TensorSpec csr_sampled_mm(const char* op, const Tensor& a, const Tensor& b, const Tensor& crow,
                          const Tensor& col);
TensorSpec csr_row_dots(const char* op, const Tensor& values1, const Tensor& crow1,
                        const Tensor& col1, const Tensor& values2, const Tensor& crow2,
                        const Tensor& col2, const Tensor& crow, const Tensor& col);

TensorSpec csr_triangular_solve(const char* op, const Tensor& values, const Tensor& crow,
                                const Tensor& col, const Tensor& other);

}  // namespace treadle::shape
