// Shapes of products with weights of few bits.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "aten/engine/structured.h"
#include "aten/ops/_convert_weight_to_int4pack_for_cpu.h"
#include "aten/ops/_weight_int4pack_mm_for_cpu.h"
#include "aten/ops/_weight_int8pack_mm.h"

namespace treadle::shape {

// (m, k) by the rows of (n, k), with n scales -> (m, n).
TensorSpec weight_int8pack_mm(const char* op, const Tensor& self, const Tensor& mat2,
                              const Tensor& scales);
// (n, k) -> (n, k / 2) bytes.
TensorSpec weight_int4pack(const char* op, const Tensor& self);
// (m, k) by the rows of packed (n, k / 2), with (k / group, n, 2) scales and zeros -> (m, n).
TensorSpec weight_int4pack_mm(const char* op, const Tensor& self, const Tensor& mat2, int64_t group,
                              const Tensor& scales_and_zeros);

}  // namespace treadle::shape
