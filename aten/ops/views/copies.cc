// Views as copies: the elements of a view in memory of their own. They serve programs that must not
// alias.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/engine/renamed_errors.h"
#include "aten/engine/structured.h"
#include "aten/ops/alias.h"
#include "aten/ops/alias_copy.h"
#include "aten/ops/as_strided.h"
#include "aten/ops/as_strided_copy.h"
#include "aten/ops/clone.h"
#include "aten/ops/detach.h"
#include "aten/ops/detach_copy.h"
#include "aten/ops/diagonal.h"
#include "aten/ops/diagonal_copy.h"
#include "aten/ops/expand.h"
#include "aten/ops/expand_copy.h"
#include "aten/ops/narrow.h"
#include "aten/ops/narrow_copy.h"
#include "aten/ops/permute.h"
#include "aten/ops/permute_copy.h"
#include "aten/ops/reshape.h"
#include "aten/ops/select.h"
#include "aten/ops/select_copy.h"
#include "aten/ops/slice.h"
#include "aten/ops/slice_copy.h"
#include "aten/ops/split.h"
#include "aten/ops/split_copy.h"
#include "aten/ops/split_with_sizes.h"
#include "aten/ops/split_with_sizes_copy.h"
#include "aten/ops/squeeze.h"
#include "aten/ops/squeeze_copy.h"
#include "aten/ops/t.h"
#include "aten/ops/t_copy.h"
#include "aten/ops/transpose.h"
#include "aten/ops/transpose_copy.h"
#include "aten/ops/unbind.h"
#include "aten/ops/unbind_copy.h"
#include "aten/ops/unfold.h"
#include "aten/ops/unfold_copy.h"
#include "aten/ops/unsqueeze.h"
#include "aten/ops/unsqueeze_copy.h"
#include "aten/ops/view.h"
#include "aten/ops/view_as_complex.h"
#include "aten/ops/view_as_complex_copy.h"
#include "aten/ops/view_as_real.h"
#include "aten/ops/view_as_real_copy.h"
#include "aten/ops/view_copy.h"

namespace treadle::composite {
namespace {

Tensor copied(const Tensor& view) { return aten::clone(view, MemoryFormat::Contiguous); }
std::vector<Tensor> copied(std::vector<Tensor> views) {
  for (Tensor& view : views) view = copied(view);
  return views;
}

// A copy of the view from `make`, an operator whose errors must name `op` instead.
template <class F>
auto copy_of(std::string_view op, F&& make) {
  return copied(renamed(op, op.substr(0, op.size() - std::string_view("_copy").size()), make));
}

// Writes the views from `make`, one for each tensor of `out`.
template <class F>
void write_pieces(const char* op, TensorList out, F&& make) {
  const std::string_view name = op;
  const std::vector<Tensor> pieces =
      renamed(op, name.substr(0, name.size() - std::string_view("_copy").size()), make);
  check<ErrorKind::Runtime>(pieces.size() == out.size(), OpName(op), "expected ", pieces.size(),
                            " tensors in out, got ", out.size());
  std::vector<const Tensor*> from, to;
  for (const Tensor& piece : pieces) from.push_back(&piece);
  for (const Tensor& target : out) to.push_back(&target);
  copy_to_outs(op, from, to);
}

}  // namespace

// A copy can have any shape, whatever the strides of `self` are.
Tensor view_copy(const Tensor& self, IntList size) {
  const Tensor shaped = renamed("view_copy", "reshape", [&] { return aten::reshape(self, size); });
  return shaped.storage() == self.storage() ? copied(shaped) : shaped;
}
Tensor view_copy(const Tensor& self, ScalarType dtype) {
  return copy_of("view_copy", [&] { return aten::view(self, dtype); });
}
Tensor expand_copy(const Tensor& self, IntList size, bool implicit) {
  return copy_of("expand_copy", [&] { return aten::expand(self, size, implicit); });
}
Tensor permute_copy(const Tensor& self, IntList dims) {
  return copy_of("permute_copy", [&] { return aten::permute(self, dims); });
}
Tensor transpose_copy(const Tensor& self, int64_t dim0, int64_t dim1) {
  return copy_of("transpose_copy", [&] { return aten::transpose(self, dim0, dim1); });
}
Tensor t_copy(const Tensor& self) {
  return copy_of("t_copy", [&] { return aten::t(self); });
}
Tensor squeeze_copy(const Tensor& self) {
  return copy_of("squeeze_copy", [&] { return aten::squeeze(self); });
}
Tensor squeeze_copy(const Tensor& self, int64_t dim) {
  return copy_of("squeeze_copy", [&] { return aten::squeeze(self, dim); });
}
Tensor squeeze_copy(const Tensor& self, IntList dim) {
  return copy_of("squeeze_copy", [&] { return aten::squeeze(self, dim); });
}
Tensor unsqueeze_copy(const Tensor& self, int64_t dim) {
  return copy_of("unsqueeze_copy", [&] { return aten::unsqueeze(self, dim); });
}
Tensor select_copy(const Tensor& self, int64_t dim, int64_t index) {
  return copy_of("select_copy", [&] { return aten::select(self, dim, index); });
}
Tensor slice_copy(const Tensor& self, int64_t dim, std::optional<int64_t> start,
                  std::optional<int64_t> end, int64_t step) {
  return copy_of("slice_copy", [&] { return aten::slice(self, dim, start, end, step); });
}
Tensor diagonal_copy(const Tensor& self, int64_t offset, int64_t dim1, int64_t dim2) {
  return copy_of("diagonal_copy", [&] { return aten::diagonal(self, offset, dim1, dim2); });
}
Tensor unfold_copy(const Tensor& self, int64_t dimension, int64_t size, int64_t step) {
  return copy_of("unfold_copy", [&] { return aten::unfold(self, dimension, size, step); });
}
Tensor narrow_copy(const Tensor& self, int64_t dim, int64_t start, int64_t length) {
  return copy_of("narrow_copy", [&] { return aten::narrow(self, dim, start, length); });
}
Tensor as_strided_copy(const Tensor& self, IntList size, IntList stride,
                       std::optional<int64_t> storage_offset) {
  return copy_of("as_strided_copy",
                 [&] { return aten::as_strided(self, size, stride, storage_offset); });
}
Tensor alias_copy(const Tensor& self) {
  return copy_of("alias_copy", [&] { return aten::alias(self); });
}
Tensor detach_copy(const Tensor& self) {
  return copy_of("detach_copy", [&] { return aten::detach(self); });
}
Tensor view_as_real_copy(const Tensor& self) {
  return copy_of("view_as_real_copy", [&] { return aten::view_as_real(self); });
}
Tensor view_as_complex_copy(const Tensor& self) {
  return copy_of("view_as_complex_copy", [&] { return aten::view_as_complex(self); });
}
std::vector<Tensor> split_copy(const Tensor& self, int64_t split_size, int64_t dim) {
  return copy_of("split_copy", [&] { return aten::split(self, split_size, dim); });
}
std::vector<Tensor> split_with_sizes_copy(const Tensor& self, IntList split_sizes, int64_t dim) {
  return copy_of("split_with_sizes_copy",
                 [&] { return aten::split_with_sizes(self, split_sizes, dim); });
}
std::vector<Tensor> unbind_copy(const Tensor& self, int64_t dim) {
  return copy_of("unbind_copy", [&] { return aten::unbind(self, dim); });
}
void split_copy_out(const Tensor& self, int64_t split_size, int64_t dim, TensorList out) {
  write_pieces("split_copy", out, [&] { return aten::split(self, split_size, dim); });
}
void split_with_sizes_copy_out(const Tensor& self, IntList split_sizes, int64_t dim,
                               TensorList out) {
  write_pieces("split_with_sizes_copy", out,
               [&] { return aten::split_with_sizes(self, split_sizes, dim); });
}
void unbind_copy_out(const Tensor& self, int64_t dim, TensorList out) {
  write_pieces("unbind_copy", out, [&] { return aten::unbind(self, dim); });
}

}  // namespace treadle::composite
