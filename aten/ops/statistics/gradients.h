// Derivatives of scans, softmax, variances, norms and logsumexp. Each formula is composed of
// operators, so it can be differentiated again.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/tensor/tensor.h"

namespace treadle::autograd {

Tensor cumsum_backward(const Tensor& grad, ScalarType dtype, int64_t dim);
// It also holds where elements are zero.
Tensor cumprod_backward(const Tensor& grad, const Tensor& self, int64_t dim, const Tensor& result);

Tensor logcumsumexp_backward(const Tensor& grad, const Tensor& self, const Tensor& result,
                             int64_t dim);

Tensor var_backward(const Tensor& grad, const Tensor& self, OptionalIntList dims,
                    const std::optional<Scalar>& correction, bool keepdim);
// 0 where the result is 0.
Tensor std_backward(const Tensor& grad, const Tensor& self, const Tensor& result,
                    OptionalIntList dims, const std::optional<Scalar>& correction, bool keepdim);

Tensor logsumexp_backward(const Tensor& grad, const Tensor& self, const Tensor& result,
                          IntList dims, bool keepdim);
Tensor vector_norm_backward(const Tensor& grad, const Tensor& self, const Scalar& ord,
                            OptionalIntList dims, bool keepdim, const Tensor& result);

// The derivatives of _softmax_backward_data with respect to `output`, and of
// _log_softmax_backward_data with respect to both tensors.
Tensor softmax_double_backward(const Tensor& grad, const Tensor& grad_output, const Tensor& output,
                               int64_t dim);
Tensor log_softmax_grad_backward(const Tensor& grad, const Tensor& output, int64_t dim);
Tensor log_softmax_double_backward(const Tensor& grad, const Tensor& grad_output,
                                   const Tensor& output, int64_t dim);

}  // namespace treadle::autograd
