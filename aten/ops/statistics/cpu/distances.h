// Norms of the differences between one point and many, by vectors.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace treadle::simd {

// The points that a point is compared with come in blocks of this many. A block has the first
// coordinate of each of its points, then the second of each, and so on.
inline constexpr int64_t kDistanceBlock = 32;

// out[j] = the p-norm of point - (point j of the block), for j < count. The differences and their
// sums are of double.
template <class T>
using Distances = void (*)(double p, const T* point, const double* block, int64_t width,
                           int64_t count, T* out);
// That of the machine's target, for float or double.
template <class T>
Distances<T> distances();

}  // namespace treadle::simd
