// exp of a row in place, with the widest vectors this machine has.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace treadle::cpu {

// x[i] = exp(x[i] - shift) for n elements; returns their sum.
float exp_shifted(float* x, int64_t n, float shift);
double exp_shifted(double* x, int64_t n, double shift);

}  // namespace treadle::cpu
