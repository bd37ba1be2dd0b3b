// The windows of a pooling along each dimension, and the planes (one image, one channel) that it
// covers.
//
// All pooling is over (depth, height, width). Dimensions that are not pooled come first, with size
// 1 and one window. A window is begin, begin + step, ... below end, inside the input.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "core/tensor/tensor.h"
#include "core/threads/parallel.h"

namespace treadle::cpu {

struct PoolAxis {
  std::vector<int64_t> begin{0}, end{1};
  std::vector<int64_t> extent{1};  // size with the padding that belongs to the window
  int64_t step = 1;
  int64_t count(int64_t window) const { return end[window] - begin[window]; }
};
using PoolAxes = std::array<PoolAxis, 3>;

struct PoolPlanes {
  int64_t count = 1;
  std::array<int64_t, 3> in{1, 1, 1}, out{1, 1, 1};

  PoolPlanes(IntList input, IntList output, size_t spatial) {
    const size_t first = input.size() - spatial;
    for (size_t d = 0; d < first; ++d) count *= input[d];
    for (size_t d = 0; d < spatial; ++d) {
      in[3 - spatial + d] = input[first + d];
      out[3 - spatial + d] = output[first + d];
    }
  }
  int64_t in_size() const { return in[0] * in[1] * in[2]; }
  int64_t out_size() const { return out[0] * out[1] * out[2]; }

  // Calls f(plane) for each, in parallel, about 32K elements at a time.
  template <class F>
  void for_each(F&& f) const {
    const int64_t size = std::max<int64_t>(1, std::max(in_size(), out_size()));
    parallel_for(count, std::max<int64_t>(1, 32768 / size), f);
  }
};

// Sliding windows, with the sizes and steps that the shape rule has checked.
inline PoolAxes sliding_windows(const PoolPlanes& p, IntList kernel, IntList stride,
                                IntList padding, IntList dilation) {
  PoolAxes axes;
  const IntList steps = stride.empty() ? kernel : stride;
  for (size_t d = 0; d < kernel.size(); ++d) {
    const size_t at = 3 - kernel.size() + d;
    PoolAxis& axis = axes[at];
    const int64_t n = p.out[at], gap = dilation.empty() ? 1 : dilation[d];
    axis.step = gap;
    axis.begin.resize(n);
    axis.end.resize(n);
    axis.extent.resize(n);
    for (int64_t i = 0; i < n; ++i) {
      const int64_t start = i * steps[d] - padding[d];
      const int64_t behind = start + (kernel[d] - 1) * gap + 1;
      axis.begin[i] = start >= 0 ? start : start + (-start + gap - 1) / gap * gap;
      axis.end[i] = std::max(axis.begin[i], std::min(behind, p.in[at]));
      axis.extent[i] = std::min(behind, p.in[at] + padding[d]) - start;
    }
  }
  return axes;
}

// Windows that cover the input evenly. They overlap where the sizes do not divide.
inline PoolAxes adaptive_windows(const PoolPlanes& p, size_t spatial) {
  PoolAxes axes;
  for (size_t at = 3 - spatial; at < 3; ++at) {
    PoolAxis& axis = axes[at];
    const int64_t n = p.out[at];
    axis.begin.resize(n);
    axis.end.resize(n);
    axis.extent.resize(n);
    for (int64_t i = 0; i < n; ++i) {
      axis.begin[i] = static_cast<int64_t>(static_cast<__int128>(i) * p.in[at] / n);
      axis.end[i] = static_cast<int64_t>((static_cast<__int128>(i + 1) * p.in[at] + n - 1) / n);
      axis.extent[i] = axis.end[i] - axis.begin[i];
    }
  }
  return axes;
}

}  // namespace treadle::cpu
