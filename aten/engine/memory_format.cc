// Memory formats, by the rules of PyTorch.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/engine/memory_format.h"

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
  return kept_format(image.device(), image.sizes(), image.strides());
}

Tensor in_format(const Tensor& t, MemoryFormat format) {
  if (format_of(t.sizes(), t.strides()) == format) return t;
  return aten::to(t, std::nullopt, std::nullopt, std::nullopt, std::nullopt, false, false, format);
}

Tensor channels_innermost(const Tensor& image) {
  DimVector sizes, strides;
  for (size_t d = 0; d <= image.sizes().size(); ++d) {
    if (d == 1) continue;
    const size_t from = d == image.sizes().size() ? 1 : d;
    sizes.push_back(image.sizes()[from]);
    strides.push_back(image.strides()[from]);
  }
  return alias_with_geometry(image, sizes, strides, image.storage_offset());
}

}  // namespace treadle::shape
