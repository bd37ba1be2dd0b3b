// Derivatives of recurrent cells. While gradients are recorded they are composed of differentiable
// operators; otherwise one kernel computes them.
#pragma once

#include <tuple>

#include "core/tensor.h"

namespace treadle::autograd {

// Gradients of gates and cx.
std::tuple<Tensor, Tensor> lstm_cell_backward(const Tensor& grad_h, const Tensor& grad_c,
                                              const Tensor& gates, const Tensor& cx,
                                              const Tensor& cy);
// Gradients of the gates of the input and of the hidden state, and of hx.
std::tuple<Tensor, Tensor, Tensor> gru_cell_backward(const Tensor& grad, const Tensor& input_gates,
                                                     const Tensor& hidden_gates, const Tensor& hx);

}  // namespace treadle::autograd
