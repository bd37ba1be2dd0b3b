// The memory format of the result of an operator on images: channels_last and channels_last_3d stay
// through kernels that write them.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/tensor/tensor.h"

namespace treadle::shape {

// The format that strides say. Gaps do not count: a part of a channels_last image is channels_last.
// Strides that fit both formats, as those of shape (N, C, 1, 1), say what made them: a stride of C
// in a dimension of size 1 is channels_last. Where even these are the same, it is Contiguous.
MemoryFormat format_of(IntList sizes, IntList strides);
inline MemoryFormat format_of(const Tensor& t) { return format_of(t.sizes(), t.strides()); }

// The format of the result of an operator on an image of this geometry, on this device. Kernels of
// other devices than the CPU write contiguous results.
MemoryFormat kept_format(Device device, IntList sizes, IntList strides);
inline MemoryFormat kept_format(const Tensor& image) {
  return kept_format(image.device(), image.sizes(), image.strides());
}
// The same of an image with so many spatial dimensions. Without a batch, Contiguous.
MemoryFormat kept_format(const Tensor& image, size_t spatial);

// `t` in a format, also where strides fit both.
Tensor in_format(const Tensor& t, MemoryFormat format);

// `image` as (batch, spatial..., channels), a view. Of a tensor in a channels_last format it is
// contiguous.
Tensor channels_innermost(const Tensor& image);
// The number that dimension `dim` of an image of this rank has there.
int64_t dim_with_channels_innermost(int64_t dim, int64_t rank);

}  // namespace treadle::shape
