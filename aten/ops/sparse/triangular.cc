// triangular_solve with a sparse matrix, of any sparse layout.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/engine/layouts.h"
#include "aten/ops/_csr_triangular_solve.h"
#include "aten/ops/empty.h"
#include "aten/ops/sparse/contents.h"
#include "aten/ops/triangular_solve.h"

namespace treadle::sparse {
namespace {

// The copy of A, which is the second result for a strided matrix, is empty.
std::tuple<Tensor, Tensor> triangular_solve(const Tensor& self, const Tensor& a, bool upper,
                                            bool transpose, bool unitriangular) {
  const char* const op = "triangular_solve";
  check<ErrorKind::NotImplemented>(self.is_strided() && is_sparse(a), OpName(op),
                                   "expected a strided right side and a sparse matrix, got "
                                   "layouts ",
                                   name_of(self.layout()), " and ", name_of(a.layout()));
  check<ErrorKind::Runtime>(a.dim() == 2 && a.size(0) == a.size(1), OpName(op),
                            "expected a square matrix, got shape ", a.sizes());
  check<ErrorKind::Runtime>(self.dim() == 2 && self.size(0) == a.size(0), OpName(op),
                            "expected right sides of shape (", a.size(0), ", k), got ",
                            self.sizes());
  check<ErrorKind::Runtime>(self.dtype() == a.dtype(), OpName(op), "expected the same dtype, got ",
                            self.dtype(), " and ", a.dtype());
  const ScalarType dtype = self.dtype();
  check<ErrorKind::NotImplemented>(
      dtype == ScalarType::Float32 || dtype == ScalarType::Float64 || is_complex(dtype), OpName(op),
      "expected a dtype of float32, float64 and the complex ones, got ", dtype);
  const Matrix given = matrix_of(op, a);
  const Matrix m = transpose ? transposed(given) : given;
  const Tensor solution = aten::_csr_triangular_solve(m.values, m.offsets, m.columns, self,
                                                      upper != transpose, unitriangular);
  return {solution, aten::empty({0}, dtype, std::nullopt, self.device())};
}

[[maybe_unused]] const Registration registered = [] {
  for (const Layout layout : kLayouts)
    register_layout_kernel<aten::ops::triangular_solve>(layout, &triangular_solve);
  return Registration();
}();

}  // namespace
}  // namespace treadle::sparse
