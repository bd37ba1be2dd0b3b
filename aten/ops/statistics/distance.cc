// renorm and dist: norms of the slices of a tensor, and of a difference.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/engine/renamed_errors.h"
#include "aten/ops/add.h"
#include "aten/ops/dist.h"
#include "aten/ops/div.h"
#include "aten/ops/gt.h"
#include "aten/ops/linalg_vector_norm.h"
#include "aten/ops/movedim.h"
#include "aten/ops/mul.h"
#include "aten/ops/reciprocal.h"
#include "aten/ops/renorm.h"
#include "aten/ops/reshape.h"
#include "aten/ops/sub.h"
#include "aten/ops/to.h"
#include "aten/ops/where.h"

namespace treadle::composite {

Tensor dist(const Tensor& self, const Tensor& other, const Scalar& p) {
  return renamed("dist", "linalg_vector_norm",
                 [&] { return aten::linalg_vector_norm(aten::sub(self, other), p); });
}

Tensor renorm(const Tensor& self, const Scalar& p, int64_t dim, const Scalar& maxnorm) {
  const int64_t d = wrap_dim("renorm", dim, self.dim());
  int64_t width = 1;
  for (int64_t i = 0; i < self.dim(); ++i) width *= i == d ? 1 : self.size(i);
  const Tensor slices = aten::reshape(aten::movedim(self, d, 0), {self.size(d), width});
  const int64_t along = 1;
  const Tensor norm =
      aten::linalg_vector_norm(slices, p, OptionalIntList(IntList(&along, 1)), true);
  // The small number keeps a slice just above the limit from staying there by
  // rounding.
  const Tensor factor =
      aten::where(aten::gt(norm, maxnorm),
                  aten::mul(aten::reciprocal(aten::add(norm, Scalar(1e-7))), maxnorm), Scalar(1));
  DimVector sizes(static_cast<size_t>(self.dim()), 1);
  sizes[d] = self.size(d);
  return aten::mul(self, aten::reshape(factor, sizes));
}

}  // namespace treadle::composite
