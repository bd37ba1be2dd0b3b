// Gradients of views: the gradient of a view returns to its position, and the rest is zero.
//
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>

#include "aten/ops/arange.h"
#include "aten/ops/as_strided_backward.h"
#include "aten/ops/copy_.h"
#include "aten/ops/diagonal.h"
#include "aten/ops/diagonal_backward.h"
#include "aten/ops/div.h"
#include "aten/ops/index_add.h"
#include "aten/ops/index_select.h"
#include "aten/ops/new_ones.h"
#include "aten/ops/new_zeros.h"
#include "aten/ops/reshape.h"
#include "aten/ops/select.h"
#include "aten/ops/select_backward.h"
#include "aten/ops/slice.h"
#include "aten/ops/slice_backward.h"
#include "aten/ops/unfold.h"
#include "aten/ops/unfold_backward.h"

namespace treadle::composite {
namespace {

// Whether two index tuples may reach one element. Exact for views of dense tensors.
bool may_repeat(IntList sizes, IntList strides) {
  std::vector<std::pair<int64_t, int64_t>> dims;  // stride, size
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (sizes[d] > 1) dims.emplace_back(strides[d] < 0 ? -strides[d] : strides[d], sizes[d]);
  }
  std::sort(dims.begin(), dims.end());
  int64_t reached = 0;  // the largest offset the smaller dimensions make
  for (const auto& [stride, size] : dims) {
    if (stride <= reached) return true;
    reached += stride * (size - 1);
  }
  return false;
}

struct Range {
  int64_t low = 0, high = 0;
};
Range range_of(IntList sizes, IntList strides, int64_t offset) {
  check<ErrorKind::Runtime>(sizes.size() == strides.size(), OpName("as_strided_backward"),
                            "expected as many strides as sizes, got sizes = ", sizes,
                            ", strides = ", strides);
  Range range{offset, offset};
  for (size_t d = 0; d < sizes.size(); ++d) {
    int64_t span;
    bool ok = !__builtin_mul_overflow(strides[d], sizes[d] - 1, &span);
    int64_t& end = span < 0 ? range.low : range.high;
    ok = ok && !__builtin_add_overflow(end, span, &end) && end > INT64_MIN / 4 &&
         end < INT64_MAX / 4;
    check<ErrorKind::Runtime>(ok, OpName("as_strided_backward"),
                              "expected a geometry inside memory, got sizes = ", sizes,
                              ", strides = ", strides);
  }
  return range;
}

}  // namespace

Tensor select_backward(const Tensor& grad_output, IntList input_sizes, int64_t dim, int64_t index) {
  const Tensor grad = aten::new_zeros(grad_output, input_sizes);
  aten::copy_(aten::select(grad, dim, index), grad_output);
  return grad;
}

Tensor slice_backward(const Tensor& grad_output, IntList input_sizes, int64_t dim,
                      std::optional<int64_t> start, std::optional<int64_t> end, int64_t step) {
  const Tensor grad = aten::new_zeros(grad_output, input_sizes);
  aten::copy_(aten::slice(grad, dim, start, end, step), grad_output);
  return grad;
}

Tensor diagonal_backward(const Tensor& grad_output, IntList input_sizes, int64_t offset,
                         int64_t dim1, int64_t dim2) {
  const Tensor grad = aten::new_zeros(grad_output, input_sizes);
  aten::copy_(aten::diagonal(grad, offset, dim1, dim2), grad_output);
  return grad;
}

Tensor unfold_backward(const Tensor& grad_in, IntList input_sizes, int64_t dim, int64_t size,
                       int64_t step) {
  const Tensor zeros = aten::new_zeros(grad_in, input_sizes);
  const Tensor windows = aten::unfold(zeros, dim, size, step);
  return aten::as_strided_backward(grad_in, zeros.sizes(), zeros.strides(), windows.sizes(),
                                   windows.strides(), 0);
}

// Both geometries are lists of positions in one run of memory. The gradient is added up over the
// positions of the view, then read at the positions of the input. A position that occurs several
// times in the input shares its gradient among them.
Tensor as_strided_backward(const Tensor& grad_output, IntList input_sizes, IntList input_strides,
                           IntList size, IntList stride, int64_t offset) {
  const int64_t input_numel = checked_numel(input_sizes), numel = checked_numel(size);
  if (input_numel == 0 || numel == 0) return aten::new_zeros(grad_output, input_sizes);
  const Range in = range_of(input_sizes, input_strides, 0), out = range_of(size, stride, offset);
  const int64_t low = std::min(in.low, out.low), places = std::max(in.high, out.high) - low + 1;

  const bool recorded = grad_enabled() && grad_output.requires_grad();
  if (!recorded && !may_repeat(input_sizes, input_strides) && !may_repeat(size, stride)) {
    // No position occurs twice, so the gradient is copied to the view's positions in zeros of the
    // input's geometry. The views are made below the operators, so nothing of this can be recorded.
    const Tensor memory = aten::new_zeros(grad_output, {places});
    aten::copy_(alias_with_geometry(memory, size, stride, offset - low), grad_output);
    return alias_with_geometry(memory, input_sizes, input_strides, -low);
  }

  const Tensor all =
      aten::arange(Scalar(places), ScalarType::Int64, std::nullopt, grad_output.device());
  const auto places_of = [&](IntList sizes, IntList strides, int64_t first) {
    return aten::reshape(alias_with_geometry(all, sizes, strides, first - low), {-1});
  };
  const Tensor out_places = places_of(size, stride, offset);
  const Tensor in_places = places_of(input_sizes, input_strides, 0);

  const Tensor sums = aten::index_add(aten::new_zeros(grad_output, {places}), 0, out_places,
                                      aten::reshape(grad_output, {-1}));
  Tensor grad = aten::index_select(sums, 0, in_places);
  if (may_repeat(input_sizes, input_strides)) {
    const Tensor ones = aten::new_ones(grad_output, {input_numel});
    const Tensor counts =
        aten::index_add(aten::new_zeros(grad_output, {places}), 0, in_places, ones);
    grad = aten::div(grad, aten::index_select(counts, 0, in_places));
  }
  return aten::reshape(grad, input_sizes);
}

}  // namespace treadle::composite
