// ConvGeometry: the sizes of one convolution, for any number of dimensions up to three.
//
// The gradient with respect to the input (the transposed convolution) and the gradient with respect
// to the weight have the geometry of their convolution.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "aten/ops/convolution/shape.h"

namespace treadle::cpu {

// Arrays are (depth, height, width). Dimensions that a convolution lacks come first, with size 1.
// All tensors are dense: input (N, C, in...), weight (O, C / groups, kernel...), output
// (N, O, out...), with channels innermost in memory where it says so.
struct ConvGeometry {
  using Dims = std::array<int64_t, 3>;
  int64_t batch, in_channels, out_channels, groups;
  int spatial;  // the number of the three dimensions that the convolution has
  Dims in{1, 1, 1}, out{1, 1, 1}, kernel{1, 1, 1};
  Dims stride{1, 1, 1}, padding{0, 0, 0}, dilation{1, 1, 1};
  bool channels_last = false, weight_last = false;  // of input and output; of the weight
  int64_t of_channels = 0;   // those that output images have, if these are only some of them
  bool is_bfloat16 = false;  // else float; a bias and a gradient of the weight are float anyway
  friend auto operator<=>(const ConvGeometry&, const ConvGeometry&) = default;

  int64_t in_positions() const { return in[0] * in[1] * in[2]; }
  int64_t out_positions() const { return out[0] * out[1] * out[2]; }
  int64_t kernel_elements() const { return kernel[0] * kernel[1] * kernel[2]; }
  int64_t in_image() const { return in_channels * in_positions(); }
  int64_t out_image() const { return out_channels * out_positions(); }
  int64_t weight_elements() const {
    return out_channels * (in_channels / groups) * kernel_elements();
  }

  // The batch is computed in pieces, in parallel. Their number depends only on the problem, so
  // results have the same bits at any thread count. Every piece reads all weights, so it must have
  // enough work to repay that.
  int64_t pieces() const {
    constexpr int64_t kMax = 8, kPositions = 64;
    return std::clamp<int64_t>(batch * out_positions() / kPositions, 1, std::min(kMax, batch));
  }
  int64_t first_image(int64_t piece) const { return batch * piece / pieces(); }
  ConvGeometry piece(int64_t piece) const {
    ConvGeometry g = *this;
    g.batch = first_image(piece + 1) - first_image(piece);
    return g;
  }
};

// The geometry of a plain convolution from `input` to `output`. Unbatched tensors have no leading
// dimension.
inline ConvGeometry conv_geometry(IntList input, IntList weight, IntList output, IntList stride,
                                  IntList padding, IntList dilation, int64_t groups) {
  const size_t spatial = weight.size() - 2;
  const size_t i = input.size() - spatial, o = output.size() - spatial;
  ConvGeometry g{};
  g.batch = i == 2 ? input[0] : 1;
  g.in_channels = input[i - 1];
  g.out_channels = output[o - 1];
  g.groups = groups;
  g.spatial = static_cast<int>(spatial);
  g.in = g.out = g.kernel = g.stride = g.dilation = {1, 1, 1};
  for (size_t d = 0; d < spatial; ++d) {
    const size_t at = 3 - spatial + d;
    g.in[at] = input[i + d];
    g.out[at] = output[o + d];
    g.kernel[at] = weight[d + 2];
    g.stride[at] = shape::entry_of(stride, d);
    g.padding[at] = shape::entry_of(padding, d);
    g.dilation[at] = shape::entry_of(dilation, d);
  }
  return g;
}

}  // namespace treadle::cpu
