// Views with a minimum number of dimensions, views of pieces along a fixed dimension, and views
// whose position is given by tensors.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/engine/renamed_errors.h"
#include "aten/ops/atleast_1d.h"
#include "aten/ops/atleast_2d.h"
#include "aten/ops/atleast_3d.h"
#include "aten/ops/chunk.h"
#include "aten/ops/clone.h"
#include "aten/ops/contiguous.h"
#include "aten/ops/dsplit.h"
#include "aten/ops/hsplit.h"
#include "aten/ops/item.h"
#include "aten/ops/narrow.h"
#include "aten/ops/reshape.h"
#include "aten/ops/split.h"
#include "aten/ops/split_with_sizes.h"
#include "aten/ops/sum.h"
#include "aten/ops/sum_to_size.h"
#include "aten/ops/swapaxes_.h"
#include "aten/ops/swapdims_.h"
#include "aten/ops/tensor_split.h"
#include "aten/ops/to.h"
#include "aten/ops/transpose_.h"
#include "aten/ops/unsafe_chunk.h"
#include "aten/ops/unsafe_split.h"
#include "aten/ops/unsafe_split_with_sizes.h"
#include "aten/ops/unsqueeze.h"
#include "aten/ops/vsplit.h"

namespace treadle::composite {
namespace {

template <class F>
std::vector<Tensor> each(TensorList tensors, F&& f) {
  std::vector<Tensor> results;
  for (const Tensor& t : tensors) results.push_back(f(t));
  return results;
}

std::vector<Tensor> equal_pieces(const char* op, const Tensor& self, int64_t sections,
                                 int64_t dim) {
  check<ErrorKind::Runtime>(self.size(dim) % sections == 0, OpName(op),
                            "expected a size of dimension ", dim, " that ", sections,
                            " sections divide, got shape ", self.sizes());
  return renamed(op, "tensor_split", [&] { return aten::tensor_split(self, sections, dim); });
}

int64_t integer_in(const char* op, const char* name, const Tensor& t) {
  check<ErrorKind::Runtime>(t.dim() == 0 && is_integral(t.dtype(), false), OpName(op), "expected ",
                            name, " to be a 0-dim integer tensor, got ", t);
  return aten::item(t).to<int64_t>();
}

}  // namespace

Tensor atleast_1d(const Tensor& self) { return self.dim() >= 1 ? self : aten::reshape(self, {1}); }
Tensor atleast_2d(const Tensor& self) {
  return self.dim() >= 2 ? self : aten::unsqueeze(composite::atleast_1d(self), 0);
}
Tensor atleast_3d(const Tensor& self) {
  return self.dim() >= 3 ? self : aten::unsqueeze(composite::atleast_2d(self), -1);
}
std::vector<Tensor> atleast_1d_all(TensorList tensors) {
  return each(tensors, [](const Tensor& t) { return aten::atleast_1d(t); });
}
std::vector<Tensor> atleast_2d_all(TensorList tensors) {
  return each(tensors, [](const Tensor& t) { return aten::atleast_2d(t); });
}
std::vector<Tensor> atleast_3d_all(TensorList tensors) {
  return each(tensors, [](const Tensor& t) { return aten::atleast_3d(t); });
}

std::vector<Tensor> hsplit(const Tensor& self, int64_t sections) {
  return equal_pieces("hsplit", self, sections, self.dim() == 1 ? 0 : 1);
}
std::vector<Tensor> hsplit(const Tensor& self, IntList indices) {
  return aten::tensor_split(self, indices, self.dim() == 1 ? 0 : 1);
}
std::vector<Tensor> vsplit(const Tensor& self, int64_t sections) {
  return equal_pieces("vsplit", self, sections, 0);
}
std::vector<Tensor> vsplit(const Tensor& self, IntList indices) {
  return aten::tensor_split(self, indices, 0);
}
std::vector<Tensor> dsplit(const Tensor& self, int64_t sections) {
  return equal_pieces("dsplit", self, sections, 2);
}
std::vector<Tensor> dsplit(const Tensor& self, IntList indices) {
  return aten::tensor_split(self, indices, 2);
}

std::vector<Tensor> unsafe_chunk(const Tensor& self, int64_t chunks, int64_t dim) {
  return renamed("unsafe_chunk", "chunk", [&] { return aten::chunk(self, chunks, dim); });
}
std::vector<Tensor> unsafe_split(const Tensor& self, int64_t split_size, int64_t dim) {
  return renamed("unsafe_split", "split", [&] { return aten::split(self, split_size, dim); });
}
std::vector<Tensor> unsafe_split_with_sizes(const Tensor& self, IntList split_sizes, int64_t dim) {
  return renamed("unsafe_split_with_sizes", "split_with_sizes",
                 [&] { return aten::split_with_sizes(self, split_sizes, dim); });
}

std::vector<Tensor> tensor_split_by_tensor(const Tensor& self, const Tensor& indices, int64_t dim) {
  check<ErrorKind::Runtime>(
      indices.dtype() == ScalarType::Int64 && indices.is_cpu() && indices.dim() <= 1,
      OpName("tensor_split"),
      "expected the indices in an int64 tensor of at most 1 dimension on the cpu, "
      "got ",
      indices, " on ", indices.device());
  if (indices.dim() == 0)
    return aten::tensor_split(self, integer_in("tensor_split", "sections", indices), dim);
  const Tensor own = aten::contiguous(indices);
  const DimVector list(own.data_as<int64_t>(), own.data_as<int64_t>() + own.numel());
  return aten::tensor_split(self, IntList(list), dim);
}

Tensor narrow_tensor(const Tensor& self, int64_t dim, const Tensor& start, int64_t length) {
  return aten::narrow(self, dim, integer_in("narrow", "start", start), length);
}

Tensor sum_to_size(const Tensor& self, IntList size) {
  const int64_t lead = self.dim() - static_cast<int64_t>(size.size());
  bool fits = lead >= 0;
  DimVector dims;
  for (int64_t d = 0; fits && d < self.dim(); ++d) {
    const bool gone = d < lead || (size[d - lead] == 1 && self.size(d) != 1);
    if (gone) dims.push_back(d);
    fits = gone || size[d - lead] == self.size(d);
  }
  check<ErrorKind::Runtime>(fits, OpName("sum_to_size"), "expected a size that expands to shape ",
                            self.sizes(), ", got size = ", size);
  if (size.empty()) return aten::sum(self);  // of a number, too, as sums of integers are int64
  return dims.empty() ? self : aten::reshape(aten::sum(self, OptionalIntList(dims), true), size);
}

Tensor swapaxes_(const Tensor& self, int64_t axis0, int64_t axis1) {
  return renamed("swapaxes_", "transpose_", [&] { return aten::transpose_(self, axis0, axis1); });
}
Tensor swapdims_(const Tensor& self, int64_t dim0, int64_t dim1) {
  return renamed("swapdims_", "transpose_", [&] { return aten::transpose_(self, dim0, dim1); });
}

}  // namespace treadle::composite
