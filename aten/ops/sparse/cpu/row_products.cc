// Sums of products of the entries of rows and of elements of a vector, by vectors.
//
// SPDX-License-Identifier: Apache-2.0
#define TREADLE_TARGET_INCLUDE "aten/ops/sparse/cpu/row_products.cc"
#include "aten/backend/cpu/foreach_target.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "aten/ops/sparse/cpu/row_products.h"
#include "aten/scalar/vec-inl.h"

HWY_BEFORE_NAMESPACE();
namespace treadle::simd::HWY_NAMESPACE {

// Rows are short, so longer vectors would be empty for the most part.
template <class T>
using Few = hn::CappedTag<T, 8>;

// The first `n` elements, or all where there are more; the other lanes are zero.
template <class D>
HWY_INLINE hn::Vec<D> load_some(D d, const hn::TFromD<D>* from, int64_t n) {
  const int64_t count = std::clamp<int64_t>(n, 0, hn::MaxLanes(D()));
#if HWY_TARGET <= HWY_AVX2
  return hn::MaskedLoad(hn::FirstN(d, static_cast<size_t>(count)), d, from);
#else
  // MaskedLoad of this target reads the whole vector.
  HWY_ALIGN hn::TFromD<D> lanes[hn::MaxLanes(D())] = {};
  std::copy_n(from, count, lanes);
  return hn::Load(d, lanes);
#endif
}

// The elements of the vector that entry i and those behind it are multiplied by: as many as D has
// lanes, or the first `count`, the others being any. False if a column is not below the width.
//
// A processor loads elements one by one in less time than its instruction to gather them takes.
// What is loaded is chosen by a copy of the columns, which is checked.
template <bool kAll, class D, class T>
HWY_INLINE bool gather(D d, const RowProducts<T>& of, int64_t i, int64_t count, hn::Vec<D>& found) {
  constexpr size_t kLanes = hn::MaxLanes(D());
  const hn::CappedTag<uint64_t, kLanes> d64;
  const auto width = hn::Set(d64, static_cast<uint64_t>(of.width));
  const auto* const from = reinterpret_cast<const uint64_t*>(of.columns + i);
  HWY_ALIGN uint64_t columns[kLanes];
  for (size_t k = 0; k < kLanes; k += hn::MaxLanes(d64)) {
    const auto some =
        kAll ? hn::LoadU(d64, from + k) : load_some(d64, from + k, count - static_cast<int64_t>(k));
    if (HWY_UNLIKELY(!hn::AllTrue(d64, hn::Lt(some, width)))) return false;
    hn::Store(some, d64, columns + k);
  }
  const auto picked = [&]<size_t... k>(std::index_sequence<k...>) HWY_ATTR {
    const T elements[] = {of.x[columns[k]]...};
    return hn::LoadU(d, elements);
  };
  found = picked(std::make_index_sequence<kLanes>());
  return true;
}

// Adds up the products of `count` entries from `first` on. False if a column is none.
template <class D, class T>
HWY_INLINE bool sum_of_run(D d, const RowProducts<T>& of, int64_t first, int64_t count, T& sum) {
  constexpr int64_t kLanes = hn::MaxLanes(D());
  const T* const values = of.values + first;
  auto sums = hn::Zero(d);
  hn::Vec<D> found;
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    if (HWY_UNLIKELY(!gather<true>(d, of, first + i, kLanes, found))) return false;
    sums = hn::Add(sums, hn::Mul(found, hn::LoadU(d, values + i)));
  }
  if (i < count) {
    if (HWY_UNLIKELY(!gather<false>(d, of, first + i, count - i, found))) return false;
    const auto rest = hn::FirstN(d, static_cast<size_t>(count - i));
    const auto products = hn::Mul(found, load_some(d, values + i, count - i));
    sums = hn::Add(sums, hn::IfThenElseZero(rest, products));
  }
  sum = hn::GetLane(hn::SumOfLanes(d, sums));
  return true;
}

template <class T>
HWY_NOINLINE bool sum_of_runs(const RowProducts<T>& of, int64_t begin, int64_t end, int64_t run,
                              T& sum) {
  double total = 0;
  for (int64_t i = begin; i < end; i += run) {
    if (HWY_UNLIKELY(!sum_of_run(Few<T>(), of, i, std::min(run, end - i), sum))) return false;
    total += static_cast<double>(sum);
  }
  sum = static_cast<T>(total);
  return true;
}

template <class T>
int64_t sum_row_products(const RowProducts<T>& given, int64_t run, T* out) {
  // A copy, of which the compiler knows that nobody writes it.
  const RowProducts<T> of = given;
  // Many matrices have rows of a few entries, for which half of a vector is enough.
  constexpr int64_t kLanes = hn::MaxLanes(Few<T>()), kHalf = std::max<int64_t>(kLanes / 2, 1);
  int64_t begin = of.offsets[0];
  if (HWY_UNLIKELY(begin < 0)) return 0;
  for (int64_t r = 0; r < of.rows; ++r) {
    const int64_t end = of.offsets[r + 1];
    if (HWY_UNLIKELY(begin > end || end > of.count)) return r;
    const int64_t n = end - begin;
    T sum;
    bool good;
    if (n <= kHalf)
      good = sum_of_run(hn::CappedTag<T, kHalf>(), of, begin, n, sum);
    else if (HWY_LIKELY(n <= run))
      good = sum_of_run(Few<T>(), of, begin, n, sum);
    else
      good = sum_of_runs(given, begin, end, run, sum);
    if (HWY_UNLIKELY(!good)) return r;
    out[r] = sum;
    begin = end;
  }
  return of.rows;
}

using Table = std::tuple<SumRowProducts<float>, SumRowProducts<double>>;
const Table& row_products_table() {
  static constexpr Table table{&sum_row_products<float>, &sum_row_products<double>};
  return table;
}

}  // namespace treadle::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace treadle::simd {

HWY_EXPORT(row_products_table);

template <class T>
SumRowProducts<T> sum_row_products() {
  return std::get<SumRowProducts<T>>(HWY_DYNAMIC_DISPATCH(row_products_table)());
}

template SumRowProducts<float> sum_row_products();
template SumRowProducts<double> sum_row_products();

}  // namespace treadle::simd
#endif  // HWY_ONCE
