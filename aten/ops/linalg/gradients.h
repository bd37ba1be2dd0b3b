// Derivatives of linear algebra. Each formula is made of operators, so that it can be
// differentiated again. `grads` are the gradients of the results, undefined where a result is not
// used.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string_view>
#include <tuple>

#include "core/tensor/tensor.h"

namespace treadle::autograd {

// Factors.
Tensor lu_backward(const Tensor& grad, const Tensor& lu, const Tensor& pivots);
Tensor cholesky_backward(const Tensor& grad, const Tensor& factor, bool upper);
Tensor qr_backward(TensorList grads, const Tensor& q, const Tensor& r, std::string_view mode);
std::tuple<Tensor, Tensor> householder_product_backward(const Tensor& grad, const Tensor& vectors,
                                                        const Tensor& tau);
std::tuple<Tensor, Tensor, Tensor> ormqr_backward(const Tensor& grad, const Tensor& vectors,
                                                  const Tensor& tau, const Tensor& other, bool left,
                                                  bool transpose);

// Solutions.
std::tuple<Tensor, Tensor> solve_backward(const Tensor& grad, const Tensor& a, const Tensor& b,
                                          const Tensor& result, bool left,
                                          std::array<bool, 2> grad_input_mask);
std::tuple<Tensor, Tensor> solve_triangular_backward(const Tensor& grad, const Tensor& a,
                                                     IntList b_sizes, const Tensor& result,
                                                     bool upper, bool left, bool unitriangular,
                                                     std::array<bool, 2> grad_input_mask);
std::tuple<Tensor, Tensor> lstsq_backward(const Tensor& grad, const Tensor& a, const Tensor& b,
                                          std::array<bool, 2> grad_input_mask);
Tensor inv_backward(const Tensor& grad, const Tensor& inverse);
Tensor pinv_backward(const Tensor& grad, const Tensor& self, const Tensor& inverse);
// It also holds for singular matrices.
Tensor det_backward(const Tensor& grad, const Tensor& a, const Tensor& det);
Tensor slogdet_backward(TensorList grads, const Tensor& a, const Tensor& sign);

// Spectra. RuntimeError if the result depends on the phase of complex vectors, which is not
// determined.
Tensor eigh_backward(TensorList grads, const Tensor& a, const Tensor& values, const Tensor& vectors,
                     std::string_view uplo, bool compute_v);
Tensor eig_backward(TensorList grads, const Tensor& a, const Tensor& values, const Tensor& vectors,
                    bool compute_v);
Tensor svd_backward(TensorList grads, const Tensor& a, const Tensor& left, const Tensor& values,
                    const Tensor& right, bool full_matrices, bool compute_uv);

Tensor matrix_exp_backward(const Tensor& grad, const Tensor& self);
// With respect to x1, or to x2.
Tensor cdist_backward(const Tensor& grad, const Tensor& x1, const Tensor& x2, double p,
                      const Tensor& result, bool second);

}  // namespace treadle::autograd
