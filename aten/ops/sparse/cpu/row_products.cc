// Sums of products of the entries of rows and of elements of a vector, by vectors.
//
// SPDX-License-Identifier: Apache-2.0
#define TREADLE_TARGET_INCLUDE "aten/ops/sparse/cpu/row_products.cc"
#include "aten/backend/cpu/foreach_target.h"

#include <algorithm>
#include <limits>
#include <tuple>

#include "aten/ops/sparse/cpu/row_products.h"
#include "aten/scalar/vec-inl.h"

HWY_BEFORE_NAMESPACE();
namespace treadle::simd::HWY_NAMESPACE {

// Rows are short, so longer vectors would be empty for the most part.
template <class T>
using Few = hn::CappedTag<T, 8>;

// The columns of some entries: all lanes of a vector, or the first `count`, the others being 0.
template <bool kAll, class D>
HWY_INLINE hn::Vec<D> columns_at(D d, const int64_t* columns, int64_t count) {
  const auto* const from = reinterpret_cast<const uint64_t*>(columns);
  if constexpr (kAll) return hn::LoadU(d, from);
  return hn::MaskedLoad(hn::FirstN(d, static_cast<size_t>(std::max<int64_t>(count, 0))), d, from);
}

// x[columns[0]], x[columns[1]], ...; false if a column is not below `width`.
template <bool kAll, class D>
HWY_INLINE bool gather(D d, const RowProducts<float>& of, int64_t entry, int64_t count,
                       hn::Vec<D>& found) {
  const hn::Repartition<uint64_t, D> d64;
  const hn::RebindToUnsigned<D> d32;
  constexpr int64_t kHalf = hn::MaxLanes(hn::Repartition<uint64_t, D>());
  const auto low = columns_at<kAll>(d64, of.columns + entry, count);
  const auto high = columns_at<kAll>(d64, of.columns + entry + kHalf, count - kHalf);
  const auto end = hn::Set(d64, static_cast<uint64_t>(of.width));
  if (!hn::AllTrue(d64, hn::And(hn::Lt(low, end), hn::Lt(high, end)))) return false;
  // The lower halves of the numbers.
  const auto index = hn::ConcatEven(d32, hn::BitCast(d32, high), hn::BitCast(d32, low));
  found = hn::GatherIndex(d, of.x, hn::BitCast(hn::RebindToSigned<D>(), index));
  return true;
}
template <bool kAll, class D>
HWY_INLINE bool gather(D d, const RowProducts<double>& of, int64_t entry, int64_t count,
                       hn::Vec<D>& found) {
  const hn::RebindToUnsigned<D> d64;
  const auto index = columns_at<kAll>(d64, of.columns + entry, count);
  if (!hn::AllTrue(d64, hn::Lt(index, hn::Set(d64, static_cast<uint64_t>(of.width))))) return false;
  found = hn::GatherIndex(d, of.x, hn::BitCast(hn::RebindToSigned<D>(), index));
  return true;
}

// Adds up the products of `count` entries from `first` on. False if a column is none.
template <class T>
HWY_INLINE bool sum_of_run(const RowProducts<T>& of, int64_t first, int64_t count, T& sum) {
  const Few<T> d;
  constexpr int64_t kLanes = hn::MaxLanes(Few<T>());
  const T* const values = of.values + first;
  auto sums = hn::Zero(d);
  hn::Vec<Few<T>> found;
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    if (HWY_UNLIKELY(!gather<true>(d, of, first + i, kLanes, found))) return false;
    sums = hn::Add(sums, hn::Mul(found, hn::LoadU(d, values + i)));
  }
  if (i < count) {
    if (HWY_UNLIKELY(!gather<false>(d, of, first + i, count - i, found))) return false;
    const auto rest = hn::FirstN(d, static_cast<size_t>(count - i));
    const auto products = hn::Mul(found, hn::MaskedLoad(rest, d, values + i));
    sums = hn::Add(sums, hn::IfThenElseZero(rest, products));
  }
  sum = hn::GetLane(hn::SumOfLanes(d, sums));
  return true;
}

template <class T>
int64_t sum_row_products(const RowProducts<T>& of, int64_t run, T* out) {
  for (int64_t r = 0; r < of.rows; ++r) {
    const int64_t begin = of.bounds[r], end = of.bounds[r + 1];
    if (HWY_LIKELY(end - begin <= run)) {
      if (HWY_UNLIKELY(!sum_of_run(of, begin, end - begin, out[r]))) return r;
      continue;
    }
    double total = 0;
    for (int64_t i = begin; i < end; i += run) {
      T sum;
      if (HWY_UNLIKELY(!sum_of_run(of, i, std::min(run, end - i), sum))) return r;
      total += static_cast<double>(sum);
    }
    out[r] = static_cast<T>(total);
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
