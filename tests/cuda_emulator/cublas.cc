// Matrix products of cuBLAS and cuBLASLt for emulated devices, computed in double.
//
// SPDX-License-Identifier: Apache-2.0
#include <cublasLt.h>
#include <cublas_v2.h>

#include <complex>
#include <cstring>
#include <type_traits>
#include <vector>

#include "aten/ops/mm.h"
#include "core/base/half.h"
#include "core/tensor/tensor.h"
#include "tests/cuda_emulator/device.h"

namespace treadle::cuda::emulator {
namespace {

struct Handle {
  cudaStream_t stream = nullptr;
};
Handle& own(cublasHandle_t handle) { return *reinterpret_cast<Handle*>(handle); }

// Matrices by columns.
struct Side {
  const void* data;
  cublasOperation_t operation;
  int64_t leading, batch_stride;
};
struct Product {
  int64_t m, n, k, batch;
  Side a, b;
  const void* addend;
  int64_t addend_leading, addend_stride;
  void* out;
  int64_t leading, batch_stride;
  const void* bias;  // one for each row of the result; or null
};

template <class T>
struct WideOf {
  using type = double;
};
template <class R>
struct WideOf<std::complex<R>> {
  using type = std::complex<double>;
};
template <class T>
using Wide = typename WideOf<T>::type;

template <class T>
Wide<T> wide(const T& v) {
  if constexpr (sizeof(T) == 2)
    return static_cast<float>(v);
  else
    return static_cast<Wide<T>>(v);
}

template <class T>
Wide<T> entry(const Side& s, int64_t batch, int64_t row, int64_t column) {
  const T* const data = static_cast<const T*>(s.data) + batch * s.batch_stride;
  const Wide<T> v = wide(s.operation == CUBLAS_OP_N ? data[row + column * s.leading]
                                                    : data[column + row * s.leading]);
  if constexpr (std::is_same_v<Wide<T>, std::complex<double>>)
    return s.operation == CUBLAS_OP_C ? std::conj(v) : v;
  else
    return v;
}

// A factor by rows.
template <class T>
Tensor factor(const Side& side, int64_t batch, int64_t rows, int64_t columns) {
  const Tensor t = empty_cpu({rows, columns}, scalar_type_of<Wide<T>>);
  Wide<T>* const to = t.data_as<Wide<T>>();
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < columns; ++c) to[r * columns + c] = entry<T>(side, batch, r, c);
  return t;
}

template <class T>
void multiply(const Product& p, Wide<T> alpha, Wide<T> beta) {
  for (int64_t i = 0; i < p.batch; ++i) {
    T* const out = static_cast<T*>(p.out) + i * p.batch_stride;
    const T* const addend = static_cast<const T*>(p.addend) + i * p.addend_stride;
    const Tensor product = aten::mm(factor<T>(p.a, i, p.m, p.k), factor<T>(p.b, i, p.k, p.n));
    const Wide<T>* const sums = product.data_as<Wide<T>>();
    for (int64_t c = 0; c < p.n; ++c) {
      for (int64_t r = 0; r < p.m; ++r) {
        Wide<T> sum = alpha * sums[r * p.n + c];
        if (beta != Wide<T>(0)) sum += beta * wide(addend[r + c * p.addend_leading]);
        if (p.bias) sum += wide(static_cast<const T*>(p.bias)[r]);
        if constexpr (sizeof(T) == 2)
          out[r + c * p.leading] = T(static_cast<float>(sum));
        else
          out[r + c * p.leading] = static_cast<T>(sum);
      }
    }
  }
}

// `Scale` is the type of alpha and beta, which are read at once.
template <class T, class Scale>
void queue_product(const Product& p, const void* alpha, const void* beta, cudaStream_t stream) {
  const auto scale = static_cast<Wide<T>>(*static_cast<const Scale*>(alpha));
  const auto kept = static_cast<Wide<T>>(*static_cast<const Scale*>(beta));
  queue(stream, [=] { multiply<T>(p, scale, kept); });
}

bool queue_product(const Product& p, cudaDataType_t type, cublasComputeType_t compute,
                   const void* alpha, const void* beta, cudaStream_t stream) {
  const bool of_double = type == CUDA_R_64F || type == CUDA_C_64F;
  if (of_double != (compute == CUBLAS_COMPUTE_64F)) return false;
  switch (type) {
    case CUDA_R_64F:
      queue_product<double, double>(p, alpha, beta, stream);
      return true;
    case CUDA_C_64F:
      queue_product<std::complex<double>, std::complex<double>>(p, alpha, beta, stream);
      return true;
    case CUDA_R_32F:
      queue_product<float, float>(p, alpha, beta, stream);
      return true;
    case CUDA_C_32F:
      queue_product<std::complex<float>, std::complex<float>>(p, alpha, beta, stream);
      return true;
    case CUDA_R_16F:
      queue_product<Half, float>(p, alpha, beta, stream);
      return true;
    case CUDA_R_16BF:
      queue_product<BFloat16, float>(p, alpha, beta, stream);
      return true;
    default:
      return false;
  }
}

// The contents of the library's opaque structures here.
struct Layout {
  cudaDataType type;
  uint64_t rows, columns;
  int64_t leading;
};
struct Description {
  cublasComputeType_t compute;
  int32_t operations[2];
  uint32_t epilogue;
  const void* bias;
};
template <class Own, class Opaque>
Own& own_of(const Opaque* opaque) {
  static_assert(sizeof(Own) <= sizeof(Opaque));
  return *reinterpret_cast<Own*>(const_cast<Opaque*>(opaque));
}

}  // namespace
}  // namespace treadle::cuda::emulator

namespace e = treadle::cuda::emulator;

extern "C" {

cublasStatus_t cublasCreate_v2(cublasHandle_t* handle) {
  *handle = reinterpret_cast<cublasHandle_t>(new e::Handle);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t stream) {
  e::own(handle).stream = stream;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t, void* memory, size_t) {
  return memory ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
}
cublasStatus_t cublasSetMathMode(cublasHandle_t, cublasMath_t) { return CUBLAS_STATUS_SUCCESS; }
const char* cublasGetStatusName(cublasStatus_t code) {
  return code == CUBLAS_STATUS_INVALID_VALUE   ? "CUBLAS_STATUS_INVALID_VALUE"
         : code == CUBLAS_STATUS_NOT_SUPPORTED ? "CUBLAS_STATUS_NOT_SUPPORTED"
                                               : "CUBLAS_STATUS_EXECUTION_FAILED";
}
cublasStatus_t cublasGemmStridedBatchedEx(cublasHandle_t handle, cublasOperation_t a_operation,
                                          cublasOperation_t b_operation, int m, int n, int k,
                                          const void* alpha, const void* a, cudaDataType_t a_type,
                                          int a_leading, long long a_stride, const void* b,
                                          cudaDataType_t b_type, int b_leading, long long b_stride,
                                          const void* beta, void* c, cudaDataType_t type,
                                          int leading, long long stride, int batch,
                                          cublasComputeType_t compute, cublasGemmAlgo_t) {
  const int a_rows = a_operation == CUBLAS_OP_N ? m : k,
            b_rows = b_operation == CUBLAS_OP_N ? k : n;
  if (m < 0 || n < 0 || k < 0 || batch < 0 || a_type != type || b_type != type ||
      a_leading < std::max(1, a_rows) || b_leading < std::max(1, b_rows) ||
      leading < std::max(1, m))
    return CUBLAS_STATUS_INVALID_VALUE;
  const e::Product p = {m,
                        n,
                        k,
                        batch,
                        {a, a_operation, a_leading, a_stride},
                        {b, b_operation, b_leading, b_stride},
                        c,
                        leading,
                        stride,
                        c,
                        leading,
                        stride,
                        nullptr};
  return e::queue_product(p, type, compute, alpha, beta, e::own(handle).stream)
             ? CUBLAS_STATUS_SUCCESS
             : CUBLAS_STATUS_NOT_SUPPORTED;
}

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  *handle = reinterpret_cast<cublasLtHandle_t>(new e::Handle);
  return CUBLAS_STATUS_SUCCESS;
}
const char* cublasLtGetStatusName(cublasStatus_t code) { return cublasGetStatusName(code); }
cublasStatus_t cublasLtMatrixLayoutInit_internal(cublasLtMatrixLayout_t layout, size_t,
                                                 cudaDataType type, uint64_t rows, uint64_t columns,
                                                 int64_t leading) {
  if (leading < static_cast<int64_t>(rows)) return CUBLAS_STATUS_INVALID_VALUE;
  e::own_of<e::Layout>(layout) = {type, rows, columns, leading};
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescInit_internal(cublasLtMatmulDesc_t product, size_t,
                                               cublasComputeType_t compute, cudaDataType_t) {
  e::own_of<e::Description>(product) = {compute, {CUBLAS_OP_N, CUBLAS_OP_N}, 1, nullptr};
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t product,
                                              cublasLtMatmulDescAttributes_t attribute,
                                              const void* value, size_t size) {
  e::Description& d = e::own_of<e::Description>(product);
  const auto set = [&](auto& field) {
    if (size != sizeof field) return CUBLAS_STATUS_INVALID_VALUE;
    std::memcpy(&field, value, size);
    return CUBLAS_STATUS_SUCCESS;
  };
  switch (attribute) {
    case CUBLASLT_MATMUL_DESC_TRANSA:
      return set(d.operations[0]);
    case CUBLASLT_MATMUL_DESC_TRANSB:
      return set(d.operations[1]);
    case CUBLASLT_MATMUL_DESC_EPILOGUE:
      return set(d.epilogue);
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
      return set(d.bias);
    default:
      return CUBLAS_STATUS_NOT_SUPPORTED;
  }
}
cublasStatus_t cublasLtMatmulPreferenceInit_internal(cublasLtMatmulPreference_t, size_t) {
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t,
                                                    cublasLtMatmulPreferenceAttributes_t,
                                                    const void*, size_t) {
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t,
                                              cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                                              cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                                              cublasLtMatmulPreference_t, int most,
                                              cublasLtMatmulHeuristicResult_t* found, int* count) {
  *count = most > 0;
  if (most > 0) {
    found[0] = {};
    found[0].workspaceSize = 1024;
    found[0].state = CUBLAS_STATUS_SUCCESS;
  }
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t product, const void* alpha,
                              const void* a, cublasLtMatrixLayout_t a_layout, const void* b,
                              cublasLtMatrixLayout_t b_layout, const void* beta, const void* c,
                              cublasLtMatrixLayout_t c_layout, void* out,
                              cublasLtMatrixLayout_t out_layout, const cublasLtMatmulAlgo_t*,
                              void* memory, size_t bytes, cudaStream_t stream) {
  const auto& d = e::own_of<e::Description>(product);
  const auto &left = e::own_of<e::Layout>(a_layout), &right = e::own_of<e::Layout>(b_layout),
             &addend = e::own_of<e::Layout>(c_layout), &to = e::own_of<e::Layout>(out_layout);
  const bool turned[2] = {d.operations[0] != CUBLAS_OP_N, d.operations[1] != CUBLAS_OP_N};
  const uint64_t m = turned[0] ? left.columns : left.rows, k = turned[0] ? left.rows : left.columns;
  const uint64_t n = turned[1] ? right.rows : right.columns;
  if (k != (turned[1] ? right.columns : right.rows) || to.rows != m || to.columns != n ||
      (bytes > 0 && !memory) || left.type != to.type || right.type != to.type)
    return CUBLAS_STATUS_INVALID_VALUE;
  const auto operation = [&](int i) { return static_cast<cublasOperation_t>(d.operations[i]); };
  const e::Product p = {static_cast<int64_t>(m),
                        static_cast<int64_t>(n),
                        static_cast<int64_t>(k),
                        1,
                        {a, operation(0), left.leading, 0},
                        {b, operation(1), right.leading, 0},
                        c,
                        addend.leading,
                        0,
                        out,
                        to.leading,
                        0,
                        d.epilogue == CUBLASLT_EPILOGUE_BIAS ? d.bias : nullptr};
  return e::queue_product(p, to.type, d.compute, alpha, beta, stream) ? CUBLAS_STATUS_SUCCESS
                                                                      : CUBLAS_STATUS_NOT_SUPPORTED;
}

}  // extern "C"
