// Norms of the differences between one point and many, by vectors.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace treadle::simd {

// The points that a point is compared with come in blocks of this many. A block has the first
// coordinate of each of its points, then the second of each, and so on.
inline constexpr int64_t kDistanceBlock = 64;

// out[j] = the p-norm of point - (point j of the block), for j < count. The differences are of C:
// float, where differences of float need no more (differences_are_float), or double. Long sums of
// them are of double.
template <class T, class C>
using Distances = void (*)(double p, const T* point, const C* block, int64_t width, int64_t count,
                           T* out);
// That of the machine's target, for float and double, and for differences of float in double.
template <class T, class C>
Distances<T, C> distances();

// Whether float is enough for the terms of such a norm of float points: the largest difference and
// the number of differences are then exact, and a sum of magnitudes neither overflows early nor
// loses digits.
bool differences_are_float(double p);

// Euclidean norms of float points from the products of their coordinates:
// |x - y|^2 = |x|^2 + |y|^2 - 2 x y.
struct EuclideanLoops {
  // out[i] = the square of the norm of point i.
  void (*squares)(const float* points, int64_t count, int64_t width, float* out);
  // out[j], which is -2 times the product of `point` and point j of the others, becomes their
  // distance. Where the sum cancels, the distance is computed from the differences.
  void (*finish)(const float* point, float square, const float* others, const float* squares,
                 int64_t width, int64_t count, float* out);
};
const EuclideanLoops& euclidean_loops();

}  // namespace treadle::simd
