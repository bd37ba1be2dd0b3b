// Copies of a tensor in which the part under a view is replaced; and writes of diagonals.
//
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "aten/engine/overlap.h"
#include "aten/engine/renamed_errors.h"
#include "aten/engine/strides/view_shapes.h"
#include "aten/ops/as_strided.h"
#include "aten/ops/as_strided_scatter.h"
#include "aten/ops/clone.h"
#include "aten/ops/copy_.h"
#include "aten/ops/diag.h"
#include "aten/ops/diagflat.h"
#include "aten/ops/diagonal.h"
#include "aten/ops/diagonal_scatter.h"
#include "aten/ops/fill_.h"
#include "aten/ops/fill_diagonal_.h"
#include "aten/ops/reshape.h"
#include "aten/ops/select.h"
#include "aten/ops/select_scatter.h"
#include "aten/ops/slice.h"
#include "aten/ops/slice_scatter.h"

namespace treadle::composite {
namespace {

// Writes `src` to the part that `view` shows, an operator whose errors are to name `op` instead.
template <class F>
void write_part(const char* op, std::string_view name, F&& view, const Tensor& src) {
  const Tensor part = renamed(op, name, view);
  check<ErrorKind::Runtime>(part.sizes() == src.sizes(), OpName(op), "expected src of shape ",
                            part.sizes(), ", got ", src.sizes());
  aten::copy_(part, src);
}

}  // namespace

Tensor select_scatter(const Tensor& self, const Tensor& src, int64_t dim, int64_t index) {
  const Tensor result = aten::clone(self, MemoryFormat::Contiguous);
  write_part(
      "select_scatter", "select", [&] { return aten::select(result, dim, index); }, src);
  return result;
}

Tensor slice_scatter(const Tensor& self, const Tensor& src, int64_t dim,
                     std::optional<int64_t> start, std::optional<int64_t> end, int64_t step) {
  const Tensor result = aten::clone(self, MemoryFormat::Contiguous);
  write_part(
      "slice_scatter", "slice", [&] { return aten::slice(result, dim, start, end, step); }, src);
  return result;
}

Tensor diagonal_scatter(const Tensor& self, const Tensor& src, int64_t offset, int64_t dim1,
                        int64_t dim2) {
  const Tensor result = aten::clone(self, MemoryFormat::Contiguous);
  write_part(
      "diagonal_scatter", "diagonal", [&] { return aten::diagonal(result, offset, dim1, dim2); },
      src);
  return result;
}

// The geometry counts in self's memory, so the copy has self's strides.
Tensor as_strided_scatter(const Tensor& self, const Tensor& src, IntList size, IntList stride,
                          std::optional<int64_t> storage_offset) {
  check<ErrorKind::Runtime>(shape::is_dense(self), OpName("as_strided_scatter"),
                            "expected self to fill one run of memory, got "
                            "sizes ",
                            self.sizes(), " with strides ", self.strides());
  const Tensor result = aten::clone(self, MemoryFormat::Preserve);
  const int64_t offset = storage_offset.value_or(self.storage_offset()) - self.storage_offset();
  check<ErrorKind::Runtime>(offset >= 0, OpName("as_strided_scatter"),
                            "expected storage_offset >= ", self.storage_offset(),
                            ", self's own, got storage_offset = ", storage_offset);
  write_part(
      "as_strided_scatter", "as_strided",
      [&] { return aten::as_strided(result, size, stride, offset); }, src);
  return result;
}

Tensor diagflat(const Tensor& self, int64_t offset) {
  return aten::diag(aten::reshape(self, {-1}), offset);
}

Tensor fill_diagonal_(const Tensor& self, const Scalar& fill_value, bool wrap) {
  const int64_t rank = self.dim();
  int64_t shortest = self.size(0), step = 0;
  for (int64_t d = 0; d < rank; ++d) {
    check<ErrorKind::Runtime>(rank == 2 || self.size(d) == self.size(0), OpName("fill_diagonal_"),
                              "expected dimensions of one size, got shape ", self.sizes());
    shortest = std::min(shortest, self.size(d));
    step += self.stride(d);
  }
  if (shortest == 0) return self;
  require_writable("fill_diagonal_", self);
  const int64_t base = self.storage_offset();
  aten::fill_(aten::as_strided(self, {shortest}, {step}, base), fill_value);
  if (!wrap || rank != 2 || self.size(0) <= self.size(1) + 1) return self;
  // Below the free row the diagonal starts again: squares with a free row each, and a rest.
  const int64_t rows = self.size(0), columns = self.size(1), square = columns + 1;
  const int64_t squares = rows / square, left = rows - squares * square;
  const int64_t down = self.stride(0);
  aten::fill_(aten::as_strided(self, {squares, columns}, {square * down, step}, base), fill_value);
  if (left > 0) {
    const int64_t first = base + squares * square * down;
    aten::fill_(aten::as_strided(self, {left}, {step}, first), fill_value);
  }
  return self;
}

}  // namespace treadle::composite
