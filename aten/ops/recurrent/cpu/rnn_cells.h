// The pointwise part of LSTM and GRU cells on the CPU, and its gradients. Tensors are those of the
// operators of the same names; each has contiguous rows, or the kernel reads a contiguous copy.
// A result may be an argument of the same shape.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/tensor/tensor.h"

namespace treadle::cpu {

template <class T>
void lstm_cell_cpu(const Tensor& gates, const Tensor& cx, const Tensor& hy, const Tensor& cy);
template <class T>
void lstm_cell_backward_cpu(const Tensor& grad_h, const Tensor& grad_c, const Tensor& gates,
                            const Tensor& cx, const Tensor& cy, const Tensor& grad_gates,
                            const Tensor& grad_cx);
template <class T>
void gru_cell_cpu(const Tensor& input_gates, const Tensor& hidden_gates, const Tensor& hx,
                  const Tensor& hy);
template <class T>
void gru_cell_backward_cpu(const Tensor& grad, const Tensor& input_gates,
                           const Tensor& hidden_gates, const Tensor& hx, const Tensor& grad_input,
                           const Tensor& grad_hidden, const Tensor& grad_hx);

}  // namespace treadle::cpu
