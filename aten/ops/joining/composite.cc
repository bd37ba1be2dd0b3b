// cat, stack and related operators. Dtypes and ranks are unified here, so the kernels copy bytes.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/ops/_cat.h"
#include "aten/ops/_chunk_cat.h"
#include "aten/ops/_stack.h"
#include "aten/ops/cat.h"
#include "aten/ops/column_stack.h"
#include "aten/ops/constant_pad_nd.h"
#include "aten/ops/dstack.h"
#include "aten/ops/hstack.h"
#include "aten/ops/joining/shape.h"
#include "aten/ops/new_zeros.h"
#include "aten/ops/reshape.h"
#include "aten/ops/stack.h"
#include "aten/ops/to.h"
#include "aten/ops/unsqueeze.h"
#include "aten/ops/vstack.h"

namespace treadle::composite {
namespace {

Tensor in_dtype(const Tensor& t, ScalarType dtype) {
  return t.dtype() == dtype ? t : aten::to(t, dtype);
}

template <class F>
std::vector<Tensor> each(const char* op, TensorList tensors, F&& f) {
  check<ErrorKind::Runtime>(!tensors.empty(), OpName(op),
                            "expected a non-empty list of tensors, got an empty one");
  std::vector<Tensor> result;
  result.reserve(tensors.size());
  for (const Tensor& t : tensors) result.push_back(f(t));
  return result;
}

Tensor at_least_2d(const Tensor& t) {
  if (t.dim() == 0) return aten::reshape(t, {1, 1});
  return t.dim() == 1 ? aten::unsqueeze(t, 0) : t;
}

}  // namespace

Tensor cat(TensorList tensors, int64_t dim) {
  const TensorSpec spec = shape::cat("cat", tensors, dim);
  // Empty tensors of one dimension join along any.
  if (spec.sizes.size() == 1) dim = 0;
  std::vector<Tensor> parts;
  parts.reserve(tensors.size());
  const bool recorded = grad_enabled() && !inference_enabled();
  for (const Tensor& t : tensors) {
    if (!shape::cat_skips(t)) {
      parts.push_back(in_dtype(t, spec.dtype));
    } else if (recorded && t.requires_grad()) {
      // It adds nothing, and has a gradient nonetheless.
      DimVector nothing(spec.sizes);
      nothing[static_cast<size_t>(wrap_dim("cat", dim, static_cast<int64_t>(nothing.size())))] = 0;
      parts.push_back(aten::reshape(in_dtype(t, spec.dtype), nothing));
    }
  }
  if (parts.empty()) return aten::new_zeros(tensors[0], spec.sizes, spec.dtype);
  dim = wrap_dim("cat", dim, parts[0].dim());
  DimVector lengths;
  for (const Tensor& part : parts) lengths.push_back(part.size(dim));
  return aten::_cat(parts, dim, lengths);
}

Tensor _chunk_cat(TensorList tensors, int64_t dim, int64_t num_chunks) {
  const char* const op = "_chunk_cat";
  check<ErrorKind::Runtime>(!tensors.empty(), OpName(op),
                            "expected a non-empty list of tensors, got an empty one");
  const Tensor& first = tensors[0];
  for (const Tensor& t : tensors) {
    check<ErrorKind::Runtime>(dim >= 0 || t.dim() == first.dim(), OpName(op),
                              "expected dim >= 0 for tensors that differ in their dimensions, "
                              "got dim = ",
                              dim);
  }
  if (dim < 0) dim += first.dim();
  const auto leading = [&](const Tensor& t) {
    return t.sizes().slice(0, static_cast<size_t>(dim));
  };
  std::vector<Tensor> rows;
  rows.reserve(tensors.size());
  for (const Tensor& t : tensors) {
    check<ErrorKind::Runtime>(t.numel() > 0, OpName(op),
                              "expected tensors with elements, got shape ", t.sizes());
    check<ErrorKind::Runtime>(dim >= 0 && dim < t.dim(), OpName(op),
                              "expected a dim that every tensor has, got dim = ", dim,
                              " for shape ", t.sizes());
    check<ErrorKind::Runtime>(leading(t) == leading(first), OpName(op),
                              "expected tensors with the same sizes before dim, got shapes ",
                              first.sizes(), " and ", t.sizes());
    const int64_t size = t.size(dim), piece = (size - 1) / num_chunks + 1;
    DimVector pad(2 * static_cast<size_t>(t.dim() - dim), 0);
    pad.back() = checked_numel({piece, num_chunks}) - size;
    DimVector sizes(leading(t));
    sizes.push_back(num_chunks);
    sizes.push_back(-1);
    rows.push_back(aten::reshape(pad.back() == 0 ? t : aten::constant_pad_nd(t, pad), sizes));
  }
  return aten::cat(rows, dim + 1);
}

Tensor stack(TensorList tensors, int64_t dim) {
  const TensorSpec spec = shape::stack("stack", tensors, dim);
  const bool one_dtype = std::all_of(tensors.begin(), tensors.end(),
                                     [&](const Tensor& t) { return t.dtype() == spec.dtype; });
  if (one_dtype) return aten::_stack(tensors, dim);
  return aten::_stack(
      each("stack", tensors, [&](const Tensor& t) { return in_dtype(t, spec.dtype); }), dim);
}

Tensor hstack(TensorList tensors) {
  const auto parts = each("hstack", tensors,
                          [](const Tensor& t) { return t.dim() == 0 ? aten::reshape(t, {1}) : t; });
  return aten::cat(parts, parts[0].dim() == 1 ? 0 : 1);
}

Tensor vstack(TensorList tensors) { return aten::cat(each("vstack", tensors, at_least_2d), 0); }

Tensor dstack(TensorList tensors) {
  return aten::cat(each("dstack", tensors,
                        [](const Tensor& t) {
                          const Tensor plane = at_least_2d(t);
                          return plane.dim() == 2 ? aten::unsqueeze(plane, 2) : plane;
                        }),
                   2);
}

Tensor column_stack(TensorList tensors) {
  return aten::cat(each("column_stack", tensors,
                        [](const Tensor& t) {
                          return t.dim() <= 1 ? aten::reshape(t, {t.numel(), 1}) : t;
                        }),
                   1);
}

}  // namespace treadle::composite
