// Products and sums of columns by vectors. Sums of products are doubles, so that squares of floats
// neither overflow nor vanish.
//
// SPDX-License-Identifier: Apache-2.0
#define TREADLE_TARGET_INCLUDE "aten/ops/linalg/cpu/column_loops.cc"
#include "aten/ops/linalg/cpu/column_loops.h"

#include "aten/backend/cpu/foreach_target.h"

#include <array>
#include <utility>

#include "aten/scalar/vec-inl.h"

HWY_BEFORE_NAMESPACE();
namespace treadle::simd::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Sums of products of vectors of T, for `count` pairs.
template <class T, int count>
struct Products {
  using D = hn::ScalableTag<T>;
  using V = hn::Vec<D>;
  using Wide = hn::ScalableTag<double>;
  static constexpr int kParts = sizeof(double) / sizeof(T);
  hn::Vec<Wide> sums[count][kParts];

  HWY_INLINE Products() {
#pragma GCC unroll 8
    for (int c = 0; c < count; ++c) {
      for (int part = 0; part < kParts; ++part) sums[c][part] = hn::Zero(Wide());
    }
  }
  static HWY_INLINE hn::Vec<Wide> wide(V v, int part) {
    if constexpr (kParts == 1) {
      return v;
    } else {
      const hn::Half<D> half;
      const auto some = part == 0 ? hn::LowerHalf(half, v) : hn::UpperHalf(half, v);
      return hn::PromoteTo(Wide(), some);
    }
  }
  // first[part] holds the other factor.
  HWY_INLINE void add(int c, const hn::Vec<Wide> (&first)[kParts], V v) {
#pragma GCC unroll 2
    for (int part = 0; part < kParts; ++part)
      sums[c][part] = hn::MulAdd(first[part], wide(v, part), sums[c][part]);
  }
  HWY_INLINE double total(int c) const {
    auto sum = sums[c][0];
    if constexpr (kParts == 2) sum = hn::Add(sum, sums[c][1]);
    return hn::GetLane(hn::SumOfLanes(Wide(), sum));
  }
};

template <class T>
struct Columns {
  using D = hn::ScalableTag<T>;
  using V = hn::Vec<D>;
  static constexpr int64_t kLanes = static_cast<int64_t>(hn::MaxLanes(D()));

  template <int count>
  static HWY_NOINLINE void products(const T* columns, int64_t pitch, int64_t rows, double* sums) {
    using P = Products<T, count>;
    const D d;
    P p;
    int64_t i = 0;
    for (; i + kLanes <= rows; i += kLanes) {
      const V x = hn::LoadU(d, columns + i);
      hn::Vec<typename P::Wide> first[P::kParts];
#pragma GCC unroll 2
      for (int part = 0; part < P::kParts; ++part) first[part] = P::wide(x, part);
      p.add(0, first, x);
#pragma GCC unroll 8
      for (int c = 1; c < count; ++c) p.add(c, first, hn::LoadU(d, columns + c * pitch + i));
    }
    for (int c = 0; c < count; ++c) {
      sums[c] = p.total(c);
      for (int64_t r = i; r < rows; ++r)
        sums[c] += static_cast<double>(columns[r]) * static_cast<double>(columns[c * pitch + r]);
    }
  }

  template <int count>
  static HWY_NOINLINE void reflect(T* columns, int64_t pitch, int64_t rows, T scale,
                                   const T* weights, double* sums) {
    constexpr int kOthers = count - 1;
    using P = Products<T, (kOthers > 0 ? kOthers : 1)>;
    const D d;
    P p;
    V weight[kOthers > 0 ? kOthers : 1];
#pragma GCC unroll 8
    for (int c = 0; c < kOthers; ++c) weight[c] = hn::Set(d, weights[c + 1]);
    const V by = hn::Set(d, scale);
    int64_t i = 0;
    for (; i + kLanes <= rows; i += kLanes) {
      const V v = hn::Mul(by, hn::LoadU(d, columns + i));
      hn::StoreU(v, d, columns + i);
      hn::Vec<typename P::Wide> first[P::kParts];
#pragma GCC unroll 8
      for (int c = 0; c < kOthers; ++c) {
        T* const at = columns + (c + 1) * pitch + i;
        const V x = hn::NegMulAdd(weight[c], v, hn::LoadU(d, at));
        hn::StoreU(x, d, at);
        if (c == 0) {
#pragma GCC unroll 2
          for (int part = 0; part < P::kParts; ++part) first[part] = P::wide(x, part);
        }
        p.add(c, first, x);
      }
    }
    for (int c = 0; c < kOthers; ++c) sums[c] = p.total(c);
    for (; i < rows; ++i) {
      const T v = columns[i] = columns[i] * scale;
      for (int c = 0; c < kOthers; ++c) {
        T& x = columns[(c + 1) * pitch + i];
        x -= weights[c + 1] * v;
        sums[c] += static_cast<double>(columns[pitch + i]) * static_cast<double>(x);
      }
    }
  }

  // An element below the diagonal is used twice. Some columns share the loads of x and y.
  template <int count>
  static HWY_NOINLINE void symmetric_columns(const T* a, int64_t pitch, int64_t rows, int64_t j,
                                             const T* x, T* y) {
    const D d;
    const T* const columns = a + j * pitch;
    V factors[count], sums[count];
#pragma GCC unroll 4
    for (int c = 0; c < count; ++c) {
      factors[c] = hn::Set(d, x[j + c]);
      sums[c] = hn::Zero(d);
      const T* const column = columns + c * pitch + j;
      y[j + c] += column[c] * x[j + c];
      for (int r = c + 1; r < count; ++r) {
        y[j + r] += column[r] * x[j + c];
        y[j + c] += column[r] * x[j + r];
      }
    }
    int64_t i = j + count;
    for (; i + kLanes <= rows; i += kLanes) {
      const V mine = hn::LoadU(d, x + i);
      V sum = hn::LoadU(d, y + i);
#pragma GCC unroll 4
      for (int c = 0; c < count; ++c) {
        const V element = hn::LoadU(d, columns + c * pitch + i);
        sum = hn::MulAdd(element, factors[c], sum);
        sums[c] = hn::MulAdd(element, mine, sums[c]);
      }
      hn::StoreU(sum, d, y + i);
    }
    for (int c = 0; c < count; ++c) {
      T sum = hn::GetLane(hn::SumOfLanes(d, sums[c]));
      for (int64_t r = i; r < rows; ++r) {
        y[r] += columns[c * pitch + r] * x[j + c];
        sum += columns[c * pitch + r] * x[r];
      }
      y[j + c] += sum;
    }
  }
  static void multiply_symmetric(const T* a, int64_t pitch, int64_t rows, int64_t first,
                                 int64_t last, const T* x, T* y) {
    int64_t j = first;
    for (; j + 4 <= last; j += 4) symmetric_columns<4>(a, pitch, rows, j, x, y);
    for (; j < last; ++j) symmetric_columns<1>(a, pitch, rows, j, x, y);
  }

  static bool to_columns(const T* from, int64_t row_stride, int64_t count, int64_t rows, T* columns,
                         int64_t pitch) {
    if (row_stride != count || count < 2 || count > 4) return false;
    const D d;
    int64_t i = 0;
    const auto each = [&](auto load) HWY_ATTR {
      for (; i + kLanes <= rows; i += kLanes) {
        V x[4];
        load(from + i * count, x);
        for (int64_t c = 0; c < count; ++c) hn::StoreU(x[c], d, columns + c * pitch + i);
      }
    };
    if (count == 2)
      each([&](const T* p, V* x) HWY_ATTR { hn::LoadInterleaved2(d, p, x[0], x[1]); });
    else if (count == 3)
      each([&](const T* p, V* x) HWY_ATTR { hn::LoadInterleaved3(d, p, x[0], x[1], x[2]); });
    else
      each([&](const T* p, V* x) HWY_ATTR { hn::LoadInterleaved4(d, p, x[0], x[1], x[2], x[3]); });
    for (; i < rows; ++i) {
      for (int64_t c = 0; c < count; ++c) columns[c * pitch + i] = from[i * count + c];
    }
    return true;
  }
  static bool to_rows(const T* columns, int64_t pitch, int64_t count, int64_t rows, T* to,
                      int64_t row_stride) {
    if (row_stride != count || count < 2 || count > 4) return false;
    const D d;
    int64_t i = 0;
    const auto each = [&](auto store) HWY_ATTR {
      for (; i + kLanes <= rows; i += kLanes) {
        V x[4] = {};
        for (int64_t c = 0; c < count; ++c) x[c] = hn::LoadU(d, columns + c * pitch + i);
        store(x, to + i * count);
      }
    };
    if (count == 2)
      each([&](const V* x, T* p) HWY_ATTR { hn::StoreInterleaved2(x[0], x[1], d, p); });
    else if (count == 3)
      each([&](const V* x, T* p) HWY_ATTR { hn::StoreInterleaved3(x[0], x[1], x[2], d, p); });
    else
      each([&](const V* x, T* p) HWY_ATTR { hn::StoreInterleaved4(x[0], x[1], x[2], x[3], d, p); });
    for (; i < rows; ++i) {
      for (int64_t c = 0; c < count; ++c) to[i * count + c] = columns[c * pitch + i];
    }
    return true;
  }

  using Product = void (*)(const T*, int64_t, int64_t, double*);
  using Reflect = void (*)(T*, int64_t, int64_t, T, const T*, double*);
  template <int... counts>
  static constexpr std::array<Product, sizeof...(counts)> product_loops(
      std::integer_sequence<int, counts...>) {
    return {&products<counts + 1>...};
  }
  template <int... counts>
  static constexpr std::array<Reflect, sizeof...(counts)> reflect_loops(
      std::integer_sequence<int, counts...>) {
    return {&reflect<counts + 1>...};
  }
  using Counts = std::make_integer_sequence<int, kMostColumns>;

  static void any_products(const T* columns, int64_t pitch, int64_t count, int64_t rows,
                           double* sums) {
    static constexpr auto kLoops = product_loops(Counts());
    kLoops[static_cast<size_t>(count - 1)](columns, pitch, rows, sums);
  }
  static void any_reflect(T* columns, int64_t pitch, int64_t count, int64_t rows, T scale,
                          const T* weights, double* sums) {
    static constexpr auto kLoops = reflect_loops(Counts());
    kLoops[static_cast<size_t>(count - 1)](columns, pitch, rows, scale, weights, sums);
  }
};

const ColumnLoops<float>& float_columns() {
  static constexpr ColumnLoops<float> loops{
      &Columns<float>::any_products, &Columns<float>::any_reflect,
      &Columns<float>::multiply_symmetric, &Columns<float>::to_columns, &Columns<float>::to_rows};
  return loops;
}
const ColumnLoops<double>& double_columns() {
  static constexpr ColumnLoops<double> loops{
      &Columns<double>::any_products, &Columns<double>::any_reflect,
      &Columns<double>::multiply_symmetric, &Columns<double>::to_columns,
      &Columns<double>::to_rows};
  return loops;
}

}  // namespace treadle::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace treadle::simd {

HWY_EXPORT(float_columns);
HWY_EXPORT(double_columns);

template <>
const ColumnLoops<float>& column_loops() {
  return HWY_DYNAMIC_DISPATCH(float_columns)();
}
template <>
const ColumnLoops<double>& column_loops() {
  return HWY_DYNAMIC_DISPATCH(double_columns)();
}

}  // namespace treadle::simd
#endif  // HWY_ONCE
