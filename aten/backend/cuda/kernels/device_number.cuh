// DeviceNumber: T with all arithmetic on devices, including divisions of complex numbers.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <complex>
#include <cuda/std/complex>

namespace treadle::cuda {

template <class T>
struct DeviceNumberOf {
  using type = T;
};
template <class R>
struct DeviceNumberOf<std::complex<R>> {
  using type = ::cuda::std::complex<R>;
};
template <class T>
using DeviceNumber = typename DeviceNumberOf<T>::type;

}  // namespace treadle::cuda
