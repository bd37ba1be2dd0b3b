// Memory formats, by the rules of PyTorch.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/engine/strides/memory_format.h"

#include "aten/ops/to.h"

namespace treadle::shape {
namespace {

// Whether strides order the dimensions (batch, spatial..., channels) from the outermost.
bool has_channels_innermost(IntList sizes, IntList strides) {
  for (const int64_t size : sizes)
    if (size == 0) return false;
  if (strides[1] == 0) return false;
  int64_t least = strides[1] * sizes[1];
  for (size_t d = sizes.size() - 1; d >= 2; --d) {
    if (strides[d] < least) return false;
    least = strides[d] * sizes[d];
  }
  // Strides that are all the same say nothing.
  return strides[0] >= least && least != strides[1];
}

}  // namespace

MemoryFormat format_of(IntList sizes, IntList strides) {
  const size_t rank = sizes.size();
  if ((rank != 4 && rank != 5) || !has_channels_innermost(sizes, strides))
    return MemoryFormat::Contiguous;
  return rank == 4 ? MemoryFormat::ChannelsLast : MemoryFormat::ChannelsLast3d;
}

MemoryFormat kept_format(Device device, IntList sizes, IntList strides) {
  const bool keeps = device.is_cpu() || device.is_meta();
  return keeps ? format_of(sizes, strides) : MemoryFormat::Contiguous;
}

MemoryFormat kept_format(const Tensor& image, size_t spatial) {
  if (image.sizes().size() != spatial + 2) return MemoryFormat::Contiguous;
  return kept_format(image);
}

Tensor in_format(const Tensor& t, MemoryFormat format) {
  if (format_of(t) == format) return t;
  return aten::to(t, std::nullopt, std::nullopt, std::nullopt, std::nullopt, false, false, format);
}

int64_t dim_with_channels_innermost(int64_t dim, int64_t rank) {
  return dim == 0 ? 0 : dim == 1 ? rank - 1 : dim - 1;
}

Tensor channels_innermost(const Tensor& image) {
  const int64_t rank = image.dim();
  DimVector sizes(image.sizes()), strides(image.strides());
  for (int64_t d = 1; d < rank; ++d) {
    const int64_t to = dim_with_channels_innermost(d, rank);
    sizes[to] = image.sizes()[d];
    strides[to] = image.strides()[d];
  }
  return alias_with_geometry(image, sizes, strides, image.storage_offset());
}

}  // namespace treadle::shape
