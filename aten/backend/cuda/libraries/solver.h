// Solver: cuSOLVER on a device, for kernels of linear algebra. It has a handle, a workspace, and
// the conversion between row-major tensors and the library's column-major matrices.
//
//   Solver solver(a.device());
//   const Tensor columns = in_columns(a);  // (..., n, m), to be written over
//   solver.run(
//       "factoring matrices",
//       [&](Workspace& w) { return cusolver().lu_size(..., &w.on_device, &w.on_host); },
//       count, [&](const Workspace& w, int64_t i) { return cusolver().lu(...); });
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cusolverDn.h>

#include <vector>

#include "aten/backend/cuda/kernels/registration.h"
#include "aten/backend/cuda/shared_library.h"
#include "aten/ops/all.h"
#include "aten/ops/clone.h"
#include "aten/ops/contiguous.h"
#include "aten/ops/isfinite.h"
#include "aten/ops/to.h"
#include "aten/ops/transpose.h"

namespace treadle::cuda {

// The library's functions as tables, so that tests can substitute others.
struct Cusolver {
  SharedLibrary library{"libcusolver.so.12", "factors matrices", "nvidia-cusolver"};
  TREADLE_LIBRARY_FUNCTION(create, cusolverDnCreate);
  TREADLE_LIBRARY_FUNCTION(create_params, cusolverDnCreateParams);
  TREADLE_LIBRARY_FUNCTION(set_stream, cusolverDnSetStream);
  TREADLE_LIBRARY_FUNCTION(set_deterministic, cusolverDnSetDeterministicMode);
  TREADLE_LIBRARY_FUNCTION(lu_size, cusolverDnXgetrf_bufferSize);
  TREADLE_LIBRARY_FUNCTION(lu, cusolverDnXgetrf);
  TREADLE_LIBRARY_FUNCTION(cholesky_size, cusolverDnXpotrf_bufferSize);
  TREADLE_LIBRARY_FUNCTION(cholesky, cusolverDnXpotrf);
  TREADLE_LIBRARY_FUNCTION(qr_size, cusolverDnXgeqrf_bufferSize);
  TREADLE_LIBRARY_FUNCTION(qr, cusolverDnXgeqrf);
  TREADLE_LIBRARY_FUNCTION(eigh_size, cusolverDnXsyevBatched_bufferSize);
  TREADLE_LIBRARY_FUNCTION(eigh, cusolverDnXsyevBatched);
  TREADLE_LIBRARY_FUNCTION(large_eigh_size, cusolverDnXsyevd_bufferSize);
  TREADLE_LIBRARY_FUNCTION(large_eigh, cusolverDnXsyevd);
  TREADLE_LIBRARY_FUNCTION(eig_size, cusolverDnXgeev_bufferSize);
  TREADLE_LIBRARY_FUNCTION(eig, cusolverDnXgeev);
  TREADLE_LIBRARY_FUNCTION(svd_size, cusolverDnXgesvd_bufferSize);
  TREADLE_LIBRARY_FUNCTION(svd, cusolverDnXgesvd);
  TREADLE_LIBRARY_FUNCTION(ldl_solve_size, cusolverDnXsytrs_bufferSize);
  TREADLE_LIBRARY_FUNCTION(ldl_solve, cusolverDnXsytrs);
  TREADLE_LIBRARY_FUNCTION(create_jacobi, cusolverDnCreateGesvdjInfo);
};
Cusolver& cusolver();

// The functions with one name for each dtype.
template <class T>
struct TypedCusolver;
#define TREADLE_TYPED(type, letter, unitary)                                                \
  template <>                                                                               \
  struct TypedCusolver<type> {                                                              \
    const SharedLibrary& library = cusolver().library;                                      \
    TREADLE_LIBRARY_FUNCTION(product_size, cusolverDn##letter##unitary##gqr_bufferSize);    \
    TREADLE_LIBRARY_FUNCTION(product, cusolverDn##letter##unitary##gqr);                    \
    TREADLE_LIBRARY_FUNCTION(multiply_size, cusolverDn##letter##unitary##mqr_bufferSize);   \
    TREADLE_LIBRARY_FUNCTION(multiply, cusolverDn##letter##unitary##mqr);                   \
    TREADLE_LIBRARY_FUNCTION(batched_cholesky, cusolverDn##letter##potrfBatched);           \
    TREADLE_LIBRARY_FUNCTION(small_svd_size, cusolverDn##letter##gesvdjBatched_bufferSize); \
    TREADLE_LIBRARY_FUNCTION(small_svd, cusolverDn##letter##gesvdjBatched);                 \
    TREADLE_LIBRARY_FUNCTION(ldl_size, cusolverDn##letter##sytrf_bufferSize);               \
    TREADLE_LIBRARY_FUNCTION(ldl, cusolverDn##letter##sytrf);                               \
  };
TREADLE_TYPED(float, S, or)
TREADLE_TYPED(double, D, or)
TREADLE_TYPED(std::complex<float>, C, un)
TREADLE_TYPED(std::complex<double>, Z, un)
#undef TREADLE_TYPED
template <class T>
TypedCusolver<T>& typed_cusolver() {
  static auto* functions = new TypedCusolver<T>;
  return *functions;
}

// T in the library's type.
template <class T>
struct SolverElement {
  using type = T;
};
template <>
struct SolverElement<std::complex<float>> {
  using type = cuComplex;
};
template <>
struct SolverElement<std::complex<double>> {
  using type = cuDoubleComplex;
};
template <class T>
typename SolverElement<T>::type* element_pointer(const Tensor& t, int64_t at = 0) {
  return reinterpret_cast<typename SolverElement<T>::type*>(t.data_as<T>() + at);
}
template <class T>
constexpr cudaDataType solver_type = std::is_same_v<T, float>                 ? CUDA_R_32F
                                     : std::is_same_v<T, double>              ? CUDA_R_64F
                                     : std::is_same_v<T, std::complex<float>> ? CUDA_C_32F
                                                                              : CUDA_C_64F;

// RuntimeError "cuda: expected DOING to succeed, got the cuSOLVER error 7".
void succeed_cusolver(cusolverStatus_t code, const char* doing);

// In bytes, or in elements for functions of one dtype.
struct Workspace {
  size_t on_device = 0, on_host = 0;
  void *device = nullptr, *host = nullptr;
};

class Solver {
 public:
  explicit Solver(Device device);
  cusolverDnHandle_t handle() const { return handle_; }
  cusolverDnParams_t params() const { return params_; }
  gesvdjInfo_t jacobi() const { return jacobi_; }

  // Queries `size` for a workspace, in units of `item` bytes on the device, and calls
  // `one(workspace, i)` for each i < count, one after the other in this thread's stream.
  template <class Size, class One>
  void run(const char* doing, Size size, int64_t count, One one, int64_t item = 1) const {
    Workspace w;
    succeed_cusolver(size(w), doing);
    const Tensor device =
        empty_tensor({static_cast<int64_t>(w.on_device) * item}, ScalarType::UInt8, device_);
    std::vector<std::max_align_t> host(w.on_host / sizeof(std::max_align_t) + 1);
    w.device = device.data();
    w.host = host.data();
    for (int64_t i = 0; i < count; ++i) succeed_cusolver(one(w, i), doing);
  }

 private:
  Device device_;
  DeviceGuard guard_;
  cusolverDnHandle_t handle_;
  cusolverDnParams_t params_;
  gesvdjInfo_t jacobi_;
};

// Rows, columns and number of the matrices in the last two dimensions.
struct Matrices {
  int64_t rows, columns, count = 1;
  explicit Matrices(const Tensor& t) : rows(t.size(-2)), columns(t.size(-1)) {
    for (size_t d = 0; d + 2 < t.sizes().size(); ++d) count *= t.sizes()[d];
  }
  int64_t numel() const { return rows * columns; }
};

// RuntimeError for sizes beyond the library's `int`.
int solver_int(int64_t n);

// A column-major copy: the transposed matrices by rows.
inline Tensor in_columns(const Tensor& t) {
  const Tensor columns = aten::contiguous(aten::transpose(t, -2, -1));
  return columns.data() == t.data() ? aten::clone(columns) : columns;
}
// For each matrix, whether it has neither NaN nor infinity: shape (..., 1, 1).
inline Tensor finite_matrices(const Tensor& t) {
  return aten::all(aten::isfinite(t), OptionalIntList({-2, -1}), true);
}

// A contiguous tensor on the CPU. The host waits for it.
inline Tensor awaited(const Tensor& t) {
  return aten::contiguous(aten::to(t, std::nullopt, std::nullopt, kCPU));
}

}  // namespace treadle::cuda
