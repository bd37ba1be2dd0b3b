// Images in the order of elements that oneDNN computes in, for inference: layout "mkldnn", as
// PyTorch calls it. The channels of an image are cut into blocks that lie innermost:
//
//   values (N, C / block, spatial..., block), contiguous
//
// A block is what a vector register holds, all channels, or one. What is no image with channels
// is kept as it is, with block 0.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/tensor/layout_tensor.h"

namespace treadle::blocked {

struct Image {
  Tensor values;
  DimVector sizes;  // of the tensor: (N, C, spatial...)
  int64_t block = 0;
};

Layout layout();
inline bool is_blocked(const Tensor& t) { return !t.is_strided() && t.layout() == layout(); }

Image image_of(const char* op, const Tensor& t);
Tensor tensor_of(const Image& image);
// The block in which oneDNN's kernels here take so many channels.
int64_t block_for(int64_t channels);

// The strided tensor of the same elements.
Tensor dense(const Image& image);
// The same of a tensor of either layout.
Tensor dense(const Tensor& t);
// A strided tensor of float32 in blocks; of less than three dimensions, as it is.
Tensor blocked(const char* op, const Tensor& t);
// The same elements in other blocks.
Image with_block(const Image& image, int64_t block);

// (N * C / block, block, spatial...), a view with channels innermost: what computes channel by
// channel takes it for an image.
Tensor as_channels_last(const Image& image);
// The image of such a result; sizes of space are the result's.
Image from_channels_last(const Tensor& t, const Image& like);

// How many times elements changed their order since the program began.
int64_t reorders();
void count_reorder();

}  // namespace treadle::blocked
