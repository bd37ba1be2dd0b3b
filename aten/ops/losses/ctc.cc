// The public form of ctc_loss: one sample or a batch, lengths as numbers or as tensors.
//
// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include "aten/engine/backends/device_copy.h"
#include "aten/ops/_ctc_loss.h"
#include "aten/ops/contiguous.h"
#include "aten/ops/ctc_loss.h"
#include "aten/ops/div.h"
#include "aten/ops/eq.h"
#include "aten/ops/losses/reduction.h"
#include "aten/ops/masked_fill.h"
#include "aten/ops/reshape.h"
#include "aten/ops/to.h"
#include "aten/ops/unsqueeze.h"

namespace treadle::composite {
namespace {

DimVector lengths_of(const char* name, const Tensor& t) {
  check<ErrorKind::Runtime>(is_integral(t.dtype(), false) && t.dim() <= 1 && !t.is_meta(),
                            OpName("ctc_loss"), "expected ", name,
                            " of an integer dtype and at most 1 dimension, with data, got ", t,
                            " on ", t.device());
  const Tensor dense = aten::contiguous(aten::to(on_cpu(t), ScalarType::Int64));
  return DimVector(IntList(dense.data_as<int64_t>(), static_cast<size_t>(dense.numel())));
}

}  // namespace

Tensor ctc_loss(const Tensor& log_probs, const Tensor& targets, IntList input_lengths,
                IntList target_lengths, int64_t blank, int64_t reduction, bool zero_infinity) {
  check<ErrorKind::Runtime>(log_probs.dim() == 2 || log_probs.dim() == 3, OpName("ctc_loss"),
                            "expected log_probs of shape (T, N, C) or (T, C), got ",
                            log_probs.sizes());
  check<ErrorKind::Runtime>(is_integral(targets.dtype(), false), OpName("ctc_loss"),
                            "expected targets of an integer dtype, got ", targets.dtype());
  const bool single = log_probs.dim() == 2;
  const Tensor classes =
      targets.dtype() == ScalarType::Int64 ? targets : aten::to(targets, ScalarType::Int64);
  Tensor loss =
      std::get<0>(aten::_ctc_loss(single ? aten::unsqueeze(log_probs, 1) : log_probs, classes,
                                  input_lengths, target_lengths, blank, zero_infinity));
  if (zero_infinity) {
    loss = aten::masked_fill(loss, aten::eq(loss, Scalar(std::numeric_limits<double>::infinity())),
                             Scalar(0));
  }
  if (reduction == kMean) {  // per label first
    const Tensor labels = empty_cpu({loss.numel()}, ScalarType::Int64);
    for (size_t n = 0; n < target_lengths.size(); ++n)
      labels.data_as<int64_t>()[n] = std::max<int64_t>(1, target_lengths[n]);
    loss = aten::div(loss, aten::to(labels, loss));
  }
  const Tensor result = reduced("ctc_loss", loss, reduction);
  return single && reduction == kNone ? aten::reshape(result, IntList()) : result;
}

Tensor ctc_loss(const Tensor& log_probs, const Tensor& targets, const Tensor& input_lengths,
                const Tensor& target_lengths, int64_t blank, int64_t reduction,
                bool zero_infinity) {
  return composite::ctc_loss(log_probs, targets, lengths_of("input_lengths", input_lengths),
                             lengths_of("target_lengths", target_lengths), blank, reduction,
                             zero_infinity);
}

}  // namespace treadle::composite
