// The derivatives of gamma and beta numbers (gamma_slopes.h) of floats by the buffer, with the
// widest vectors this machine has.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace treadle::simd {

// gamma_slope(shape, number) of `count` elements, and beta_slope(place, shape, total - shape).
void gamma_slopes(const float* shape, const float* number, int64_t count, float* out);
void beta_slopes(const float* place, const float* shape, const float* total, int64_t count,
                 float* out);

}  // namespace treadle::simd
