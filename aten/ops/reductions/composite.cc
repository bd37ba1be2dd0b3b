// Reductions composed of others.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/ops/amax.h"
#include "aten/ops/amin.h"
#include "aten/ops/aminmax.h"
#include "aten/ops/count_nonzero.h"
#include "aten/ops/div.h"
#include "aten/ops/isnan.h"
#include "aten/ops/logical_not.h"
#include "aten/ops/max.h"
#include "aten/ops/min.h"
#include "aten/ops/nanmean.h"
#include "aten/ops/nansum.h"
#include "aten/ops/ne.h"
#include "aten/ops/sum.h"
#include "aten/ops/to.h"

namespace treadle::composite {
namespace {

void require_elements(const char* op, const Tensor& self) {
  check<ErrorKind::Runtime>(self.numel() > 0, OpName(op),
                            "expected a tensor with elements, or a dim to reduce, got shape ",
                            self.sizes());
}

}  // namespace

Tensor max_all(const Tensor& self) {
  require_elements("max", self);
  return aten::amax(self);
}
Tensor min_all(const Tensor& self) {
  require_elements("min", self);
  return aten::amin(self);
}

std::tuple<Tensor, Tensor> aminmax(const Tensor& self, std::optional<int64_t> dim, bool keepdim) {
  if (!dim) require_elements("aminmax", self);
  const IntList dims = dim ? IntList(&*dim, 1) : IntList();
  return {aten::amin(self, dims, keepdim), aten::amax(self, dims, keepdim)};
}

Tensor nanmean(const Tensor& self, OptionalIntList dim, bool keepdim,
               std::optional<ScalarType> dtype) {
  const ScalarType type = dtype.value_or(self.dtype());
  const Tensor numbers = aten::logical_not(aten::isnan(self));
  const Tensor count = aten::sum(numbers, dim, keepdim, std::nullopt);
  return aten::div(aten::nansum(self, dim, keepdim, dtype), aten::to(count, type));
}

Tensor count_nonzero(const Tensor& self, IntList dim) {
  return aten::sum(aten::ne(self, Scalar(0)), OptionalIntList(dim), false, std::nullopt);
}
Tensor count_nonzero(const Tensor& self, std::optional<int64_t> dim) {
  return count_nonzero(self, dim ? IntList(&*dim, 1) : IntList());
}

}  // namespace treadle::composite
