// Derivatives of recurrent cells and layers. While gradients are recorded, they are composed of
// differentiable operators. Otherwise one kernel computes them.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <tuple>
#include <vector>

#include "core/tensor/tensor.h"

namespace treadle::autograd {

// Gradients of gates and cx.
std::tuple<Tensor, Tensor> lstm_cell_backward(const Tensor& grad_h, const Tensor& grad_c,
                                              const Tensor& gates, const Tensor& cx,
                                              const Tensor& cy);
// Gradients of the gates of the input and of the hidden state, and of hx.
std::tuple<Tensor, Tensor, Tensor> gru_cell_backward(const Tensor& grad, const Tensor& input_gates,
                                                     const Tensor& hidden_gates, const Tensor& hx);

// Gradients of input, hx, cx and params of `_recurrent_layers`, as `wanted` requests.
std::tuple<Tensor, Tensor, Tensor, std::vector<Tensor>> recurrent_layers_backward(
    const Tensor& grad_output, const Tensor& grad_hy, const Tensor& grad_cy, const Tensor& input,
    IntList batch_sizes, const Tensor& hx, const Tensor& cx, TensorList params, int64_t cell,
    bool has_biases, int64_t num_layers, bool bidirectional, const Tensor& output,
    const Tensor& reserve, std::array<bool, 4> wanted);

}  // namespace treadle::autograd
