// The update of both running statistics, and the checks before it.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/ops/normalization/running_statistics.h"

#include <utility>

#include "aten/engine/overlap.h"
#include "aten/engine/stored_types.h"
#include "core/base/error.h"

namespace treadle::composite {

void check_channel_tensors(const char* op, const ChannelTensors& tensors, int64_t channels) {
  for (const auto& [name, t] : {std::pair<const char*, const Tensor&>{"weight", tensors.weight},
                                {"bias", tensors.bias},
                                {"running_mean", tensors.running_mean},
                                {"running_var", tensors.running_var}}) {
    check<ErrorKind::Runtime>(!t.defined() || (t.dim() == 1 && t.numel() == channels), OpName(op),
                              "expected ", name, " of shape (", channels, ",), got ",
                              t.defined() ? t.sizes() : IntList());
  }
}

void require_statistics(const char* op, const Tensor& input, const Tensor& running_mean,
                        const Tensor& running_var) {
  for (const auto& [name, t] : {std::pair<const char*, const Tensor&>{"running_mean", running_mean},
                                {"running_var", running_var}}) {
    if (!t.defined()) continue;
    check<ErrorKind::Runtime>(t.is_floating_point() && is_convertible(t.dtype()), OpName(op),
                              "expected ", name, " of a floating dtype with arithmetic, got ",
                              t.dtype());
    check<ErrorKind::Runtime>(t.device() == input.device(), OpName(op), "expected ", name, " on ",
                              input.device(), ", where input is, got ", t.device());
    require_writable(op, t);
  }
}

}  // namespace treadle::composite
