// Checks that log probabilities, targets and lengths fit together.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/ops/losses/shape_ctc.h"

#include <algorithm>

namespace treadle::shape {

std::array<TensorSpec, 2> ctc_loss(const char* op, const Tensor& log_probs, const Tensor& targets,
                                   IntList input_lengths, IntList target_lengths, int64_t blank) {
  check<ErrorKind::Runtime>(log_probs.dim() == 3, OpName(op),
                            "expected log_probs of shape (T, N, C), got ", log_probs.sizes());
  const int64_t steps = log_probs.size(0), samples = log_probs.size(1), classes = log_probs.size(2);
  check<ErrorKind::Runtime>(targets.dtype() == ScalarType::Int64, OpName(op),
                            "expected targets of an integer dtype, got ", targets.dtype());
  check<ErrorKind::Runtime>(
      targets.dim() == 1 || (targets.dim() == 2 && targets.size(0) == samples), OpName(op),
      "expected targets of shape (", samples, ", S) or of 1 dimension, got ", targets.sizes());
  check<ErrorKind::Runtime>(blank >= 0 && blank < classes, OpName(op), "expected blank in [0, ",
                            classes, "), got ", blank);
  check<ErrorKind::Runtime>(static_cast<int64_t>(input_lengths.size()) == samples &&
                                static_cast<int64_t>(target_lengths.size()) == samples,
                            OpName(op), "expected ", samples,
                            " input_lengths and target_lengths, got ", input_lengths.size(),
                            " and ", target_lengths.size());
  int64_t longest = 0, frames = 0, left = targets.dim() == 1 ? targets.size(0) : 0;
  for (size_t n = 0; n < input_lengths.size(); ++n) {
    check<ErrorKind::Runtime>(input_lengths[n] >= 0 && input_lengths[n] <= steps, OpName(op),
                              "expected input_lengths in [0, ", steps, "], got ", input_lengths[n]);
    frames = std::max(frames, input_lengths[n]);
    const int64_t most = targets.dim() == 1 ? left : targets.size(1);
    check<ErrorKind::Runtime>(target_lengths[n] >= 0 && target_lengths[n] <= most, OpName(op),
                              "expected target_lengths in [0, ", most, "] for sample ", n, ", got ",
                              target_lengths[n]);
    if (targets.dim() == 1) left -= target_lengths[n];
    longest = std::max(longest, target_lengths[n]);
  }
  check<ErrorKind::Runtime>(left == 0, OpName(op), "expected target_lengths that sum to ",
                            targets.numel(), ", the targets given, got ", targets.numel() - left);
  const int64_t places = checked_numel({longest, 2}) + 1;
  return {TensorSpec{{samples}, log_probs.dtype(), log_probs.device()},
          TensorSpec{{samples, frames, places}, log_probs.dtype(), log_probs.device()}};
}

TensorSpec ctc_loss_grad(const char* op, const Tensor& grad, const Tensor& log_probs,
                         const Tensor& targets, IntList input_lengths, IntList target_lengths,
                         const Tensor& loss, const Tensor& log_alpha, int64_t blank) {
  const auto forward = ctc_loss(op, log_probs, targets, input_lengths, target_lengths, blank);
  for (const Tensor* t : {&grad, &loss}) {
    check<ErrorKind::Runtime>(
        t->sizes() == IntList(forward[0].sizes) && t->dtype() == log_probs.dtype(), OpName(op),
        "expected grad and loss of shape ", forward[0].sizes, " and dtype ", log_probs.dtype(),
        ", got ", *t);
  }
  check<ErrorKind::Runtime>(
      log_alpha.sizes() == IntList(forward[1].sizes) && log_alpha.dtype() == log_probs.dtype(),
      OpName(op), "expected log_alpha of shape ", forward[1].sizes, ", got ", log_alpha);
  return {log_probs.sizes(), log_probs.dtype(), log_probs.device()};
}

}  // namespace treadle::shape
