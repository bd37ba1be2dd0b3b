// Calls of hand-written CUDA kernels with CPU tensors, for tests. The kernels are made of operators
// and of a library's functions, which the test has replaced.
//
//   auto [lu, pivots, info] = outputs of the CPU's operator, to compare with
//   call_kernel<aten::ops::_linalg_lu>(ScalarType::Float64, a, lu, pivots, info);
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/dispatch/operator.h"

namespace treadle::cuda {

template <class Op, class... Arguments>
auto call_kernel(ScalarType dtype, const Arguments&... arguments) {
  void* const kernel = Op::op.table().find(Device{DeviceType::CUDA, 0}, Layout::Strided, dtype);
  return reinterpret_cast<typename Op::Kernel*>(kernel)(arguments...);
}

}  // namespace treadle::cuda
