// cat and stack: contiguous runs of bytes, one after the other.
//
// SPDX-License-Identifier: Apache-2.0
#include <optional>

#include "aten/backend/cpu/non_temporal_stores.h"
#include "aten/engine/overlap.h"
#include "aten/engine/strides/memory_format.h"
#include "aten/ops/_cat.h"
#include "aten/ops/_stack.h"
#include "aten/ops/indexing/cpu/index_plan.h"
#include "aten/ops/joining/shape.h"

namespace treadle::cpu {
namespace {

constexpr int64_t kBytes = 1 << 17;  // one piece of a parallel copy, about

// The bytes from one row to the next, where a row is the part of `t` from dimension `dim` on. Null
// where the elements of a row have gaps, or the rows have no one distance.
std::optional<int64_t> pitch_of_rows(const Tensor& t, int64_t dim) {
  int64_t side_by_side = 1;
  for (int64_t d = t.dim() - 1; d >= dim; --d) {
    if (t.size(d) != 1 && t.stride(d) != side_by_side) return std::nullopt;
    side_by_side *= t.size(d);
  }
  std::optional<int64_t> innermost, next;  // the rows' stride, and the one that `d` needs
  for (int64_t d = dim - 1; d >= 0; --d) {
    if (t.size(d) == 1) continue;
    if (!innermost) innermost = t.stride(d);
    if (next && t.stride(d) != *next) return std::nullopt;
    next = t.stride(d) * t.size(d);
  }
  return innermost.value_or(side_by_side) * t.element_size();
}

// `count` rows of `width` bytes: from memory where they lie `from_pitch` apart to memory where they
// lie `pitch` apart.
void copy_rows(const NonTemporalStores& writes, char* to, int64_t pitch, const char* from,
               int64_t from_pitch, int64_t width, int64_t count) {
  if (count == 0 || width == 0) return;
  if (width == pitch && width == from_pitch) {
    width *= count;
    count = 1;
  }
  if (count == 1) {
    parallel_for(width, kBytes, [&](int64_t begin, int64_t end) {
      writes.copy(to + begin, from + begin, end - begin);
      writes.finish();
    });
    return;
  }
  parallel_for(count, std::max<int64_t>(1, kBytes / width), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) writes.copy(to + i * pitch, from + i * from_pitch, width);
    writes.finish();
  });
}

// Joins tensors. `outer` is the number of elements of `out` over the dimensions before the joined
// one.
void join(TensorList tensors, int64_t dim, const Tensor& out, int64_t outer) {
  if (out.numel() == 0) return;
  struct Part {
    Tensor tensor;
    int64_t pitch;
  };
  std::vector<Part> parts;
  parts.reserve(tensors.size());
  for (const Tensor& t : tensors) {
    if (shape::cat_skips(t)) continue;
    const std::optional<int64_t> pitch = pitch_of_rows(t, dim);
    if (pitch && !t.impl()->is_conj() && !t.impl()->is_neg() && !meets(t, out))
      parts.push_back({t, *pitch});
    else
      parts.push_back({apart_from(t, out), t.nbytes() / outer});
  }
  char* to = static_cast<char*>(out.data());
  const int64_t pitch = out.nbytes() / outer;
  const NonTemporalStores writes(out.nbytes());
  for (const Part& part : parts) {
    const int64_t width = part.tensor.nbytes() / outer;
    copy_rows(writes, to, pitch, static_cast<const char*>(part.tensor.data()), part.pitch, width,
              outer);
    to += width;
  }
}

template <class T>
void cat_cpu(TensorList tensors, int64_t dim, IntList /*lengths*/, const Tensor& out) {
  dim = wrap_dim("cat", dim, out.dim());
  if (shape::format_of(out) == MemoryFormat::Contiguous)
    return join(tensors, dim, out, dim_slices(out.sizes(), dim).outer);
  std::vector<Tensor> images;
  images.reserve(tensors.size());
  for (const Tensor& t : tensors)
    images.push_back(shape::cat_skips(t) ? t : shape::channels_innermost(t));
  const Tensor result = shape::channels_innermost(out);
  dim = shape::dim_with_channels_innermost(dim, out.dim());
  join(images, dim, result, dim_slices(result.sizes(), dim).outer);
}

template <class T>
void stack_cpu(TensorList tensors, int64_t dim, const Tensor& out) {
  join(tensors, wrap_dim("stack", dim, out.dim()), out, dim_slices(out.sizes(), dim).outer);
}

const auto cat_registered = register_kernels<aten::ops::_cat, DeviceType::CPU>(
    []<class T>() { return &cat_cpu<T>; }, "cat_cpu");
const auto stack_registered = register_kernels<aten::ops::_stack, DeviceType::CPU>(
    []<class T>() { return &stack_cpu<T>; }, "stack_cpu");

}  // namespace
}  // namespace treadle::cpu
