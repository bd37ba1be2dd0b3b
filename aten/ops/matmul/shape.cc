// Checks that the sizes of matrices fit a product.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/ops/matmul/shape.h"

namespace treadle::shape {
namespace {

void same_dtype(const char* op, const char* a, const Tensor& x, const char* b, const Tensor& y) {
  check<ErrorKind::Runtime>(x.dtype() == y.dtype(), OpName(op), "expected ", a, " and ", b,
                            " of one dtype, got ", x.dtype(), " and ", y.dtype());
}

TensorSpec product(const char* op, const char* a, const Tensor& x, const char* b, const Tensor& y,
                   int64_t rank) {
  check<ErrorKind::Runtime>(x.dim() == rank && y.dim() == rank, OpName(op), "expected ", a, " and ",
                            b, " with ", rank, " dimensions, got shapes ", x.sizes(), " and ",
                            y.sizes());
  same_dtype(op, a, x, b, y);
  const size_t r = static_cast<size_t>(rank) - 2;
  check<ErrorKind::Runtime>(
      x.sizes()[r + 1] == y.sizes()[r] && (rank == 2 || x.sizes()[0] == y.sizes()[0]), OpName(op),
      "expected shapes that multiply, got ", x.sizes(), " and ", y.sizes());
  DimVector sizes(x.sizes());
  sizes.back() = y.sizes()[r + 1];
  return {sizes, x.dtype(), x.device()};
}

TensorSpec with_addend(const char* op, const Tensor& self, TensorSpec spec, const Tensor& factor) {
  same_dtype(op, "self", self, "the factors", factor);
  bool fits = self.sizes().size() <= spec.sizes.size();
  for (size_t d = 0; fits && d < self.sizes().size(); ++d) {
    const int64_t have = self.sizes()[self.sizes().size() - 1 - d],
                  want = spec.sizes[spec.sizes.size() - 1 - d];
    fits = have == want || have == 1;
  }
  check<ErrorKind::Runtime>(fits, OpName(op), "expected self to broadcast to ", spec.sizes,
                            ", got shape ", self.sizes());
  return spec;
}

}  // namespace

TensorSpec mm(const char* op, const Tensor& self, const Tensor& mat2) {
  return product(op, "self", self, "mat2", mat2, 2);
}

TensorSpec bmm(const char* op, const Tensor& self, const Tensor& mat2) {
  return product(op, "self", self, "mat2", mat2, 3);
}

TensorSpec addmm(const char* op, const Tensor& self, const Tensor& mat1, const Tensor& mat2) {
  return with_addend(op, self, product(op, "mat1", mat1, "mat2", mat2, 2), mat1);
}

TensorSpec baddbmm(const char* op, const Tensor& self, const Tensor& batch1, const Tensor& batch2) {
  return with_addend(op, self, product(op, "batch1", batch1, "batch2", batch2, 3), batch1);
}

}  // namespace treadle::shape
