// Products of matrices: a tile of C stays in registers while the terms of its sums are added, one
// after the other (Goto & van de Geijn, "Anatomy of high-performance matrix multiplication", 2008).
//
// The order of additions in an element of C depends on the length of the sum alone: on no other
// size, nor on the tile. So a row of a product has the same bits in a batch of any size, and C may
// be cut for threads in any way. Products with a vector (one column) have another order: their sums
// are added in lanes.
//
// SPDX-License-Identifier: Apache-2.0
#define TREADLE_TARGET_INCLUDE "aten/backend/cpu/gemm_loops.cc"
#include "aten/backend/cpu/foreach_target.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <new>
#include <utility>

#include "aten/backend/cpu/gemm_loops.h"
#include "aten/backend/cpu/gemm_tile-inl.h"
#include "aten/backend/cpu/long_sums.h"
#include "aten/scalar/narrow-inl.h"

#ifndef TREADLE_ATEN_CPU_GEMM_LOOPS_SCRATCH
#define TREADLE_ATEN_CPU_GEMM_LOOPS_SCRATCH
namespace treadle::simd {

// Memory for packed operands. Each thread keeps its own, since fresh pages would take longer than
// most products.
class PackedMemory {
 public:
  ~PackedMemory() { release(); }
  template <class C>
  C* at_least(int64_t elements) {
    const size_t bytes = static_cast<size_t>(elements) * sizeof(C);
    if (bytes > bytes_) {
      release();
      memory_ = ::operator new(bytes, kAlignment);
      bytes_ = bytes;
    }
    return static_cast<C*>(memory_);
  }

 private:
  static constexpr std::align_val_t kAlignment{64};
  void release() {
    ::operator delete(memory_, kAlignment);
    memory_ = nullptr;
    bytes_ = 0;
  }
  void* memory_ = nullptr;
  size_t bytes_ = 0;
};
inline thread_local PackedMemory packed_left, packed_right;

}  // namespace treadle::simd
#endif

HWY_BEFORE_NAMESPACE();
namespace treadle::simd::HWY_NAMESPACE {

// Of a lambda in an inner loop, which the compiler else calls, with its vectors in memory.
#undef INLINED_LAMBDA
#define INLINED_LAMBDA HWY_ATTR __attribute__((always_inline))

namespace hn = hwy::HWY_NAMESPACE;

template <class T>
struct Gemm {
  using C = SumType<T>;
  using D = hn::ScalableTag<C>;
  using V = hn::Vec<D>;
  using View = cpu::MatrixView<T>;
  static constexpr bool kIsPair = std::is_same_v<T, BFloat16Pair>;
  using TileOf = Tile<std::conditional_t<kIsPair, T, C>>;
  using Target = typename TileOf::Target;
  static constexpr int kLanes = TileOf::kLanes, kRows = TileOf::kRows;
  static constexpr int kColumns = TileOf::kColumns;
  static constexpr bool kIsNarrow = !kIsPair && !std::is_same_v<T, C>;  // is widened

  // A panel of B (kDepth x kColumns) fits in the first cache, a block of A (kBlockRows x kDepth) in
  // the second.
  static constexpr int64_t kDepth = 1024 / sizeof(C);
  static constexpr int64_t kBlockRows = 120, kBlockColumns = 1024;
  static constexpr int64_t kFits = 131072 / sizeof(C);  // elements, in the second cache

  // A vector of elements as C.
  template <class Some>
  static HWY_INLINE hn::Vec<Some> load(Some d, const T* from) {
    if constexpr (!kIsNarrow) {
      return hn::LoadU(d, as_plain(from));
    } else if constexpr (kConvertsLanes<T>) {
      return load_narrow(d, from);
    } else {
      return load_first(d, from, static_cast<int64_t>(hn::MaxLanes(Some())));
    }
  }
  // The first `count` elements, then zeros.
  template <class Some>
  static HWY_INLINE hn::Vec<Some> load_first(Some d, const T* from, int64_t count) {
    if constexpr (!kIsNarrow || kConvertsLanes<T>) {
      T some[kLanes] = {};
      std::copy_n(from, count, some);
      return load(d, some);
    } else {
      HWY_ALIGN C wide[kLanes] = {};
      for (int64_t i = 0; i < count; ++i) wide[i] = number(from[i]);
      return hn::LoadU(d, wide);
    }
  }
  static HWY_INLINE C number(const T& element) {
    if constexpr (kIsPair)
      return std::bit_cast<C>(element);
    else
      return static_cast<C>(element);
  }

  // to[k * kWidth + l] = from[l * lane + k * step] for l < lanes and k < depth. Other lanes get
  // numbers that mean nothing, but no subnormal ones, with which processors compute slowly, unless
  // `from` has some. `to` has room for another vector.
  template <int kWidth>
  static void pack(const T* from, int64_t lanes, int64_t lane, int64_t depth, int64_t step, C* to) {
    int64_t k = 0;
    if (step == 1 && lanes > 1) {
      k = pack_transposed<kWidth>(from, lanes, lane, depth, to);
    } else if (lane == 1 && lanes == kWidth && step >= kWidth) {
      // The last vector of a row reads from the next one, too.
      constexpr int kVectors = (kWidth + kLanes - 1) / kLanes;
      for (; k < depth - (kVectors * kLanes > kWidth ? 1 : 0); ++k) {
#pragma GCC unroll 8
        for (int v = 0; v < kVectors * kLanes; v += kLanes)
          hn::StoreU(load(D(), from + k * step + v), D(), to + k * kWidth + v);
      }
    }
    for (; k < depth; ++k) {
      for (int64_t l = 0; l < lanes; ++l) to[k * kWidth + l] = number(from[l * lane + k * step]);
      for (int64_t l = lanes; l < kWidth; ++l) to[k * kWidth + l] = C(0);
    }
  }

  // Columns are transposed in registers. A sum of few rows takes so many terms at a time: a whole
  // vector of each row where registers are many, else 16 bytes of twice as many rows.
  static constexpr int kBlock = 16 / sizeof(C) < kLanes ? 16 / sizeof(C) : kLanes;
  static constexpr int kBlocks = kLanes / kBlock;  // of 16 bytes, in a vector
  static constexpr int kTerms = kBlocks == 4 ? kLanes : kBlock;

  // Packs whole blocks of terms, and returns the number of terms. Vectors are stored in ascending
  // order: the elements that one stores behind its columns are stored over.
  template <int kWidth>
  static int64_t pack_transposed(const T* from, int64_t lanes, int64_t lane, int64_t depth, C* to) {
    constexpr int kVectors = (kWidth + kLanes - 1) / kLanes;
    const T* rows[kVectors * kLanes];
    for (int64_t l = 0; l < kVectors * kLanes; ++l) rows[l] = from + (l < lanes ? l : 0) * lane;
    const auto pack_terms = [&](int64_t first) INLINED_LAMBDA {
      V columns[kVectors][kBlock];
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v)
        transposed([&](int r) INLINED_LAMBDA { return rows[v * kLanes + r] + first; }, kBlock,
                   columns[v]);
#pragma GCC unroll 4
      for (int q = 0; q < kBlock; ++q) {
#pragma GCC unroll 8
        for (int v = 0; v < kVectors; ++v)
          hn::StoreU(columns[v][q], D(), to + (first + q) * kWidth + v * kLanes);
      }
    };
    int64_t k = 0;
    for (; k + kBlock <= depth; k += kBlock) pack_terms(k);
    return k;
  }

  // columns[q][r] = row(r)[q] for q < terms <= count: a block of each row, or a whole vector.
  template <int count, class Row>
  static HWY_INLINE void transposed(Row&& row, int64_t terms, V (&columns)[count]) {
    static_assert(count == kBlock || count == kLanes);
    const auto transpose_by = [&](auto&& load_row) INLINED_LAMBDA {
      if constexpr (count != kBlock) {
        transpose_square([&](int r) INLINED_LAMBDA { return load_row(D(), row(r)); }, columns);
      } else {
        V x[kBlock];
#pragma GCC unroll 4
        for (int q = 0; q < kBlock; ++q) {
          x[q] = load_blocks(
              D(), [&](auto d, int r) INLINED_LAMBDA { return load_row(d, row(r)); }, q);
        }
        transpose(x, columns);
      }
    };
    if (terms == count)
      transpose_by([](auto d, const T* p) INLINED_LAMBDA { return load(d, p); });
    else
      transpose_by([&](auto d, const T* p) INLINED_LAMBDA { return load_first(d, p, terms); });
  }
  // Block b is from row r + kBlock b.
  template <class Some, class Load>
  static HWY_INLINE hn::Vec<Some> load_blocks(Some d, Load&& load_row, int r) {
    if constexpr (hn::MaxLanes(Some()) <= static_cast<size_t>(kBlock)) {
      return load_row(d, r);
    } else {
      const hn::Half<Some> half;
      constexpr int kHalf = static_cast<int>(hn::MaxLanes(Some()) / 2);
      return hn::Combine(d, load_blocks(half, load_row, r + kHalf), load_blocks(half, load_row, r));
    }
  }
  template <class Load>
  static HWY_INLINE void transpose_square(Load&& load_row, V* columns) {
    static_assert(kBlocks == 4);
    const D d;
    V y[kLanes];  // block b of y[g * kBlock + q] has column b * kBlock + q of the rows of group g
#pragma GCC unroll 4
    for (int g = 0; g < kBlocks; ++g) {
      V x[kBlock];
#pragma GCC unroll 4
      for (int r = 0; r < kBlock; ++r) x[r] = load_row(g * kBlock + r);
      transpose(x, y + g * kBlock);
    }
#pragma GCC unroll 4
    for (int q = 0; q < kBlock; ++q) {
      const auto group = [&](int g) HWY_ATTR { return y[g * kBlock + q]; };
      const auto column = [&](int b) -> V& { return columns[b * kBlock + q]; };
      const auto lower_02 = hn::ConcatLowerLower(d, group(2), group(0)),
                 lower_13 = hn::ConcatLowerLower(d, group(3), group(1)),
                 upper_02 = hn::ConcatUpperUpper(d, group(2), group(0)),
                 upper_13 = hn::ConcatUpperUpper(d, group(3), group(1));
      column(0) = hn::OddEvenBlocks(hn::SwapAdjacentBlocks(lower_13), lower_02);
      column(1) = hn::OddEvenBlocks(lower_13, hn::SwapAdjacentBlocks(lower_02));
      column(2) = hn::OddEvenBlocks(hn::SwapAdjacentBlocks(upper_13), upper_02);
      column(3) = hn::OddEvenBlocks(upper_13, hn::SwapAdjacentBlocks(upper_02));
    }
  }
  // Within blocks of 16 bytes.
  static HWY_INLINE void transpose(const V* x, V* columns) {
    const D d;
    if constexpr (kBlock == 1) {
      columns[0] = x[0];
    } else if constexpr (kBlock == 2) {
      columns[0] = hn::InterleaveLower(d, x[0], x[1]);
      columns[1] = hn::InterleaveUpper(d, x[0], x[1]);
    } else {
      const hn::RepartitionToWide<D> wide;
      const auto pair = [&](V v) HWY_ATTR { return hn::BitCast(wide, v); };
      const auto low01 = pair(hn::InterleaveLower(d, x[0], x[1])),
                 low23 = pair(hn::InterleaveLower(d, x[2], x[3])),
                 high01 = pair(hn::InterleaveUpper(d, x[0], x[1])),
                 high23 = pair(hn::InterleaveUpper(d, x[2], x[3]));
      columns[0] = hn::BitCast(d, hn::InterleaveLower(wide, low01, low23));
      columns[1] = hn::BitCast(d, hn::InterleaveUpper(wide, low01, low23));
      columns[2] = hn::BitCast(d, hn::InterleaveLower(wide, high01, high23));
      columns[3] = hn::BitCast(d, hn::InterleaveUpper(wide, high01, high23));
    }
  }

  // The length of the pieces that a sum of so many terms is cut into; the last may be shorter.
  static int64_t piece(int64_t terms) {
    const int64_t pieces = (terms + kDepth - 1) / kDepth;
    return ((terms + pieces - 1) / pieces + 3) / 4 * 4;
  }

  static void blocks(const View& a, const View& b, const Target& c) {
    const int64_t depth = piece(a.cols);
    // An operand that the second cache holds need not be packed, or only once; nor need rows that
    // are read for few columns.
    const bool small_a = a.rows <= kRows || a.rows * a.cols <= kFits;
    const bool seldom_read = a.col_stride == 1 && b.cols <= 4 * kColumns;
    const bool plain_a = !kIsNarrow && (a.rows * a.cols <= kFits || seldom_read);
    const bool plain_b = !kIsNarrow && b.col_stride == 1 && b.rows * b.cols <= kFits;
    const bool once = small_a && !plain_a;
    const int64_t padded = (a.rows + kRows - 1) / kRows * kRows;
    const int64_t most_rows = once ? padded : kBlockRows;
    C* pa = nullptr;
    if (!plain_a)
      pa = packed_left.at_least<C>(std::min(most_rows, padded) * (once ? a.cols : depth) + kLanes);
    // With few rows, a panel of B is seldom used, and better stays in a cache.
    const int64_t most_columns = a.rows <= kRows ? kColumns
                                 : small_a       ? 4 * kColumns
                                                 : kBlockColumns;
    C* const pb = packed_right.at_least<C>(most_columns * depth + kLanes);
    if (once) {
      for (int64_t k0 = 0; k0 < a.cols; k0 += depth) {
        pack_left(a.data + k0 * a.col_stride, a, a.rows, std::min(depth, a.cols - k0),
                  pa + k0 * padded);
      }
    }
    for (int64_t j0 = 0; j0 < b.cols; j0 += most_columns) {
      const int64_t columns = std::min(most_columns, b.cols - j0);
      for (int64_t k0 = 0; k0 < a.cols; k0 += depth) {
        typename TileOf::Operands o;
        o.depth = std::min(depth, a.cols - k0);
        const T* const b0 = b.data + k0 * b.row_stride + j0 * b.col_stride;
        const int64_t last_plain = plain_b ? columns / kColumns * kColumns : 0;
        pack_right(b0, b, o.depth, last_plain, columns, pb);
        for (int64_t i0 = 0; i0 < a.rows; i0 += most_rows) {
          const int64_t rows = std::min(most_rows, a.rows - i0);
          const T* const a0 = a.data + i0 * a.row_stride + k0 * a.col_stride;
          if (!plain_a && !once) pack_left(a0, a, rows, o.depth, pa);
          for (int64_t j = 0; j < columns; j += kColumns) {
            if (j < last_plain) {
              o.b = as_plain(b0) + j;
              o.b_step = b.row_stride;
            } else {
              o.b = pb + (j - last_plain) * o.depth;
              o.b_step = kColumns;
            }
            for (int64_t i = 0; i < rows; i += kRows) {
              if (plain_a) {
                o.a = as_plain(a0) + i * a.row_stride;
                o.a_row = a.row_stride;
                o.a_step = a.col_stride;
              } else {
                o.a = (once ? pa + k0 * padded : pa) + i * o.depth;
                o.a_row = 1;
                o.a_step = kRows;
              }
              Target to = c.at(i0 + i, j0 + j);
              if (k0 > 0) to.beta = C(1);
              TileOf::compute_any(o, to, std::min<int64_t>(kRows, rows - i),
                                  std::min<int64_t>(kColumns, columns - j));
            }
          }
        }
      }
    }
  }
  // Panels of kRows rows of A.
  static void pack_left(const T* from, const View& a, int64_t rows, int64_t terms, C* to) {
    for (int64_t i = 0; i < rows; i += kRows)
      pack<kRows>(from + i * a.row_stride, std::min<int64_t>(kRows, rows - i), a.row_stride, terms,
                  a.col_stride, to + i * terms);
  }
  static const C* as_plain(const T* p) {
    if constexpr (kIsNarrow)
      return nullptr;
    else if constexpr (kIsPair)
      return reinterpret_cast<const C*>(p);
    else
      return p;
  }
  // Panels of the columns [first, columns) of B.
  static void pack_right(const T* from, const View& b, int64_t terms, int64_t first,
                         int64_t columns, C* to) {
    constexpr int64_t kTerms = 16;  // of several panels, since rows are read on and on
    const int64_t step = b.col_stride == 1 ? kTerms : terms;
    for (int64_t k = 0; k < terms; k += step) {
      for (int64_t j = first; j < columns; j += kColumns) {
        pack<kColumns>(from + k * b.row_stride + j * b.col_stride,
                       std::min<int64_t>(kColumns, columns - j), b.col_stride,
                       std::min(step, terms - k), b.row_stride,
                       to + (j - first) * terms + k * kColumns);
      }
    }
  }

  // A B whose rows are contiguous, by vectors of columns.
  struct Rows {
    const View& b;
    int64_t columns() const { return b.cols; }
    HWY_INLINE V load(int64_t row, int64_t column) const {
      return Gemm::load(D(), b.data + row * b.row_stride + column);
    }
    HWY_INLINE V load_first(int64_t row, int64_t column, int64_t count) const {
      return Gemm::load_first(D(), b.data + row * b.row_stride + column, count);
    }
  };

  // A few rows by a B whose rows are contiguous: B is read once, from its start to its end.
  template <int rows, class Right>
  static HWY_NOINLINE void few_rows(const View& a, const Right& b, const Target& c) {
    const D d;
    constexpr int64_t kStrip = 4096 / rows / kLanes * kLanes;
    constexpr int kTerms = 4;  // added at a time
    HWY_ALIGN C sums[rows * kStrip];
    const int64_t depth = piece(a.cols);
    const V alpha = hn::Set(d, c.alpha);
    for (int64_t j0 = 0; j0 < b.columns(); j0 += kStrip) {
      const int64_t columns = std::min(kStrip, b.columns() - j0);
      const int64_t whole = columns / kLanes * kLanes;
      const int64_t padded = (columns + kLanes - 1) / kLanes * kLanes;
      for (int64_t k0 = 0; k0 < a.cols; k0 += depth) {
        const int64_t last = std::min(a.cols, k0 + depth);
        for (int r = 0; r < rows; ++r) std::fill_n(sums + r * kStrip, padded, C(0));
        int64_t k = k0;
        const auto add = [&]<int kCount>(std::integral_constant<int, kCount>) HWY_ATTR {
          V x[rows][kCount];
          for (int r = 0; r < rows; ++r) {
            for (int q = 0; q < kCount; ++q)
              x[r][q] = hn::Set(d, number(a.data[r * a.row_stride + (k + q) * a.col_stride]));
          }
          const auto at = [&](int64_t j, auto load_row) HWY_ATTR {
            V y[kCount];
            for (int q = 0; q < kCount; ++q) y[q] = load_row(k + q, j0 + j);
            for (int r = 0; r < rows; ++r) {
              C* const sum = sums + r * kStrip + j;
              V s = hn::Load(d, sum);
              for (int q = 0; q < kCount; ++q) s = add_product<T>(x[r][q], y[q], s);
              hn::Store(s, d, sum);
            }
          };
          for (int64_t j = 0; j < whole; j += kLanes)
            at(j, [&](int64_t row, int64_t column) HWY_ATTR { return b.load(row, column); });
          if (whole < columns)
            at(whole, [&](int64_t row, int64_t column)
                          HWY_ATTR { return b.load_first(row, column, columns - whole); });
          k += kCount;
        };
        while (k + kTerms <= last) add(std::integral_constant<int, kTerms>());
        while (k < last) add(std::integral_constant<int, 1>());

        const C beta = k0 > 0 ? C(1) : c.beta;
        const Target to = c.at(0, j0);
        for (int r = 0; r < rows; ++r) {
          C* const row = to.data + r * to.row;
          const int64_t by_vector = to.column == 1 ? whole : 0;
          for (int64_t j = 0; j < by_vector; j += kLanes)
            TileOf::put(hn::Load(d, sums + r * kStrip + j), alpha, hn::Set(d, beta), beta != C(0),
                        row + j);
          for (int64_t j = by_vector; j < columns; ++j) {
            C y = c.alpha * sums[r * kStrip + j];
            if (beta != C(0)) y = y + beta * row[j * to.column];
            row[j * to.column] = y;
          }
        }
      }
    }
  }

  // sums[v][r] += left[r][k + q] times the vector of row(v * kLanes + l)[k + q], l being the lane,
  // for q < terms. They are among the kTerms from `first` on.
  template <int rows, int vectors, class Row>
  static HWY_INLINE void add_terms(Row&& row, const C* left, int64_t left_row, int64_t depth,
                                   int64_t first, int64_t k, int64_t terms,
                                   V (&sums)[vectors][rows]) {
#pragma GCC unroll 2
    for (int v = 0; v < vectors; ++v) {
      V columns[kTerms];
      transposed([&](int r) HWY_ATTR { return row(v * kLanes + r) + first; },
                 std::min<int64_t>(kTerms, depth), columns);
      if (terms == kTerms) {
#pragma GCC unroll 16
        for (int q = 0; q < kTerms; ++q) {
#pragma GCC unroll 4
          for (int r = 0; r < rows; ++r)
            sums[v][r] = add_product<T>(hn::Set(D(), TileOf::read(left + r * left_row + k + q)),
                                        columns[q], sums[v][r]);
        }
      } else {
        for (int64_t q = 0; q < terms; ++q) {
#pragma GCC unroll 4
          for (int r = 0; r < rows; ++r)
            sums[v][r] = add_product<T>(hn::Set(D(), TileOf::read(left + r * left_row + k + q)),
                                        columns[k - first + q], sums[v][r]);
        }
      }
    }
  }
  // Of `depth` terms; no lambda sees the sums, which then stay in registers.
  template <int rows, int vectors, class Row>
  static HWY_INLINE void add_columns(Row&& row, const C* left, int64_t left_row, int64_t depth,
                                     V (&sums)[vectors][rows]) {
#pragma GCC unroll 2
    for (int v = 0; v < vectors; ++v) {
#pragma GCC unroll 4
      for (int r = 0; r < rows; ++r) sums[v][r] = hn::Zero(D());
    }
    int64_t k = 0;
    for (; k + kTerms <= depth; k += kTerms)
      add_terms(row, left, left_row, depth, k, k, kTerms, sums);
    if (k < depth)
      add_terms(row, left, left_row, depth, std::max<int64_t>(0, depth - kTerms), k, depth - k,
                sums);
  }

  // A few rows by a B whose columns are contiguous: they are transposed in registers.
  template <int rows>
  static HWY_NOINLINE void few_rows_by_columns(const View& a, const View& b, const Target& c) {
    const C* left = as_plain(a.data);
    int64_t left_row = a.row_stride;
    if (kIsNarrow || a.col_stride != 1) {
      C* const packed = packed_left.at_least<C>(rows * a.cols);
      for (int64_t r = 0; r < rows; ++r) {
        for (int64_t k = 0; k < a.cols; ++k)
          packed[r * a.cols + k] = number(a.data[r * a.row_stride + k * a.col_stride]);
      }
      left = packed;
      left_row = a.cols;
    }
    const int64_t depth = piece(a.cols);
    for (int64_t j = 0; j < b.cols; j += kColumns) {
      const int64_t columns = std::min<int64_t>(kColumns, b.cols - j);
      for (int64_t k0 = 0; k0 < a.cols; k0 += depth) {
        const int64_t last = std::min(a.cols, k0 + depth);
        V sums[rows][2];
        // A vector after the other, or both by turns: of one or two rows the additions of a sum,
        // which wait for each other, take longer than the transposition.
        constexpr int kTogether = kTerms == kLanes && rows > 2 ? 1 : 2;
        for (int v0 = 0; v0 < 2; v0 += kTogether) {
          const int64_t j0 = j + v0 * kLanes;
          const int64_t width = std::min<int64_t>(kTogether * kLanes, b.cols - j0);
          const T* const first = b.data + j0 * b.col_stride + k0;
          V some[kTogether][rows];
          if (width == kTogether * kLanes) {
            const auto row = [&](int64_t l) HWY_ATTR { return first + l * b.col_stride; };
            add_columns(row, left + k0, left_row, last - k0, some);
          } else {
            const auto row = [&](int64_t l)
                                 HWY_ATTR { return first + (l < width ? l : 0) * b.col_stride; };
            add_columns(row, left + k0, left_row, width > 0 ? last - k0 : 0, some);
          }
#pragma GCC unroll 2
          for (int v = 0; v < kTogether; ++v) {
#pragma GCC unroll 4
            for (int r = 0; r < rows; ++r) sums[r][v0 + v] = some[v][r];
          }
        }
        Target to = c.at(0, j);
        if (k0 > 0) to.beta = C(1);
        TileOf::with_whole_rows(to, rows, columns, [&](const Target& whole) HWY_ATTR {
          TileOf::put_rows(sums, whole);
        });
      }
    }
  }

  // By one or two rows. Where B comes from a cache, AVX3 is faster with the loop of AVX2, whose
  // transposition takes fewer steps; where it comes from memory, with whole lines of more columns.
  // Numbers that are widened take the loop of AVX2 in both cases, which keeps the code short.
  template <int rows>
  static void one_or_two_rows_by_columns(const View& a, const View& b, const Target& c) {
#if HWY_TARGET == HWY_AVX3 && (HWY_TARGETS & HWY_AVX2)
    constexpr int64_t kCached = int64_t{1} << 23;  // bytes
    const bool is_cached = b.rows * b.cols * static_cast<int64_t>(sizeof(T)) <= kCached;
    if (kIsNarrow || is_cached)
      return N_AVX2::Gemm<T>::template few_rows_by_columns<rows>(
          a, b, {c.data, c.row, c.column, c.alpha, c.beta});
#endif
    if constexpr (!kIsNarrow || HWY_TARGET != HWY_AVX3) few_rows_by_columns<rows>(a, b, c);
  }

  // The rows of A, which are contiguous, by one column.
  static void dots(const View& a, const View& b, const Target& c) {
    const C* y = as_plain(b.data);
    if (kIsNarrow || b.row_stride != 1) {
      C* const packed = packed_right.at_least<C>(a.cols);
      for (int64_t k = 0; k < a.cols; ++k) packed[k] = number(b.data[k * b.row_stride]);
      y = packed;
    }
    for (int64_t i = 0; i < a.rows; ++i) {
      const T* const x = a.data + i * a.row_stride;
      cpu::wide_type<C> sum = 0;
      constexpr int64_t kRun = 4096;
      for (int64_t k = 0; k < a.cols; k += kRun)
        sum += static_cast<cpu::wide_type<C>>(dot(x + k, y + k, std::min(kRun, a.cols - k)));
      C result = c.alpha * static_cast<C>(sum);
      C& to = c.data[i * c.row];
      if (c.beta != C(0)) result = result + c.beta * to;
      to = result;
    }
  }
  static HWY_INLINE V first_numbers(const C* from, int64_t count) {
    HWY_ALIGN C all[kLanes] = {};
    std::memcpy(all, from, static_cast<size_t>(count) * sizeof(C));
    return hn::Load(D(), all);
  }
  static C dot(const T* x, const C* y, int64_t n) {
    const D d;
    V s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0;
    int64_t k = 0;
    const auto add = [&](V& s, int64_t at) HWY_ATTR {
      s = add_product<T>(load(D(), x + at), hn::LoadU(d, y + at), s);
    };
    for (; k + 4 * kLanes <= n; k += 4 * kLanes) {
      add(s0, k);
      add(s1, k + kLanes);
      add(s2, k + 2 * kLanes);
      add(s3, k + 3 * kLanes);
    }
    for (; k + kLanes <= n; k += kLanes) add(s0, k);
    C rest = 0;
    if constexpr (kIsPair) {
      if (k < n) s1 = add_product<T>(load_first(d, x + k, n - k), first_numbers(y + k, n - k), s1);
    } else {
      for (; k < n; ++k) rest += static_cast<C>(x[k]) * y[k];
    }
    const V all = hn::Add(hn::Add(s0, s1), hn::Add(s2, s3));
    return hn::GetLane(hn::SumOfLanes(d, all)) + rest;
  }

  static void multiply(const View& a, const View& b, C* data, int64_t row, int64_t column, C alpha,
                       C beta, bool in_lanes) {
    const Target c{data, row, column, alpha, beta};
    if (in_lanes) return dots(a, b, c);
    const View* left = &a;
    const View* right = &b;
    Target to = c;
    const View left_transposed{b.data, b.cols, b.rows, b.col_stride, b.row_stride};
    const View right_transposed{a.data, a.cols, a.rows, a.col_stride, a.row_stride};
    // Lanes are columns of C, or rows where there are more of them.
    if (b.cols < kLanes && a.rows > b.cols) {
      left = &left_transposed;
      right = &right_transposed;
      std::swap(to.row, to.column);
    }
    if constexpr (kIsNarrow && !kConvertsLanes<T>) return blocks(*left, *right, to);
    if (right->col_stride == 1) {
      switch (left->rows) {
        case 1:
          return few_rows<1>(*left, Rows{*right}, to);
        case 2:
          return few_rows<2>(*left, Rows{*right}, to);
        case 3:
          return few_rows<3>(*left, Rows{*right}, to);
        case 4:
          return few_rows<4>(*left, Rows{*right}, to);
      }
    } else if (right->row_stride == 1) {
      switch (left->rows) {
        case 1:
          return one_or_two_rows_by_columns<1>(*left, *right, to);
        case 2:
          return one_or_two_rows_by_columns<2>(*left, *right, to);
        case 3:
          return few_rows_by_columns<3>(*left, *right, to);
        case 4:
          return few_rows_by_columns<4>(*left, *right, to);
      }
    }
    blocks(*left, *right, to);
  }
};

// The loops for pairs are compiled for AVX3, and for the AVX2 that it uses at times.
#if HWY_TARGET == HWY_AVX3
struct RowPairs {
  using D = hn::ScalableTag<float>;
  const PairedRows& b;
  int64_t columns() const { return b.cols; }
  HWY_INLINE hn::Vec<D> load(int64_t pair, int64_t column) const {
    const BFloat16* const first = b.data + 2 * pair * b.row_stride + column;
    return paired(first, 2 * pair + 1 < b.rows ? first + b.row_stride : nullptr);
  }
  HWY_INLINE hn::Vec<D> load_first(int64_t pair, int64_t column, int64_t count) const {
    HWY_ALIGN BFloat16 some[2][hn::MaxLanes(D())] = {};
    for (int64_t row = 2 * pair; row < std::min(b.rows, 2 * pair + 2); ++row)
      std::copy_n(b.data + row * b.row_stride + column, count, some[row - 2 * pair]);
    return paired(some[0], some[1]);
  }
  static HWY_INLINE hn::Vec<D> paired(const BFloat16* first, const BFloat16* second) {
    const hn::ScalableTag<uint32_t> wide;
    const hn::Rebind<uint16_t, decltype(wide)> narrow;
    const auto bits = [&](const BFloat16* from) HWY_ATTR {
      return hn::PromoteTo(wide, hn::LoadU(narrow, reinterpret_cast<const uint16_t*>(from)));
    };
    auto pairs = bits(first);
    if (second) pairs = hn::Or(pairs, hn::ShiftLeft<16>(bits(second)));
    return hn::BitCast(D(), pairs);
  }
};

void multiply_few(const cpu::MatrixView<BFloat16Pair>& a, const PairedRows& b, float* data,
                  int64_t row, float alpha, float beta) {
  using Pairs = Gemm<BFloat16Pair>;
  const typename Pairs::Target c{data, row, 1, alpha, beta};
  static_assert(PairLoops::kFewRows == 4);
  switch (a.rows) {
    case 1:
      return Pairs::few_rows<1>(a, RowPairs{b}, c);
    case 2:
      return Pairs::few_rows<2>(a, RowPairs{b}, c);
    case 3:
      return Pairs::few_rows<3>(a, RowPairs{b}, c);
    default:
      return Pairs::few_rows<4>(a, RowPairs{b}, c);
  }
}

void interleave(const BFloat16* first, const BFloat16* second, int64_t count, BFloat16Pair* to) {
  const RowPairs::D d;
  constexpr int64_t kLanes = hn::MaxLanes(RowPairs::D());
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes)
    hn::StoreU(RowPairs::paired(first + i, second ? second + i : nullptr), d,
               reinterpret_cast<float*>(to + i));
  for (; i < count; ++i) to[i] = {first[i], second ? second[i] : BFloat16()};
}

const PairLoops* loops_for_pairs() {
  static constexpr PairLoops loops{&Gemm<BFloat16Pair>::multiply, &multiply_few, &interleave};
  static const bool able = __builtin_cpu_supports("avx512bf16");
  return able ? &loops : nullptr;
}
#else
const PairLoops* loops_for_pairs() { return nullptr; }
#endif

template <class T>
void put(const float* sums, int64_t count, float factor, const T* addend, int64_t step, T* to) {
  constexpr int64_t kLanes = Vec<float>::kLanes;
  for (int64_t i = 0; i < count; i += kLanes) {
    const int64_t n = std::min(kLanes, count - i);
    auto y = load_lanes(sums + i, n);
    if (addend) {
      T some[kLanes];
      const T* from = addend + i;
      if (step != 1) {
        for (int64_t k = 0; k < n; ++k) some[k] = addend[(i + k) * step];
        from = some;
      }
      y = y + set(factor) * load_computed(from, n);
    }
    store_computed(y, to + i, n);
  }
}

PutSums<Half> put_half() { return &put<Half>; }
PutSums<BFloat16> put_bfloat16() { return &put<BFloat16>; }
MultiplyLoop<float> multiply_float() { return &Gemm<float>::multiply; }
MultiplyLoop<double> multiply_double() { return &Gemm<double>::multiply; }
MultiplyLoop<Half> multiply_half() { return &Gemm<Half>::multiply; }
MultiplyLoop<BFloat16> multiply_bfloat16() { return &Gemm<BFloat16>::multiply; }

}  // namespace treadle::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace treadle::simd {

HWY_EXPORT(multiply_float);
HWY_EXPORT(multiply_double);
HWY_EXPORT(multiply_half);
HWY_EXPORT(multiply_bfloat16);
HWY_EXPORT(loops_for_pairs);
HWY_EXPORT(put_half);
HWY_EXPORT(put_bfloat16);

template <>
MultiplyLoop<float> multiply_loop<float>() {
  static const auto loop = HWY_DYNAMIC_DISPATCH(multiply_float)();
  return loop;
}
template <>
MultiplyLoop<double> multiply_loop<double>() {
  static const auto loop = HWY_DYNAMIC_DISPATCH(multiply_double)();
  return loop;
}
template <>
MultiplyLoop<Half> multiply_loop<Half>() {
  static const auto loop = HWY_DYNAMIC_DISPATCH(multiply_half)();
  return loop;
}
template <>
MultiplyLoop<BFloat16> multiply_loop<BFloat16>() {
  static const auto loop = HWY_DYNAMIC_DISPATCH(multiply_bfloat16)();
  return loop;
}

template <>
PutSums<Half> put_sums<Half>() {
  static const auto put = HWY_DYNAMIC_DISPATCH(put_half)();
  return put;
}
template <>
PutSums<BFloat16> put_sums<BFloat16>() {
  static const auto put = HWY_DYNAMIC_DISPATCH(put_bfloat16)();
  return put;
}

const PairLoops* pair_loops() {
  static const PairLoops* const loops = HWY_DYNAMIC_DISPATCH(loops_for_pairs)();
  return loops;
}

}  // namespace treadle::simd
#endif  // HWY_ONCE
