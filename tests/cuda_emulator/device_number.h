// The emulator's version of aten/backend/cuda/kernels/device_number.cuh: the host has arithmetic
// for all.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <complex>

namespace treadle::cuda {

template <class T>
using DeviceNumber = T;

}  // namespace treadle::cuda
