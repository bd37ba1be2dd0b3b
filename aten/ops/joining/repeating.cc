// Operators that move or repeat whole slices: flip, roll, rot90, repeat, tile, repeat_interleave.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/ops/cat.h"
#include "aten/ops/clone.h"
#include "aten/ops/expand.h"
#include "aten/ops/flip.h"
#include "aten/ops/fliplr.h"
#include "aten/ops/flipud.h"
#include "aten/ops/index_select.h"
#include "aten/ops/narrow.h"
#include "aten/ops/repeat.h"
#include "aten/ops/repeat_interleave.h"
#include "aten/ops/reshape.h"
#include "aten/ops/roll.h"
#include "aten/ops/rot90.h"
#include "aten/ops/tile.h"
#include "aten/ops/transpose.h"
#include "aten/ops/unsqueeze.h"

namespace treadle::composite {
namespace {

int64_t checked_product(const char* op, int64_t a, int64_t b) {
  int64_t product = 0;
  check<ErrorKind::Runtime>(!__builtin_mul_overflow(a, b, &product), OpName(op),
                            "expected sizes that fit in int64, got ", a, " x ", b);
  return product;
}

// `sizes` may have zero strides, so the tensor is copied first to give the result its own memory.
Tensor copied_to_shape(const Tensor& t, IntList sizes) {
  return aten::reshape(aten::clone(t, MemoryFormat::Contiguous), sizes);
}

Tensor roll_one(const Tensor& self, int64_t shift, int64_t dim) {
  const int64_t size = self.size(dim);
  if (size == 0) return self;
  shift %= size;
  if (shift < 0) shift += size;
  if (shift == 0) return self;
  return aten::cat(
      {aten::narrow(self, dim, size - shift, shift), aten::narrow(self, dim, 0, size - shift)},
      dim);
}

}  // namespace

Tensor fliplr(const Tensor& self) { return aten::flip(self, {1}); }
Tensor flipud(const Tensor& self) { return aten::flip(self, {0}); }

Tensor roll(const Tensor& self, IntList shifts, IntList dims) {
  if (dims.empty()) {
    check<ErrorKind::Runtime>(shifts.size() == 1, OpName("roll"),
                              "expected one shift without dims, got shifts = ", shifts);
    return copied_to_shape(roll_one(aten::reshape(self, {-1}), shifts[0], 0), self.sizes());
  }
  check<ErrorKind::Runtime>(shifts.size() == dims.size(), OpName("roll"),
                            "expected as many shifts as dims, got shifts = ", shifts,
                            ", dims = ", dims);
  check<ErrorKind::Index>(self.dim() > 0, OpName("roll"),
                          "expected at least one dimension with dims, got a 0-dim tensor");
  Tensor result = self;
  for (size_t i = 0; i < dims.size(); ++i)
    result = roll_one(result, shifts[i], wrap_dim("roll", dims[i], self.dim()));
  return result.is_same(self) ? aten::clone(self) : result;
}

Tensor rot90(const Tensor& self, int64_t k, IntList dims) {
  check<ErrorKind::Runtime>(dims.size() == 2, OpName("rot90"),
                            "expected two dims, got dims = ", dims);
  check<ErrorKind::Runtime>(self.dim() >= 2, OpName("rot90"),
                            "expected a tensor with at least 2 dimensions, got shape ",
                            self.sizes());
  const int64_t a = wrap_dim("rot90", dims[0], self.dim());
  const int64_t b = wrap_dim("rot90", dims[1], self.dim());
  check<ErrorKind::Runtime>(a != b, OpName("rot90"),
                            "expected two different dims, got dims = ", dims);
  switch (((k % 4) + 4) % 4) {
    case 1:
      return aten::transpose(aten::flip(self, {b}), a, b);
    case 2:
      return aten::flip(self, {a, b});
    case 3:
      return aten::transpose(aten::flip(self, {a}), a, b);
    default:
      return aten::clone(self);
  }
}

// Each dimension becomes two, (repeat, size), and the first one is expanded.
Tensor repeat(const Tensor& self, IntList repeats) {
  const size_t rank = repeats.size();
  check<ErrorKind::Runtime>(static_cast<int64_t>(rank) >= self.dim(), OpName("repeat"),
                            "expected at least ", self.dim(), " repeats for a tensor of shape ",
                            self.sizes(), ", got repeats = ", repeats);
  const size_t lead = rank - static_cast<size_t>(self.dim());
  DimVector split, expanded, result;
  for (size_t i = 0; i < rank; ++i) {
    const int64_t size = i < lead ? 1 : self.sizes()[i - lead];
    split.push_back(1);
    split.push_back(size);
    expanded.push_back(repeats[i]);
    expanded.push_back(size);
    result.push_back(checked_product("repeat", repeats[i], size));
  }
  checked_numel(result, self.element_size());
  return copied_to_shape(aten::expand(aten::reshape(self, split), expanded), result);
}

Tensor tile(const Tensor& self, IntList dims) {
  DimVector repeats(dims);
  while (static_cast<int64_t>(repeats.size()) < self.dim()) repeats.insert(0, 1);
  return aten::repeat(self, repeats);
}

Tensor repeat_interleave_tensor(const Tensor& self, const Tensor& repeats,
                                std::optional<int64_t> dim, std::optional<int64_t> output_size) {
  const Tensor input = dim && self.dim() > 0 ? self : aten::reshape(self, {-1});
  const int64_t d = wrap_dim("repeat_interleave", dim.value_or(0), input.dim());
  check<ErrorKind::Runtime>(
      repeats.dim() <= 1 && (repeats.numel() == 1 || repeats.numel() == input.size(d)),
      OpName("repeat_interleave"), "expected 1 or ", input.size(d), " repeats, got shape ",
      repeats.sizes());
  const Tensor counts = aten::expand(aten::reshape(repeats, {-1}), {input.size(d)});
  return aten::index_select(input, d, aten::repeat_interleave(counts, output_size));
}

Tensor repeat_interleave_int(const Tensor& self, int64_t repeats, std::optional<int64_t> dim,
                             std::optional<int64_t> output_size) {
  const Tensor input = dim && self.dim() > 0 ? self : aten::reshape(self, {-1});
  const int64_t d = wrap_dim("repeat_interleave", dim.value_or(0), input.dim());
  DimVector expanded(input.sizes()), result(input.sizes());
  expanded.insert(static_cast<size_t>(d + 1), repeats);
  result[d] = checked_product("repeat_interleave", input.size(d), repeats);
  check<ErrorKind::Runtime>(!output_size || *output_size == result[d], OpName("repeat_interleave"),
                            "expected output_size ", result[d],
                            ", the sum of repeats, got output_size = ", output_size);
  checked_numel(result, self.element_size());
  return copied_to_shape(aten::expand(aten::unsqueeze(input, d + 1), expanded), result);
}

}  // namespace treadle::composite
