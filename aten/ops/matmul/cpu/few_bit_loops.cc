// Weights of 8 and 4 bits are decoded in registers and multiplied there. The terms of a sum are
// added in runs in float32, and the runs in float64.
//
// SPDX-License-Identifier: Apache-2.0
#define TREADLE_TARGET_INCLUDE "aten/ops/matmul/cpu/few_bit_loops.cc"
#include "aten/backend/cpu/foreach_target.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "aten/ops/matmul/cpu/few_bit_loops.h"

HWY_BEFORE_NAMESPACE();
namespace treadle::simd::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;
using Words = hn::RebindToUnsigned<D>;
constexpr int kLanes = static_cast<int>(hn::MaxLanes(D()));
constexpr int64_t kRun = 256;  // terms that are added in float32, a multiple of every group

// ---- int4: lanes are rows of the weights ----

#if HWY_TARGET == HWY_AVX3
constexpr int kFewBlocks = 4, kTileBlocks = 2, kTileRows = 12;
#elif HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_NEON
constexpr int kFewBlocks = 1, kTileBlocks = 1, kTileRows = 6;
#else
constexpr int kFewBlocks = 1, kTileBlocks = 1, kTileRows = 3;
#endif
constexpr int kFewRows = 4;
constexpr int kPerBlock = static_cast<int>(kInt4Rows) / kLanes;

// The numbers -8 to 7, as many as a vector has.
HWY_INLINE V numbers() { return hn::Sub(hn::Iota(D(), 0), hn::Set(D(), 8.0f)); }

// The number q in the lowest four bits of each word, as q - 8.
HWY_INLINE V decode(hn::Vec<Words> words, [[maybe_unused]] V table) {
#if HWY_TARGET == HWY_AVX3
  return V{_mm512_permutexvar_ps(words.raw, table.raw)};  // it looks at these four bits only
#else
  const hn::RebindToSigned<D> wide;
  const auto q = hn::BitCast(wide, hn::And(words, hn::Set(Words(), 15)));
  return hn::ConvertTo(D(), hn::Sub(q, hn::Set(wide, 8)));
#endif
}

// The scales and zeros of as many rows as a vector has, which alternate in memory.
HWY_INLINE void load_factors(const float* from, V& scale, V& zero) {
  hn::LoadInterleaved2(D(), from, scale, zero);
}
HWY_INLINE void load_factors(const BFloat16* from, V& scale, V& zero) {
  const auto pairs = hn::LoadU(Words(), reinterpret_cast<const uint32_t*>(from));
  scale = hn::BitCast(D(), hn::ShiftLeft<16>(pairs));
  zero = hn::BitCast(D(), hn::And(pairs, hn::Set(Words(), 0xffff0000u)));
}

// Decodes the terms [begin, end), which are within a run, of `kBlocks` blocks: use(k, weights).
template <int kBlocks, class S, class F>
HWY_INLINE void each_term(const Int4Product<S>& o, int64_t block, int64_t begin, int64_t end,
                          F&& use) {
  constexpr int kVectors = kBlocks * kPerBlock;
  const Words words;
  const V table = numbers();
  const int64_t block_bytes = o.terms / kInt4Terms * kInt4Unit;
  const uint8_t* const weights = o.weights + block * block_bytes;
  for (int64_t first = begin; first < end; first += o.group) {
    const S* const from = o.scales + first / o.group * o.pitch + 2 * kInt4Rows * block;
    V scale[kVectors], zero[kVectors];
#pragma GCC unroll 16
    for (int v = 0; v < kVectors; ++v) load_factors(from + 2 * kLanes * v, scale[v], zero[v]);
    // Those of the next group are in another page, so the processor does not fetch them itself.
    for (int64_t i = 0; i < 2 * kVectors * kLanes; i += 64 / static_cast<int64_t>(sizeof(S)))
      __builtin_prefetch(from + o.pitch + i);
    for (int64_t k = first; k < first + o.group; k += kInt4Terms) {
      hn::Vec<Words> packed[kVectors];
#pragma GCC unroll 16
      for (int v = 0; v < kVectors; ++v) {
        const uint8_t* const unit =
            weights + v / kPerBlock * block_bytes + k / kInt4Terms * kInt4Unit;
        packed[v] =
            hn::LoadU(words, reinterpret_cast<const uint32_t*>(unit) + v % kPerBlock * kLanes);
      }
#pragma GCC unroll 8
      for (int t = 0; t < kInt4Terms; ++t) {
        V w[kVectors];
#pragma GCC unroll 16
        for (int v = 0; v < kVectors; ++v) {
          w[v] = hn::MulAdd(decode(packed[v], table), scale[v], zero[v]);
          packed[v] = hn::ShiftRight<4>(packed[v]);
        }
        use(k + t, w);
      }
    }
  }
}

HWY_INLINE void add_wide(V sums, double* totals) {
  if constexpr (kLanes == 1) {
    *totals += static_cast<double>(hn::GetLane(sums));
  } else {
    const hn::Repartition<double, D> wide;
    const hn::Half<D> half;
    double* const upper = totals + kLanes / 2;
    const auto low = hn::PromoteTo(wide, hn::LowerHalf(half, sums));
    const auto high = hn::PromoteTo(wide, hn::UpperHalf(half, sums));
    hn::StoreU(hn::Add(hn::LoadU(wide, totals), low), wide, totals);
    hn::StoreU(hn::Add(hn::LoadU(wide, upper), high), wide, upper);
  }
}

template <int kRows, int kVectors>
HWY_INLINE void add_run(const V (&sums)[kRows][kVectors], double* totals) {
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 16
    for (int v = 0; v < kVectors; ++v) add_wide(sums[r][v], totals + (r * kVectors + v) * kLanes);
  }
}

template <int kRows, int kVectors>
HWY_INLINE void add_term(const float* x, const V (&w)[kVectors], V (&sums)[kRows][kVectors]) {
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
    const V factor = hn::Set(D(), x[r]);
#pragma GCC unroll 16
    for (int v = 0; v < kVectors; ++v) sums[r][v] = hn::MulAdd(factor, w[v], sums[r][v]);
  }
}

template <int kRows, int kVectors>
HWY_INLINE void clear(V (&sums)[kRows][kVectors]) {
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 16
    for (int v = 0; v < kVectors; ++v) sums[r][v] = hn::Zero(D());
  }
}

// The rows [row, row + rows) of `kColumns` columns.
template <int kColumns, class S>
void write_totals(const Int4Product<S>& o, const double* totals, int64_t row, int64_t rows,
                  int64_t block) {
  for (int64_t r = 0; r < rows; ++r) {
    float* const to = o.out + (row + r) * o.out_pitch + block * kInt4Rows;
    for (int64_t j = 0; j < kColumns; ++j) to[j] = static_cast<float>(totals[r * kColumns + j]);
  }
}

// A few rows, which are one panel: weights are multiplied as they are decoded.
template <int kRows, int kBlocks, class S>
HWY_NOINLINE void few_rows(const Int4Product<S>& o, int64_t block) {
  constexpr int kVectors = kBlocks * kPerBlock, kColumns = kVectors * kLanes;
  double totals[kRows * kColumns] = {};
  for (int64_t begin = 0; begin < o.terms; begin += kRun) {
    V sums[kRows][kVectors];
    clear(sums);
    each_term<kBlocks>(o, block, begin, std::min(o.terms, begin + kRun),
                       [&](int64_t k, const V(&w)[kVectors])
                           HWY_ATTR { add_term(o.a + k * kRows, w, sums); });
    add_run(sums, totals);
  }
  write_totals<kColumns>(o, totals, 0, kRows, block);
}

// A panel of any number of rows by the decoded terms of a run.
template <int kRows, int kBlocks>
HWY_NOINLINE void panel_by_run(const float* a, const float* weights, int64_t terms,
                               double* totals) {
  constexpr int kVectors = kBlocks * kPerBlock, kColumns = kVectors * kLanes;
  V sums[kRows][kVectors];
  clear(sums);
  for (int64_t k = 0; k < terms; ++k) {
    V w[kVectors];
#pragma GCC unroll 16
    for (int v = 0; v < kVectors; ++v) w[v] = hn::LoadU(D(), weights + k * kColumns + v * kLanes);
    add_term(a + k * kRows, w, sums);
  }
  add_run(sums, totals);
}

using PanelByRun = void (*)(const float*, const float*, int64_t, double*);
template <int kBlocks, size_t... r>
constexpr std::array<PanelByRun, sizeof...(r)> panels_by_run(std::index_sequence<r...>) {
  return {&panel_by_run<static_cast<int>(r) + 1, kBlocks>...};
}

// Many rows: the terms of a run are decoded once for all of them.
template <int kBlocks, class S>
HWY_NOINLINE void many_rows(const Int4Product<S>& o, int64_t block, std::vector<double>& totals) {
  constexpr int kVectors = kBlocks * kPerBlock, kColumns = kVectors * kLanes;
  static constexpr auto kLoops = panels_by_run<kBlocks>(std::make_index_sequence<kTileRows>());
  HWY_ALIGN float decoded[kRun * kColumns];
  totals.assign(static_cast<size_t>(o.rows * kColumns), 0.0);
  for (int64_t begin = 0; begin < o.terms; begin += kRun) {
    const int64_t terms = std::min(kRun, o.terms - begin);
    each_term<kBlocks>(o, block, begin, begin + terms,
                       [&](int64_t k, const V(&w)[kVectors]) HWY_ATTR {
                         float* const to = decoded + (k - begin) * kColumns;
#pragma GCC unroll 16
                         for (int v = 0; v < kVectors; ++v) hn::StoreU(w[v], D(), to + v * kLanes);
                       });
    for (int64_t row = 0; row < o.rows; row += o.panel) {
      const int64_t rows = std::min(o.panel, o.rows - row);
      kLoops[static_cast<size_t>(rows - 1)](o.a + row * o.terms + begin * rows, decoded, terms,
                                            totals.data() + row * kColumns);
    }
  }
  write_totals<kColumns>(o, totals.data(), 0, o.rows, block);
}

template <int kBlocks, class S>
void int4_tile(const Int4Product<S>& o, int64_t block, std::vector<double>& totals) {
  switch (o.rows) {
    case 1:
      return few_rows<1, kBlocks>(o, block);
    case 2:
      return few_rows<2, kBlocks>(o, block);
    case 3:
      return few_rows<3, kBlocks>(o, block);
    case 4:
      return few_rows<4, kBlocks>(o, block);
    default:
      return many_rows<std::min(kBlocks, kTileBlocks)>(o, block, totals);
  }
}

template <class S>
void int4_product(const Int4Product<S>& o) {
  std::vector<double> totals;
  const int64_t step = o.rows > kFewRows ? kTileBlocks : kFewBlocks;
  int64_t block = 0;
  for (; block + step <= o.blocks; block += step) int4_tile<kFewBlocks>(o, block, totals);
  for (; block < o.blocks; ++block) int4_tile<1>(o, block, totals);
}

// ---- int8: lanes are terms ----

#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_NEON
constexpr int64_t kDotRows = 4;
#else
constexpr int64_t kDotRows = 2;
#endif
constexpr int kDotColumns = 4;

template <int kRows, int kColumns>
HWY_NOINLINE void dots(const Int8Product& o, int64_t row, int64_t column) {
  const D d;
  const hn::Rebind<int32_t, D> numbers;
  const hn::Rebind<int8_t, D> bytes;
  const float* const a = o.a + row * o.terms;
  const int8_t* const weights = o.weights + column * o.terms;
  double totals[kRows][kColumns] = {};
  const int64_t whole = o.terms / kLanes * kLanes;
  for (int64_t begin = 0; begin < whole; begin += kRun * kLanes) {
    const int64_t end = std::min(whole, begin + kRun * kLanes);
    V sums[kRows][kColumns];
    clear(sums);
    for (int64_t k = begin; k < end; k += kLanes) {
      V w[kColumns];
#pragma GCC unroll 4
      for (int c = 0; c < kColumns; ++c)
        w[c] =
            hn::ConvertTo(d, hn::PromoteTo(numbers, hn::LoadU(bytes, weights + c * o.terms + k)));
#pragma GCC unroll 4
      for (int r = 0; r < kRows; ++r) {
        const V x = hn::LoadU(d, a + r * o.terms + k);
#pragma GCC unroll 4
        for (int c = 0; c < kColumns; ++c) sums[r][c] = hn::MulAdd(x, w[c], sums[r][c]);
      }
    }
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
      for (int c = 0; c < kColumns; ++c)
        totals[r][c] += static_cast<double>(hn::GetLane(hn::SumOfLanes(d, sums[r][c])));
    }
  }
  for (int r = 0; r < kRows; ++r) {
    for (int c = 0; c < kColumns; ++c) {
      float rest = 0;
      for (int64_t k = whole; k < o.terms; ++k)
        rest += a[r * o.terms + k] * static_cast<float>(weights[c * o.terms + k]);
      const double sum = totals[r][c] + static_cast<double>(rest);
      o.out[(row + r) * o.out_pitch + column + c] =
          static_cast<float>(sum * static_cast<double>(o.scales[column + c]));
    }
  }
}

template <int kColumns>
void int8_columns(const Int8Product& o, int64_t column) {
  int64_t row = 0;
  for (; row + kDotRows <= o.rows; row += kDotRows) dots<kDotRows, kColumns>(o, row, column);
  switch (o.rows - row) {
    case 1:
      return dots<1, kColumns>(o, row, column);
    case 2:
      return dots<2, kColumns>(o, row, column);
    case 3:
      return dots<3, kColumns>(o, row, column);
  }
}

void int8_product(const Int8Product& o) {
  int64_t column = 0;
  for (; column + kDotColumns <= o.columns; column += kDotColumns)
    int8_columns<kDotColumns>(o, column);
  for (; column < o.columns; ++column) int8_columns<1>(o, column);
}

constexpr FewBitLoops kLoops{kFewRows, kTileRows, &int4_product<float>, &int4_product<BFloat16>,
                             &int8_product};
const FewBitLoops& loops() { return kLoops; }

}  // namespace treadle::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace treadle::simd {

HWY_EXPORT(loops);

const FewBitLoops& few_bit_loops() { return HWY_DYNAMIC_DISPATCH(loops)(); }

}  // namespace treadle::simd
#endif  // HWY_ONCE
