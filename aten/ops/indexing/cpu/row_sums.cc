// Sums of a few rows of a table, by vectors: a few columns at a time, whose sums stay in registers.
//
// SPDX-License-Identifier: Apache-2.0
#define TREADLE_TARGET_INCLUDE "aten/ops/indexing/cpu/row_sums.cc"
#include "aten/backend/cpu/foreach_target.h"

#include <algorithm>
#include <tuple>
#include <type_traits>

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

// Adds up the columns from k on, as many as whole groups of kVectors vectors have, and moves k.
// Returns the place of a number that is none of a row, or the count.
template <int kVectors, bool kFactors, class D, class T>
HWY_INLINE int64_t sum_columns(D d, const Rows<T>& in, int64_t& k, T* sum, double* total) {
  constexpr int64_t kLanes = hn::MaxLanes(D()), kLine = 64 / sizeof(T);
  constexpr int64_t kAhead = 8;  // rows; processors do not foresee where rows lie
  const auto rows = static_cast<uint64_t>(in.of.rows);
  for (; k + kVectors * kLanes <= in.of.width; k += kVectors * kLanes) {
    hn::Vec<D> sums[kVectors];
    for (auto& s : sums) s = hn::Zero(d);
    for (int64_t i = 0; i < in.count; ++i) {
      const auto row = static_cast<uint64_t>(in.rows[i]);
      if (HWY_UNLIKELY(row >= rows)) return i;
      const T* const values_of_row = in.of.table + static_cast<int64_t>(row) * in.of.stride + k;
      const auto next = static_cast<uint64_t>(in.rows[std::min(i + kAhead, in.known - 1)]);
      if (HWY_LIKELY(next < rows)) {
        const T* const ahead = in.of.table + static_cast<int64_t>(next) * in.of.stride + k;
        for (int64_t v = 0; v < kVectors * kLanes; v += kLine) __builtin_prefetch(ahead + v);
      }
      const auto factor = hn::Set(d, kFactors ? in.factors[i] : T(1));
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
  return in.count;
}

template <bool kFactors, class T>
int64_t sum_all_columns(const Rows<T>& in, T* sum, double* total) {
  int64_t k = 0, place = in.count;
  const auto next = [&]<int kVectors>(auto d) {
    if (place == in.count) place = sum_columns<kVectors, kFactors>(d, in, k, sum, total);
  };
  next.template operator()<8>(Tag<T>());
  next.template operator()<4>(Tag<T>());
  next.template operator()<2>(Tag<T>());
  next.template operator()<1>(Tag<T>());
  next.template operator()<1>(hn::CappedTag<T, 4>());
  next.template operator()<1>(hn::CappedTag<T, 1>());
  return place;
}

template <class T>
int64_t sum_rows(const RowTable<T>& of, const int64_t* rows, const T* factors, int64_t count,
                 int64_t known, T* sum, double* total) {
  const Rows<T> in{of, rows, factors, count, known};
  return factors ? sum_all_columns<true>(in, sum, total) : sum_all_columns<false>(in, sum, total);
}

using RowSums = std::tuple<SumRows<float>, SumRows<double>>;
const RowSums& row_sums() {
  static constexpr RowSums table{&sum_rows<float>, &sum_rows<double>};
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

template SumRows<float> sum_rows();
template SumRows<double> sum_rows();

}  // namespace treadle::simd
#endif  // HWY_ONCE
