// Linear algebra as cuSOLVER is asked for it: rows and columns, batches, triangles, what is read
// from `info`. A library made of the CPU's kernels takes its place, and works as it does: it
// writes over its input, uses the other triangle to work in, refuses wide matrices.
#include <gtest/gtest.h>

#include "aten/cuda/kernel_calls.h"
#include "aten/cuda/kernels/solver.h"
#include "aten/cuda/testing_device.h"
#include "aten/ops/_linalg_cholesky.h"
#include "aten/ops/_linalg_eig.h"
#include "aten/ops/_linalg_eigh.h"
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

ScalarType dtype_of(cudaDataType type) {
  return type == CUDA_R_64F ? ScalarType::Float64 : ScalarType::Complex128;
}

// Matrices by columns in memory, as tensors and back.
Tensor read_columns(const void* memory, ScalarType dtype, int64_t rows, int64_t columns,
                    int64_t leading) {
  const Tensor t = empty_cpu({columns, rows}, dtype);
  const int64_t item = t.element_size();
  for (int64_t c = 0; c < columns; ++c)
    std::memcpy(static_cast<char*>(t.data()) + c * rows * item,
                static_cast<const char*>(memory) + c * leading * item,
                static_cast<size_t>(rows * item));
  return aten::contiguous(aten::transpose(t, 0, 1));
}
void write_columns(const Tensor& t, void* memory, int64_t leading) {
  const Tensor columns = aten::contiguous(aten::transpose(t, 0, 1));
  const int64_t rows = t.size(0), item = t.element_size();
  for (int64_t c = 0; c < t.size(1); ++c)
    std::memcpy(static_cast<char*>(memory) + c * leading * item,
                static_cast<const char*>(columns.data()) + c * rows * item,
                static_cast<size_t>(rows * item));
}
void write_list(const Tensor& t, void* memory) {
  const Tensor list = aten::contiguous(t);
  std::memcpy(memory, list.data(), static_cast<size_t>(list.nbytes()));
}

cusolverStatus_t size_of_all(size_t* on_device, size_t* on_host) {
  *on_device = 64;
  *on_host = 32;
  return CUSOLVER_STATUS_SUCCESS;
}
cusolverStatus_t worked(bool given) {
  return given ? CUSOLVER_STATUS_SUCCESS : CUSOLVER_STATUS_INVALID_VALUE;
}

int& failing() {
  static int info = 0;
  return info;
}

// The factor in its triangle; the other one is left as it was found after work.
void factor(void* memory, ScalarType dtype, cublasFillMode_t triangle, int64_t n, int* info) {
  const bool upper = triangle == CUBLAS_FILL_MODE_UPPER;
  const auto [found, failed] = aten::_linalg_cholesky(read_columns(memory, dtype, n, n, n), upper);
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j < n; ++j)
      if (upper ? j < i : j > i) aten::fill_(aten::select(aten::select(found, 0, i), 0, j), 77);
  write_columns(found, memory, n);
  *info = *failed.data_as<int>();
}

void decompose(void* memory, ScalarType dtype, cusolverEigMode_t job, cublasFillMode_t triangle,
               int64_t n, void* values, int* info) {
  const bool vectors = job == CUSOLVER_EIG_MODE_VECTOR;
  const auto [w, v] = aten::_linalg_eigh(read_columns(memory, dtype, n, n, n),
                                         triangle == CUBLAS_FILL_MODE_LOWER ? "L" : "U", vectors);
  write_list(w, values);
  write_columns(vectors ? v : aten::zeros({n, n}, dtype), memory, n);
  *info = failing();
}

template <class T>
void replace_typed(TypedCusolver<T>& f) {
  using E = typename SolverElement<T>::type;
  constexpr ScalarType dtype = scalar_type_of<T>;
  f.product_size = [](cusolverDnHandle_t, int, int, int, const E*, int, const E*, int* size) {
    *size = 5;
    return CUSOLVER_STATUS_SUCCESS;
  };
  f.product = [](cusolverDnHandle_t, int m, int n, int k, E* a, int lead, const E* tau, E* work,
                 int size, int*) {
    const Tensor factors = aten::select(read_columns(tau, dtype, k, 1, k), 1, 0);
    write_columns(aten::linalg_householder_product(read_columns(a, dtype, m, n, lead), factors), a,
                  lead);
    return worked(work && size == 5);
  };
  f.multiply_size = [](cusolverDnHandle_t, cublasSideMode_t, cublasOperation_t, int, int, int,
                       const E*, int, const E*, const E*, int, int* size) {
    *size = 5;
    return CUSOLVER_STATUS_SUCCESS;
  };
  f.multiply = [](cusolverDnHandle_t, cublasSideMode_t side, cublasOperation_t operation, int m,
                  int n, int k, const E* a, int lead, const E* tau, E* c, int leading, E* work,
                  int size, int*) {
    const bool left = side == CUBLAS_SIDE_LEFT;
    EXPECT_NE(operation, is_complex(dtype) ? CUBLAS_OP_T : CUBLAS_OP_C);
    const Tensor factors = aten::select(read_columns(tau, dtype, k, 1, k), 1, 0);
    write_columns(
        aten::ormqr(read_columns(a, dtype, left ? m : n, k, lead), factors,
                    read_columns(c, dtype, m, n, leading), left, operation != CUBLAS_OP_N),
        c, leading);
    return worked(work && size == 5);
  };
  using R = real_type<T>;
  f.small_svd_size = [](cusolverDnHandle_t, cusolverEigMode_t, int, int, const E*, int, const R*,
                        const E*, int, const E*, int, int* size, gesvdjInfo_t, int) {
    *size = 5;
    return CUSOLVER_STATUS_SUCCESS;
  };
  // All of both vectors, V and not V^H.
  f.small_svd = [](cusolverDnHandle_t, cusolverEigMode_t job, int m, int n, E* a, int lead, R* s,
                   E* u, int left, E* v, int right, E* work, int size, int* info, gesvdjInfo_t,
                   int count) {
    if (m > 32 || n > 32) return CUSOLVER_STATUS_INVALID_VALUE;
    for (int i = 0; i < count; ++i) {
      const auto [us, values, vhs] =
          aten::_linalg_svd(read_columns(a + i * lead * n, dtype, m, n, lead), true, true);
      write_list(values, s + i * std::min(m, n));
      if (job == CUSOLVER_EIG_MODE_VECTOR) {
        write_columns(us, u + i * left * m, left);
        write_columns(aten::adjoint(vhs), v + i * right * n, right);
      }
      info[i] = failing();
    }
    return worked(work && size == 5);
  };
  f.batched_cholesky = [](cusolverDnHandle_t, cublasFillMode_t triangle, int n, E* matrices[], int,
                          int* info, int count) {
    for (int i = 0; i < count; ++i) factor(matrices[i], dtype, triangle, n, info + i);
    return CUSOLVER_STATUS_SUCCESS;
  };
}

void replace_library() {
  using Handle = cusolverDnHandle_t;
  using Params = cusolverDnParams_t;
  Cusolver& f = cusolver();
  f.create = [](Handle* handle) {
    *handle = reinterpret_cast<Handle>(8);
    return CUSOLVER_STATUS_SUCCESS;
  };
  f.create_params = [](Params* params) {
    *params = reinterpret_cast<Params>(8);
    return CUSOLVER_STATUS_SUCCESS;
  };
  f.create_jacobi = [](gesvdjInfo_t* info) {
    *info = reinterpret_cast<gesvdjInfo_t>(8);
    return CUSOLVER_STATUS_SUCCESS;
  };
  f.set_stream = [](Handle, cudaStream_t) { return CUSOLVER_STATUS_SUCCESS; };
  f.set_deterministic = [](Handle, cusolverDeterministicMode_t) { return CUSOLVER_STATUS_SUCCESS; };
  f.lu_size = [](Handle, Params, int64_t, int64_t, cudaDataType, const void*, int64_t, cudaDataType,
                 size_t* d, size_t* h) { return size_of_all(d, h); };
  f.lu = [](Handle, Params, int64_t m, int64_t n, cudaDataType type, void* a, int64_t lead,
            int64_t* pivots, cudaDataType, void* d, size_t, void* h, size_t, int* info) {
    const auto [lu, rows, failed] = aten::_linalg_lu(read_columns(a, dtype_of(type), m, n, lead));
    write_columns(lu, a, lead);
    for (int64_t i = 0; i < rows.numel(); ++i) pivots[i] = rows.data_as<int>()[i];
    *info = *failed.data_as<int>();
    return worked(d && h);
  };
  f.cholesky_size = [](Handle, Params, cublasFillMode_t, int64_t, cudaDataType, const void*,
                       int64_t, cudaDataType, size_t* d, size_t* h) { return size_of_all(d, h); };
  f.cholesky = [](Handle, Params, cublasFillMode_t triangle, int64_t n, cudaDataType type, void* a,
                  int64_t, cudaDataType, void* d, size_t, void* h, size_t, int* info) {
    factor(a, dtype_of(type), triangle, n, info);
    return worked(d && h);
  };
  f.qr_size = [](Handle, Params, int64_t, int64_t, cudaDataType, const void*, int64_t, cudaDataType,
                 const void*, cudaDataType, size_t* d, size_t* h) { return size_of_all(d, h); };
  f.qr = [](Handle, Params, int64_t m, int64_t n, cudaDataType type, void* a, int64_t lead,
            cudaDataType, void* tau, cudaDataType, void* d, size_t, void* h, size_t, int*) {
    const auto [reflectors, factors] = aten::geqrf(read_columns(a, dtype_of(type), m, n, lead));
    write_columns(reflectors, a, lead);
    write_list(factors, tau);
    return worked(d && h);
  };
  f.large_eigh_size = [](Handle, Params, cusolverEigMode_t, cublasFillMode_t, int64_t, cudaDataType,
                         const void*, int64_t, cudaDataType, const void*, cudaDataType, size_t* d,
                         size_t* h) { return size_of_all(d, h); };
  f.large_eigh = [](Handle, Params, cusolverEigMode_t job, cublasFillMode_t triangle, int64_t n,
                    cudaDataType type, void* a, int64_t, cudaDataType, void* w, cudaDataType,
                    void* d, size_t, void* h, size_t, int* info) {
    decompose(a, dtype_of(type), job, triangle, n, w, info);
    return worked(d && h);
  };
  f.eigh_size = [](Handle, Params, cusolverEigMode_t, cublasFillMode_t, int64_t, cudaDataType,
                   const void*, int64_t, cudaDataType, const void*, cudaDataType, size_t* d,
                   size_t* h, int64_t) { return size_of_all(d, h); };
  f.eigh = [](Handle, Params, cusolverEigMode_t job, cublasFillMode_t triangle, int64_t n,
              cudaDataType type, void* a, int64_t, cudaDataType, void* w, cudaDataType, void* d,
              size_t, void* h, size_t, int* info, int64_t count) {
    const int64_t item = item_size(dtype_of(type));
    for (int64_t i = 0; i < count; ++i)
      decompose(static_cast<char*>(a) + i * n * n * item, dtype_of(type), job, triangle, n,
                static_cast<double*>(w) + i * n, info + i);
    return worked(d && h);
  };
  f.eig_size = [](Handle, Params, cusolverEigMode_t, cusolverEigMode_t, int64_t, cudaDataType,
                  const void*, int64_t, cudaDataType, const void*, cudaDataType, const void*,
                  int64_t, cudaDataType, const void*, int64_t, cudaDataType, size_t* d,
                  size_t* h) { return size_of_all(d, h); };
  f.eig = [](Handle, Params, cusolverEigMode_t left, cusolverEigMode_t right, int64_t n,
             cudaDataType type, void* a, int64_t, cudaDataType of_values, void* w, cudaDataType,
             void*, int64_t, cudaDataType of_vectors, void* v, int64_t, cudaDataType, void* d,
             size_t, void* h, size_t, int* info) {
    EXPECT_EQ(left, CUSOLVER_EIG_MODE_NOVECTOR);
    EXPECT_EQ(of_values, CUDA_C_64F);
    EXPECT_EQ(of_vectors, type);
    const auto [values, vectors] = aten::_linalg_eig(read_columns(a, dtype_of(type), n, n, n),
                                                     right == CUSOLVER_EIG_MODE_VECTOR);
    write_list(values, w);
    *info = failing();
    if (right == CUSOLVER_EIG_MODE_NOVECTOR) return worked(d && h);
    if (type == CUDA_C_64F) {
      write_columns(vectors, v, n);
      return worked(d && h);
    }
    // Real parts and imaginary ones in turn.
    const Tensor packed = empty_cpu({n, n}, ScalarType::Float64);
    for (int64_t j = 0; j < n; ++j) {
      const bool second = values.data_as<std::complex<double>>()[j].imag() < 0;
      const Tensor column = aten::select(vectors, 1, second ? j - 1 : j);
      aten::copy_(aten::select(packed, 1, j), second ? aten::imag(column) : aten::real(column));
    }
    write_columns(packed, v, n);
    return worked(d && h);
  };
  f.svd_size = [](Handle, Params, signed char, signed char, int64_t, int64_t, cudaDataType,
                  const void*, int64_t, cudaDataType, const void*, cudaDataType, const void*,
                  int64_t, cudaDataType, const void*, int64_t, cudaDataType, size_t* d,
                  size_t* h) { return size_of_all(d, h); };
  f.svd = [](Handle, Params, signed char job, signed char other, int64_t m, int64_t n,
             cudaDataType type, void* a, int64_t lead, cudaDataType, void* s, cudaDataType, void* u,
             int64_t left, cudaDataType, void* vh, int64_t right, cudaDataType, void* d, size_t,
             void* h, size_t, int* info) {
    if (m < n || job != other) return CUSOLVER_STATUS_INVALID_VALUE;
    const auto [us, values, vhs] =
        aten::_linalg_svd(read_columns(a, dtype_of(type), m, n, lead), job == 'A', job != 'N');
    write_list(values, s);
    if (job != 'N') {
      write_columns(us, u, left);
      write_columns(vhs, vh, right);
    }
    write_columns(aten::zeros({m, n}, dtype_of(type)), a, lead);
    *info = failing();
    return worked(d && h);
  };
  replace_typed(typed_cusolver<double>());
  replace_typed(typed_cusolver<std::complex<double>>());
}

class SolverTest : public ::testing::Test {
 protected:
  SolverTest() {
    TestingDevice::start();
    replace_library();
    failing() = 0;
  }
};

constexpr ScalarType kDtypes[] = {ScalarType::Float64, ScalarType::Complex128};

struct Shape {
  int64_t rows, columns;
};
constexpr Shape kShapes[] = {{3, 3}, {5, 2}, {2, 4}, {1, 1}, {0, 2}, {3, 0}};
const std::vector<DimVector> kBatches = {{}, {3}, {2, 2}, {0}};

Tensor matrices(const DimVector& batch, int64_t rows, int64_t columns, ScalarType dtype) {
  DimVector sizes(
      batch);  // of columns next to each other, so that the strides are not those of rows
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
      // Vectors may differ by a factor of length 1: what they give back does not.
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
  failing() = 2;
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
  // One without an inverse, one that is not finite, and a right side for all.
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
