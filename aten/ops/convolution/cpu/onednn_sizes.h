// The geometry of a convolution and the order of elements in memory, in oneDNN's words.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <oneapi/dnnl/dnnl.hpp>

#include "aten/ops/convolution/cpu/conv_geometry.h"

namespace treadle::cpu::onednn {

using dnnl::memory;

struct ConvSizes {
  explicit ConvSizes(const ConvGeometry& g)
      : in{g.batch, g.in_channels}, out{g.batch, g.out_channels} {
    if (g.groups == 1)
      weight = {g.out_channels, g.in_channels};
    else
      weight = {g.groups, g.out_channels / g.groups, g.in_channels / g.groups};
    for (int d = 3 - g.spatial; d < 3; ++d) {
      in.push_back(g.in[d]);
      out.push_back(g.out[d]);
      weight.push_back(g.kernel[d]);
      stride.push_back(g.stride[d]);
      dilation.push_back(g.dilation[d] - 1);
      before.push_back(g.padding[d]);
      behind.push_back(padding_behind(g, d));
    }
  }
  // The distance by which the last window extends beyond the input; negative if it ends before the
  // input does.
  static int64_t padding_behind(const ConvGeometry& g, int d) {
    return (g.out[d] - 1) * g.stride[d] + g.dilation[d] * (g.kernel[d] - 1) + 1 - g.in[d] -
           g.padding[d];
  }

  memory::dims in, out, weight, stride, dilation, before, behind;
};

inline memory::desc contiguous(const memory::dims& sizes, memory::data_type type) {
  memory::dims strides(sizes.size());
  int64_t step = 1;
  for (size_t d = sizes.size(); d-- > 0; step *= sizes[d]) strides[d] = step;
  return memory::desc(sizes, type, strides);
}
// Dense, with dimension `channels` innermost.
inline memory::desc channels_innermost(const memory::dims& sizes, size_t channels,
                                       memory::data_type type) {
  memory::dims strides(sizes.size());
  strides[channels] = 1;
  int64_t step = sizes[channels];
  for (size_t d = sizes.size(); d-- > 0;) {
    if (d == channels) continue;
    strides[d] = step;
    step *= sizes[d];
  }
  return memory::desc(sizes, type, strides);
}

}  // namespace treadle::cpu::onednn
