// Chooses between one move of bytes, a tiled transposition and rows of conversions.
#include "aten/iterator/copy.h"

#include "aten/backend/device_copy.h"
#include "aten/cpu/convert.h"
#include "aten/iterator/loop_geometry.h"
#include "aten/iterator/overlap.h"
#include "core/parallel.h"

namespace treadle {
namespace {

constexpr int64_t kGrain = 32 * 1024;  // elements of a parallel chunk
constexpr int64_t kTileRows = 128;     // a tile's columns are long enough to be worth their page,
constexpr int64_t kTileCols = 32;      // and the whole stays in the nearest cache

struct Plane {
  int64_t rows, cols;
  int64_t dst_row_stride;  // a row of dst is contiguous
  int64_t src_col_stride;  // a column of src is contiguous
};

// Rows [begin, end) of a plane, in tiles. A tile is turned in a buffer: both tensors are then
// touched in whole cache lines, once, whatever their strides do to the cache's sets.
template <class Bits>
void transpose_rows(const Plane& p, char* dst, const char* src, int64_t begin, int64_t end) {
  constexpr int64_t kItem = sizeof(Bits);
  alignas(64) Bits tile[kTileRows][kTileCols];
  for (int64_t i0 = begin; i0 < end; i0 += kTileRows) {
    const int64_t rows = std::min(end - i0, kTileRows);
    for (int64_t j0 = 0; j0 < p.cols; j0 += kTileCols) {
      const int64_t cols = std::min(p.cols - j0, kTileCols);
      for (int64_t j = 0; j < cols; ++j) {
        const Bits* const from =
            reinterpret_cast<const Bits*>(src + i0 * kItem + (j0 + j) * p.src_col_stride);
        for (int64_t i = 0; i < rows; ++i) tile[i][j] = from[i];
      }
      for (int64_t i = 0; i < rows; ++i) {
        std::memcpy(dst + (i0 + i) * p.dst_row_stride + j0 * kItem, tile[i],
                    static_cast<size_t>(cols * kItem));
      }
    }
  }
}

struct Wide {
  uint64_t low, high;
};
using TransposeFn = void(const Plane&, char*, const char*, int64_t, int64_t);
TransposeFn* transpose_for(int64_t item) {
  switch (item) {
    case 1:
      return &transpose_rows<uint8_t>;
    case 2:
      return &transpose_rows<uint16_t>;
    case 4:
      return &transpose_rows<uint32_t>;
    case 8:
      return &transpose_rows<uint64_t>;
    default:
      return &transpose_rows<Wide>;
  }
}

// dst runs along the last dimension and src along another: true when done.
bool copy_transposed(const LoopGeometry& g, char* dst, const char* src, int64_t item) {
  const size_t rank = g.shape.size(), last = rank - 1;
  if (rank < 2 || g.strides[0][last] != item || g.strides[1][last] == item ||
      g.strides[1][last] == 0)
    return false;
  size_t row = rank;
  for (size_t d = 0; d < last; ++d) {
    if (g.strides[1][d] == item) row = d;
  }
  if (row == rank || g.shape[row] < 4 || g.shape[last] < 4) return false;
  const Plane plane{g.shape[row], g.shape[last], g.strides[0][row], g.strides[1][last]};
  int64_t planes = 1;
  for (size_t d = 0; d < last; ++d) {
    if (d != row) planes *= g.shape[d];
  }
  const int64_t bands = (plane.rows + kTileRows - 1) / kTileRows;
  const int64_t band_elements = std::min(plane.rows, kTileRows) * plane.cols;
  TransposeFn* const transpose = transpose_for(item);
  parallel_for(planes * bands, std::max<int64_t>(1, kGrain / band_elements),
               [&](int64_t begin, int64_t end) {
                 for (int64_t unit = begin; unit < end; ++unit) {
                   int64_t rest = unit / bands, dst_offset = 0, src_offset = 0;
                   for (size_t d = last; d-- > 0;) {
                     if (d == row) continue;
                     dst_offset += rest % g.shape[d] * g.strides[0][d];
                     src_offset += rest % g.shape[d] * g.strides[1][d];
                     rest /= g.shape[d];
                   }
                   const int64_t first = unit % bands * kTileRows;
                   transpose(plane, dst + dst_offset, src + src_offset, first,
                             std::min(plane.rows, first + kTileRows));
                 }
               });
  return true;
}

void copy_rows(const LoopGeometry& g, char* dst, const char* src, simd::ConvertFn* convert,
               int64_t numel) {
  const size_t last = g.shape.size() - 1;
  const int64_t row = g.shape[last];
  parallel_for(numel, kGrain, [&](int64_t begin, int64_t end) {
    DimVector index(g.shape.size());
    int64_t rest = begin;
    for (size_t d = g.shape.size(); d-- > 0;) {
      index[d] = rest % g.shape[d];
      rest /= g.shape[d];
    }
    for (int64_t at = begin; at < end;) {
      int64_t dst_offset = 0, src_offset = 0;
      for (size_t d = 0; d <= last; ++d) {
        dst_offset += index[d] * g.strides[0][d];
        src_offset += index[d] * g.strides[1][d];
      }
      const int64_t n = std::min(end - at, row - index[last]);
      convert(src + src_offset, g.strides[1][last], dst + dst_offset, g.strides[0][last], n);
      at += n;
      index[last] = 0;
      for (size_t d = last; d-- > 0;) {
        if (++index[d] < g.shape[d]) break;
        index[d] = 0;
      }
    }
  });
}

}  // namespace

void copy_strided(const Tensor& dst, const Tensor& src) {
  const int64_t numel = dst.numel();
  if (numel == 0 || dst.is_meta() || src.is_meta()) return;
  if (!dst.is_cpu() || !src.is_cpu()) {
    copy_between_devices(dst, src, false);
    return;
  }
  const Overlap overlap = overlap_of(dst, src);
  if (overlap == Overlap::Full) return;
  if (overlap != Overlap::None) {
    const Tensor apart = empty_cpu(src.sizes(), src.dtype());
    copy_strided(apart, src);
    copy_strided(dst, apart);
    return;
  }
  LoopGeometry g(dst.sizes());
  g.add(dst.strides(), dst.element_size());
  g.add(broadcast_strides(dst.sizes(), src.sizes(), src.strides()), src.element_size());
  g.order();
  char* const to = static_cast<char*>(dst.data());
  const char* const from = static_cast<const char*>(src.data());
  if (dst.dtype() == src.dtype() && copy_transposed(g, to, from, dst.element_size())) return;
  copy_rows(g, to, from, simd::converter(src.dtype(), dst.dtype()), numel);
}

}  // namespace treadle
