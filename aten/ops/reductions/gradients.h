// Helpers for formulas of reductions: they restore the reduced dimensions of a gradient.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/tensor/tensor.h"

namespace treadle::autograd {

// Inserts dimensions of size 1 where `dims` (of a tensor of rank `rank`; absent or empty: all) were
// reduced.
Tensor unsqueeze_multiple(const Tensor& t, OptionalIntList dims, int64_t rank);
// Like unsqueeze_multiple(), unless `keepdim` kept the dimensions.
Tensor restore_reduced_dims(const Tensor& t, OptionalIntList dims, int64_t rank, bool keepdim);

Tensor sum_backward(const Tensor& grad, IntList sizes, OptionalIntList dims, bool keepdim);
Tensor mean_backward(const Tensor& grad, IntList sizes, OptionalIntList dims, bool keepdim);
Tensor prod_backward(const Tensor& grad, const Tensor& self);
Tensor prod_backward(const Tensor& grad, const Tensor& self, int64_t dim, bool keepdim);
// The gradients of amax and amin: tied elements share the gradient evenly.
Tensor extremum_backward(const Tensor& grad, const Tensor& self, const Tensor& result,
                         OptionalIntList dims, bool keepdim);
// The gradients of median and nanmedian of all elements: the elements equal to it, or NaN like it,
// share the gradient evenly.
Tensor median_backward(const Tensor& grad, const Tensor& self, const Tensor& result);

}  // namespace treadle::autograd
