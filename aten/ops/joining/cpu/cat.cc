// cat and stack: contiguous runs of bytes, one after the other.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/backend/cpu/non_temporal_stores.h"
#include "aten/ops/_cat.h"
#include "aten/ops/_stack.h"
#include "aten/ops/indexing/cpu/index_plan.h"
#include "aten/ops/joining/shape.h"

namespace treadle::cpu {
namespace {

constexpr int64_t kBytes = 1 << 17;  // one piece of a parallel copy, about

// `count` rows of `width` bytes: from memory where they lie side by side to memory where they lie
// `pitch` apart.
void copy_rows(const NonTemporalStores& writes, char* to, int64_t pitch, const char* from,
               int64_t width, int64_t count) {
  if (count == 0 || width == 0) return;
  if (width == pitch) {
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
    for (int64_t i = begin; i < end; ++i) writes.copy(to + i * pitch, from + i * width, width);
    writes.finish();
  });
}

// Joins tensors. `outer` is the number of elements of `out` over the dimensions before the joined
// one.
void join(TensorList tensors, const Tensor& out, int64_t outer) {
  if (out.numel() == 0) return;
  std::vector<Tensor> parts;
  parts.reserve(tensors.size());
  for (const Tensor& t : tensors) {
    if (!shape::cat_skips(t)) parts.push_back(apart_from(t, out));
  }
  char* to = static_cast<char*>(out.data());
  const int64_t pitch = out.nbytes() / outer;
  const NonTemporalStores writes(out.nbytes());
  for (const Tensor& part : parts) {
    const int64_t width = part.nbytes() / outer;
    copy_rows(writes, to, pitch, static_cast<const char*>(part.data()), width, outer);
    to += width;
  }
}

template <class T>
void cat_cpu(TensorList tensors, int64_t dim, IntList /*lengths*/, const Tensor& out) {
  join(tensors, out, dim_slices(out.sizes(), dim).outer);
}

template <class T>
void stack_cpu(TensorList tensors, int64_t dim, const Tensor& out) {
  join(tensors, out, dim_slices(out.sizes(), dim).outer);
}

const auto cat_registered = register_kernels<aten::ops::_cat, DeviceType::CPU>(
    []<class T>() { return &cat_cpu<T>; }, "cat_cpu");
const auto stack_registered = register_kernels<aten::ops::_stack, DeviceType::CPU>(
    []<class T>() { return &stack_cpu<T>; }, "stack_cpu");

}  // namespace
}  // namespace treadle::cpu
