// Shape rules of histograms.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "aten/engine/structured.h"
#include "aten/ops/_histogramdd.h"
#include "aten/ops/histc.h"

namespace treadle::shape {

TensorSpec histc(const char* op, const Tensor& self, int64_t bins, const Scalar& min,
                 const Scalar& max);
// Points (n, d), and two or more edges for each of the d columns.
TensorSpec histogramdd(const char* op, const Tensor& self, TensorList bins, const Tensor& weight);

}  // namespace treadle::shape
