// Products: by vector code for floating point, on OpenBLAS for complex numbers, by plain loops for
// integers.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/backend/cpu/gemm.h"

#include <cblas.h>

#include <algorithm>
#include <climits>
#include <memory>
#include <optional>
#include <vector>

#include "aten/backend/cpu/gemm_loops.h"
#include "aten/backend/cpu/long_sums.h"
#include "aten/backend/cpu/work_space.h"
#include "core/threads/parallel.h"

namespace treadle::cpu {
namespace {

// The way in which BLAS may read a row-major operand: directly, transposed, or not at all.
struct Operand {
  CBLAS_TRANSPOSE transpose;
  int64_t leading;
};

template <class T>
bool blas_operand(const MatrixView<T>& m, Operand& out) {
  if (m.col_stride == 1 && m.row_stride >= std::max<int64_t>(1, m.cols)) {
    out = {CblasNoTrans, m.row_stride};
  } else if (m.row_stride == 1 && m.col_stride >= std::max<int64_t>(1, m.rows)) {
    out = {CblasTrans, m.col_stride};
  } else if (m.rows == 1 && m.col_stride == 1) {
    out = {CblasNoTrans, std::max<int64_t>(1, m.cols)};
  } else if (m.cols == 1 && m.row_stride == 1) {
    out = {CblasTrans, std::max<int64_t>(1, m.rows)};
  } else {
    return false;
  }
  return out.leading <= INT_MAX;
}

template <class T>
WorkSpace<T> packed(const MatrixView<T>& m) {
  WorkSpace<T> out(m.rows * m.cols);
  parallel_for(m.rows, std::max<int64_t>(1, 32768 / std::max<int64_t>(1, m.cols)),
               [&](int64_t begin, int64_t end) {
                 for (int64_t i = begin; i < end; ++i) {
                   for (int64_t j = 0; j < m.cols; ++j)
                     out[i * m.cols + j] = m.data[i * m.row_stride + j * m.col_stride];
                 }
               });
  return out;
}

template <class T>
void blas_call(CBLAS_TRANSPOSE ta, CBLAS_TRANSPOSE tb, int m, int n, int k, T alpha, const T* a,
               int lda, const T* b, int ldb, T beta, T* c, int ldc) {
  if constexpr (std::is_same_v<T, std::complex<float>>) {
    cblas_cgemm(CblasRowMajor, ta, tb, m, n, k, &alpha, a, lda, b, ldb, &beta, c, ldc);
  } else {
    cblas_zgemm(CblasRowMajor, ta, tb, m, n, k, &alpha, a, lda, b, ldb, &beta, c, ldc);
  }
}

// The tile of C that one BLAS call computes. It depends on the problem only: its size, never the
// number of threads. Each call packs the whole of the other operand, which takes as long as the
// products of some 20 rows. So tiles are as tall as possible while many threads have one.
constexpr int64_t kTileWork = int64_t{1} << 22;  // multiplications in a tile, at least
constexpr int64_t kMinTileRows = 128, kMaxTileRows = 512, kTiles = 16;

// Longer sums of products are cut into pieces, which are added up in a wider type.
constexpr int64_t kLongProduct = 16384, kProductPiece = 4096;

// alpha A B + beta C, as one tile. `product(at, length, to)` writes the product of a piece of the
// sum, from `at` on.
template <class T, class Call>
void sum_pieces(int64_t rows, int64_t columns, int64_t length, T alpha, T beta, T* c, int64_t ldc,
                Call product) {
  using W = wide_type<T>;
  const WorkSpace<T> piece(rows * columns);
  std::vector<W> sums(static_cast<size_t>(rows * columns), W(0));
  for (int64_t at = 0; at < length; at += kProductPiece) {
    product(at, std::min(kProductPiece, length - at), piece.data());
    for (size_t i = 0; i < sums.size(); ++i) sums[i] += static_cast<W>(piece[i]);
  }
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) {
      const W sum = static_cast<W>(alpha) * sums[i * columns + j];
      T& to = c[i * ldc + j];
      to = static_cast<T>(beta == T(0) ? sum : sum + static_cast<W>(beta) * static_cast<W>(to));
    }
  }
}

template <class T>
void blas_gemm(const MatrixView<T>& a, const MatrixView<T>& b, T* c, int64_t ldc, T alpha, T beta) {
  Operand oa, ob;
  check<ErrorKind::Value>(
      a.rows <= INT_MAX && b.cols <= INT_MAX && a.cols <= INT_MAX && ldc <= INT_MAX,
      OpName("matmul"), "expected every dimension of a matrix below 2^31, got ", a.rows, " x ",
      a.cols, " by ", b.rows, " x ", b.cols);
  if (!blas_operand(a, oa)) {
    const WorkSpace<T> copy = packed(a);
    return blas_gemm(MatrixView<T>{copy.data(), a.rows, a.cols, a.cols, 1}, b, c, ldc, alpha, beta);
  }
  if (!blas_operand(b, ob)) {
    const WorkSpace<T> copy = packed(b);
    return blas_gemm(a, MatrixView<T>{copy.data(), b.rows, b.cols, b.cols, 1}, c, ldc, alpha, beta);
  }
  const int64_t row_work = std::max<int64_t>(1, b.cols * a.cols);
  const int64_t rows = std::max(std::clamp(a.rows / kTiles, kMinTileRows, kMaxTileRows),
                                (kTileWork + row_work - 1) / row_work);
  const int64_t row_tiles = std::max<int64_t>(1, a.rows / rows);
  // A flat C (few rows, many columns) is split by columns instead.
  const int64_t column_work = std::max<int64_t>(1, a.rows * a.cols);
  const int64_t columns = std::max<int64_t>(256, (kTileWork + column_work - 1) / column_work);
  const int64_t column_tiles = row_tiles > 1 ? 1 : std::max<int64_t>(1, b.cols / columns);
  const auto tile = [&](int64_t t) {
    const int64_t r0 = column_tiles > 1 ? 0 : a.rows * t / row_tiles;
    const int64_t r1 = column_tiles > 1 ? a.rows : a.rows * (t + 1) / row_tiles;
    const int64_t c0 = column_tiles > 1 ? b.cols * t / column_tiles : 0;
    const int64_t c1 = column_tiles > 1 ? b.cols * (t + 1) / column_tiles : b.cols;
    const auto product = [&](int64_t at, int64_t length, T factor, T old, T* to, int64_t ldto) {
      blas_call<T>(oa.transpose, ob.transpose, static_cast<int>(r1 - r0), static_cast<int>(c1 - c0),
                   static_cast<int>(length), factor, a.data + r0 * a.row_stride + at * a.col_stride,
                   static_cast<int>(oa.leading), b.data + at * b.row_stride + c0 * b.col_stride,
                   static_cast<int>(ob.leading), old, to, static_cast<int>(ldto));
    };
    single_threaded([&] {
      T* const to = c + r0 * ldc + c0;
      if (a.cols <= kLongProduct || std::is_same_v<T, wide_type<T>>)
        return product(0, a.cols, alpha, beta, to, ldc);
      sum_pieces<T>(r1 - r0, c1 - c0, a.cols, alpha, beta, to, ldc,
                    [&](int64_t at, int64_t length, T* piece) {
                      product(at, length, T(1), T(0), piece, c1 - c0);
                    });
    });
  };
  parallel_chunks(std::max(row_tiles, column_tiles), tile);
}

// A part of C. Threads may compute any parts, since the bits of an element do not depend on them.
struct Part {
  int64_t row, rows, column, columns;
};

// As many parts as are worth a thread of their own, along the longer side of C.
template <class F>
void for_parts(int64_t rows, int64_t columns, int64_t depth, F f) {
  constexpr double kWork = 1 << 19;  // multiplications that take longer than starting a thread
  constexpr int64_t kRowStep = 12, kColumnStep = 64;  // whole tiles of the vector code
  const double work =
      static_cast<double>(rows) * static_cast<double>(columns) * static_cast<double>(depth);
  const int64_t threads = in_parallel_region() ? 1 : num_threads();
  const bool by_rows = rows >= columns;
  const int64_t side = by_rows ? rows : columns, step = by_rows ? kRowStep : kColumnStep;
  const int64_t steps = (side + step - 1) / step;
  const int64_t parts = std::min({threads, steps, static_cast<int64_t>(1 + work / kWork)});
  parallel_chunks(parts, [&](int64_t part) {
    const int64_t begin = steps * part / parts * step;
    const int64_t end = std::min(side, steps * (part + 1) / parts * step);
    f(by_rows ? Part{begin, end - begin, 0, columns} : Part{0, rows, begin, end - begin});
  });
}

// Parts of an operand: some of its rows or columns; some of the terms of its sums.
template <class T>
MatrixView<T> rows_of(MatrixView<T> a, int64_t first, int64_t count) {
  return {a.data + first * a.row_stride, count, a.cols, a.row_stride, a.col_stride};
}
template <class T>
MatrixView<T> columns_of(MatrixView<T> b, int64_t first, int64_t count) {
  return {b.data + first * b.col_stride, b.rows, count, b.row_stride, b.col_stride};
}
template <class T>
MatrixView<T> terms_of_left(const MatrixView<T>& a, int64_t first, int64_t count) {
  return columns_of(a, first, count);
}
template <class T>
MatrixView<T> terms_of_right(const MatrixView<T>& b, int64_t first, int64_t count) {
  return rows_of(b, first, count);
}
simd::PairedRows columns_of(simd::PairedRows b, int64_t first, int64_t count) {
  return {b.data + first, b.rows, count, b.row_stride};
}
simd::PairedRows terms_of_right(const simd::PairedRows& b, int64_t first, int64_t count) {
  return {b.data + 2 * first * b.row_stride, std::min(2 * count, b.rows - 2 * first), b.cols,
          b.row_stride};
}

// A product with one column whose sums are so long that pieces of them are worth a thread.
constexpr int64_t kLanePiece = 1 << 16;

template <class Left, class T, class C>
void long_lanes_gemm(const MatrixView<Left>& a, const MatrixView<Left>& b, T* c, int64_t ldc,
                     C alpha, C beta, const Addend<T>& addend, simd::MultiplyLoop<Left> multiply) {
  using W = wide_type<C>;
  const int64_t pieces = a.cols / kLanePiece;  // the last has the rest, too
  std::vector<C> sums(static_cast<size_t>(pieces * a.rows));
  parallel_chunks(pieces, [&](int64_t piece) {
    const int64_t first = piece * kLanePiece;
    const int64_t count = piece + 1 < pieces ? kLanePiece : a.cols - first;
    multiply(terms_of_left(a, first, count), terms_of_right(b, first, count),
             sums.data() + piece * a.rows, 1, 1, C(1), C(0), true);
  });
  for (int64_t i = 0; i < a.rows; ++i) {
    W sum = 0;
    for (int64_t piece = 0; piece < pieces; ++piece)
      sum += static_cast<W>(sums[piece * a.rows + i]);
    sum *= static_cast<W>(alpha);
    if (beta != C(0))
      sum += static_cast<W>(beta) * static_cast<W>(static_cast<C>(addend.data[i * addend.row]));
    c[i * ldc] = static_cast<T>(static_cast<C>(sum));
  }
}

// f(part) for parts of a part whose sums of 4 bytes fit in the second cache.
template <class F>
void for_small_parts(const Part& all, F f) {
  constexpr int64_t kMost = 1 << 17, kRowStep = 120, kColumnStep = 64, kMany = 512;
  int64_t rows = all.rows, columns = all.columns;
  if (rows * columns > kMost) {
    columns = std::min(columns, std::max(kMany, kMost / rows / kColumnStep * kColumnStep));
    rows = std::min(rows, std::max(kRowStep, kMost / columns / kRowStep * kRowStep));
  }
  for (int64_t i = 0; i < all.rows; i += rows) {
    for (int64_t j = 0; j < all.columns; j += columns)
      f(Part{all.row + i, std::min(rows, all.rows - i), all.column + j,
             std::min(columns, all.columns - j)});
  }
}

// multiply(a, b, sums, pitch, alpha, beta) computes a part. `is_long`: sums are cut into pieces.
// The addend of a product of float or double is c.
template <class Left, class Right, class T, class C, class Multiply>
void gemm_by_parts(const MatrixView<Left>& a, const Right& b, T* c, int64_t ldc, C alpha, C beta,
                   const Addend<T>& addend, bool is_long, Multiply multiply) {
  const auto compute = [&](const Part& part, C* sums, int64_t pitch, C old) {
    const auto left = rows_of(a, part.row, part.rows);
    const auto right = columns_of(b, part.column, part.columns);
    if (!is_long) return multiply(left, right, sums, pitch, alpha, old);
    sum_pieces<C>(part.rows, part.columns, a.cols, alpha, old, sums, pitch,
                  [&](int64_t at, int64_t length, C* piece) {
                    multiply(terms_of_left(left, at, length), terms_of_right(right, at, length),
                             piece, part.columns, C(1), C(0));
                  });
  };
  for_parts(a.rows, b.cols, a.cols, [&](const Part& part) {
    if constexpr (std::is_same_v<T, C>) {
      compute(part, c + part.row * ldc + part.column, ldc, beta);
    } else {
      const auto put = simd::put_sums<T>();
      for_small_parts(part, [&](const Part& some) {
        const WorkSpace<C> sums(some.rows * some.columns);
        compute(some, sums.data(), some.columns, C(0));
        for (int64_t i = 0; i < some.rows; ++i) {
          const int64_t row = some.row + i;
          const T* const add =
              beta == C(0) ? nullptr : addend.data + row * addend.row + some.column * addend.column;
          put(sums.data() + i * some.columns, some.columns, beta, add, addend.column,
              c + row * ldc + some.column);
        }
      });
    }
  });
}

// Left is T, or pairs of it. `in_lanes`: see multiply_loop.
template <class Left, class T, class C>
void gemm_in_loops(const MatrixView<Left>& a, const MatrixView<Left>& b, T* c, int64_t ldc, C alpha,
                   C beta, const Addend<T>& addend, bool in_lanes,
                   simd::MultiplyLoop<Left> multiply) {
  if (in_lanes && a.cols >= 2 * kLanePiece)
    return long_lanes_gemm(a, b, c, ldc, alpha, beta, addend, multiply);
  // Sums in lanes are added up in wide_type as they are.
  const bool is_long = a.cols > kLongProduct && !in_lanes && !std::is_same_v<C, wide_type<C>>;
  gemm_by_parts(
      a, b, c, ldc, alpha, beta, addend, is_long,
      [&](const MatrixView<Left>& left, const MatrixView<Left>& right, C* sums, int64_t pitch,
          C factor, C old) { multiply(left, right, sums, pitch, 1, factor, old, in_lanes); });
}

// A matrix whose rows are sums: the terms in pairs, as they lie in memory or copied.
class PairedMatrix {
 public:
  PairedMatrix(const MatrixView<BFloat16>& m, const simd::PairLoops& loops) {
    const int64_t pairs = (m.cols + 1) / 2;
    if (m.col_stride == 1 && m.cols % 2 == 0 && (m.rows == 1 || m.row_stride % 2 == 0)) {
      view_ = {reinterpret_cast<const Pair*>(m.data), m.rows, pairs, m.row_stride / 2, 1};
      return;
    }
    copy_.emplace(m.rows * pairs);
    Pair* const to = reinterpret_cast<Pair*>(copy_->data());
    constexpr int64_t kGrain = 32768;
    if (m.row_stride == 1 && m.rows > 1) {
      view_ = {to, m.rows, pairs, 1, m.rows};
      parallel_for(pairs, std::max<int64_t>(1, kGrain / m.rows), [&](int64_t begin, int64_t end) {
        for (int64_t k = begin; k < end; ++k) {
          const BFloat16* const first = m.data + 2 * k * m.col_stride;
          loops.interleave(first, 2 * k + 1 < m.cols ? first + m.col_stride : nullptr, m.rows,
                           to + k * m.rows);
        }
      });
      return;
    }
    view_ = {to, m.rows, pairs, pairs, 1};
    parallel_for(m.rows, std::max<int64_t>(1, kGrain / pairs), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const auto at = [&](int64_t k) {
          return k < m.cols ? m.data[i * m.row_stride + k * m.col_stride] : BFloat16();
        };
        for (int64_t k = 0; k < pairs; ++k) to[i * pairs + k] = {at(2 * k), at(2 * k + 1)};
      }
    });
  }
  const MatrixView<simd::BFloat16Pair>& view() const { return view_; }

 private:
  using Pair = simd::BFloat16Pair;
  std::optional<WorkSpace<int32_t>> copy_;
  MatrixView<Pair> view_;
};

template <class T>
MatrixView<T> transposed(const MatrixView<T>& m) {
  return {m.data, m.cols, m.rows, m.col_stride, m.row_stride};
}

void pair_gemm(const MatrixView<BFloat16>& a, const MatrixView<BFloat16>& b, BFloat16* c,
               int64_t ldc, float alpha, float beta, const Addend<BFloat16>& addend, bool in_lanes,
               const simd::PairLoops& loops) {
  const PairedMatrix left(a, loops);
  if (a.rows <= simd::PairLoops::kFewRows && b.col_stride == 1 && b.cols > 1) {
    // A copy of B would take longer than the product.
    const simd::PairedRows right{b.data, b.rows, b.cols, b.row_stride};
    return gemm_by_parts(left.view(), right, c, ldc, alpha, beta, addend,
                         left.view().cols > kLongProduct,
                         [&](const auto& some, const simd::PairedRows& of_right, float* sums,
                             int64_t pitch, float factor, float old) {
                           loops.multiply_few(some, of_right, sums, pitch, factor, old);
                         });
  }
  const PairedMatrix right(transposed(b), loops);
  gemm_in_loops(left.view(), transposed(right.view()), c, ldc, alpha, beta, addend, in_lanes,
                loops.multiply);
}

template <class T>
void vector_gemm(const MatrixView<T>& a, const MatrixView<T>& b, T* c, int64_t ldc, Factor<T> alpha,
                 Factor<T> beta, const Addend<T>& addend) {
  const bool in_lanes = b.cols == 1 && a.col_stride == 1;
  if constexpr (std::is_same_v<T, BFloat16>) {
    if (const simd::PairLoops* const loops = simd::pair_loops())
      return pair_gemm(a, b, c, ldc, alpha, beta, addend, in_lanes, *loops);
  }
  gemm_in_loops(a, b, c, ldc, alpha, beta, addend, in_lanes, simd::multiply_loop<T>());
}

// Integers: products and sums wrap, as unsigned arithmetic does.
template <class T>
void loop_gemm(const MatrixView<T>& a, const MatrixView<T>& b, T* c, int64_t ldc, T alpha, T beta) {
  using U = std::conditional_t<
      std::is_same_v<T, bool>, uint8_t,
      std::make_unsigned_t<std::conditional_t<std::is_same_v<T, bool>, uint8_t, T>>>;
  const std::vector<T> bp = [&] {
    std::vector<T> out;
    out.reserve(static_cast<size_t>(b.rows * b.cols));
    for (int64_t i = 0; i < b.rows; ++i)
      for (int64_t j = 0; j < b.cols; ++j)
        out.push_back(element_value(b.data[i * b.row_stride + j * b.col_stride]));
    return out;
  }();
  const int64_t grain = std::max<int64_t>(1, 32768 / std::max<int64_t>(1, b.cols * a.cols));
  parallel_for(a.rows, grain, [&](int64_t begin, int64_t end) {
    std::vector<uint64_t> row(static_cast<size_t>(b.cols));
    for (int64_t i = begin; i < end; ++i) {
      std::fill(row.begin(), row.end(), 0);
      for (int64_t k = 0; k < a.cols; ++k) {
        const uint64_t x =
            static_cast<uint64_t>(element_value(a.data[i * a.row_stride + k * a.col_stride]));
        for (int64_t j = 0; j < b.cols; ++j)
          row[j] += x * static_cast<uint64_t>(static_cast<U>(bp[k * b.cols + j]));
      }
      for (int64_t j = 0; j < b.cols; ++j) {
        uint64_t value = row[j] * static_cast<uint64_t>(alpha);
        if (beta != T(0))
          value +=
              static_cast<uint64_t>(beta) * static_cast<uint64_t>(element_value(c[i * ldc + j]));
        c[i * ldc + j] =
            std::is_same_v<T, bool> ? static_cast<T>(value != 0) : static_cast<T>(value);
      }
    }
  });
}

// An empty sum.
template <class T>
void gemm_of_none(int64_t rows, int64_t columns, T* c, int64_t ldc, Factor<T> beta,
                  const Addend<T>& addend) {
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j)
      c[i * ldc + j] =
          beta == Factor<T>(0)
              ? T(0)
              : static_cast<T>(
                    beta * static_cast<Factor<T>>(addend.data[i * addend.row + j * addend.column]));
  }
}

}  // namespace

template <class T>
void gemm(MatrixView<T> a, MatrixView<T> b, T* c, int64_t ldc, float alpha, float beta,
          Addend<T> addend) {
  if (a.rows == 0 || b.cols == 0) return;
  if (a.cols == 0) return gemm_of_none(a.rows, b.cols, c, ldc, beta, addend);
  vector_gemm(a, b, c, ldc, alpha, beta, addend);
}

template <class T>
void gemm(MatrixView<T> a, MatrixView<T> b, T* c, int64_t ldc, Factor<T> alpha, Factor<T> beta) {
  if (a.rows == 0 || b.cols == 0) return;
  if (a.cols == 0) return gemm_of_none<T>(a.rows, b.cols, c, ldc, beta, {c, ldc, 1});
  if constexpr (std::is_integral_v<T>) {
    loop_gemm(a, b, c, ldc, alpha, beta);
  } else if constexpr (std::is_same_v<T, compute_type<T>> && !std::is_floating_point_v<T>) {
    blas_gemm(a, b, c, ldc, alpha, beta);
  } else {
    vector_gemm<T>(a, b, c, ldc, alpha, beta, {c, ldc, 1});
  }
}

template void gemm(MatrixView<Half>, MatrixView<Half>, Half*, int64_t, float, float, Addend<Half>);
template void gemm(MatrixView<BFloat16>, MatrixView<BFloat16>, BFloat16*, int64_t, float, float,
                   Addend<BFloat16>);
template void gemm(MatrixView<bool>, MatrixView<bool>, bool*, int64_t, bool, bool);
template void gemm(MatrixView<uint8_t>, MatrixView<uint8_t>, uint8_t*, int64_t, uint8_t, uint8_t);
template void gemm(MatrixView<uint16_t>, MatrixView<uint16_t>, uint16_t*, int64_t, uint16_t,
                   uint16_t);
template void gemm(MatrixView<uint32_t>, MatrixView<uint32_t>, uint32_t*, int64_t, uint32_t,
                   uint32_t);
template void gemm(MatrixView<uint64_t>, MatrixView<uint64_t>, uint64_t*, int64_t, uint64_t,
                   uint64_t);
template void gemm(MatrixView<int8_t>, MatrixView<int8_t>, int8_t*, int64_t, int8_t, int8_t);
template void gemm(MatrixView<int16_t>, MatrixView<int16_t>, int16_t*, int64_t, int16_t, int16_t);
template void gemm(MatrixView<int32_t>, MatrixView<int32_t>, int32_t*, int64_t, int32_t, int32_t);
template void gemm(MatrixView<int64_t>, MatrixView<int64_t>, int64_t*, int64_t, int64_t, int64_t);
template void gemm(MatrixView<Half>, MatrixView<Half>, Half*, int64_t, float, float);
template void gemm(MatrixView<BFloat16>, MatrixView<BFloat16>, BFloat16*, int64_t, float, float);
template void gemm(MatrixView<float>, MatrixView<float>, float*, int64_t, float, float);
template void gemm(MatrixView<double>, MatrixView<double>, double*, int64_t, double, double);
template void gemm(MatrixView<std::complex<float>>, MatrixView<std::complex<float>>,
                   std::complex<float>*, int64_t, std::complex<float>, std::complex<float>);
template void gemm(MatrixView<std::complex<double>>, MatrixView<std::complex<double>>,
                   std::complex<double>*, int64_t, std::complex<double>, std::complex<double>);

}  // namespace treadle::cpu
