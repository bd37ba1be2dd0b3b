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

#include "aten/engine/cpu/fold-inl.h"
#include "aten/scalar/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace treadle::simd::HWY_NAMESPACE {

using Doubles = Vec<double>;
using Floats = Vec<float>;

// A norm is the root of a sum of terms, one for each size of a difference, or the largest size.

struct CountNorm {
  template <class V>
  HWY_INLINE V term(V size) const {
    using C = typename V::Lane;
    return where(size != set(C(0)), set(C(1)), set(C(0)));
  }
  template <class V>
  HWY_INLINE V root(V sum) const {
    return sum;
  }
};
struct SumNorm {
  template <class V>
  HWY_INLINE V term(V size) const {
    return size;
  }
  template <class V>
  HWY_INLINE V root(V sum) const {
    return sum;
  }
};
struct LargestNorm : SumNorm {};
struct EuclideanNorm {
  HWY_INLINE Doubles term(Doubles size) const { return size * size; }
  HWY_INLINE Doubles root(Doubles sum) const { return sqrt(sum); }
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
template <class C>
struct LongSum {
  Doubles total, lost;
  HWY_INLINE void begin() { total = lost = set(0.0); }
  HWY_INLINE void add(Doubles run) {
    const Doubles sum = total + run, part = sum - total;
    const Doubles off = (total - (sum - part)) + (run - part);
    // Infinite sums have no such remainder.
    lost = lost + where(isfinite(sum), off, set(0.0));
    total = sum;
  }
  HWY_INLINE Doubles get() const { return total + lost; }
};
// The doubles of a vector of float.
template <class D>
HWY_INLINE Vec<hn::TFromD<D>> narrowed(D d, const Doubles* wide) {
  const hn::Rebind<float, Tag<double>> part;
  const auto low = hn::DemoteTo(part, wide[0].raw);
  if constexpr (hn::MaxLanes(d) == hn::MaxLanes(part))
    return {low};
  else
    return {hn::Combine(d, hn::DemoteTo(part, wide[1].raw), low)};
}
// Double has digits enough for any number of runs of float.
template <>
struct LongSum<float> {
  Doubles total[2];
  HWY_INLINE void begin() { total[0] = total[1] = set(0.0); }
  HWY_INLINE void add(Floats run) { add_lanes(total, run); }
  HWY_INLINE Floats get() const { return narrowed(Tag<float>(), total); }
};

// Few enough terms for a plain sum: so few of float that the sum is as good as exact.
template <class C>
constexpr int64_t kRun = std::is_same_v<C, float> ? 4 : 16;

template <class T, class C>
HWY_INLINE void store_norm(Vec<C> norm, T* out) {
  if constexpr (std::is_same_v<T, C>) {
    store(norm, out);
  } else {
    const hn::Rebind<float, Tag<double>> narrow;
    hn::StoreU(hn::DemoteTo(narrow, norm.raw), narrow, out);
  }
}

// out = the root of the sum. The root of a sum of double is rounded to float twice at most: where
// float has the sum in all its digits, its own root is much faster.
template <class Norm, class T, class C>
HWY_INLINE void store_root(const Norm& norm, Vec<C> sum, T* out) {
  if constexpr (std::is_same_v<Norm, EuclideanNorm> && !std::is_same_v<T, C>) {
    if (HWY_LIKELY(all_lanes(logical_and(sum >= set(1e-30), sum <= set(1e30))))) {
      const hn::Rebind<float, Tag<double>> narrow;
      hn::StoreU(hn::Sqrt(hn::DemoteTo(narrow, sum.raw)), narrow, out);
      return;
    }
  }
  store_norm(norm.root(sum), out);
}

// The norms for kVectors vectors of points of a block.
template <int kVectors, class Norm, class T, class C>
HWY_INLINE void part_distances(const Norm& norm, const T* point, const C* block, int64_t width,
                               T* out) {
  using V = Vec<C>;
  constexpr bool kLargest = std::is_same_v<Norm, LargestNorm>;
  const int64_t length = kLargest ? width : kRun<C>;
  LongSum<C> sums[kVectors];
  for (LongSum<C>& sum : sums) sum.begin();
  for (int64_t first = 0; first < width || first == 0; first += length) {
    V run[kVectors];
    for (V& sum : run) sum = set(C(0));
    const int64_t end = std::min(width, first + length);
    for (int64_t k = first; k < end; ++k) {
      const V coordinate = set(static_cast<C>(point[k]));
      for (int v = 0; v < kVectors; ++v) {
        const V size = abs(coordinate - load(block + k * kDistanceBlock + v * V::kLanes));
        run[v] = kLargest ? maximum(run[v], size) : run[v] + norm.term(size);
      }
    }
    if (width <= length) {
      for (int v = 0; v < kVectors; ++v) store_root(norm, run[v], out + v * V::kLanes);
      return;
    }
    for (int v = 0; v < kVectors; ++v) sums[v].add(run[v]);
  }
  for (int v = 0; v < kVectors; ++v) store_root(norm, sums[v].get(), out + v * V::kLanes);
}

template <class Norm, class T, class C>
HWY_NOINLINE void block_distances(const Norm& norm, const T* point, const C* block, int64_t width,
                                  int64_t count, T* out) {
  constexpr int64_t kLanes = Vec<C>::kLanes;
  // Vectors of sums that are computed together: as many as hide the latency of an addition.
  constexpr int kMost = static_cast<int>(std::min<int64_t>(4, kDistanceBlock / kLanes));
  int64_t j = 0;
  for (; j + kMost * kLanes <= count; j += kMost * kLanes)
    part_distances<kMost>(norm, point, block + j, width, out + j);
  for (; j + kLanes <= count; j += kLanes)
    part_distances<1>(norm, point, block + j, width, out + j);
  if (j == count) return;
  HWY_ALIGN T rest[kLanes];
  part_distances<1>(norm, point, block + j, width, rest);
  std::copy_n(rest, count - j, out + j);
}

template <class T, class C>
void distances(double p, const T* point, const C* block, int64_t width, int64_t count, T* out) {
  const auto with = [&](const auto& norm) {
    block_distances(norm, point, block, width, count, out);
  };
  if (p == 0) return with(CountNorm());
  if (p == 1) return with(SumNorm());
  if (p == std::numeric_limits<double>::infinity()) return with(LargestNorm());
  if constexpr (std::is_same_v<C, double>) {
    if (p == 2) return with(EuclideanNorm());
    if (std::is_same_v<T, float> && p != 3) return with(PowerNormOfFloat{p});
    with(PowerNorm{p});
  }
}

// ---- from products ------------------------------------------------------------------------------

// term(k, lanes) of doubles, for the coordinates of a float point.
template <class F>
HWY_INLINE double sum_of_coordinates(int64_t width, F term) {
  return folded_sum<double>(width, term);
}
HWY_INLINE Doubles load_coordinates(const float* p, int64_t lanes) {
  const hn::Rebind<float, Tag<double>> narrow;
  if (lanes == Doubles::kLanes) return {hn::PromoteTo(Tag<double>(), hn::LoadU(narrow, p))};
  HWY_ALIGN double some[Doubles::kLanes] = {};
  for (int64_t i = 0; i < lanes; ++i) some[i] = static_cast<double>(p[i]);
  return load(some);
}

void squares(const float* points, int64_t count, int64_t width, float* out) {
  for (int64_t i = 0; i < count; ++i) {
    const float* const point = points + i * width;
    out[i] = static_cast<float>(sum_of_coordinates(width, [=](int64_t k, int64_t lanes) HWY_ATTR {
      const Doubles x = load_coordinates(point + k, lanes);
      return x * x;
    }));
  }
}

HWY_NOINLINE float distance(const float* x, const float* y, int64_t width) {
  return static_cast<float>(
      std::sqrt(sum_of_coordinates(width, [=](int64_t k, int64_t lanes) HWY_ATTR {
        const Doubles d = load_coordinates(x + k, lanes) - load_coordinates(y + k, lanes);
        return d * d;
      })));
}

void finish(const float* point, float square, const float* others, const float* squares,
            int64_t width, int64_t count, float* out) {
  for (int64_t j = 0; j < count; j += Floats::kLanes) {
    const int64_t lanes = std::min(Floats::kLanes, count - j);
    const Floats sum = set(square) + load_lanes(squares + j, lanes);
    const Floats rest = sum + load_lanes(out + j, lanes);
    // An eighth: the error of the products may grow as much. Outside of the range, products lose
    // digits or overflow.
    const Mask<float> holds =
        logical_and(rest >= sum * set(0.125f), logical_and(sum > set(1e-25f), sum < set(1e37f)));
    if (HWY_LIKELY(all_lanes(holds))) {
      store_lanes(sqrt(rest), out + j, lanes);
      continue;
    }
    const Lanes<float> roots(sqrt(rest));
    const Lanes<float> is_done(where(holds, set(1.0f), set(0.0f)));
    for (int64_t i = 0; i < lanes; ++i)
      out[j + i] =
          is_done.lane[i] != 0 ? roots.lane[i] : distance(point, others + (j + i) * width, width);
  }
}

using DistanceTable =
    std::tuple<Distances<float, float>, Distances<float, double>, Distances<double, double>>;
const DistanceTable& distance_table() {
  static constexpr DistanceTable table{&distances<float, float>, &distances<float, double>,
                                       &distances<double, double>};
  return table;
}
const EuclideanLoops& euclidean_table() {
  static constexpr EuclideanLoops loops{&squares, &finish};
  return loops;
}

}  // namespace treadle::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace treadle::simd {

HWY_EXPORT(distance_table);
HWY_EXPORT(euclidean_table);

template <class T, class C>
Distances<T, C> distances() {
  return std::get<Distances<T, C>>(HWY_DYNAMIC_DISPATCH(distance_table)());
}

template Distances<float, float> distances();
template Distances<float, double> distances();
template Distances<double, double> distances();

bool differences_are_float(double p) {
  return p == 0 || p == 1 || p == std::numeric_limits<double>::infinity();
}

const EuclideanLoops& euclidean_loops() { return HWY_DYNAMIC_DISPATCH(euclidean_table)(); }

}  // namespace treadle::simd
#endif  // HWY_ONCE
