// Shape rules of Fourier transforms between complex and real tensors.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "aten/engine/structured.h"
#include "aten/ops/_fft_c2c.h"
#include "aten/ops/_fft_c2r.h"
#include "aten/ops/_fft_r2c.h"

namespace treadle::shape {

// Every entry of `dim` is a dimension of the tensor. No dimension appears twice or has size 0. The
// last one is halved.
TensorSpec fft_c2c(const char* op, const Tensor& self, IntList dim);
TensorSpec fft_r2c(const char* op, const Tensor& self, IntList dim);
TensorSpec fft_c2r(const char* op, const Tensor& self, IntList dim, int64_t last_dim_size);

}  // namespace treadle::shape
