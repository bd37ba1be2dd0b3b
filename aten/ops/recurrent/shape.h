// Shapes of recurrent cells: a batch of B states of H units, gates of a multiple of H.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "aten/engine/structured.h"
#include "aten/ops/_gru_cell.h"
#include "aten/ops/_gru_cell_backward.h"
#include "aten/ops/_lstm_cell.h"
#include "aten/ops/_lstm_cell_backward.h"

namespace treadle::shape {

// gates (B, 4H), cx (B, H) -> h, c (B, H).
std::array<TensorSpec, 2> lstm_cell(const char* op, const Tensor& gates, const Tensor& cx);
// -> gradients of gates and cx.
std::array<TensorSpec, 2> lstm_cell_grad(const char* op, const Tensor& grad_h, const Tensor& grad_c,
                                         const Tensor& gates, const Tensor& cx, const Tensor& cy);
// Gates (B, 3H), hx (B, H) -> h (B, H).
TensorSpec gru_cell(const char* op, const Tensor& input_gates, const Tensor& hidden_gates,
                    const Tensor& hx);
// -> gradients of both gates and hx.
std::array<TensorSpec, 3> gru_cell_grad(const char* op, const Tensor& grad,
                                        const Tensor& input_gates, const Tensor& hidden_gates,
                                        const Tensor& hx);

}  // namespace treadle::shape
