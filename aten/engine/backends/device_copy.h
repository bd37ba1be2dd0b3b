// Copies of values where at least one tensor is on a backend's device. A backend copies runs of
// bytes; strides and dtypes are seen to here: by a kernel that it generates, else on the CPU.
#pragma once

#include "core/tensor/tensor.h"

namespace treadle {

// Writes `src`, converted, to `dst`, to whose shape it broadcasts. Neither is on the meta device.
void copy_between_devices(const Tensor& dst, const Tensor& src, bool non_blocking);
// The values in a contiguous tensor of the CPU of the same dtype; a tensor of the CPU itself.
Tensor on_cpu(const Tensor& t);

}  // namespace treadle
