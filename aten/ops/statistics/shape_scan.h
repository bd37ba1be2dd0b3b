// Shape rule of scans: cumsum, cumprod.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "aten/engine/structured.h"
#include "aten/ops/cumprod.h"
#include "aten/ops/logcumsumexp.h"

namespace treadle::shape {

// Integers and bool become int64 unless `dtype` says otherwise.
TensorSpec scan(const char* op, const Tensor& self, int64_t dim, std::optional<ScalarType> dtype);

// A scan that keeps self's dtype.
TensorSpec scan_same(const char* op, const Tensor& self, int64_t dim);

}  // namespace treadle::shape
