// Shapes of ctc_loss.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "aten/engine/structured.h"
#include "aten/ops/_ctc_loss.h"
#include "aten/ops/_ctc_loss_backward.h"

namespace treadle::shape {

// log_probs (T, N, C), targets (N, S) or all in a row -> losses (N), and the logarithms of the
// forward probabilities (N, T, 2 S + 1).
std::array<TensorSpec, 2> ctc_loss(const char* op, const Tensor& log_probs, const Tensor& targets,
                                   IntList input_lengths, IntList target_lengths, int64_t blank);
// -> gradient of log_probs.
TensorSpec ctc_loss_grad(const char* op, const Tensor& grad, const Tensor& log_probs,
                         const Tensor& targets, IntList input_lengths, IntList target_lengths,
                         const Tensor& loss, const Tensor& log_alpha, int64_t blank);

}  // namespace treadle::shape
