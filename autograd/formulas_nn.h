// Helpers for the formulas of matrix products and normalisation.
#pragma once

#include <array>
#include <tuple>

#include "core/tensor.h"

namespace treadle::autograd {

// Conjugate transpose of the last two dimensions.
Tensor adjoint(const Tensor& t);
// grad * conj(factor); the gradient itself for a factor of 1.
Tensor scaled(const Tensor& grad, const Scalar& factor);
inline Tensor none_tensor() { return {}; }

// Gradients of input, weight and bias, those that `mask` asks for. While gradients are recorded
// they are composed of differentiable operators; otherwise one kernel computes them.
std::tuple<Tensor, Tensor, Tensor> batch_norm_backward(const Tensor& grad, const Tensor& input,
                                                       const Tensor& weight, const Tensor& mean,
                                                       const Tensor& var, double eps,
                                                       std::array<bool, 3> mask);
std::tuple<Tensor, Tensor, Tensor> layer_norm_backward(const Tensor& grad, const Tensor& input,
                                                       IntList normalized_shape, const Tensor& mean,
                                                       const Tensor& rstd, const Tensor& weight,
                                                       double eps, std::array<bool, 3> mask);

// Gradients of binary_cross_entropy, finite at probabilities of 0 and 1: the slope (p - y) / (p (1
// - p)) is taken with a denominator of at least 1e-12, the logarithms stay above -100.
Tensor binary_cross_entropy_grad_input(const Tensor& grad, const Tensor& self, const Tensor& target,
                                       const Tensor& weight, int64_t reduction);
Tensor binary_cross_entropy_grad_target(const Tensor& grad, const Tensor& self,
                                        const Tensor& weight, int64_t reduction);
Tensor binary_cross_entropy_grad_weight(const Tensor& grad, const Tensor& self,
                                        const Tensor& target, int64_t reduction);

}  // namespace treadle::autograd
