// Products of vectors, matrices and batches, composed of mm, bmm and addmm.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/ops/add.h"
#include "aten/ops/addmm.h"
#include "aten/ops/bmm.h"
#include "aten/ops/dot.h"
#include "aten/ops/expand.h"
#include "aten/ops/ger.h"
#include "aten/ops/linear.h"
#include "aten/ops/matmul.h"
#include "aten/ops/mm.h"
#include "aten/ops/mul.h"
#include "aten/ops/mv.h"
#include "aten/ops/outer.h"
#include "aten/ops/reshape.h"
#include "aten/ops/squeeze.h"
#include "aten/ops/sum.h"
#include "aten/ops/t.h"
#include "aten/ops/unsqueeze.h"
#include "core/base/error.h"

namespace treadle::composite {
namespace {

void one_dtype(const char* op, const Tensor& a, const Tensor& b) {
  check<ErrorKind::Runtime>(a.dtype() == b.dtype(), OpName(op),
                            "expected two tensors of one dtype, got ", a.dtype(), " and ",
                            b.dtype());
}

void vector(const char* op, const char* name, const Tensor& t) {
  check<ErrorKind::Runtime>(t.dim() == 1, OpName(op), "expected ", name,
                            " with 1 dimension, got shape ", t.sizes());
}

IntList leading(const Tensor& t) { return t.sizes().slice(0, t.sizes().size() - 2); }

// Batches of matrices with leading dimensions that broadcast, as one bmm.
Tensor batched_matmul(const Tensor& a, const Tensor& b) {
  const IntList la = leading(a), lb = leading(b);
  DimVector batch(std::max(la.size(), lb.size()), 1);
  for (size_t d = 0; d < batch.size(); ++d) {
    const int64_t x = d < la.size() ? la[la.size() - 1 - d] : 1,
                  y = d < lb.size() ? lb[lb.size() - 1 - d] : 1;
    check<ErrorKind::Runtime>(x == y || x == 1 || y == 1, OpName("matmul"),
                              "expected batch dimensions that broadcast, got shapes ", a.sizes(),
                              " and ", b.sizes());
    batch[batch.size() - 1 - d] = x == 1 ? y : x;
  }
  const int64_t count = checked_numel(batch);
  const auto flat = [&](const Tensor& t) {
    DimVector full(batch);
    full.push_back(t.size(-2));
    full.push_back(t.size(-1));
    const DimVector shape = {count, t.size(-2), t.size(-1)};
    return aten::reshape(t.sizes() == IntList(full) ? t : aten::expand(t, full), shape);
  };
  const Tensor product = aten::bmm(flat(a), flat(b));
  DimVector shape(batch);
  shape.push_back(a.size(-2));
  shape.push_back(b.size(-1));
  return aten::reshape(product, shape);
}

}  // namespace

Tensor dot(const Tensor& self, const Tensor& tensor) {
  vector("dot", "self", self);
  vector("dot", "tensor", tensor);
  one_dtype("dot", self, tensor);
  check<ErrorKind::Runtime>(self.numel() == tensor.numel(), OpName("dot"),
                            "expected vectors of one length, got ", self.numel(), " and ",
                            tensor.numel());
  // A product of matrices reads each vector once, but sums floating point only.
  if (!is_floating(self.dtype())) return aten::sum(aten::mul(self, tensor), self.dtype());
  return aten::reshape(aten::mm(aten::unsqueeze(self, 0), aten::unsqueeze(tensor, 1)), {});
}

Tensor mv(const Tensor& self, const Tensor& vec) {
  vector("mv", "vec", vec);
  check<ErrorKind::Runtime>(self.dim() == 2 && self.size(1) == vec.numel(), OpName("mv"),
                            "expected a matrix with ", vec.numel(), " columns, got shape ",
                            self.sizes());
  return aten::squeeze(aten::mm(self, aten::unsqueeze(vec, 1)), 1);
}

Tensor outer(const Tensor& self, const Tensor& vec2) {
  vector("outer", "self", self);
  vector("outer", "vec2", vec2);
  return aten::mul(aten::unsqueeze(self, 1), aten::unsqueeze(vec2, 0));
}

Tensor matmul(const Tensor& self, const Tensor& other) {
  const int64_t da = self.dim(), db = other.dim();
  check<ErrorKind::Runtime>(da > 0 && db > 0, OpName("matmul"),
                            "expected tensors with at least 1 dimension, got shapes ", self.sizes(),
                            " and ", other.sizes());
  const int64_t inner = db == 1 ? other.size(0) : other.size(-2);
  check<ErrorKind::Runtime>(self.size(-1) == inner, OpName("matmul"),
                            "expected shapes that multiply, got ", self.sizes(), " and ",
                            other.sizes());
  one_dtype("matmul", self, other);
  if (da == 1 && db == 1) return aten::dot(self, other);
  if (da == 2 && db == 2) return aten::mm(self, other);
  if (da == 1) return aten::squeeze(aten::matmul(aten::unsqueeze(self, 0), other), -2);
  if (db == 1) return aten::squeeze(aten::matmul(self, aten::unsqueeze(other, 1)), -1);
  if (db == 2) {  // every row of self at once
    DimVector shape(self.sizes());
    const int64_t rows = product(IntList(shape).slice(0, shape.size() - 1));
    shape.back() = other.size(1);
    return aten::reshape(aten::mm(aten::reshape(self, {rows, self.size(-1)}), other), shape);
  }
  return batched_matmul(self, other);
}

Tensor linear(const Tensor& input, const Tensor& weight, const Tensor& bias) {
  check<ErrorKind::Runtime>(weight.dim() == 2 || weight.dim() == 1, OpName("linear"),
                            "expected weight with 1 or 2 dimensions, got shape ", weight.sizes());
  check<ErrorKind::Runtime>(input.dim() > 0 && input.size(-1) == weight.size(-1), OpName("linear"),
                            "expected input with ", weight.size(-1),
                            " features in its last dimension (weight shape ", weight.sizes(),
                            "), got shape ", input.sizes());
  if (weight.dim() == 1) {
    const Tensor product = aten::matmul(input, weight);
    return bias.defined() ? aten::add(product, bias) : product;
  }
  if (!bias.defined()) return aten::matmul(input, aten::t(weight));
  check<ErrorKind::Runtime>(bias.dim() <= 1 && (bias.dim() == 0 || bias.size(0) == weight.size(0)),
                            OpName("linear"), "expected bias of shape (", weight.size(0),
                            ",), got ", bias.sizes());
  if (input.dim() == 2) return aten::addmm(bias, input, aten::t(weight));
  DimVector shape(input.sizes());
  const int64_t rows = product(IntList(shape).slice(0, shape.size() - 1));
  shape.back() = weight.size(0);
  return aten::reshape(
      aten::addmm(bias, aten::reshape(input, {rows, input.size(-1)}), aten::t(weight)), shape);
}

}  // namespace treadle::composite
