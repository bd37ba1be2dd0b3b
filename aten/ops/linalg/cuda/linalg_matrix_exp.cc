// matrix_exp, by the method of aten/ops/linalg/matrix_exp_terms.h, for all matrices of a batch at
// once. The host waits once, for the norms, which give the number of squarings.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/ops/linalg/matrix_exp_terms.h"

#include "aten/backend/cuda/libraries/solver.h"
#include "aten/ops/_linalg_solve.h"
#include "aten/ops/abs.h"
#include "aten/ops/add.h"
#include "aten/ops/amax.h"
#include "aten/ops/bmm.h"
#include "aten/ops/copy_.h"
#include "aten/ops/eye.h"
#include "aten/ops/gt.h"
#include "aten/ops/linalg_matrix_exp.h"
#include "aten/ops/mul.h"
#include "aten/ops/reshape.h"
#include "aten/ops/sub.h"
#include "aten/ops/sum.h"
#include "aten/ops/where.h"

namespace treadle::cuda {
namespace {

// The approximant of the matrices `a` (count, n, n). The names are those of the paper.
Tensor approximant(const Tensor& a) {
  const Tensor a2 = aten::bmm(a, a), a4 = aten::bmm(a2, a2), a6 = aten::bmm(a4, a2);
  const Tensor unit = aten::eye(a.size(-1), a.dtype(), std::nullopt, a.device());
  // The powers 6, 4, 2 and 0 with the coefficients k, k - 2, k - 4 and k - 6.
  const auto combined = [&](int k) {
    const auto times = [](const Tensor& t, int c) {
      return aten::mul(t, Scalar(matrix_exp::coefficient(c)));
    };
    const Tensor sum = aten::add(aten::add(times(a6, k), times(a4, k - 2)), times(a2, k - 4));
    return k > 7 ? sum : aten::add(sum, times(unit, k - 6));
  };
  // u = a (a6 (c13 a6 + c11 a4 + c9 a2) + c7 a6 + c5 a4 + c3 a2 + c1 I)
  const Tensor u = aten::bmm(a, aten::add(aten::bmm(a6, combined(13)), combined(7)));
  // v = a6 (c12 a6 + c10 a4 + c8 a2) + c6 a6 + c4 a4 + c2 a2 + c0 I
  const Tensor v = aten::add(aten::bmm(a6, combined(12)), combined(6));
  return std::get<0>(aten::_linalg_solve(aten::sub(v, u), aten::add(v, u), true));
}

template <class T>
void matrix_exp_cuda(const Tensor& self, const Tensor& out) {
  using R = real_type<T>;
  if (self.numel() == 0) return;
  const Matrices b(self);
  const Tensor finite = finite_matrices(self);
  const Tensor a =
      aten::reshape(aten::where(finite, self, Scalar(0)), {b.count, b.rows, b.columns});
  const Tensor norms = awaited(aten::amax(aten::sum(aten::abs(a), OptionalIntList({-2})), {-1}));
  const auto made = [&](ScalarType dtype) { return empty_cpu({b.count, 1, 1}, dtype); };
  const Tensor halves = made(norms.dtype()), rests = made(norms.dtype()),
               squarings = made(ScalarType::Int32);
  int most = 0;
  for (int64_t i = 0; i < b.count; ++i) {
    const int times = matrix_exp::squarings(norms.data_as<R>()[i]);
    halves.data_as<R>()[i] = matrix_exp::first_factor<R>(times);
    rests.data_as<R>()[i] = matrix_exp::second_factor<R>(times);
    squarings.data_as<int32_t>()[i] = times;
    most = std::max(most, times);
  }
  const auto there = [&](const Tensor& t) {
    return aten::to(t, std::nullopt, std::nullopt, self.device());
  };
  Tensor x = approximant(aten::mul(aten::mul(a, there(halves)), there(rests)));
  const Tensor left = there(squarings);
  for (int done = 0; done < most; ++done)
    x = aten::where(aten::gt(left, Scalar(done)), aten::bmm(x, x), x);
  aten::copy_(out, aten::where(finite, aten::reshape(x, out.sizes()),
                               Scalar(std::numeric_limits<double>::quiet_NaN())));
}

const auto matrix_exp_registered = register_cuda<aten::ops::linalg_matrix_exp>(
    TypeList<float, double, std::complex<float>, std::complex<double>>(),
    []<class T>() { return &matrix_exp_cuda<T>; }, "matrix_exp_cuda");

}  // namespace
}  // namespace treadle::cuda
