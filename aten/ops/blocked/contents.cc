// SPDX-License-Identifier: Apache-2.0
#include "aten/ops/blocked/contents.h"

#include <atomic>

#include "aten/ops/blocked/cpu/packed_weight.h"
#include "aten/ops/contiguous.h"
#include "aten/ops/permute.h"
#include "aten/ops/reshape.h"
#include "aten/ops/view.h"

namespace treadle::blocked {
namespace {

std::atomic<int64_t> reordered{0};

DimVector physical(IntList sizes, int64_t block) {
  DimVector all(sizes);
  if (block == 0) return all;
  all[1] = sizes[1] / block;
  all.push_back(block);
  return all;
}

void check_contents(const char* op, IntList sizes, const LayoutContents& contents) {
  const Tensor& values = contents.parts[0];
  const int64_t block = contents.fields[0];
  check<ErrorKind::Runtime>(values.defined() && values.is_strided() && values.is_contiguous() &&
                                values.dtype() == ScalarType::Float32,
                            OpName(op), "expected contiguous values of float32");
  check<ErrorKind::Runtime>(block == 0 || (block > 0 && sizes.size() >= 3 && sizes[1] % block == 0),
                            OpName(op), "expected blocks that divide the channels of shape ", sizes,
                            ", got ", block);
  check<ErrorKind::Runtime>(DimVector(values.sizes()) == physical(sizes, block), OpName(op),
                            "expected values of shape ", physical(sizes, block), ", got ",
                            values.sizes());
}

[[maybe_unused]] const Layout registered = layout();

}  // namespace

Layout layout() {
  static const Layout made = [] {
    static const LayoutInfo info{{"values"}, {"block"}, 0, &check_contents};
    const Layout added = register_layout("mkldnn");
    describe_layout(added, info);
    return added;
  }();
  return made;
}

Image image_of(const char* op, const Tensor& t) {
  check<ErrorKind::Runtime>(is_blocked(t), OpName(op), "expected a tensor of layout mkldnn, got a ",
                            name_of(t.layout()), " one; call to_mkldnn()");
  const auto contents = contents_of(t);
  return {contents->parts[0], DimVector(t.sizes()), contents->fields[0]};
}

Tensor tensor_of(const Image& image) {
  return layout_tensor(layout(), image.sizes, {{image.values}, {image.block}});
}

int64_t block_for(int64_t channels) {
  const int64_t block = cpu::register_block();
  if (block == 0) return std::max<int64_t>(1, channels);
  return channels % block == 0 && channels > 0 ? block : 1;
}

Tensor dense(const Image& image) {
  if (image.block == 0) return image.values;
  count_reorder();
  // (N, C / b, spatial..., b) -> (N, C / b, b, spatial...)
  DimVector order{0, 1, image.values.dim() - 1};
  for (int64_t d = 2; d + 1 < image.values.dim(); ++d) order.push_back(d);
  return aten::reshape(aten::contiguous(aten::permute(image.values, order)), image.sizes);
}
Tensor dense(const Tensor& t) { return t.is_strided() ? t : dense(image_of("to_dense", t)); }

Tensor blocked(const char* op, const Tensor& t) {
  check<ErrorKind::Runtime>(t.is_strided() && t.is_cpu() && t.dtype() == ScalarType::Float32,
                            OpName(op), "expected a strided tensor of float32 on the cpu, got a ",
                            name_of(t.layout()), " one of ", t.dtype(), " on ", t.device());
  Image image{aten::contiguous(t), DimVector(t.sizes()), 0};
  return tensor_of(t.dim() < 3 || t.numel() == 0 ? image : with_block(image, block_for(t.size(1))));
}

Image with_block(const Image& image, int64_t block) {
  if (image.block == block) return image;
  Image made{dense(image), image.sizes, block};
  if (block == 0) return made;
  count_reorder();
  DimVector split(image.sizes);
  split[1] = block;
  split.insert(1, image.sizes[1] / block);
  DimVector order{0, 1};
  for (int64_t d = 3; d < static_cast<int64_t>(split.size()); ++d) order.push_back(d);
  order.push_back(2);
  made.values = aten::contiguous(aten::permute(aten::view(made.values, split), order));
  return made;
}

Tensor as_channels_last(const Image& image) {
  DimVector merged{image.values.size(0) * image.values.size(1)};
  for (int64_t d = 2; d < image.values.dim(); ++d) merged.push_back(image.values.size(d));
  const Tensor t = aten::view(image.values, merged);
  DimVector order{0, t.dim() - 1};
  for (int64_t d = 1; d + 1 < t.dim(); ++d) order.push_back(d);
  return aten::permute(t, order);
}

Image from_channels_last(const Tensor& t, const Image& like) {
  Image image{Tensor(), like.sizes, like.block};
  DimVector order{0};
  DimVector sizes{like.values.size(0), like.values.size(1)};
  for (int64_t d = 2; d < t.dim(); ++d) {
    order.push_back(d);
    sizes.push_back(t.size(d));
    image.sizes[static_cast<size_t>(d)] = t.size(d);
  }
  order.push_back(1);
  sizes.push_back(like.block);
  image.values = aten::view(aten::contiguous(aten::permute(t, order)), sizes);
  return image;
}

int64_t reorders() { return reordered.load(); }
void count_reorder() { ++reordered; }

}  // namespace treadle::blocked
