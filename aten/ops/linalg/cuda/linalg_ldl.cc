// LDL factors of real symmetric matrices by cuSOLVER, and solutions of systems with them. cuSOLVER
// has none for Hermitian matrices, so complex ones run on the CPU.
//
// Pivots that no factorisation produces are refused before the library uses them, so a solution
// makes the host wait.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/backend/cuda/libraries/solver.h"
#include "aten/ops/_linalg_ldl.h"
#include "aten/ops/arange.h"
#include "aten/ops/copy_.h"
#include "aten/ops/expand.h"
#include "aten/ops/linalg/kernel_errors.h"
#include "aten/ops/linalg_ldl_solve.h"
#include "aten/ops/squeeze.h"
#include "aten/ops/tril.h"
#include "aten/ops/where.h"
#include "aten/ops/zero_.h"

namespace treadle::cuda {
namespace {

template <class T>
void linalg_ldl_cuda(const Tensor& self, bool /*hermitian*/, const Tensor& ld, const Tensor& pivots,
                     const Tensor& info) {
  const Matrices b(self);
  if (self.numel() == 0) {
    aten::zero_(info);
    return;
  }
  const int n = solver_int(b.rows);
  const Tensor read = aten::tril(self), finite = finite_matrices(read);
  const Tensor columns = in_columns(aten::where(finite, read, Scalar(0)));
  const Solver solver(self.device());
  int units = 0;
  solver.run(
      "an LDL factorisation",
      [&](Workspace& w) {
        const cusolverStatus_t code = typed_cusolver<T>().ldl_size(
            solver.handle(), n, element_pointer<T>(columns), n, &units);
        w.on_device = static_cast<size_t>(units);
        return code;
      },
      b.count,
      [&](const Workspace& w, int64_t i) {
        return typed_cusolver<T>().ldl(solver.handle(), CUBLAS_FILL_MODE_LOWER, n,
                                       element_pointer<T>(columns, i * b.numel()), n,
                                       pivots.data_as<int>() + i * n, static_cast<T*>(w.device),
                                       units, info.data_as<int>() + i);
      },
      sizeof(T));
  const Tensor sound = aten::squeeze(finite, -1);
  const Tensor factor = aten::tril(aten::transpose(columns, -2, -1));
  const Scalar nan(std::numeric_limits<double>::quiet_NaN());
  aten::copy_(ld, aten::where(finite, factor, nan));
  const Tensor straight = aten::arange(1, b.rows + 1, ScalarType::Int64, std::nullopt, ld.device());
  aten::copy_(pivots, aten::where(sound, pivots, straight));
  aten::copy_(info, aten::where(aten::squeeze(sound, -1), info, Scalar(0)));
}

template <class T>
void ldl_solve_cuda(const Tensor& ld, const Tensor& pivots, const Tensor& b, bool /*hermitian*/,
                    const Tensor& out) {
  if (out.numel() == 0) return;
  const int64_t n = ld.size(-1), k = b.size(-1);
  const Tensor given = awaited(pivots);
  for (int64_t i = 0; i < given.numel() / n; ++i)
    if (!sound_pivots(given.data_as<int>() + i * n, n)) fail_pivots(i);
  DimVector sizes(out.sizes());
  sizes.back() = n;
  const Tensor factors = in_columns(aten::expand(ld, sizes));
  sizes.pop_back();
  const Tensor rows = aten::contiguous(aten::to(aten::expand(pivots, sizes), ScalarType::Int64));
  const Tensor sides = in_columns(aten::expand(b, out.sizes()));
  const Tensor info = empty_tensor({1}, ScalarType::Int32, out.device());
  const Solver solver(out.device());
  const auto lower = CUBLAS_FILL_MODE_LOWER;
  solver.run(
      "a solution with LDL factors",
      [&](Workspace& w) {
        return cusolver().ldl_solve_size(solver.handle(), lower, n, k, solver_type<T>,
                                         factors.data(), n, rows.data_as<int64_t>(), solver_type<T>,
                                         sides.data(), n, &w.on_device, &w.on_host);
      },
      out.numel() / (n * k),
      [&](const Workspace& w, int64_t i) {
        return cusolver().ldl_solve(
            solver.handle(), lower, n, k, solver_type<T>, factors.data_as<T>() + i * n * n, n,
            rows.data_as<int64_t>() + i * n, solver_type<T>, sides.data_as<T>() + i * n * k, n,
            w.device, w.on_device, w.host, w.on_host, info.data_as<int>());
      });
  aten::copy_(out, aten::transpose(sides, -2, -1));
}

const auto ldl_registered = register_cuda<aten::ops::_linalg_ldl>(
    TypeList<float, double>(), []<class T>() { return &linalg_ldl_cuda<T>; }, "linalg_ldl_cuda");
const auto ldl_solve_registered = register_cuda<aten::ops::linalg_ldl_solve>(
    TypeList<float, double>(), []<class T>() { return &ldl_solve_cuda<T>; }, "ldl_solve_cuda");

}  // namespace
}  // namespace treadle::cuda
