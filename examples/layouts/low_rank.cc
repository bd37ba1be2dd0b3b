// The layout low_rank: a matrix (n, m) kept as the product of two thin ones, left (n, r) and right
// (r, m). Products with it cost r times a row and a column, not n times.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/engine/layouts.h"
#include "aten/ops/matmul.h"
#include "aten/ops/mm.h"
#include "aten/ops/mul.h"
#include "aten/ops/neg.h"
#include "aten/ops/t.h"
#include "aten/ops/to.h"
#include "aten/ops/to_dense.h"
#include "python_bindings/csrc/library/extension_module.h"
#include "treadle/stamp.h"

TREADLE_LIBRARY_STAMP

namespace {

using namespace treadle;

Layout low_rank;

// Raises an error for contents that are no such matrix; those of files come here, too.
void check_contents(const char* op, IntList sizes, const LayoutContents& contents) {
  const Tensor &left = contents.parts[0], &right = contents.parts[1];
  const bool fits = sizes.size() == 2 && left.dim() == 2 && right.dim() == 2 &&
                    left.size(0) == sizes[0] && right.size(1) == sizes[1] &&
                    left.size(1) == right.size(0);
  check<ErrorKind::Value>(fits, OpName(op), "expected left (n, r) and right (r, m) for size ",
                          sizes, ", got ", left.sizes(), " and ", right.sizes());
  check<ErrorKind::Value>(left.dtype() == right.dtype() && left.device() == right.device(),
                          OpName(op), "expected left and right of one dtype on one device, got ",
                          name_of(left.dtype()), " and ", name_of(right.dtype()));
}

Tensor product_of(const Tensor& left, const Tensor& right) {
  return layout_tensor(low_rank, {left.size(0), right.size(1)}, {{left, right}, {}});
}
Tensor left_of(const Tensor& t) { return contents_of(t)->parts[0]; }
Tensor right_of(const Tensor& t) { return contents_of(t)->parts[1]; }
bool is_low_rank(const Tensor& t) { return t.layout() == low_rank; }

Tensor to_dense(const Tensor& self, std::optional<ScalarType> dtype, std::optional<bool>) {
  const Tensor dense = aten::mm(left_of(self), right_of(self));
  return dtype ? aten::to(dense, *dtype) : dense;
}

Tensor mm(const Tensor& self, const Tensor& mat2) {
  if (is_low_rank(self) && is_low_rank(mat2))
    return product_of(left_of(self),
                      aten::mm(aten::mm(right_of(self), left_of(mat2)), right_of(mat2)));
  if (is_low_rank(self)) return aten::mm(left_of(self), aten::mm(right_of(self), mat2));
  return aten::mm(aten::mm(self, left_of(mat2)), right_of(mat2));
}
Tensor matmul(const Tensor& self, const Tensor& other) {
  check<ErrorKind::NotImplemented>(self.dim() == 2 && other.dim() == 2, OpName("matmul"),
                                   "expected two matrices, got shapes ", self.sizes(), " and ",
                                   other.sizes());
  return mm(self, other);
}

Tensor t(const Tensor& self) { return product_of(aten::t(right_of(self)), aten::t(left_of(self))); }
Tensor neg(const Tensor& self) { return product_of(aten::neg(left_of(self)), right_of(self)); }
Tensor mul(const Tensor& self, const Scalar& factor) {
  return product_of(aten::mul(left_of(self), factor), right_of(self));
}

// Errors are raised by the call that loads the library.
const auto registered = while_loading([] {
  namespace ops = aten::ops;
  static const LayoutInfo info{{"left", "right"}, {}, 0, &check_contents};
  low_rank = register_layout("low_rank");
  describe_layout(low_rank, info);
  register_copies(low_rank);
  register_layout_kernel<ops::to_dense>(low_rank, &to_dense);
  register_layout_kernel<ops::mm>(low_rank, &mm);
  register_layout_kernel<ops::matmul>(low_rank, &matmul);
  register_layout_kernel<ops::t>(low_rank, &t);
  register_layout_kernel<ops::neg>(low_rank, &neg);
  register_layout_kernel<ops::mul_Scalar>(low_rank, &mul);
});

}  // namespace
