// Shape rules of cat and stack.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/ops/joining/shape.h"

#include "aten/engine/strides/memory_format.h"

namespace treadle::shape {
namespace {

template <ErrorKind kind>
void check_not_empty(const char* op, TensorList tensors) {
  check<kind>(!tensors.empty(), OpName(op),
              "expected a non-empty list of tensors, got an empty one");
}

// Dtype and device that all tensors share or promote to.
TensorSpec common_spec(const char* op, TensorList tensors) {
  TensorSpec spec{{}, tensors[0].dtype(), tensors[0].device()};
  for (const Tensor& t : tensors) {
    spec.dtype = promote_types(spec.dtype, t.dtype());
    spec.device = common_device(op, {&tensors[0], &t}, {"tensors", "tensors"});
  }
  return spec;
}

// The memory format of all tensors; Contiguous if they differ.
MemoryFormat common_format(TensorList tensors) {
  std::optional<MemoryFormat> common;
  for (const Tensor& t : tensors) {
    if (cat_skips(t)) continue;
    const MemoryFormat format = kept_format(t);
    if (format == MemoryFormat::Contiguous || format != common.value_or(format))
      return MemoryFormat::Contiguous;
    common = format;
  }
  return common.value_or(MemoryFormat::Contiguous);
}

}  // namespace

TensorSpec cat(const char* op, TensorList tensors, int64_t dim) {
  check_not_empty<ErrorKind::Value>(op, tensors);
  TensorSpec spec = common_spec(op, tensors);
  const Tensor* first = nullptr;
  int64_t total = 0;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const Tensor& t = tensors[i];
    check<ErrorKind::Runtime>(
        t.dim() > 0, OpName(op),
        "expected tensors with at least 1 dimension, got a 0-dim tensor at position ", i);
    if (cat_skips(t)) continue;
    if (!first) {
      first = &t;
      dim = wrap_dim(op, dim, t.dim());
    }
    check<ErrorKind::Runtime>(t.dim() == first->dim(), OpName(op),
                              "expected tensors with the same number of dimensions, got shapes ",
                              first->sizes(), " and ", t.sizes());
    for (int64_t d = 0; d < t.dim(); ++d) {
      check<ErrorKind::Runtime>(d == dim || t.size(d) == first->size(d), OpName(op),
                                "expected tensors of equal sizes except in dimension ", dim,
                                ", got ", first->sizes(), " and ", t.sizes(), " at position ", i);
    }
    check<ErrorKind::Runtime>(!__builtin_add_overflow(total, t.size(dim), &total), OpName(op),
                              "expected sizes whose sum fits in int64");
  }
  if (!first) {
    spec.sizes = {0};
    return spec;
  }
  spec.sizes = first->sizes();
  spec.sizes[dim] = total;
  spec.format = common_format(tensors);
  checked_numel(spec.sizes, item_size(spec.dtype));
  return spec;
}

TensorSpec stack(const char* op, TensorList tensors, int64_t dim) {
  check_not_empty<ErrorKind::Runtime>(op, tensors);
  TensorSpec spec = common_spec(op, tensors);
  spec.sizes = tensors[0].sizes();
  for (size_t i = 1; i < tensors.size(); ++i) {
    check<ErrorKind::Runtime>(tensors[i].sizes() == tensors[0].sizes(), OpName(op),
                              "expected tensors of equal sizes, got ", tensors[0].sizes(), " and ",
                              tensors[i].sizes(), " at position ", i);
  }
  dim = wrap_dim(op, dim, tensors[0].dim() + 1);
  spec.sizes.insert(dim, static_cast<int64_t>(tensors.size()));
  checked_numel(spec.sizes, item_size(spec.dtype));
  return spec;
}

}  // namespace treadle::shape
