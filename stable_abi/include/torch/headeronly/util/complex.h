// c10::complex: the standard library's complex numbers.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <complex>

namespace c10 {
template <typename T>
using complex = std::complex<T>;
}
namespace torch::headeronly {
using c10::complex;
}
