// The calls of cuSOLVER for linear algebra: rows and columns, batches, triangles, and the meaning
// of `info`. The emulator stands in for cuSOLVER (emulator/cusolver.cc).
//
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <tuple>

#include "aten/backend/cuda/calls.h"
#include "aten/backend/cuda/jit/kernel_calls.h"
#include "aten/backend/cuda/libraries/solver.h"
#include "aten/ops/_linalg_cholesky.h"
#include "aten/ops/_linalg_eig.h"
#include "aten/ops/_linalg_eigh.h"
#include "aten/ops/_linalg_ldl.h"
#include "aten/ops/_linalg_lstsq.h"
#include "aten/ops/_linalg_lu.h"
#include "aten/ops/_linalg_solve.h"
#include "aten/ops/_linalg_svd.h"
#include "aten/ops/add.h"
#include "aten/ops/adjoint.h"
#include "aten/ops/allclose.h"
#include "aten/ops/copy_.h"
#include "aten/ops/expand.h"
#include "aten/ops/eye.h"
#include "aten/ops/fill_.h"
#include "aten/ops/geqrf.h"
#include "aten/ops/imag.h"
#include "aten/ops/linalg_householder_product.h"
#include "aten/ops/linalg_ldl_solve.h"
#include "aten/ops/linalg_matrix_exp.h"
#include "aten/ops/linalg_qr.h"
#include "aten/ops/matmul.h"
#include "aten/ops/mul.h"
#include "aten/ops/narrow.h"
#include "aten/ops/ormqr.h"
#include "aten/ops/randn.h"
#include "aten/ops/real.h"
#include "aten/ops/select.h"
#include "aten/ops/unsqueeze.h"
#include "aten/ops/zeros.h"

namespace treadle::cuda {
namespace {

class SolverTest : public ::testing::Test {
 protected:
  SolverTest() : whole_(cusolver()) {
    calls().set_device = [](int) { return cudaSuccess; };  // the tensors are the CPU's
  }
  ~SolverTest() override { cusolver() = whole_; }

  // From now on the library's function, after its work, reports that 2 values did not converge.
  template <auto member, class R, class... A>
  static void fail_after(R (*)(A...)) {
    static R (*const does)(A...) = cusolver().*member;
    cusolver().*member = [](A... arguments) {
      const R status = does(arguments...);
      *std::get<int*>(std::tuple(arguments...)) = 2;
      return status;
    };
  }

 private:
  const Cusolver whole_;
};

constexpr ScalarType kDtypes[] = {ScalarType::Float64, ScalarType::Complex128};

struct Shape {
  int64_t rows, columns;
};
constexpr Shape kShapes[] = {{3, 3}, {5, 2}, {2, 4}, {1, 1}, {0, 2}, {3, 0}};
const std::vector<DimVector> kBatches = {{}, {3}, {2, 2}, {0}};

Tensor matrices(const DimVector& batch, int64_t rows, int64_t columns, ScalarType dtype) {
  DimVector sizes(batch);  // of adjacent columns, so that the strides are not those of rows
  sizes.push_back(columns);
  sizes.push_back(rows);
  return aten::transpose(aten::randn(sizes, dtype), -2, -1);
}
Tensor like(const Tensor& t) { return empty_cpu(t.sizes(), t.dtype()); }
bool same(const Tensor& a, const Tensor& b) {
  return aten::allclose(a, b, 1e-9, 1e-12, /*equal_nan=*/true);
}

template <class F>
void for_matrices(F f) {
  for (const ScalarType dtype : kDtypes)
    for (const DimVector& batch : kBatches)
      for (const Shape& s : kShapes) f(matrices(batch, s.rows, s.columns, dtype));
}
template <class F>
void for_square_matrices(F f) {
  for_matrices([&](const Tensor& a) {
    if (a.size(-2) == a.size(-1)) f(a);
  });
}

template <class F>
std::string error_of(F f) {
  try {
    f();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::LinAlg);
    return e.what();
  }
  return "nothing raised";
}

void spoil(const Tensor& a) {
  if (a.numel() > 0)
    aten::fill_(aten::select(aten::select(aten::narrow(a, -3, 1, 1), -1, 0), -1, 0),
                std::numeric_limits<double>::infinity());
}

TEST_F(SolverTest, Lu) {
  for_matrices([](const Tensor& a) {
    const auto [lu, pivots, info] = aten::_linalg_lu(a);
    const Tensor found = like(lu), rows = like(pivots), failed = like(info);
    call_kernel<aten::ops::_linalg_lu>(a.dtype(), a, found, rows, failed);
    EXPECT_TRUE(same(found, lu) && same(rows, pivots) && same(failed, info));
  });
  const Tensor a = matrices({3}, 4, 4, ScalarType::Float64);
  spoil(a);
  aten::fill_(aten::select(a, 0, 2), 0);
  const auto [lu, pivots, info] = aten::_linalg_lu(a);
  const Tensor found = like(lu), rows = like(pivots), failed = like(info);
  call_kernel<aten::ops::_linalg_lu>(a.dtype(), a, found, rows, failed);
  EXPECT_TRUE(same(found, lu) && same(rows, pivots) && same(failed, info));
}

TEST_F(SolverTest, Cholesky) {
  for_square_matrices([](const Tensor& t) {
    for (const bool upper : {false, true}) {
      const Tensor unit = aten::eye(t.size(-1), t.dtype());
      const Tensor a = aten::add(aten::matmul(t, aten::adjoint(t)), unit);
      if (a.dim() == 3) spoil(a);
      const auto [factor, info] = aten::_linalg_cholesky(a, upper);
      const Tensor found = like(factor), failed = like(info);
      call_kernel<aten::ops::_linalg_cholesky>(a.dtype(), a, upper, found, failed);
      EXPECT_TRUE(same(found, factor) && same(failed, info));
    }
  });
}

TEST_F(SolverTest, Ldl) {
  for_square_matrices([](const Tensor& t) {
    if (t.is_complex()) return;
    const Tensor a = aten::add(t, aten::adjoint(t));
    if (a.dim() == 3) spoil(a);
    const auto [ld, pivots, info] = aten::_linalg_ldl(a, true);
    const Tensor found = like(ld), rows = like(pivots), failed = like(info);
    call_kernel<aten::ops::_linalg_ldl>(a.dtype(), a, true, found, rows, failed);
    EXPECT_TRUE(same(found, ld) && same(rows, pivots) && same(failed, info));
    DimVector sizes(a.sizes());
    sizes.back() = 2;
    sizes.insert(0, 3);
    const Tensor b = aten::randn(sizes, a.dtype());
    const Tensor x = aten::linalg_ldl_solve(ld, pivots, b), solved = like(x);
    call_kernel<aten::ops::linalg_ldl_solve>(a.dtype(), ld, pivots, b, false, solved);
    EXPECT_TRUE(same(solved, x));
  });
  const Tensor ld = aten::eye(2, ScalarType::Float64), out = like(ld),
               pivots = aten::zeros({2}, ScalarType::Int32);
  try {
    call_kernel<aten::ops::linalg_ldl_solve>(ld.dtype(), ld, pivots, ld, false, out);
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::Value);
    EXPECT_STREQ(e.what(),
                 "linalg.ldl_solve: expected pivots made by linalg.ldl_factor, got others for "
                 "matrix 0");
  }
}

TEST_F(SolverTest, QrAndReflectors) {
  for_matrices([](const Tensor& a) {
    for (const std::string_view mode : {"reduced", "complete", "r"}) {
      const auto [q, r] = aten::linalg_qr(a, mode);
      const Tensor found_q = like(q), found_r = like(r);
      call_kernel<aten::ops::linalg_qr>(a.dtype(), a, mode, found_q, found_r);
      EXPECT_TRUE(same(found_q, q) && same(found_r, r));
    }
    const auto [reflectors, tau] = aten::geqrf(a);
    const Tensor found = like(reflectors), factors = like(tau);
    call_kernel<aten::ops::geqrf>(a.dtype(), a, found, factors);
    EXPECT_TRUE(same(found, reflectors) && same(factors, tau));
    if (a.size(-2) < a.size(-1)) return;
    for (int64_t k = 0; k <= tau.size(-1); ++k) {
      const Tensor some = aten::narrow(tau, -1, 0, k);
      const Tensor product = aten::linalg_householder_product(reflectors, some);
      const Tensor out = like(product);
      call_kernel<aten::ops::linalg_householder_product>(a.dtype(), reflectors, some, out);
      EXPECT_TRUE(same(out, product));
      for (const bool left : {false, true}) {
        for (const bool transpose : {false, true}) {
          DimVector sizes(a.sizes());
          sizes[sizes.size() - 2] = left ? a.size(-2) : 3;
          sizes[sizes.size() - 1] = left ? 3 : a.size(-2);
          const Tensor other = aten::randn(sizes, a.dtype());
          const Tensor expected = aten::ormqr(reflectors, some, other, left, transpose);
          const Tensor multiplied = like(expected);
          call_kernel<aten::ops::ormqr>(a.dtype(), reflectors, some, other, left, transpose,
                                        multiplied);
          EXPECT_TRUE(same(multiplied, expected));
        }
      }
    }
  });
}

TEST_F(SolverTest, Eigenvalues) {
  for_square_matrices([](const Tensor& a) {
    for (const bool vectors : {false, true}) {
      for (const std::string_view triangle : {"L", "U", "l", "u"}) {
        const auto [w, v] = aten::_linalg_eigh(a, triangle, vectors);
        const Tensor found = like(w), found_v = like(v);
        call_kernel<aten::ops::_linalg_eigh>(a.dtype(), a, triangle, vectors, found, found_v);
        EXPECT_TRUE(same(found, w) && same(found_v, v));
      }
      const auto [w, v] = aten::_linalg_eig(a, vectors);
      const Tensor found = like(w), found_v = like(v);
      call_kernel<aten::ops::_linalg_eig>(a.dtype(), a, vectors, found, found_v);
      EXPECT_TRUE(same(found, w) && same(found_v, v));
    }
  });
}

TEST_F(SolverTest, SingularValues) {
  const auto compare = [](const Tensor& a) {
    for (const bool full : {false, true}) {
      const auto [u, s, vh] = aten::_linalg_svd(a, full, true);
      const Tensor found_u = like(u), found_s = like(s), found_vh = like(vh);
      call_kernel<aten::ops::_linalg_svd>(a.dtype(), a, full, true, found_u, found_s, found_vh);
      EXPECT_TRUE(same(found_s, s));
      // Vectors may differ by a factor of length 1. Their product does not.
      const int64_t k = s.size(-1);
      const Tensor scaled = aten::mul(aten::narrow(found_u, -1, 0, k), aten::unsqueeze(s, -2));
      EXPECT_TRUE(same(aten::matmul(scaled, aten::narrow(found_vh, -2, 0, k)), a));
      for (const Tensor& t : {aten::matmul(aten::adjoint(found_u), found_u),
                              aten::matmul(found_vh, aten::adjoint(found_vh))})
        EXPECT_TRUE(same(t, aten::expand(aten::eye(t.size(-1), t.dtype()), t.sizes())));
    }
    const auto [u, s, vh] = aten::_linalg_svd(a, false, false);
    const Tensor found_u = like(u), found_s = like(s), found_vh = like(vh);
    call_kernel<aten::ops::_linalg_svd>(a.dtype(), a, false, false, found_u, found_s, found_vh);
    EXPECT_TRUE(same(found_s, s));
  };
  for_matrices(compare);
  for (const ScalarType dtype : kDtypes)  // many small ones
    for (const Shape& s : kShapes) compare(matrices({3, 3}, s.rows, s.columns, dtype));
}

TEST_F(SolverTest, SaysWhichMatrixFailed) {
  const Tensor a = aten::randn({2, 3, 3}, ScalarType::Float64);
  const Tensor values = empty_cpu({2, 3}, ScalarType::Float64), none = like(a), other = like(a),
               complex = empty_cpu({2, 3}, ScalarType::Complex128),
               vectors = empty_cpu({2, 3, 3}, ScalarType::Complex128);
  const auto eigh = [&] {
    call_kernel<aten::ops::_linalg_eigh>(a.dtype(), a, std::string_view("L"), true, values, none);
  };
  const auto eig = [&] {
    call_kernel<aten::ops::_linalg_eig>(a.dtype(), a, true, complex, vectors);
  };
  const auto svd = [&] {
    call_kernel<aten::ops::_linalg_svd>(a.dtype(), a, true, true, none, values, other);
  };
  fail_after<&Cusolver::eigh>(cusolver().eigh);
  fail_after<&Cusolver::eig>(cusolver().eig);
  fail_after<&Cusolver::svd>(cusolver().svd);
  const std::string left =
      ": expected the iteration to converge, got 2 values without convergence "
      "at batch index 0";
  EXPECT_EQ(error_of(eigh), "linalg.eigh" + left);
  EXPECT_EQ(error_of(eig), "linalg.eig" + left);
  EXPECT_EQ(error_of(svd), "linalg.svd" + left);
  spoil(a);
  const std::string refused =
      ": expected matrices without NaN and infinity, got one at batch "
      "index 1";
  EXPECT_EQ(error_of(eigh), "linalg.eigh" + refused);
  EXPECT_EQ(error_of(eig), "linalg.eig" + refused);
  EXPECT_EQ(error_of(svd), "linalg.svd" + refused);
}

TEST_F(SolverTest, SaysWhatTheLibraryRefused) {
  cusolver().lu = [](cusolverDnHandle_t, cusolverDnParams_t, int64_t, int64_t, cudaDataType, void*,
                     int64_t, int64_t*, cudaDataType, void*, size_t, void*, size_t,
                     int*) { return CUSOLVER_STATUS_ALLOC_FAILED; };
  const Tensor a = aten::randn({3, 3}, ScalarType::Float64);
  const auto [lu, pivots, info] = aten::_linalg_lu(a);
  try {
    call_kernel<aten::ops::_linalg_lu>(a.dtype(), a, lu, pivots, info);
    FAIL();
  } catch (const Error& e) {
    EXPECT_STREQ(e.what(),
                 "cuda: expected an LU factorisation to succeed, got the cuSOLVER error 2");
  }
}

TEST_F(SolverTest, Systems) {
  for_square_matrices([](const Tensor& a) {
    const int64_t n = a.size(-1);
    for (const bool left : {false, true}) {
      DimVector sizes(a.sizes());
      sizes[sizes.size() - (left ? 1 : 2)] = 2;
      const Tensor b = aten::randn(sizes, a.dtype());
      const auto [x, info] = aten::_linalg_solve(a, b, left);
      const Tensor found = like(x), failed = like(info);
      call_kernel<aten::ops::_linalg_solve>(a.dtype(), a, b, left, found, failed);
      EXPECT_TRUE(same(found, x) && same(failed, info));
    }
    const Tensor vector = aten::randn(a.sizes().slice(0, a.sizes().size() - 1), a.dtype());
    const auto [x, info] = aten::_linalg_solve(a, vector, true);
    const Tensor found = like(x), failed = like(info);
    call_kernel<aten::ops::_linalg_solve>(a.dtype(), a, vector, true, found, failed);
    EXPECT_TRUE(same(found, x) && same(failed, info)) << n;
  });
  // A matrix without an inverse, one that is not finite, and a right side for all.
  const Tensor a = aten::randn({3, 4, 4}, ScalarType::Complex128);
  spoil(a);
  aten::fill_(aten::select(a, 0, 2), 0);
  const Tensor b = aten::randn({5, 1, 4, 2}, ScalarType::Complex128);
  const auto [x, info] = aten::_linalg_solve(a, b, true);
  const Tensor found = like(x), failed = like(info);
  call_kernel<aten::ops::_linalg_solve>(a.dtype(), a, b, true, found, failed);
  EXPECT_TRUE(same(aten::select(found, 1, 0), aten::select(x, 1, 0)) && same(failed, info));
  for (int64_t i = 1; i < 3; ++i)
    EXPECT_FALSE(aten::allclose(aten::select(found, 1, i), aten::select(found, 1, i)));
}

TEST_F(SolverTest, MatrixExponential) {
  for_square_matrices([](const Tensor& t) {
    for (const double size : {0.01, 1.0, 20.0}) {
      const Tensor a = aten::contiguous(aten::mul(t, Scalar(size)));
      if (a.dim() == 3) spoil(a);
      const Tensor expected = aten::linalg_matrix_exp(a), out = like(expected);
      call_kernel<aten::ops::linalg_matrix_exp>(a.dtype(), a, out);
      EXPECT_TRUE(aten::allclose(out, expected, 1e-6, 1e-9, true));
    }
  });
}

TEST_F(SolverTest, LeastSquares) {
  for_matrices([](const Tensor& a) {
    for (const std::string_view driver : {"gels", "gelsy", "gelsd", "gelss"}) {
      for (const int64_t k : {0, 2}) {
        DimVector sizes(a.sizes());
        sizes[sizes.size() - 1] = k;
        const Tensor b = aten::randn(sizes, a.dtype());
        const auto expected = aten::_linalg_lstsq(a, b, 1e-10, driver);
        const auto found = call_kernel<aten::ops::_linalg_lstsq>(a.dtype(), a, b, 1e-10, driver);
        EXPECT_TRUE(same(std::get<0>(found), std::get<0>(expected)));
        EXPECT_TRUE(same(std::get<1>(found), std::get<1>(expected)));
        EXPECT_TRUE(same(std::get<2>(found), std::get<2>(expected)));
        EXPECT_TRUE(same(std::get<3>(found), std::get<3>(expected)));
      }
    }
  });
  // A right side of zeros has the solution 0.
  for (const Shape& shape : {Shape{4, 2}, Shape{2, 4}}) {
    const Tensor zero = aten::zeros({2, shape.rows, shape.columns}, ScalarType::Float64),
                 b = aten::randn({2, shape.rows, 3}, ScalarType::Float64);
    aten::fill_(aten::narrow(aten::select(zero, 0, 1), -1, 0, 1), 1);
    aten::fill_(aten::narrow(aten::select(aten::select(zero, 0, 1), 0, 0), 0, 1, 1), 2);
    const auto expected = aten::_linalg_lstsq(zero, b, 1e-10, "gels");
    const auto found = call_kernel<aten::ops::_linalg_lstsq>(zero.dtype(), zero, b, 1e-10,
                                                             std::string_view("gels"));
    EXPECT_TRUE(same(std::get<0>(found), std::get<0>(expected)));
    EXPECT_TRUE(same(std::get<1>(found), std::get<1>(expected)));
  }
  // A rank that is not full has no residuals, and is refused by gels.
  const Tensor a = aten::zeros({2, 4, 2}, ScalarType::Float64),
               b = aten::randn({2, 4, 1}, ScalarType::Float64);
  aten::fill_(aten::select(a, -1, 0), 1);
  const auto expected = aten::_linalg_lstsq(a, b, 1e-10, "gelsd");
  const auto found =
      call_kernel<aten::ops::_linalg_lstsq>(a.dtype(), a, b, 1e-10, std::string_view("gelsd"));
  EXPECT_TRUE(same(std::get<0>(found), std::get<0>(expected)));
  EXPECT_TRUE(same(std::get<1>(found), std::get<1>(expected)));
  EXPECT_TRUE(same(std::get<2>(found), std::get<2>(expected)));
  const auto gels = [&] {
    call_kernel<aten::ops::_linalg_lstsq>(a.dtype(), a, b, 1e-10, std::string_view("gels"));
  };
  EXPECT_EQ(error_of(gels),
            "linalg.lstsq: expected a matrix of full rank, or whose singular values converge, got "
            "neither at batch index 0");
  spoil(a);
  EXPECT_EQ(error_of(gels),
            "linalg.lstsq: expected A and B without NaN and infinity, got one at batch index 1");
}

}  // namespace
}  // namespace treadle::cuda
