// Gradients of the transforms that return or take half of a spectrum.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/tensor/tensor.h"

namespace treadle::autograd {

// Points of the half that stand for two of the whole have twice the gradient. So these are the
// inverse transforms, with such points halved or doubled.
Tensor fft_r2c_backward(const Tensor& grad, IntList dim, int64_t normalization, bool forward,
                        int64_t last_dim_size);
Tensor fft_c2r_backward(const Tensor& grad, IntList dim, int64_t normalization, bool forward);

}  // namespace treadle::autograd
