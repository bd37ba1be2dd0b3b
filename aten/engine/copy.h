// Copies between tensors of any strides, dtypes and devices.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/tensor/tensor.h"

namespace treadle {

// Writes `src`, converted, to `dst`; src's shape must broadcast to dst's. Tensors that overlap are
// copied as if through a temporary. Does nothing on the meta device, and does not count as a new
// version.
void copy_strided(const Tensor& dst, const Tensor& src);

}  // namespace treadle
