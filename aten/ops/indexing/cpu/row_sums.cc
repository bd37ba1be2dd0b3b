// Sums of a few rows of a table, by vectors: a few columns at a time, whose sums stay in registers.
//
// SPDX-License-Identifier: Apache-2.0
#define TREADLE_TARGET_INCLUDE "aten/ops/indexing/cpu/row_sums.cc"
#include "aten/backend/cpu/foreach_target.h"

#include <algorithm>
#include <tuple>
#include <type_traits>

#include "aten/backend/cpu/long_sums.h"
#include "aten/ops/indexing/cpu/row_sums.h"
#include "aten/scalar/vec-inl.h"

HWY_BEFORE_NAMESPACE();
namespace treadle::simd::HWY_NAMESPACE {

template <class D, class V>
HWY_INLINE void add_to(double* total, D d, V sums) {
  using T = hn::TFromD<D>;
  if constexpr (hn::MaxLanes(d) == 1) {
    *total += static_cast<double>(hn::GetLane(sums));
  } else if constexpr (std::is_same_v<T, double>) {
    hn::StoreU(hn::Add(hn::LoadU(d, total), sums), d, total);
  } else {
    const hn::Repartition<double, D> wide;
    const hn::Half<D> half;
    double* const upper = total + hn::MaxLanes(wide);
    const auto low = hn::PromoteTo(wide, hn::LowerHalf(half, sums));
    const auto high = hn::PromoteTo(wide, hn::UpperHalf(half, sums));
    hn::StoreU(hn::Add(hn::LoadU(wide, total), low), wide, total);
    hn::StoreU(hn::Add(hn::LoadU(wide, upper), high), wide, upper);
  }
}

template <class T>
struct Rows {
  const RowTable<T>& of;
  const int64_t* rows;
  const T* factors;
  int64_t count, known;
};

constexpr int64_t kAhead = 8;  // rows; processors do not foresee where rows lie

// The columns from k on, as many as whole groups of kVectors vectors have. The first behind them.
template <int kVectors, bool kFactors, bool kFar, class D, class T>
HWY_INLINE int64_t sum_columns(D d, const Rows<T>& in, int64_t k, T* sum, double* total) {
  constexpr int64_t kLanes = hn::MaxLanes(D()), kLine = 64 / sizeof(T);
  for (; k + kVectors * kLanes <= in.of.width; k += kVectors * kLanes) {
    hn::Vec<D> sums[kVectors];
    for (auto& s : sums) s = hn::Zero(d);
    for (int64_t row = 0; row < in.count; ++row) {
      const T* const values_of_row = in.of.table + in.rows[row] * in.of.stride + k;
      if constexpr (kFar) {
        const int64_t next = in.rows[std::min(row + kAhead, in.known - 1)];
        for (int64_t v = 0; v < kVectors * kLanes; v += kLine)
          __builtin_prefetch(in.of.table + next * in.of.stride + k + v);
      }
      const auto factor = hn::Set(d, kFactors ? in.factors[row] : T(1));
      for (int v = 0; v < kVectors; ++v) {
        const auto values = hn::LoadU(d, values_of_row + v * kLanes);
        sums[v] = hn::Add(sums[v], kFactors ? hn::Mul(values, factor) : values);
      }
    }
    for (int v = 0; v < kVectors; ++v) {
      if (total)
        add_to(total + k + v * kLanes, d, sums[v]);
      else
        hn::StoreU(sums[v], d, sum + k + v * kLanes);
    }
  }
  return k;
}

template <bool kFactors, bool kFar, class T>
HWY_INLINE void sum_all_columns(const Rows<T>& in, T* sum, double* total) {
  int64_t k = sum_columns<8, kFactors, kFar>(Tag<T>(), in, 0, sum, total);
  k = sum_columns<4, kFactors, kFar>(Tag<T>(), in, k, sum, total);
  k = sum_columns<2, kFactors, kFar>(Tag<T>(), in, k, sum, total);
  k = sum_columns<1, kFactors, kFar>(Tag<T>(), in, k, sum, total);
  k = sum_columns<1, kFactors, kFar>(hn::CappedTag<T, 4>(), in, k, sum, total);
  sum_columns<1, kFactors, kFar>(hn::CappedTag<T, 1>(), in, k, sum, total);
}

template <class T>
void sum_rows(const RowTable<T>& of, const int64_t* rows, const T* factors, int64_t count,
              int64_t known, T* sum, double* total) {
  const Rows<T> in{of, rows, factors, count, known};
  if (factors) return sum_all_columns<true, true>(in, sum, total);
  sum_all_columns<false, true>(in, sum, total);
}

// As sum_all_columns, where a vector has all columns.
template <bool kFactors, bool kFar, class T>
void sum_narrow_bags(const RowTable<T>& of, const BagsOfRows<T>& bags, int64_t begin, int64_t end,
                     T* sums) {
  for (int64_t b = begin; b < end; ++b, sums += of.width) {
    const int64_t first = bags.bounds[b], last = bags.bounds[b + 1];
    if (last - first > cpu::kSumRun) continue;
    Vec<T> sum = set(T(0));
    for (int64_t i = first; i < last; ++i) {
      if constexpr (kFar) {
        const int64_t next = bags.rows[std::min(i + kAhead, bags.count - 1)];
        __builtin_prefetch(of.table + next * of.stride);
      }
      const Vec<T> values = load_lanes(of.table + bags.rows[i] * of.stride, of.width);
      sum = sum + (kFactors ? values * set(bags.factors[i]) : values);
    }
    if (bags.is_mean) sum = sum / set(static_cast<T>(std::max<int64_t>(1, last - first)));
    store_lanes(sum, sums, of.width);
  }
}

template <class T>
void sum_bags(const RowTable<T>& of, const BagsOfRows<T>& bags, int64_t begin, int64_t end,
              T* sums) {
  const auto with = [&]<bool kFactors, bool kFar>() HWY_ATTR {
    if (of.width <= Vec<T>::kLanes)
      return sum_narrow_bags<kFactors, kFar>(of, bags, begin, end, sums);
    for (int64_t b = begin; b < end; ++b, sums += of.width) {
      const int64_t first = bags.bounds[b], count = bags.bounds[b + 1] - first;
      if (count > cpu::kSumRun) continue;
      const Rows<T> rows{of, bags.rows + first, kFactors ? bags.factors + first : nullptr, count,
                         kFar ? bags.count - first : 0};
      sum_all_columns<kFactors, kFar>(rows, sums, nullptr);
      if (!bags.is_mean) continue;
      const T by = static_cast<T>(std::max<int64_t>(1, count));
      for (int64_t k = 0; k < of.width; ++k) sums[k] /= by;
    }
  };
  if (bags.factors)
    bags.is_far ? with.template operator()<true, true>() : with.template operator()<true, false>();
  else
    bags.is_far ? with.template operator()<false, true>()
                : with.template operator()<false, false>();
}

using RowSums = std::tuple<SumRows<float>, SumRows<double>, SumBags<float>, SumBags<double>>;
const RowSums& row_sums() {
  static constexpr RowSums table{&sum_rows<float>, &sum_rows<double>, &sum_bags<float>,
                                 &sum_bags<double>};
  return table;
}

}  // namespace treadle::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace treadle::simd {

HWY_EXPORT(row_sums);

template <class T>
SumRows<T> sum_rows() {
  return std::get<SumRows<T>>(HWY_DYNAMIC_DISPATCH(row_sums)());
}
template <class T>
SumBags<T> sum_bags() {
  return std::get<SumBags<T>>(HWY_DYNAMIC_DISPATCH(row_sums)());
}

template SumRows<float> sum_rows();
template SumRows<double> sum_rows();
template SumBags<float> sum_bags();
template SumBags<double> sum_bags();

}  // namespace treadle::simd
#endif  // HWY_ONCE
