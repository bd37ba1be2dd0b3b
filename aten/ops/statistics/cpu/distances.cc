// Norms of the differences between one point and many, by vectors: a lane for each of the many, so
// that the norm of a pair does not depend on the points beside it.
//
// SPDX-License-Identifier: Apache-2.0
#define TREADLE_TARGET_INCLUDE "aten/ops/statistics/cpu/distances.cc"
#include "aten/ops/statistics/cpu/distances.h"

#include "aten/backend/cpu/foreach_target.h"

#include <algorithm>
#include <limits>
#include <tuple>
#include <type_traits>

#include "aten/scalar/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace treadle::simd::HWY_NAMESPACE {

using Doubles = Vec<double>;

// A norm is the root of a sum of terms, one for each size of a difference, or the largest size.

struct CountNorm {
  HWY_INLINE Doubles term(Doubles size) const {
    return where(size != set(0.0), set(1.0), set(0.0));
  }
  HWY_INLINE Doubles root(Doubles sum) const { return sum; }
};
struct SumNorm {
  HWY_INLINE Doubles term(Doubles size) const { return size; }
  HWY_INLINE Doubles root(Doubles sum) const { return sum; }
};
struct EuclideanNorm {
  HWY_INLINE Doubles term(Doubles size) const { return size * size; }
  HWY_INLINE Doubles root(Doubles sum) const { return sqrt(sum); }
};
struct LargestNorm {
  HWY_INLINE Doubles term(Doubles size) const { return size; }
  HWY_INLINE Doubles root(Doubles sum) const { return sum; }
};
struct PowerNorm {
  double p;
  HWY_INLINE Doubles term(Doubles size) const { return pow(size, set(p)); }
  HWY_INLINE Doubles root(Doubles sum) const { return pow(sum, set(1 / p)); }
};
// The error of a power is more than half a unit of double, but far below that of float.
struct PowerNormOfFloat {
  double p;
  HWY_INLINE Doubles term(Doubles size) const { return exp(set(p) * log(size)); }
  HWY_INLINE Doubles root(Doubles sum) const { return exp(log(sum) / set(p)); }
};

// Sums of a run of terms, added so that what an addition rounds off is not lost. The error does not
// grow with the number of runs.
struct LongSum {
  Doubles total, lost;
  HWY_INLINE void add(Doubles run) {
    const Doubles sum = total + run, part = sum - total;
    const Doubles off = (total - (sum - part)) + (run - part);
    // Infinite sums have no such remainder.
    lost = lost + where(isfinite(sum), off, set(0.0));
    total = sum;
  }
  HWY_INLINE Doubles get() const { return total + lost; }
};

// Few enough terms for a plain sum.
constexpr int64_t kRun = 16;
// Vectors of sums that are computed together: as many as hide the latency of an addition.
constexpr int64_t kTogether = std::min<int64_t>(4, kDistanceBlock / Doubles::kLanes);
constexpr int64_t kPart = kTogether * Doubles::kLanes;

// The norms for kPart points of a block.
template <class Norm, class T>
HWY_INLINE void part_distances(const Norm& norm, const T* point, const double* block, int64_t width,
                               double* out) {
  constexpr bool kLargest = std::is_same_v<Norm, LargestNorm>;
  const int64_t length = kLargest ? width : kRun;
  LongSum sums[kTogether];
  for (LongSum& sum : sums) sum = {set(0.0), set(0.0)};
  for (int64_t first = 0; first < width; first += length) {
    Doubles run[kTogether];
    for (Doubles& sum : run) sum = set(0.0);
    const int64_t end = std::min(width, first + length);
    for (int64_t k = first; k < end; ++k) {
      const Doubles coordinate = set(static_cast<double>(point[k]));
      for (int64_t v = 0; v < kTogether; ++v) {
        const Doubles other = load(block + k * kDistanceBlock + v * Doubles::kLanes);
        const Doubles size = abs(coordinate - other);
        run[v] = kLargest ? maximum(run[v], size) : run[v] + norm.term(size);
      }
    }
    if (width <= length) {
      for (int64_t v = 0; v < kTogether; ++v) store(norm.root(run[v]), out + v * Doubles::kLanes);
      return;
    }
    for (int64_t v = 0; v < kTogether; ++v) sums[v].add(run[v]);
  }
  for (int64_t v = 0; v < kTogether; ++v)
    store(norm.root(sums[v].get()), out + v * Doubles::kLanes);
}

template <class Norm, class T>
HWY_NOINLINE void block_distances(const Norm& norm, const T* point, const double* block,
                                  int64_t width, int64_t count, T* out) {
  HWY_ALIGN double norms[kPart];
  for (int64_t j = 0; j < count; j += kPart) {
    part_distances(norm, point, block + j, width, norms);
    const int64_t wanted = std::min(kPart, count - j);
    for (int64_t k = 0; k < wanted; ++k) out[j + k] = static_cast<T>(norms[k]);
  }
}

template <class T>
void distances(double p, const T* point, const double* block, int64_t width, int64_t count,
               T* out) {
  const auto with = [&](const auto& norm) {
    block_distances(norm, point, block, width, count, out);
  };
  if (p == 0) return with(CountNorm());
  if (p == 1) return with(SumNorm());
  if (p == 2) return with(EuclideanNorm());
  if (p == std::numeric_limits<double>::infinity()) return with(LargestNorm());
  if (std::is_same_v<T, float> && p != 3) return with(PowerNormOfFloat{p});
  with(PowerNorm{p});
}

using DistanceTable = std::tuple<Distances<float>, Distances<double>>;
const DistanceTable& distance_table() {
  static constexpr DistanceTable table{&distances<float>, &distances<double>};
  return table;
}

}  // namespace treadle::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace treadle::simd {

HWY_EXPORT(distance_table);

template <class T>
Distances<T> distances() {
  return std::get<Distances<T>>(HWY_DYNAMIC_DISPATCH(distance_table)());
}

template Distances<float> distances();
template Distances<double> distances();

}  // namespace treadle::simd
#endif  // HWY_ONCE
