// Views as copies: what a view shows, in memory of its own. For programs that
// must not alias.
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

std::vector<Tensor> copied_all(std::vector<Tensor> views) {
  for (Tensor& view : views) view = copied(view);
  return views;
}

}  // namespace

Tensor view_copy(const Tensor& self, IntList size) { return copied(aten::view(self, size)); }
Tensor view_copy(const Tensor& self, ScalarType dtype) { return copied(aten::view(self, dtype)); }
Tensor expand_copy(const Tensor& self, IntList size, bool implicit) {
  return copied(aten::expand(self, size, implicit));
}
Tensor permute_copy(const Tensor& self, IntList dims) { return copied(aten::permute(self, dims)); }
Tensor transpose_copy(const Tensor& self, int64_t dim0, int64_t dim1) {
  return copied(aten::transpose(self, dim0, dim1));
}
Tensor t_copy(const Tensor& self) { return copied(aten::t(self)); }
Tensor squeeze_copy(const Tensor& self) { return copied(aten::squeeze(self)); }
Tensor squeeze_copy(const Tensor& self, int64_t dim) { return copied(aten::squeeze(self, dim)); }
Tensor squeeze_copy(const Tensor& self, IntList dim) { return copied(aten::squeeze(self, dim)); }
Tensor unsqueeze_copy(const Tensor& self, int64_t dim) {
  return copied(aten::unsqueeze(self, dim));
}
Tensor select_copy(const Tensor& self, int64_t dim, int64_t index) {
  return copied(aten::select(self, dim, index));
}
Tensor slice_copy(const Tensor& self, int64_t dim, std::optional<int64_t> start,
                  std::optional<int64_t> end, int64_t step) {
  return copied(aten::slice(self, dim, start, end, step));
}
Tensor diagonal_copy(const Tensor& self, int64_t offset, int64_t dim1, int64_t dim2) {
  return copied(aten::diagonal(self, offset, dim1, dim2));
}
Tensor unfold_copy(const Tensor& self, int64_t dimension, int64_t size, int64_t step) {
  return copied(aten::unfold(self, dimension, size, step));
}
Tensor narrow_copy(const Tensor& self, int64_t dim, int64_t start, int64_t length) {
  return copied(aten::narrow(self, dim, start, length));
}
Tensor as_strided_copy(const Tensor& self, IntList size, IntList stride,
                       std::optional<int64_t> storage_offset) {
  return copied(aten::as_strided(self, size, stride, storage_offset));
}
Tensor alias_copy(const Tensor& self) { return copied(aten::alias(self)); }
Tensor detach_copy(const Tensor& self) { return copied(aten::detach(self)); }
Tensor view_as_real_copy(const Tensor& self) { return copied(aten::view_as_real(self)); }
Tensor view_as_complex_copy(const Tensor& self) { return copied(aten::view_as_complex(self)); }
std::vector<Tensor> split_copy(const Tensor& self, int64_t split_size, int64_t dim) {
  return copied_all(aten::split(self, split_size, dim));
}
std::vector<Tensor> split_with_sizes_copy(const Tensor& self, IntList split_sizes, int64_t dim) {
  return copied_all(aten::split_with_sizes(self, split_sizes, dim));
}
std::vector<Tensor> unbind_copy(const Tensor& self, int64_t dim) {
  return copied_all(aten::unbind(self, dim));
}

}  // namespace treadle::composite
