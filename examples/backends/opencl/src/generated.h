// Kernels that are made while the program runs, from the trees of Treadle's operators.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "device.h"

namespace treadle_opencl {

// Run the call on this thread's queue. False where the tree has a function that the preludes lack,
// or the geometry does not fit a kernel's arguments.
bool run_pointwise(Device& device, const treadle_pointwise_call& call);
bool run_reduce(Device& device, const treadle_reduce_call& call);

// The elements of `from`, whatever its strides, as those of `to`; of equal shapes.
void copy_elements(const treadle::plugin::Tensor& from, const treadle::plugin::Tensor& to);
// Every element of a tensor that is not empty.
void fill(const treadle::plugin::Tensor& tensor, const treadle::plugin::Number& value);
// The tensor itself where it is contiguous, else a contiguous copy.
treadle::plugin::Tensor packed(const treadle::plugin::Tensor& tensor);
// The same in another dtype.
treadle::plugin::Tensor packed_as(const treadle::plugin::Tensor& tensor,
                                  treadle::plugin::DType dtype);

}  // namespace treadle_opencl
