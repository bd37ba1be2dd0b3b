// Sums of products of the entries of rows and of elements of a vector, by vectors.
//
// SPDX-License-Identifier: Apache-2.0
#define TREADLE_TARGET_INCLUDE "aten/ops/sparse/cpu/row_products.cc"
#include "aten/backend/cpu/foreach_target.h"

#include <algorithm>
#include <array>
#include <cstdint>
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

// Columns of entries, as many as d has lanes or the first `count`. False if one is not below the
// width.
template <bool kAll, class D64, class T>
HWY_INLINE bool columns_at(D64 d, const RowProducts<T>& of, int64_t i, int64_t count,
                           hn::Vec<D64>& columns) {
  const auto* const from = reinterpret_cast<const uint64_t*>(of.columns + i);
  columns = kAll ? hn::LoadU(d, from) : load_some(d, from, count);
  return hn::AllTrue(d, hn::Lt(columns, hn::Set(d, static_cast<uint64_t>(of.width))));
}

// The elements of the vector that entry i and those behind it are multiplied by: as many as D has
// lanes, or the first `count`, the others being any. False if a column is not below the width.
//
// With the processor's instruction, where it takes less time than one load after another. Float
// takes vectors of up to 2^31 elements then.
struct AtOnce {
  template <bool kAll, class D>
  static HWY_INLINE bool gather(D d, const RowProducts<float>& of, int64_t i, int64_t count,
                                hn::Vec<D>& found) {
    const hn::Repartition<uint64_t, D> d64;
    const hn::RebindToUnsigned<D> d32;
    constexpr int64_t kHalf = hn::MaxLanes(d64);
    hn::Vec<decltype(d64)> low, high;
    if (HWY_UNLIKELY(!columns_at<kAll>(d64, of, i, count, low) ||
                     !columns_at<kAll>(d64, of, i + kHalf, count - kHalf, high)))
      return false;
    // The lower halves of the numbers.
    const auto index = hn::ConcatEven(d32, hn::BitCast(d32, high), hn::BitCast(d32, low));
    found = hn::GatherIndex(d, of.x, hn::BitCast(hn::RebindToSigned<D>(), index));
    return true;
  }
  template <bool kAll, class D>
  static HWY_INLINE bool gather(D d, const RowProducts<double>& of, int64_t i, int64_t count,
                                hn::Vec<D>& found) {
    const hn::RebindToUnsigned<D> d64;
    hn::Vec<decltype(d64)> index;
    if (HWY_UNLIKELY(!columns_at<kAll>(d64, of, i, count, index))) return false;
    found = hn::GatherIndex(d, of.x, hn::BitCast(hn::RebindToSigned<D>(), index));
    return true;
  }
};
// The same by loads. What is loaded is chosen by a copy of the columns, which is checked.
struct OneByOne {
  template <bool kAll, class D, class T>
  static HWY_INLINE bool gather(D d, const RowProducts<T>& of, int64_t i, int64_t count,
                                hn::Vec<D>& found) {
    constexpr size_t kLanes = hn::MaxLanes(D());
    const hn::CappedTag<uint64_t, kLanes> d64;
    constexpr int64_t kStep = hn::MaxLanes(d64);
    HWY_ALIGN uint64_t columns[kLanes];
    for (int64_t k = 0; k < static_cast<int64_t>(kLanes); k += kStep) {
      hn::Vec<decltype(d64)> some;
      if (HWY_UNLIKELY(!columns_at<kAll>(d64, of, i + k, count - k, some))) return false;
      hn::Store(some, d64, columns + k);
    }
    const auto picked = [&]<size_t... k>(std::index_sequence<k...>) HWY_ATTR {
      const T elements[] = {of.x[columns[k]]...};
      return hn::LoadU(d, elements);
    };
    found = picked(std::make_index_sequence<kLanes>());
    return true;
  }
};

// Adds up the products of `count` entries from `first` on. False if a column is none.
template <class How, class D, class T>
HWY_INLINE bool sum_of_run(D d, const RowProducts<T>& of, int64_t first, int64_t count, T& sum) {
  constexpr int64_t kLanes = hn::MaxLanes(D());
  const T* const values = of.values + first;
  auto sums = hn::Zero(d);
  hn::Vec<D> found;
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    if (HWY_UNLIKELY(!How::template gather<true>(d, of, first + i, kLanes, found))) return false;
    sums = hn::Add(sums, hn::Mul(found, hn::LoadU(d, values + i)));
  }
  if (i < count) {
    if (HWY_UNLIKELY(!How::template gather<false>(d, of, first + i, count - i, found)))
      return false;
    const auto rest = hn::FirstN(d, static_cast<size_t>(count - i));
    const auto products = hn::Mul(found, load_some(d, values + i, count - i));
    sums = hn::Add(sums, hn::IfThenElseZero(rest, products));
  }
  sum = hn::GetLane(hn::SumOfLanes(d, sums));
  return true;
}

template <class How, class T>
HWY_NOINLINE bool sum_of_runs(const RowProducts<T>& of, int64_t begin, int64_t end, int64_t run,
                              T& sum) {
  double total = 0;
  for (int64_t i = begin; i < end; i += run) {
    if (HWY_UNLIKELY(!sum_of_run<How>(Few<T>(), of, i, std::min(run, end - i), sum))) return false;
    total += static_cast<double>(sum);
  }
  sum = static_cast<T>(total);
  return true;
}

template <class How, class T>
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
      good = sum_of_run<How>(hn::CappedTag<T, kHalf>(), of, begin, n, sum);
    else if (HWY_LIKELY(n <= run))
      good = sum_of_run<How>(Few<T>(), of, begin, n, sum);
    else
      good = sum_of_runs<How>(given, begin, end, run, sum);
    if (HWY_UNLIKELY(!good)) return r;
    out[r] = sum;
    begin = end;
  }
  return of.rows;
}

using Table = std::tuple<SumRowProducts<float>, SumRowProducts<double>>;
// One by one, and at once.
using Tables = std::array<Table, 2>;
const Tables& row_products_tables() {
  static constexpr Tables tables{
      Table{&sum_row_products<OneByOne, float>, &sum_row_products<OneByOne, double>},
      Table{&sum_row_products<AtOnce, float>, &sum_row_products<AtOnce, double>}};
  return tables;
}

}  // namespace treadle::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace treadle::simd {

HWY_EXPORT(row_products_tables);

bool gathers_at_once(int64_t width) {
#if defined(__x86_64__)
  // AMD's instruction is a program of the processor, and takes longer than the loads that it makes.
  static const bool is_slow = __builtin_cpu_is("amd") != 0;
  return !is_slow && width <= INT32_MAX;
#else
  return false;
#endif
}

template <class T>
SumRowProducts<T> sum_row_products(bool at_once) {
  return std::get<SumRowProducts<T>>(HWY_DYNAMIC_DISPATCH(row_products_tables)()[at_once]);
}

template SumRowProducts<float> sum_row_products(bool at_once);
template SumRowProducts<double> sum_row_products(bool at_once);

}  // namespace treadle::simd
#endif  // HWY_ONCE
