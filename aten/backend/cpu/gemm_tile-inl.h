// The tile of a product of matrices that stays in registers while its terms are added.
//
// SPDX-License-Identifier: Apache-2.0
#if defined(TREADLE_ATEN_CPU_GEMM_TILE_INL_H_) == defined(TREADLE_TARGET_TOGGLE)
#ifdef TREADLE_ATEN_CPU_GEMM_TILE_INL_H_
#undef TREADLE_ATEN_CPU_GEMM_TILE_INL_H_
#else
#define TREADLE_ATEN_CPU_GEMM_TILE_INL_H_
#endif

#include <array>
#include <cstring>
#include <utility>

#include "aten/backend/cpu/gemm_loops.h"
#include "aten/backend/cpu/highway.h"

HWY_BEFORE_NAMESPACE();
namespace treadle::simd::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// x y + sum; for pairs x.second y.second + (x.first y.first + sum), each lane being a pair.
template <class T, class V>
HWY_INLINE V add_product(V x, V y, V sum) {
  if constexpr (std::is_same_v<T, BFloat16Pair>) {
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
    // The compiler may use no instructions but those of the target; the caller knows of this one.
    __asm__("vdpbf16ps %2, %1, %0" : "+v"(sum.raw) : "v"(x.raw), "v"(y.raw));
#endif
    return sum;
  } else {
    return hn::MulAdd(x, y, sum);
  }
}

// A tile of C: 6 x 2 vectors where there are 16 registers, 12 x 2 of 32. T are the terms.
template <class T>
struct Tile {
  using C = SumType<T>;  // in A and B the bits of a T
  using D = hn::ScalableTag<C>;
  using V = hn::Vec<D>;
  static constexpr int kLanes = static_cast<int>(hn::MaxLanes(D()));
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_NEON
  static constexpr int kRows = 12;
#else
  static constexpr int kRows = 6;
#endif
  static constexpr int kColumns = 2 * kLanes;

  // Where it goes: strides in elements.
  struct Target {
    C* data;
    int64_t row, column;
    C alpha, beta;
    Target at(int64_t i, int64_t j) const {
      return {data + i * row + j * column, row, column, alpha, beta};
    }
  };

  // The operands of a tile: elements of A for row r and term k at a[r * a_row + k * a_step], rows
  // of B at b + k * b_step.
  struct Operands {
    const C* a;
    int64_t a_row, a_step;
    const C* b;
    int64_t b_step, depth;
  };
  // A pair need not lie where a float may.
  static HWY_INLINE C read(const C* from) {
    C bits;
    std::memcpy(&bits, from, sizeof(bits));
    return bits;
  }
  static HWY_INLINE void put(V sum, V alpha, V beta, bool keeps, C* to) {
    const D d;
    V y = hn::Mul(alpha, sum);
    if (keeps) y = hn::Add(y, hn::Mul(beta, hn::LoadU(d, to)));
    hn::StoreU(y, d, to);
  }
  template <int rows>
  static HWY_INLINE void put_rows(const V (&sums)[rows][2], const Target& c) {
    const V alpha = hn::Set(D(), c.alpha), beta = hn::Set(D(), c.beta);
    const bool keeps = c.beta != C(0);
#pragma GCC unroll 16
    for (int r = 0; r < rows; ++r) {
      put(sums[r][0], alpha, beta, keeps, c.data + r * c.row);
      put(sums[r][1], alpha, beta, keeps, c.data + r * c.row + kLanes);
    }
  }
  // f(target), whose rows are contiguous and have kColumns elements: `c`, or memory that is copied.
  template <class F>
  static HWY_INLINE void with_whole_rows(const Target& c, int64_t rows, int64_t columns, F&& f) {
    if (columns == kColumns && c.column == 1) return f(c);
    HWY_ALIGN C some[kRows * kColumns] = {};
    const auto each = [&](auto put_one) {
      for (int64_t i = 0; i < rows; ++i) {
        for (int64_t j = 0; j < columns; ++j)
          put_one(some[i * kColumns + j], c.data[i * c.row + j * c.column]);
      }
    };
    if (c.beta != C(0)) each([](C& mine, const C& theirs) { mine = theirs; });
    f(Target{some, kColumns, 1, c.alpha, c.beta});
    each([](const C& mine, C& theirs) { theirs = mine; });
  }
  template <int rows>
  static HWY_INLINE void add_term(const C* a, int64_t a_row, const C* b, V (&sums)[rows][2]) {
    const D d;
    const V b0 = hn::LoadU(d, b), b1 = hn::LoadU(d, b + kLanes);
#pragma GCC unroll 16
    for (int r = 0; r < rows; ++r) {
      const V x = hn::Set(d, read(a + r * a_row));
      sums[r][0] = add_product<T>(x, b0, sums[r][0]);
      sums[r][1] = add_product<T>(x, b1, sums[r][1]);
    }
  }
  template <int rows, bool kPacked>
  static HWY_NOINLINE void compute(const Operands& o, const Target& c) {
    const D d;
    V sums[rows][2];
#pragma GCC unroll 16
    for (int r = 0; r < rows; ++r) sums[r][0] = sums[r][1] = hn::Zero(d);
    const C *a = o.a, *b = o.b;
    if constexpr (kPacked) {
#pragma GCC unroll 4
      for (int64_t k = 0; k < o.depth; ++k)
        add_term<rows>(a + k * kRows, 1, b + k * kColumns, sums);
    } else {
      const int64_t a_row = o.a_row, a_step = o.a_step, b_step = o.b_step;
      for (int64_t k = 0; k < o.depth; ++k)
        add_term<rows>(a + k * a_step, a_row, b + k * b_step, sums);
    }
    put_rows(sums, c);
  }
  using Loop = void (*)(const Operands&, const Target&);
  template <bool kPacked, size_t... r>
  static constexpr std::array<Loop, kRows> loops(std::index_sequence<r...>) {
    return {&compute<static_cast<int>(r) + 1, kPacked>...};
  }
  static constexpr std::array<Loop, kRows> kPackedLoops =
      loops<true>(std::make_index_sequence<kRows>());
  static constexpr std::array<Loop, kRows> kLoops = loops<false>(std::make_index_sequence<kRows>());

  static void compute_any(const Operands& o, const Target& c, int64_t rows, int64_t columns) {
    const bool packed = o.a_row == 1 && o.a_step == kRows && o.b_step == kColumns;
    const Loop loop = (packed ? kPackedLoops : kLoops)[static_cast<size_t>(rows - 1)];
    with_whole_rows(c, rows, columns, [&](const Target& to) { loop(o, to); });
  }
};

}  // namespace treadle::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
