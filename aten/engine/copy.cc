// Chooses between one copy of bytes, a tiled transposition and rows of conversions.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/engine/copy.h"

#include "aten/backend/cpu/convert.h"
#include "aten/backend/cpu/non_temporal_stores.h"
#include "aten/backend/cpu/transpose.h"
#include "aten/engine/backends/device_copy.h"
#include "aten/engine/loop_geometry.h"
#include "aten/engine/overlap.h"
#include "aten/engine/resolve.h"
#include "core/threads/parallel.h"

namespace treadle {
namespace {

constexpr int64_t kGrain = 32 * 1024;  // elements of a parallel chunk

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
  if (row == rank || g.shape[row] < 2 || g.shape[last] < 2) return false;
  const cpu::TransposedPlane plane{g.shape[row], g.shape[last], g.strides[0][row],
                                   g.strides[1][last], item};
  const int64_t band = cpu::transpose_band(item);
  int64_t planes = 1;
  for (size_t d = 0; d < last; ++d) {
    if (d != row) planes *= g.shape[d];
  }
  const int64_t bands = (plane.rows + band - 1) / band;
  const int64_t band_elements = std::min(plane.rows, band) * plane.cols;
  parallel_for(planes * bands, std::max<int64_t>(1, kGrain / band_elements),
               [&](int64_t begin, int64_t end) {
                 for (int64_t unit = begin, until; unit < end; unit = until) {
                   int64_t rest = unit / bands, dst_offset = 0, src_offset = 0;
                   until = std::min(end, (rest + 1) * bands);  // the end of the plane
                   for (size_t d = last; d-- > 0;) {
                     if (d == row) continue;
                     dst_offset += rest % g.shape[d] * g.strides[0][d];
                     src_offset += rest % g.shape[d] * g.strides[1][d];
                     rest /= g.shape[d];
                   }
                   const int64_t first = unit % bands * band;
                   cpu::transpose_rows(plane, dst + dst_offset, src + src_offset, first,
                                       std::min(plane.rows, first + (until - unit) * band));
                 }
               });
  return true;
}

// Copies or converts a run of elements.
class Run {
 public:
  Run(const LoopGeometry& g, const Tensor& dst, const Tensor& src)
      : writes_(dst.nbytes()),
        convert_(simd::converter(src.dtype(), dst.dtype())),
        dst_stride_(g.strides[0].back()),
        src_stride_(g.strides[1].back()),
        item_(dst.element_size()),
        moved_(dst.dtype() == src.dtype() && dst_stride_ == item_ && src_stride_ == item_) {}

  void operator()(char* dst, const char* src, int64_t n) const {
    if (moved_) return writes_.copy(dst, src, n * item_);
    convert_(src, src_stride_, dst, dst_stride_, n);
  }
  void finish() const { writes_.finish(); }

 private:
  cpu::NonTemporalStores writes_;
  simd::ConvertFn* convert_;
  int64_t dst_stride_, src_stride_, item_;
  bool moved_;
};

void copy_rows(const LoopGeometry& g, char* dst, const char* src, const Run& run, int64_t numel) {
  const size_t last = g.shape.size() - 1;
  const int64_t row = g.shape[last];
  parallel_for(numel, kGrain, [&](int64_t begin, int64_t end) {
    DimVector index = unravel(g.shape, begin);
    for (int64_t at = begin; at < end;) {
      const int64_t n = std::min(end - at, row - index[last]);
      run(dst + offset_of(g.strides[0], index.data()), src + offset_of(g.strides[1], index.data()),
          n);
      at += n;
      next_row(g.shape, index.data());
    }
    run.finish();
  });
}

}  // namespace

void copy_strided(const Tensor& dst, const Tensor& src) {
  const int64_t numel = dst.numel();
  if (numel == 0 || dst.is_meta() || src.is_meta()) return;
  if (needs_resolving(dst) || needs_resolving(src)) [[unlikely]]
    return copy_resolved(dst, src);
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
  copy_rows(g, to, from, Run(g, dst, src), numel);
}

}  // namespace treadle
