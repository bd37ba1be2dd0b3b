// The emulator's version of aten/backend/cuda/kernels/device_number.cuh: the host has arithmetic
// for all.
#pragma once

#include <complex>

namespace treadle::cuda {

template <class T>
using DeviceNumber = T;

}  // namespace treadle::cuda
