// Linear algebra of cuSOLVER for emulated devices, made of the CPU's kernels. It works as the
// library does: it writes over its input, uses the other triangle to work in, refuses wide matrices
// and what was described wrongly.
//
// SPDX-License-Identifier: Apache-2.0
#include <cusolverDn.h>

#include <complex>
#include <cstring>
#include <string_view>
#include <tuple>

#include "aten/ops/_linalg_cholesky.h"
#include "aten/ops/_linalg_eig.h"
#include "aten/ops/_linalg_eigh.h"
#include "aten/ops/_linalg_ldl.h"
#include "aten/ops/_linalg_lu.h"
#include "aten/ops/_linalg_svd.h"
#include "aten/ops/_local_scalar_dense.h"
#include "aten/ops/adjoint.h"
#include "aten/ops/contiguous.h"
#include "aten/ops/copy_.h"
#include "aten/ops/fill_.h"
#include "aten/ops/geqrf.h"
#include "aten/ops/imag.h"
#include "aten/ops/linalg_householder_product.h"
#include "aten/ops/linalg_ldl_solve.h"
#include "aten/ops/ormqr.h"
#include "aten/ops/real.h"
#include "aten/ops/select.h"
#include "aten/ops/transpose.h"
#include "aten/ops/zeros.h"
#include "core/tensor/tensor.h"
#include "tests/cuda_emulator/device.h"

namespace treadle::cuda::emulator {
namespace {

constexpr size_t kOnDevice = 64, kOnHost = 32;  // bytes that functions ask for
constexpr int kElements = 5;                    // or elements

struct Handle {
  cudaStream_t stream = nullptr;
};

// Does `work` when the stream's has been done. Failures of kernels are the library's.
template <class Work>
cusolverStatus_t solved(cusolverDnHandle_t handle, bool given, Work work) {
  if (!given) return CUSOLVER_STATUS_INVALID_VALUE;
  cusolverStatus_t status = CUSOLVER_STATUS_SUCCESS;
  at_once(reinterpret_cast<Handle*>(handle)->stream, [&] {
    try {
      work();
    } catch (const std::exception&) {
      status = CUSOLVER_STATUS_EXECUTION_FAILED;
    }
  });
  return status;
}
bool given(const void* device, size_t device_bytes, const void* host, size_t host_bytes) {
  return device && device_bytes >= kOnDevice && host && host_bytes >= kOnHost;
}
cusolverStatus_t ask(size_t* on_device, size_t* on_host) {
  *on_device = kOnDevice;
  *on_host = kOnHost;
  return CUSOLVER_STATUS_SUCCESS;
}

ScalarType dtype_of(cudaDataType type) {
  switch (type) {
    case CUDA_R_32F:
      return ScalarType::Float32;
    case CUDA_R_64F:
      return ScalarType::Float64;
    case CUDA_C_32F:
      return ScalarType::Complex64;
    default:
      return ScalarType::Complex128;
  }
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
Tensor entry(const Tensor& t, int64_t i, int64_t j) {
  return aten::select(aten::select(t, 0, i), 0, j);
}

// The factor in its triangle; the other one is left as it was found after work.
void factor(void* memory, ScalarType dtype, cublasFillMode_t triangle, int64_t n, int64_t leading,
            int* info) {
  const bool upper = triangle == CUBLAS_FILL_MODE_UPPER;
  const auto [found, failed] =
      aten::_linalg_cholesky(read_columns(memory, dtype, n, n, leading), upper);
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j < n; ++j)
      if (upper ? j < i : j > i) aten::fill_(entry(found, i, j), 77);
  write_columns(found, memory, leading);
  *info = *failed.data_as<int>();
}

void decompose(void* memory, ScalarType dtype, cusolverEigMode_t job, cublasFillMode_t triangle,
               int64_t n, int64_t leading, void* values, int* info) {
  const bool vectors = job == CUSOLVER_EIG_MODE_VECTOR;
  const auto [w, v] = aten::_linalg_eigh(read_columns(memory, dtype, n, n, leading),
                                         triangle == CUBLAS_FILL_MODE_LOWER ? "L" : "U", vectors);
  write_list(w, values);
  write_columns(vectors ? v : aten::zeros({n, n}, dtype), memory, leading);
  *info = 0;
}

}  // namespace
}  // namespace treadle::cuda::emulator

namespace e = treadle::cuda::emulator;
using treadle::ScalarType;
using treadle::Tensor;
namespace aten = treadle::aten;
using Handle = cusolverDnHandle_t;
using Params = cusolverDnParams_t;

extern "C" {

cusolverStatus_t cusolverDnCreate(Handle* handle) {
  *handle = reinterpret_cast<Handle>(new e::Handle);
  return CUSOLVER_STATUS_SUCCESS;
}
cusolverStatus_t cusolverDnCreateParams(Params* params) {
  *params = reinterpret_cast<Params>(new e::Handle);
  return CUSOLVER_STATUS_SUCCESS;
}
cusolverStatus_t cusolverDnCreateGesvdjInfo(gesvdjInfo_t* info) {
  *info = reinterpret_cast<gesvdjInfo_t>(new e::Handle);
  return CUSOLVER_STATUS_SUCCESS;
}
cusolverStatus_t cusolverDnSetStream(Handle handle, cudaStream_t stream) {
  reinterpret_cast<e::Handle*>(handle)->stream = stream;
  return CUSOLVER_STATUS_SUCCESS;
}
cusolverStatus_t cusolverDnSetDeterministicMode(Handle, cusolverDeterministicMode_t) {
  return CUSOLVER_STATUS_SUCCESS;
}

cusolverStatus_t cusolverDnXgetrf_bufferSize(Handle, Params, int64_t, int64_t, cudaDataType,
                                             const void*, int64_t, cudaDataType, size_t* d,
                                             size_t* h) {
  return e::ask(d, h);
}
cusolverStatus_t cusolverDnXgetrf(Handle handle, Params, int64_t m, int64_t n, cudaDataType type,
                                  void* a, int64_t lead, int64_t* pivots, cudaDataType, void* d,
                                  size_t d_bytes, void* h, size_t h_bytes, int* info) {
  return e::solved(handle, e::given(d, d_bytes, h, h_bytes), [&] {
    const auto [lu, rows, failed] =
        aten::_linalg_lu(e::read_columns(a, e::dtype_of(type), m, n, lead));
    e::write_columns(lu, a, lead);
    for (int64_t i = 0; i < rows.numel(); ++i) pivots[i] = rows.data_as<int>()[i];
    *info = *failed.data_as<int>();
  });
}
cusolverStatus_t cusolverDnXpotrf_bufferSize(Handle, Params, cublasFillMode_t, int64_t,
                                             cudaDataType, const void*, int64_t, cudaDataType,
                                             size_t* d, size_t* h) {
  return e::ask(d, h);
}
cusolverStatus_t cusolverDnXpotrf(Handle handle, Params, cublasFillMode_t triangle, int64_t n,
                                  cudaDataType type, void* a, int64_t lead, cudaDataType, void* d,
                                  size_t d_bytes, void* h, size_t h_bytes, int* info) {
  return e::solved(handle, e::given(d, d_bytes, h, h_bytes),
                   [&] { e::factor(a, e::dtype_of(type), triangle, n, lead, info); });
}
cusolverStatus_t cusolverDnXgeqrf_bufferSize(Handle, Params, int64_t, int64_t, cudaDataType,
                                             const void*, int64_t, cudaDataType, const void*,
                                             cudaDataType, size_t* d, size_t* h) {
  return e::ask(d, h);
}
cusolverStatus_t cusolverDnXgeqrf(Handle handle, Params, int64_t m, int64_t n, cudaDataType type,
                                  void* a, int64_t lead, cudaDataType, void* tau, cudaDataType,
                                  void* d, size_t d_bytes, void* h, size_t h_bytes, int* info) {
  return e::solved(handle, e::given(d, d_bytes, h, h_bytes), [&] {
    const auto [reflectors, factors] =
        aten::geqrf(e::read_columns(a, e::dtype_of(type), m, n, lead));
    e::write_columns(reflectors, a, lead);
    e::write_list(factors, tau);
    *info = 0;
  });
}
cusolverStatus_t cusolverDnXsyevd_bufferSize(Handle, Params, cusolverEigMode_t, cublasFillMode_t,
                                             int64_t, cudaDataType, const void*, int64_t,
                                             cudaDataType, const void*, cudaDataType, size_t* d,
                                             size_t* h) {
  return e::ask(d, h);
}
cusolverStatus_t cusolverDnXsyevd(Handle handle, Params, cusolverEigMode_t job,
                                  cublasFillMode_t triangle, int64_t n, cudaDataType type, void* a,
                                  int64_t lead, cudaDataType, void* w, cudaDataType, void* d,
                                  size_t d_bytes, void* h, size_t h_bytes, int* info) {
  return e::solved(handle, e::given(d, d_bytes, h, h_bytes),
                   [&] { e::decompose(a, e::dtype_of(type), job, triangle, n, lead, w, info); });
}
cusolverStatus_t cusolverDnXsyevBatched_bufferSize(Handle, Params, cusolverEigMode_t,
                                                   cublasFillMode_t, int64_t, cudaDataType,
                                                   const void*, int64_t, cudaDataType, const void*,
                                                   cudaDataType, size_t* d, size_t* h, int64_t) {
  return e::ask(d, h);
}
cusolverStatus_t cusolverDnXsyevBatched(Handle handle, Params, cusolverEigMode_t job,
                                        cublasFillMode_t triangle, int64_t n, cudaDataType type,
                                        void* a, int64_t lead, cudaDataType, void* w, cudaDataType,
                                        void* d, size_t d_bytes, void* h, size_t h_bytes, int* info,
                                        int64_t count) {
  const int64_t item = item_size(e::dtype_of(type));
  const int64_t real_item = item_size(to_real(e::dtype_of(type)));
  return e::solved(handle, e::given(d, d_bytes, h, h_bytes), [&] {
    for (int64_t i = 0; i < count; ++i)
      e::decompose(static_cast<char*>(a) + i * n * lead * item, e::dtype_of(type), job, triangle, n,
                   lead, static_cast<char*>(w) + i * n * real_item, info + i);
  });
}
cusolverStatus_t cusolverDnXgeev_bufferSize(Handle, Params, cusolverEigMode_t, cusolverEigMode_t,
                                            int64_t, cudaDataType, const void*, int64_t,
                                            cudaDataType, const void*, cudaDataType, const void*,
                                            int64_t, cudaDataType, const void*, int64_t,
                                            cudaDataType, size_t* d, size_t* h) {
  return e::ask(d, h);
}
cusolverStatus_t cusolverDnXgeev(Handle handle, Params, cusolverEigMode_t left,
                                 cusolverEigMode_t right, int64_t n, cudaDataType type, void* a,
                                 int64_t lead, cudaDataType of_values, void* w, cudaDataType, void*,
                                 int64_t, cudaDataType of_vectors, void* v, int64_t leading,
                                 cudaDataType, void* d, size_t d_bytes, void* h, size_t h_bytes,
                                 int* info) {
  const ScalarType dtype = e::dtype_of(type);
  const bool of_complex = is_complex(dtype), vectors_too = right == CUSOLVER_EIG_MODE_VECTOR;
  const cudaDataType complex_type =
      type == CUDA_R_32F || type == CUDA_C_32F ? CUDA_C_32F : CUDA_C_64F;
  const bool right_call = left == CUSOLVER_EIG_MODE_NOVECTOR && of_values == complex_type &&
                          of_vectors == type && e::given(d, d_bytes, h, h_bytes);
  return e::solved(handle, right_call, [&] {
    const auto [values, vectors] =
        aten::_linalg_eig(e::read_columns(a, dtype, n, n, lead), vectors_too);
    e::write_list(values, w);
    *info = 0;
    if (!vectors_too) return;
    if (of_complex) return e::write_columns(vectors, v, leading);
    // Real parts and imaginary ones in turn.
    const Tensor packed = treadle::empty_cpu({n, n}, dtype), parts = aten::imag(values);
    for (int64_t j = 0; j < n; ++j) {
      const bool second = aten::_local_scalar_dense(aten::select(parts, 0, j)).to<double>() < 0;
      const Tensor column = aten::select(vectors, 1, second ? j - 1 : j);
      aten::copy_(aten::select(packed, 1, j), second ? aten::imag(column) : aten::real(column));
    }
    e::write_columns(packed, v, leading);
  });
}
cusolverStatus_t cusolverDnXgesvd_bufferSize(Handle, Params, signed char, signed char, int64_t,
                                             int64_t, cudaDataType, const void*, int64_t,
                                             cudaDataType, const void*, cudaDataType, const void*,
                                             int64_t, cudaDataType, const void*, int64_t,
                                             cudaDataType, size_t* d, size_t* h) {
  return e::ask(d, h);
}
cusolverStatus_t cusolverDnXgesvd(Handle handle, Params, signed char job, signed char other,
                                  int64_t m, int64_t n, cudaDataType type, void* a, int64_t lead,
                                  cudaDataType, void* s, cudaDataType, void* u, int64_t left,
                                  cudaDataType, void* vh, int64_t right, cudaDataType, void* d,
                                  size_t d_bytes, void* h, size_t h_bytes, int* info) {
  const ScalarType dtype = e::dtype_of(type);
  const bool right_call = m >= n && job == other && e::given(d, d_bytes, h, h_bytes);
  return e::solved(handle, right_call, [&] {
    const auto [us, values, vhs] =
        aten::_linalg_svd(e::read_columns(a, dtype, m, n, lead), job == 'A', job != 'N');
    e::write_list(values, s);
    if (job != 'N') {
      e::write_columns(us, u, left);
      e::write_columns(vhs, vh, right);
    }
    e::write_columns(aten::zeros({m, n}, dtype), a, lead);
    *info = 0;
  });
}
cusolverStatus_t cusolverDnXsytrs_bufferSize(Handle, cublasFillMode_t, int64_t, int64_t,
                                             cudaDataType, const void*, int64_t, const int64_t*,
                                             cudaDataType, void*, int64_t, size_t* d, size_t* h) {
  return e::ask(d, h);
}
cusolverStatus_t cusolverDnXsytrs(Handle handle, cublasFillMode_t triangle, int64_t n, int64_t k,
                                  cudaDataType type, const void* a, int64_t lead,
                                  const int64_t* pivots, cudaDataType, void* b, int64_t leading,
                                  void* d, size_t d_bytes, void* h, size_t h_bytes, int* info) {
  const bool right_call = triangle == CUBLAS_FILL_MODE_LOWER && e::given(d, d_bytes, h, h_bytes);
  return e::solved(handle, right_call, [&] {
    const Tensor rows = treadle::empty_cpu({n}, ScalarType::Int32);
    for (int64_t i = 0; i < n; ++i) rows.data_as<int>()[i] = static_cast<int>(pivots[i]);
    const ScalarType dtype = e::dtype_of(type);
    e::write_columns(aten::linalg_ldl_solve(e::read_columns(a, dtype, n, n, lead), rows,
                                            e::read_columns(b, dtype, n, k, leading)),
                     b, leading);
    *info = 0;
  });
}

// The functions that have a name for each dtype: E is an element, R a real one.
#define TREADLE_TYPED(letter, unitary, E, R, type)                                                \
  cusolverStatus_t cusolverDn##letter##unitary##gqr_bufferSize(Handle, int, int, int, const E*,   \
                                                               int, const E*, int* size) {        \
    *size = e::kElements;                                                                         \
    return CUSOLVER_STATUS_SUCCESS;                                                               \
  }                                                                                               \
  cusolverStatus_t cusolverDn##letter##unitary##gqr(Handle handle, int m, int n, int k, E* a,     \
                                                    int lead, const E* tau, E* work, int size,    \
                                                    int* info) {                                  \
    return e::solved(handle, work && size == e::kElements, [&] {                                  \
      const ScalarType dtype = e::dtype_of(type);                                                 \
      const Tensor factors = aten::select(e::read_columns(tau, dtype, k, 1, k), 1, 0);            \
      e::write_columns(                                                                           \
          aten::linalg_householder_product(e::read_columns(a, dtype, m, n, lead), factors), a,    \
          lead);                                                                                  \
      *info = 0;                                                                                  \
    });                                                                                           \
  }                                                                                               \
  cusolverStatus_t cusolverDn##letter##unitary##mqr_bufferSize(                                   \
      Handle, cublasSideMode_t, cublasOperation_t, int, int, int, const E*, int, const E*,        \
      const E*, int, int* size) {                                                                 \
    *size = e::kElements;                                                                         \
    return CUSOLVER_STATUS_SUCCESS;                                                               \
  }                                                                                               \
  cusolverStatus_t cusolverDn##letter##unitary##mqr(                                              \
      Handle handle, cublasSideMode_t side, cublasOperation_t operation, int m, int n, int k,     \
      const E* a, int lead, const E* tau, E* c, int leading, E* work, int size, int* info) {      \
    const ScalarType dtype = e::dtype_of(type);                                                   \
    const bool right_call = work && size == e::kElements &&                                       \
                            operation != (is_complex(dtype) ? CUBLAS_OP_T : CUBLAS_OP_C);         \
    return e::solved(handle, right_call, [&] {                                                    \
      const bool left = side == CUBLAS_SIDE_LEFT;                                                 \
      const Tensor factors = aten::select(e::read_columns(tau, dtype, k, 1, k), 1, 0);            \
      e::write_columns(                                                                           \
          aten::ormqr(e::read_columns(a, dtype, left ? m : n, k, lead), factors,                  \
                      e::read_columns(c, dtype, m, n, leading), left, operation != CUBLAS_OP_N),  \
          c, leading);                                                                            \
      *info = 0;                                                                                  \
    });                                                                                           \
  }                                                                                               \
  cusolverStatus_t cusolverDn##letter##gesvdjBatched_bufferSize(                                  \
      Handle, cusolverEigMode_t, int, int, const E*, int, const R*, const E*, int, const E*, int, \
      int* size, gesvdjInfo_t, int) {                                                             \
    *size = e::kElements;                                                                         \
    return CUSOLVER_STATUS_SUCCESS;                                                               \
  }                                                                                               \
  /* All of both vectors, V and not V^H. */                                                       \
  cusolverStatus_t cusolverDn##letter##gesvdjBatched(                                             \
      Handle handle, cusolverEigMode_t job, int m, int n, E* a, int lead, R* s, E* u, int left,   \
      E* v, int right, E* work, int size, int* info, gesvdjInfo_t, int count) {                   \
    const bool right_call = m <= 32 && n <= 32 && work && size == e::kElements;                   \
    return e::solved(handle, right_call, [&] {                                                    \
      for (int i = 0; i < count; ++i) {                                                           \
        const auto [us, values, vhs] = aten::_linalg_svd(                                         \
            e::read_columns(a + i * lead * n, e::dtype_of(type), m, n, lead), true, true);        \
        e::write_list(values, s + i * std::min(m, n));                                            \
        if (job == CUSOLVER_EIG_MODE_VECTOR) {                                                    \
          e::write_columns(us, u + i * left * m, left);                                           \
          e::write_columns(aten::adjoint(vhs), v + i * right * n, right);                         \
        }                                                                                         \
        info[i] = 0;                                                                              \
      }                                                                                           \
    });                                                                                           \
  }                                                                                               \
  cusolverStatus_t cusolverDn##letter##sytrf_bufferSize(Handle, int, E*, int, int* size) {        \
    *size = e::kElements;                                                                         \
    return CUSOLVER_STATUS_SUCCESS;                                                               \
  }                                                                                               \
  /* The values above the diagonal are not defined. */                                            \
  cusolverStatus_t cusolverDn##letter##sytrf(Handle handle, cublasFillMode_t triangle, int n,     \
                                             E* a, int lead, int* pivots, E* work, int size,      \
                                             int* info) {                                         \
    const bool right_call = triangle == CUBLAS_FILL_MODE_LOWER && work && size == e::kElements;   \
    return e::solved(handle, right_call, [&] {                                                    \
      const auto [ld, rows, failed] =                                                             \
          aten::_linalg_ldl(e::read_columns(a, e::dtype_of(type), n, n, lead), false);            \
      for (int i = 0; i < n; ++i)                                                                 \
        for (int j = i + 1; j < n; ++j) aten::fill_(e::entry(ld, i, j), 77);                      \
      e::write_columns(ld, a, lead);                                                              \
      e::write_list(rows, pivots);                                                                \
      *info = *failed.template data_as<int>();                                                    \
    });                                                                                           \
  }                                                                                               \
  cusolverStatus_t cusolverDn##letter##potrfBatched(Handle handle, cublasFillMode_t triangle,     \
                                                    int n, E* matrices[], int lead, int* info,    \
                                                    int count) {                                  \
    return e::solved(handle, true, [&] {                                                          \
      for (int i = 0; i < count; ++i)                                                             \
        e::factor(matrices[i], e::dtype_of(type), triangle, n, lead, info + i);                   \
    });                                                                                           \
  }
TREADLE_TYPED(S, or, float, float, CUDA_R_32F)
TREADLE_TYPED(D, or, double, double, CUDA_R_64F)
TREADLE_TYPED(C, un, cuComplex, float, CUDA_C_32F)
TREADLE_TYPED(Z, un, cuDoubleComplex, double, CUDA_C_64F)
#undef TREADLE_TYPED

}  // extern "C"
