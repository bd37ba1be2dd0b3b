// Shape rules of triangles, of sampling by weights and of random counts.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "aten/engine/structured.h"
#include "aten/ops/binomial.h"
#include "aten/ops/multinomial.h"
#include "aten/ops/tril.h"

namespace treadle::shape {

TensorSpec triangle(const char* op, const Tensor& self);
TensorSpec multinomial(const char* op, const Tensor& self, int64_t num_samples, bool replacement);

TensorSpec binomial(const char* op, const Tensor& count, const Tensor& prob);

}  // namespace treadle::shape
