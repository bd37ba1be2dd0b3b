// Pooling of images whose channels are innermost in memory: the channels of a pixel are pooled side
// by side.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "aten/engine/strides/memory_format.h"
#include "aten/ops/contiguous.h"
#include "aten/ops/convolution/cpu/pool_windows.h"

namespace treadle::cpu {

struct PoolPixels {
  int64_t batch, channels;
  std::array<int64_t, 3> in{1, 1, 1}, out{1, 1, 1};

  PoolPixels(IntList input, IntList output) : batch(input[0]), channels(input[1]) {
    for (size_t d = 2; d < input.size(); ++d) {
      in[d + 3 - input.size()] = input[d];
      out[d + 3 - input.size()] = output[d];
    }
  }
  int64_t in_size() const { return in[0] * in[1] * in[2]; }
  int64_t out_size() const { return out[0] * out[1] * out[2]; }

  // Calls f(image, z, y, first pixel) for each row of windows, in parallel, about 32K elements at a
  // time. The pixels of the results are counted through all images.
  template <class F>
  void for_rows(F&& f) const {
    const int64_t rows = batch * out[0] * out[1];
    parallel_for(rows, std::max<int64_t>(1, 32768 / (out[2] * channels)),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t r = begin; r < end; ++r)
                     f(r / out[1] / out[0], r / out[1] % out[0], r % out[1], r * out[2]);
                 });
  }

  // Calls f(image, first channel, channels) for runs of at most `most` channels of each image, in
  // parallel. Windows that overlap are written by one thread.
  template <class F>
  void for_channels(int64_t most, F&& f) const {
    const int64_t runs = (channels + most - 1) / most;
    parallel_for(batch * runs, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t first = i % runs * most;
        f(i / runs, first, std::min(most, channels - first));
      }
    });
  }

  // Calls f(pixel of the plane) for the pixels under window (z, y, x).
  template <class F>
  void for_window(const PoolAxes& axes, int64_t z, int64_t y, int64_t x, F&& f) const {
    for (int64_t i = axes[0].begin[z]; i < axes[0].end[z]; i += axes[0].step) {
      for (int64_t j = axes[1].begin[y]; j < axes[1].end[y]; j += axes[1].step) {
        const int64_t row = (i * in[1] + j) * in[2];
        for (int64_t k = axes[2].begin[x]; k < axes[2].end[x]; k += axes[2].step) f(row + k);
      }
    }
  }
};

// Whether a result, and so the images that are read for it, have channels innermost.
inline bool by_pixels(const Tensor& out) {
  return shape::format_of(out) != MemoryFormat::Contiguous;
}

// The image of a rank that has channels innermost, in that layout.
inline Tensor as_pixels(const Tensor& image) {
  return aten::contiguous(
      image, image.dim() == 4 ? MemoryFormat::ChannelsLast : MemoryFormat::ChannelsLast3d);
}

}  // namespace treadle::cpu
