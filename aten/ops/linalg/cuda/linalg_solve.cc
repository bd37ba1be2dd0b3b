// Solutions of linear systems, composed of LU factors and triangular solutions.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/backend/cuda/libraries/solver.h"
#include "aten/ops/_linalg_lu.h"
#include "aten/ops/_linalg_solve.h"
#include "aten/ops/copy_.h"
#include "aten/ops/linalg/shape.h"
#include "aten/ops/linalg_lu_solve.h"
#include "aten/ops/ne.h"
#include "aten/ops/reshape.h"
#include "aten/ops/squeeze.h"
#include "aten/ops/unsqueeze.h"
#include "aten/ops/where.h"
#include "aten/ops/zero_.h"

namespace treadle::cuda {
namespace {

// NaN if a matrix has no inverse. Matrices with NaN or infinity already have factors of NaN.
template <class T>
void linalg_solve_cuda(const Tensor& a, const Tensor& b, bool left, const Tensor& out,
                       const Tensor& info) {
  if (a.numel() == 0) {
    aten::zero_(info);
    return;
  }
  const auto [lu, pivots, failed] = aten::_linalg_lu(a);
  aten::copy_(info, failed);
  if (out.numel() == 0) return;
  const bool vector = shape::is_vector_rhs(a, b);
  const Tensor x = aten::linalg_lu_solve(lu, pivots, vector ? aten::unsqueeze(b, -1) : b, left);
  const Tensor singular = aten::reshape(aten::ne(failed, Scalar(0)), [&] {
    DimVector sizes(failed.sizes());
    sizes.push_back(1);
    sizes.push_back(1);
    return sizes;
  }());
  const Tensor found = aten::where(singular, Scalar(std::numeric_limits<double>::quiet_NaN()), x);
  aten::copy_(out, vector ? aten::squeeze(found, -1) : found);
}

using Solved = TypeList<float, double, std::complex<float>, std::complex<double>>;

const auto solve_registered = register_cuda<aten::ops::_linalg_solve>(
    Solved(), []<class T>() { return &linalg_solve_cuda<T>; }, "linalg_solve_cuda");

}  // namespace
}  // namespace treadle::cuda
