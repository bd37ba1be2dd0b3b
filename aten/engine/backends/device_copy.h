// Copies of values where at least one tensor is on a backend's device. A backend copies contiguous
// bytes. Strides and dtypes are handled here, by a kernel that the backend generates, else on the
// CPU.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/tensor/tensor.h"

namespace treadle {

// Writes `src`, converted, to `dst`. `src` is broadcast to the shape of `dst`. Neither is on the
// meta device.
void copy_between_devices(const Tensor& dst, const Tensor& src, bool non_blocking);
// The values in a contiguous CPU tensor of the same dtype. A CPU tensor is returned itself.
Tensor on_cpu(const Tensor& t);

}  // namespace treadle
