// Transposes tiles. A square of 16-byte rows at a time goes through registers into a buffer. So
// both tensors are touched in whole cache lines, once, whatever sets of the cache their strides map
// to.
//
// SPDX-License-Identifier: Apache-2.0
#define HWY_COMPILE_ONLY_STATIC  // squares of 16-byte rows gain nothing from wider vectors
#include "aten/backend/cpu/targets.h"
#include "hwy/highway.h"

#include <algorithm>
#include <cstring>

#include "aten/backend/cpu/transpose.h"

HWY_BEFORE_NAMESPACE();
namespace treadle::simd::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using cpu::TransposedPlane;

constexpr int64_t kTileBytes = 16 * 1024;  // half of the nearest cache
constexpr int64_t kFewLines = 12;

// A tile is as high as a cache line of src is long, and at least 16: long rows of dst are cheaper
// than long columns of src, but each column starts on another page.
constexpr int64_t band_of(int64_t item) { return std::max<int64_t>(16, 64 / item); }

struct Wide {
  uint64_t low, high;
};

// A square of kLanes x kLanes elements, by as many interleavings of the first half of its rows with
// the second half as double up to a row.
template <class Bits>
constexpr size_t kLanes = 16 / sizeof(Bits);

template <class Bits>
void turn_square(const char* src, int64_t src_stride, Bits* dst, int64_t dst_stride) {
  constexpr size_t n = kLanes<Bits>;
  const hn::Simd<Bits, n, 0> d;
  hn::Vec<decltype(d)> a[n], b[n];
  for (size_t i = 0; i < n; ++i) {
    a[i] = hn::LoadU(d, reinterpret_cast<const Bits*>(src + static_cast<int64_t>(i) * src_stride));
  }
  for (size_t step = 1; step < n; step *= 2) {
    for (size_t i = 0; i < n / 2; ++i) {
      b[2 * i] = hn::InterleaveLower(d, a[i], a[i + n / 2]);
      b[2 * i + 1] = hn::InterleaveUpper(d, a[i], a[i + n / 2]);
    }
    for (size_t i = 0; i < n; ++i) a[i] = b[i];
  }
  for (size_t i = 0; i < n; ++i) hn::StoreU(a[i], d, dst + static_cast<int64_t>(i) * dst_stride);
}

// A few long lines, which are rows or columns of both matrices: element by element, in blocks that
// stay in the nearest cache. Strides are in bytes.
template <class Bits>
void turn_few_lines(int64_t lines, int64_t length, char* dst, int64_t dst_line, int64_t dst_step,
                    const char* src, int64_t src_line, int64_t src_step) {
  const int64_t block = std::max<int64_t>(1, kTileBytes / std::max(dst_step, src_step));
  for (int64_t begin = 0; begin < length; begin += block) {
    const int64_t end = std::min(length, begin + block);
    for (int64_t line = 0; line < lines; ++line) {
      char* const to = dst + line * dst_line;
      const char* const from = src + line * src_line;
      for (int64_t i = begin; i < end; ++i)
        *reinterpret_cast<Bits*>(to + i * dst_step) =
            *reinterpret_cast<const Bits*>(from + i * src_step);
    }
  }
}

template <class Bits>
void turn(const TransposedPlane& p, char* dst, const char* src, int64_t begin, int64_t end) {
  constexpr int64_t kItem = sizeof(Bits), kRows = band_of(kItem);
  constexpr int64_t kCols = kTileBytes / (kRows * kItem);
  constexpr int64_t kStep = std::is_same_v<Bits, Wide> ? 1 : 16 / kItem;
  dst += begin * p.dst_row_stride;
  src += begin * kItem;
  const int64_t height = end - begin;
  if (p.cols < kFewLines)
    return turn_few_lines<Bits>(p.cols, height, dst, kItem, p.dst_row_stride, src, p.src_col_stride,
                                kItem);
  if (height < kFewLines)
    return turn_few_lines<Bits>(height, p.cols, dst, p.dst_row_stride, kItem, src, kItem,
                                p.src_col_stride);
  alignas(64) Bits tile[kRows][kCols];
  for (int64_t i0 = 0; i0 < height; i0 += kRows) {
    const int64_t rows = std::min(height - i0, kRows);
    for (int64_t j0 = 0; j0 < p.cols; j0 += kCols) {
      const int64_t cols = std::min(p.cols - j0, kCols);
      const auto columns_singly = [&](int64_t first, int64_t last, int64_t from_row) {
        for (int64_t j = first; j < last; ++j) {
          const Bits* const from =
              reinterpret_cast<const Bits*>(src + i0 * kItem + (j0 + j) * p.src_col_stride);
          for (int64_t i = from_row; i < rows; ++i) tile[i][j] = from[i];
        }
      };
      int64_t j = 0;
      if constexpr (kStep > 1) {
        const int64_t whole_rows = rows / kStep * kStep;
        for (; j + kStep <= cols; j += kStep) {
          const char* const from = src + i0 * kItem + (j0 + j) * p.src_col_stride;
          for (int64_t i = 0; i < whole_rows; i += kStep)
            turn_square<Bits>(from + i * kItem, p.src_col_stride, &tile[i][j], kCols);
        }
        columns_singly(0, j, whole_rows);
      }
      columns_singly(j, cols, 0);
      for (int64_t i = 0; i < rows; ++i) {
        std::memcpy(dst + (i0 + i) * p.dst_row_stride + j0 * kItem, tile[i],
                    static_cast<size_t>(cols * kItem));
      }
    }
  }
}

}  // namespace
}  // namespace treadle::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

namespace treadle::cpu {

using namespace simd::HWY_NAMESPACE;

int64_t transpose_band(int64_t item) { return band_of(item); }

void transpose_rows(const TransposedPlane& plane, char* dst, const char* src, int64_t begin,
                    int64_t end) {
  switch (plane.item) {
    case 1:
      return turn<uint8_t>(plane, dst, src, begin, end);
    case 2:
      return turn<uint16_t>(plane, dst, src, begin, end);
    case 4:
      return turn<uint32_t>(plane, dst, src, begin, end);
    case 8:
      return turn<uint64_t>(plane, dst, src, begin, end);
    default:
      return turn<Wide>(plane, dst, src, begin, end);
  }
}

}  // namespace treadle::cpu
