// The reduction of a loss over its elements, by the number that operators take.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "aten/ops/mean.h"
#include "aten/ops/sum.h"
#include "core/base/error.h"

namespace treadle::composite {

enum Reduction : int64_t { kNone = 0, kMean = 1, kSum = 2 };

inline Tensor reduced(const char* op, const Tensor& loss, int64_t reduction) {
  check<ErrorKind::Value>(reduction >= kNone && reduction <= kSum, OpName(op),
                          "expected reduction 0 (none), 1 (mean) or 2 (sum), got ", reduction);
  if (reduction == kNone) return loss;
  return reduction == kMean ? aten::mean(loss) : aten::sum(loss);
}

}  // namespace treadle::composite
