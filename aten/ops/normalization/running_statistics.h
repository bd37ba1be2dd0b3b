// Running statistics: the means and variances of the channels that a normalisation keeps up to
// date. Both are checked before either is written, so a call that fails writes neither.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/tensor/tensor.h"

namespace treadle::composite {

// The per-channel tensors of `op`, any of which may be undefined.
struct ChannelTensors {
  const Tensor& weight;
  const Tensor& bias;
  const Tensor& running_mean;
  const Tensor& running_var;
};

// RuntimeError unless each has shape (channels,).
void check_channel_tensors(const char* op, const ChannelTensors& tensors, int64_t channels);

// RuntimeError unless the present running statistics can be written from tensors on the device of
// `input`: a floating dtype, and memory of their own.
void require_statistics(const char* op, const Tensor& input, const Tensor& running_mean,
                        const Tensor& running_var);

}  // namespace treadle::composite
