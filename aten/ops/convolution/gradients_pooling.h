// Helpers for the formulas of pooling. The number of dimensions is the length of their lists.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "core/tensor/tensor.h"

namespace treadle::autograd {

// `grad` in the memory format of an image of this geometry.
Tensor in_format_of(const Tensor& grad, IntList sizes, IntList strides);
Tensor avg_pool_of(const Tensor& t, IntList kernel_size, IntList stride, IntList padding,
                   bool ceil_mode, bool count_include_pad, std::optional<int64_t> divisor_override);
// The gradient of unpooling into `output_size`, which has an entry for each pooled dimension.
Tensor unpool_backward(const Tensor& grad, const Tensor& indices, IntList output_size);
// Adaptive average pooling to the last `spatial` of `sizes`.
Tensor adaptive_avg_pool_to(const Tensor& t, IntList sizes, int64_t spatial);

}  // namespace treadle::autograd
