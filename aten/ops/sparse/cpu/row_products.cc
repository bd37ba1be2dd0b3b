// Sums of products of the entries of rows and of elements of a vector, by vectors. Rows are short,
// so the products of many rows are computed first, side by side, and then added up row by row.
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

// x[columns[0]], x[columns[1]], ... for a vector of columns, of which all are below `width`.
template <class D>
HWY_INLINE bool gather(D d, const float* x, const int64_t* columns, int64_t width,
                       hn::Vec<D>& found) {
  const hn::Repartition<uint64_t, D> d64;
  const hn::RebindToUnsigned<D> d32;
  const auto* const from = reinterpret_cast<const uint64_t*>(columns);
  const auto low = hn::LoadU(d64, from), high = hn::LoadU(d64, from + hn::MaxLanes(d64));
  const auto end = hn::Set(d64, static_cast<uint64_t>(width));
  if (!hn::AllTrue(d64, hn::And(hn::Lt(low, end), hn::Lt(high, end)))) return false;
  // The lower halves of the numbers.
  const auto index = hn::ConcatEven(d32, hn::BitCast(d32, high), hn::BitCast(d32, low));
  found = hn::GatherIndex(d, x, hn::BitCast(hn::RebindToSigned<D>(), index));
  return true;
}
template <class D>
HWY_INLINE bool gather(D d, const double* x, const int64_t* columns, int64_t width,
                       hn::Vec<D>& found) {
  const hn::RebindToUnsigned<D> d64;
  const auto index = hn::LoadU(d64, reinterpret_cast<const uint64_t*>(columns));
  if (!hn::AllTrue(d64, hn::Lt(index, hn::Set(d64, static_cast<uint64_t>(width))))) return false;
  found = hn::GatherIndex(d, x, hn::BitCast(hn::RebindToSigned<D>(), index));
  return true;
}

// Writes the products of `count` entries from `first` on. Returns -1 or the number of a bad entry.
template <class T>
int64_t products(const RowProducts<T>& of, int64_t first, int64_t count, T* out) {
  const Tag<T> d;
  constexpr int64_t kLanes = hn::MaxLanes(Tag<T>());
  int64_t i = 0;
  if (of.width <= std::numeric_limits<int32_t>::max()) {
    for (; i + kLanes <= count; i += kLanes) {
      hn::Vec<Tag<T>> found;
      if (!gather(d, of.x, of.columns + first + i, of.width, found)) break;
      hn::StoreU(hn::Mul(found, hn::LoadU(d, of.values + first + i)), d, out + i);
    }
  }
  for (; i < count; ++i) {
    const auto c = static_cast<uint64_t>(of.columns[first + i]);
    if (c >= static_cast<uint64_t>(of.width)) return first + i;
    out[i] = of.values[first + i] * of.x[c];
  }
  return -1;
}

// Up to a vector behind the terms is read.
template <class T>
HWY_INLINE T sum_of_run(const T* terms, int64_t count) {
  const hn::CappedTag<T, 8> d;  // rows are short
  constexpr int64_t kLanes = hn::MaxLanes(hn::CappedTag<T, 8>());
  auto sums = hn::Zero(d);
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) sums = hn::Add(sums, hn::LoadU(d, terms + i));
  if (i < count) {
    const auto rest = hn::FirstN(d, static_cast<size_t>(count - i));
    sums = hn::Add(sums, hn::IfThenElseZero(rest, hn::LoadU(d, terms + i)));
  }
  return hn::GetLane(hn::SumOfLanes(d, sums));
}

constexpr int64_t kBlock = 1024;  // terms

// The sum of terms in runs of `run`.
template <class T>
double sum_of_runs(const T* terms, int64_t count, int64_t run) {
  double total = 0;
  for (int64_t i = 0; i < count; i += run)
    total += static_cast<double>(sum_of_run(terms + i, std::min(run, count - i)));
  return total;
}

template <class T>
int64_t sum_row_products(const RowProducts<T>& of, int64_t run, T* out) {
  T terms[kBlock + hn::MaxLanes(Tag<T>())];
  int64_t r = 0;
  while (r < of.rows) {
    const int64_t begin = of.bounds[r];
    // The first row that does not fit in whole.
    const int64_t end =
        std::upper_bound(of.bounds + r + 1, of.bounds + of.rows + 1, begin + kBlock) - of.bounds -
        1;
    if (const int64_t bad = products(of, begin, of.bounds[end] - begin, terms); bad >= 0)
      return bad;
    for (; r < end; ++r) {
      const T* const from = terms + (of.bounds[r] - begin);
      const int64_t count = of.bounds[r + 1] - of.bounds[r];
      out[r] =
          count <= run ? sum_of_run(from, count) : static_cast<T>(sum_of_runs(from, count, run));
    }
    if (r == of.rows || of.bounds[r + 1] - of.bounds[r] <= kBlock) continue;
    // A row that is longer than the block, whose size is a multiple of `run`.
    double total = 0;
    for (int64_t i = of.bounds[r]; i < of.bounds[r + 1]; i += kBlock) {
      const int64_t count = std::min(kBlock, of.bounds[r + 1] - i);
      if (const int64_t bad = products(of, i, count, terms); bad >= 0) return bad;
      total += sum_of_runs(terms, count, run);
    }
    out[r++] = static_cast<T>(total);
  }
  return -1;
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
