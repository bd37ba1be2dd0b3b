// Shapes of matrix products.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "aten/engine/structured.h"
#include "aten/ops/addmm.h"
#include "aten/ops/baddbmm.h"
#include "aten/ops/bmm.h"
#include "aten/ops/mm.h"

namespace treadle::shape {

// (n, k) by (k, m) -> (n, m).
TensorSpec mm(const char* op, const Tensor& self, const Tensor& mat2);
// The same with a leading batch on both.
TensorSpec bmm(const char* op, const Tensor& self, const Tensor& mat2);
// `self` must broadcast to the product's shape.
TensorSpec addmm(const char* op, const Tensor& self, const Tensor& mat1, const Tensor& mat2);
TensorSpec baddbmm(const char* op, const Tensor& self, const Tensor& batch1, const Tensor& batch2);

}  // namespace treadle::shape
