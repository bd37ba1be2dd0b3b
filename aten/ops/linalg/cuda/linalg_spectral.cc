// Eigenvalues and singular values, and their vectors, by cuSOLVER.
//
// Matrices with NaN or infinity, and those whose iteration does not converge, are refused as on the
// CPU. So the host waits for the device twice, before and after the library's work.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/backend/cuda/libraries/solver.h"
#include "aten/ops/_linalg_eig.h"
#include "aten/ops/_linalg_eigh.h"
#include "aten/ops/_linalg_svd.h"
#include "aten/ops/complex.h"
#include "aten/ops/conj_physical.h"
#include "aten/ops/copy_.h"
#include "aten/ops/eye.h"
#include "aten/ops/gt.h"
#include "aten/ops/imag.h"
#include "aten/ops/linalg/kernel_errors.h"
#include "aten/ops/lt.h"
#include "aten/ops/narrow.h"
#include "aten/ops/neg.h"
#include "aten/ops/real.h"
#include "aten/ops/reshape.h"
#include "aten/ops/roll.h"
#include "aten/ops/unsqueeze.h"
#include "aten/ops/where.h"

namespace treadle::cuda {
namespace {

void require_finite(const char* op, const Tensor& a) {
  const Tensor finite = awaited(finite_matrices(a));
  for (int64_t i = 0; i < finite.numel(); ++i)
    if (!finite.data_as<bool>()[i]) fail_not_finite(op, i);
}

void require_convergence(const char* op, const Tensor& info) {
  const Tensor left = awaited(info);
  for (int64_t i = 0; i < left.numel(); ++i)
    if (left.data_as<int>()[i] != 0) fail_not_converged(op, left.data_as<int>()[i], i);
}

template <class T>
void linalg_eigh_cuda(const Tensor& a, std::string_view uplo, bool compute_v, const Tensor& values,
                      const Tensor& vectors) {
  using R = real_type<T>;
  const Matrices b(a);
  const int64_t n = b.rows;
  if (n == 0 || b.count == 0) return;
  const cublasFillMode_t triangle =
      uplo == "L" || uplo == "l" ? CUBLAS_FILL_MODE_LOWER : CUBLAS_FILL_MODE_UPPER;
  const cusolverEigMode_t job = compute_v ? CUSOLVER_EIG_MODE_VECTOR : CUSOLVER_EIG_MODE_NOVECTOR;
  require_finite("linalg.eigh", a);
  const Tensor columns = in_columns(a);
  const Tensor info = empty_tensor({b.count}, ScalarType::Int32, a.device());
  const Solver solver(a.device());
  if (b.count == 1) {
    solver.run(
        "an eigenvalue decomposition",
        [&](Workspace& w) {
          return cusolver().large_eigh_size(
              solver.handle(), solver.params(), job, triangle, n, solver_type<T>, columns.data(), n,
              solver_type<R>, values.data(), solver_type<T>, &w.on_device, &w.on_host);
        },
        1,
        [&](const Workspace& w, int64_t) {
          return cusolver().large_eigh(solver.handle(), solver.params(), job, triangle, n,
                                       solver_type<T>, columns.data(), n, solver_type<R>,
                                       values.data(), solver_type<T>, w.device, w.on_device, w.host,
                                       w.on_host, info.data_as<int>());
        });
  } else {
    // So many at a time that the library can count their elements in `int`.
    const int64_t most = std::max<int64_t>(1, (int64_t{1} << 28) / b.numel());
    for (int64_t first = 0; first < b.count; first += most) {
      const int64_t count = std::min(most, b.count - first);
      T* const matrices = columns.data_as<T>() + first * b.numel();
      R* const found = values.data_as<R>() + first * n;
      solver.run(
          "an eigenvalue decomposition",
          [&](Workspace& w) {
            return cusolver().eigh_size(solver.handle(), solver.params(), job, triangle, n,
                                        solver_type<T>, matrices, n, solver_type<R>, found,
                                        solver_type<T>, &w.on_device, &w.on_host, count);
          },
          1,
          [&](const Workspace& w, int64_t) {
            return cusolver().eigh(solver.handle(), solver.params(), job, triangle, n,
                                   solver_type<T>, matrices, n, solver_type<R>, found,
                                   solver_type<T>, w.device, w.on_device, w.host, w.on_host,
                                   info.data_as<int>() + first, count);
          });
    }
  }
  if (compute_v) aten::copy_(vectors, aten::transpose(columns, -2, -1));
  require_convergence("linalg.eigh", info);
}

// The library gives the vectors of real matrices as real numbers. `columns` (..., n, n) has one
// vector in each row. For a pair of conjugate values the one with the positive imaginary part comes
// first; the first row then has the real parts of their vectors, and the second row the imaginary
// parts.
Tensor unpacked_vectors(const Tensor& values, const Tensor& columns) {
  const Tensor part = aten::unsqueeze(aten::imag(values), -1);
  const Tensor first = aten::gt(part, Scalar(0)), second = aten::lt(part, Scalar(0));
  const Tensor real = aten::where(second, aten::roll(columns, {1}, {-2}), columns);
  const Tensor imaginary = aten::where(first, aten::roll(columns, {-1}, {-2}),
                                       aten::where(second, aten::neg(columns), Scalar(0)));
  return aten::complex(real, imaginary);
}

template <class T>
void linalg_eig_cuda(const Tensor& a, bool compute_v, const Tensor& values, const Tensor& vectors) {
  using C = std::complex<real_type<T>>;
  const Matrices b(a);
  const int64_t n = b.rows;
  if (n == 0 || b.count == 0) return;
  require_finite("linalg.eig", a);
  const Tensor columns = in_columns(a);
  const Tensor right = compute_v ? empty_tensor(columns.sizes(), a.dtype(), a.device())
                                 : empty_tensor({0}, a.dtype(), a.device());
  const Tensor info = empty_tensor({b.count}, ScalarType::Int32, a.device());
  const cusolverEigMode_t none = CUSOLVER_EIG_MODE_NOVECTOR,
                          job = compute_v ? CUSOLVER_EIG_MODE_VECTOR : none;
  const Solver solver(a.device());
  solver.run(
      "an eigenvalue decomposition",
      [&](Workspace& w) {
        return cusolver().eig_size(solver.handle(), solver.params(), none, job, n, solver_type<T>,
                                   columns.data(), n, solver_type<C>, values.data(), solver_type<T>,
                                   nullptr, n, solver_type<T>, right.data(), n, solver_type<T>,
                                   &w.on_device, &w.on_host);
      },
      b.count,
      [&](const Workspace& w, int64_t i) {
        T* const found = compute_v ? right.data_as<T>() + i * b.numel() : nullptr;
        return cusolver().eig(solver.handle(), solver.params(), none, job, n, solver_type<T>,
                              columns.data_as<T>() + i * b.numel(), n, solver_type<C>,
                              values.data_as<C>() + i * n, solver_type<T>, nullptr, n,
                              solver_type<T>, found, n, solver_type<T>, w.device, w.on_device,
                              w.host, w.on_host, info.data_as<int>() + i);
      });
  if (compute_v) {
    const Tensor found = is_complex_type<T> ? right : unpacked_vectors(values, right);
    aten::copy_(vectors, aten::transpose(found, -2, -1));
  }
  require_convergence("linalg.eig", info);
}

// The factors of column-major matrices, (m, n) with m >= n: U S V^H, for the whole batch at once.
struct Tall {
  Tensor matrices;  // (count, n, m) by rows, written over
  int64_t count, m, n;
};
// The vectors by rows, as the library leaves them: U (count, width, m), and V or V^H.
struct Vectors {
  Tensor left, right;
  bool right_conjugate;  // V^H by columns
};

// One after the other. U has `width` columns, m or n; none if no vectors are requested.
template <class T>
Vectors decompose_each(const Solver& solver, const Tall& t, int64_t width, const Tensor& s,
                       const Tensor& info) {
  using R = real_type<T>;
  const auto made = [&](int64_t rows, int64_t columns) {
    return empty_tensor({width ? t.count : 0, rows, columns}, t.matrices.dtype(),
                        t.matrices.device());
  };
  const Tensor left = made(width, t.m), right = made(t.n, t.n);
  const signed char job = width == 0 ? 'N' : width == t.m ? 'A' : 'S';
  const int64_t left_size = width * t.m, right_size = width ? t.n * t.n : 0;
  solver.run(
      "a singular value decomposition",
      [&](Workspace& w) {
        return cusolver().svd_size(solver.handle(), solver.params(), job, job, t.m, t.n,
                                   solver_type<T>, t.matrices.data(), t.m, solver_type<R>, s.data(),
                                   solver_type<T>, left.data(), t.m, solver_type<T>, right.data(),
                                   t.n, solver_type<T>, &w.on_device, &w.on_host);
      },
      t.count,
      [&](const Workspace& w, int64_t i) {
        return cusolver().svd(solver.handle(), solver.params(), job, job, t.m, t.n, solver_type<T>,
                              t.matrices.data_as<T>() + i * t.m * t.n, t.m, solver_type<R>,
                              s.data_as<R>() + i * t.n, solver_type<T>,
                              left.data_as<T>() + i * left_size, t.m, solver_type<T>,
                              right.data_as<T>() + i * right_size, t.n, solver_type<T>, w.device,
                              w.on_device, w.host, w.on_host, info.data_as<int>() + i);
      });
  return {left, right, true};
}

// Many small ones at once, by Jacobi's rotations.
constexpr int64_t kMany = 8, kSmall = 32;
template <class T>
Vectors decompose_small(const Solver& solver, const Tall& t, bool wants_vectors, const Tensor& s,
                        const Tensor& info) {
  const int m = solver_int(t.m), n = solver_int(t.n), count = solver_int(t.count);
  const cusolverEigMode_t job =
      wants_vectors ? CUSOLVER_EIG_MODE_VECTOR : CUSOLVER_EIG_MODE_NOVECTOR;
  const auto made = [&](int64_t size) {
    return empty_tensor({t.count, size, size}, t.matrices.dtype(), t.matrices.device());
  };
  const Tensor left = made(t.m), right = made(t.n);
  auto* const values = s.data_as<real_type<T>>();
  int units = 0;
  solver.run(
      "a singular value decomposition",
      [&](Workspace& w) {
        const cusolverStatus_t code = typed_cusolver<T>().small_svd_size(
            solver.handle(), job, m, n, element_pointer<T>(t.matrices), m, values,
            element_pointer<T>(left), m, element_pointer<T>(right), n, &units, solver.jacobi(),
            count);
        w.on_device = static_cast<size_t>(units);
        return code;
      },
      1,
      [&](const Workspace& w, int64_t) {
        return typed_cusolver<T>().small_svd(
            solver.handle(), job, m, n, element_pointer<T>(t.matrices), m, values,
            element_pointer<T>(left), m, element_pointer<T>(right), n,
            static_cast<typename SolverElement<T>::type*>(w.device), units, info.data_as<int>(),
            solver.jacobi(), count);
      },
      sizeof(T));
  return {left, right, false};
}

// For a matrix with more columns than rows the library receives the transposed one, which has the
// same memory. Its left vectors are those of Vh, and U has the right ones.
template <class T>
void linalg_svd_cuda(const Tensor& a, bool full_matrices, bool compute_uv, const Tensor& u,
                     const Tensor& s, const Tensor& vh) {
  const Matrices b(a);
  const int64_t k = std::min(b.rows, b.columns);
  if (k == 0 || b.count == 0) {
    for (const Tensor* t : {&u, &vh})
      if (compute_uv && t->numel() > 0)
        aten::copy_(*t, aten::eye(t->size(-2), t->size(-1), t->dtype(), std::nullopt, t->device()));
    return;
  }
  require_finite("linalg.svd", a);
  const bool wide = b.rows < b.columns;
  const int64_t m = wide ? b.columns : b.rows, width = full_matrices ? m : k;
  const Tall tall{wide ? aten::clone(a, MemoryFormat::Contiguous) : in_columns(a), b.count, m, k};
  const Tensor info = empty_tensor({b.count}, ScalarType::Int32, a.device());
  const Solver solver(a.device());
  const Vectors v = b.count >= kMany && m <= kSmall
                        ? decompose_small<T>(solver, tall, compute_uv, s, info)
                        : decompose_each<T>(solver, tall, compute_uv ? width : 0, s, info);
  if (compute_uv) {
    const Tensor left = aten::narrow(v.left, -2, 0, width);
    const Tensor& own_left = wide ? vh : u;
    const Tensor& own_right = wide ? u : vh;
    // Rows of V^H: V by columns is conjugate, V^H by columns transposed.
    const Tensor rows =
        v.right_conjugate ? aten::transpose(v.right, -2, -1) : aten::conj_physical(v.right);
    aten::copy_(own_left,
                aten::reshape(wide ? left : aten::transpose(left, -2, -1), own_left.sizes()));
    aten::copy_(own_right,
                aten::reshape(wide ? aten::transpose(rows, -2, -1) : rows, own_right.sizes()));
  }
  require_convergence("linalg.svd", info);
}

using Solved = TypeList<float, double, std::complex<float>, std::complex<double>>;

const auto eigh_registered = register_cuda<aten::ops::_linalg_eigh>(
    Solved(), []<class T>() { return &linalg_eigh_cuda<T>; }, "linalg_eigh_cuda");
const auto eig_registered = register_cuda<aten::ops::_linalg_eig>(
    Solved(), []<class T>() { return &linalg_eig_cuda<T>; }, "linalg_eig_cuda");
const auto svd_registered = register_cuda<aten::ops::_linalg_svd>(
    Solved(), []<class T>() { return &linalg_svd_cuda<T>; }, "linalg_svd_cuda");

}  // namespace
}  // namespace treadle::cuda
