// Matrix products of floating and complex numbers by cuBLAS: mm, addmm, bmm, baddbmm. Matrices may
// have any strides. A matrix with one contiguous dimension is read directly, transposed if
// necessary; others are copied first. A vector that addmm adds to each row is added while the
// product is written (bias_products.h).
//
// cuBLAS reads matrices by columns. A product by rows is the product of the transposed factors in
// reverse order.
//
// SPDX-License-Identifier: Apache-2.0
#include <cublas_api.h>

#include "aten/backend/cuda/kernels/registration.h"
#include "aten/backend/cuda/libraries/kept_by_thread.h"
#include "aten/backend/cuda/outside_capture.h"
#include "aten/backend/cuda/shared_library.h"
#include "aten/ops/addmm.h"
#include "aten/ops/baddbmm.h"
#include "aten/ops/bmm.h"
#include "aten/ops/contiguous.h"
#include "aten/ops/matmul/cuda/addend.h"
#include "aten/ops/matmul/cuda/bias_products.h"
#include "aten/ops/mm.h"
#include "aten/ops/mul.h"
#include "aten/ops/zero_.h"
#include "core/base/math_switches.h"

namespace treadle::cuda {
namespace {

struct Cublas {
  SharedLibrary library{"libcublas.so.13", "multiplies matrices", "nvidia-cublas"};
#define TREADLE_CUBLAS(name, symbol)               \
  std::remove_pointer_t<decltype(&symbol)>* name = \
      library.function<std::remove_pointer_t<decltype(&symbol)>>(#symbol)
  TREADLE_CUBLAS(create, cublasCreate_v2);
  TREADLE_CUBLAS(set_stream, cublasSetStream_v2);
  TREADLE_CUBLAS(set_workspace, cublasSetWorkspace_v2);
  TREADLE_CUBLAS(set_math_mode, cublasSetMathMode);
  TREADLE_CUBLAS(status_name, cublasGetStatusName);
#undef TREADLE_CUBLAS
  // The full type, because the header has a second function of its name.
  using Gemm = cublasStatus_t(cublasHandle_t, cublasOperation_t, cublasOperation_t, int, int, int,
                              const void*, const void*, cudaDataType, int, long long, const void*,
                              cudaDataType, int, long long, const void*, void*, cudaDataType, int,
                              long long, int, cublasComputeType_t, cublasGemmAlgo_t);
  Gemm* gemm = library.function<Gemm>("cublasGemmStridedBatchedEx");
};
const Cublas& cublas() {
  static const auto* cublas = new Cublas;
  return *cublas;
}

void succeed_cublas(cublasStatus_t code, const char* doing) {
  check<ErrorKind::Runtime>(code == CUBLAS_STATUS_SUCCESS, OpName("cuda"), "expected ", doing,
                            " to succeed, got ", cublas().status_name(code));
}

// This thread's handle on a device.
cublasHandle_t handle_on(int device) {
  cublasHandle_t& handle = kept_by_thread<std::map<int, cublasHandle_t>>()[device];
  if (!handle) {
    const OutsideCapture outside;  // it asks for memory
    succeed_cublas(cublas().create(&handle), "starting cuBLAS");
    // Sums of 16-bit numbers stay in float32. A call's compute type determines everything else.
    succeed_cublas(
        cublas().set_math_mode(
            handle, static_cast<cublasMath_t>(CUBLAS_DEFAULT_MATH |
                                              CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION)),
        "setting up cuBLAS");
  }
  return handle;
}

// The size of cuBLAS's workspace: at least NVIDIA's recommendation for the device.
int64_t workspace_bytes(int device) {
  return int64_t{device_facts(device).architecture >= 90 ? 32 : 8} << 20;
}

// This thread's handle in its stream on a device, for one call. Without a workspace cuBLAS shares
// one of its own among streams, and its free part decides the split of a product. The bits would
// then depend on concurrent work. The allocator gives a stream's memory to that stream alone, and
// within a capture of the graph's own.
class CublasCall {
 public:
  explicit CublasCall(int device)
      : handle_(handle_on(device)),
        workspace_(empty_tensor({workspace_bytes(device)}, ScalarType::UInt8,
                                {DeviceType::CUDA, static_cast<int8_t>(device)})) {
    succeed_cublas(cublas().set_stream(handle_, stream_on(device)), "choosing cuBLAS's stream");
    // After the stream, because setting the stream resets cuBLAS to its own workspace.
    succeed_cublas(
        cublas().set_workspace(handle_, workspace_.data(), static_cast<size_t>(workspace_.numel())),
        "giving cuBLAS memory");
  }
  cublasHandle_t handle() const { return handle_; }

 private:
  cublasHandle_t handle_;
  Tensor workspace_;
};

struct Types {
  cudaDataType_t data;
  cublasComputeType_t compute;
};
template <class T>
Types types_of() {
  if constexpr (std::is_same_v<T, double>) return {CUDA_R_64F, CUBLAS_COMPUTE_64F};
  if constexpr (std::is_same_v<T, std::complex<double>>) return {CUDA_C_64F, CUBLAS_COMPUTE_64F};
  if constexpr (std::is_same_v<T, Half>) return {CUDA_R_16F, CUBLAS_COMPUTE_32F};
  if constexpr (std::is_same_v<T, BFloat16>) return {CUDA_R_16BF, CUBLAS_COMPUTE_32F};
  const cublasComputeType_t compute =
      math_switches().matmul_tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
  return {std::is_same_v<T, float> ? CUDA_R_32F : CUDA_C_32F, compute};
}

// A row-major factor; `transposed` if its columns are contiguous.
struct Factor {
  Tensor tensor;
  bool transposed;
  int64_t leading, batch_stride;
};

Factor factor_of(const Tensor& t) {
  const size_t d = t.sizes().size() - 2;
  const int64_t rows = t.sizes()[d], columns = t.sizes()[d + 1];
  const int64_t down = t.strides()[d], across = t.strides()[d + 1];
  const int64_t batch = d ? t.strides()[0] : 0;
  if (batch >= 0) {
    if (across == 1 && (down >= std::max<int64_t>(1, columns) || rows == 1))
      return {t, false, std::max(down, std::max<int64_t>(1, columns)), batch};
    if (down == 1 && (across >= std::max<int64_t>(1, rows) || columns == 1))
      return {t, true, std::max(across, std::max<int64_t>(1, rows)), batch};
  }
  const Tensor packed = aten::contiguous(t);
  return {packed, false, std::max<int64_t>(1, columns), rows * columns};
}

void check_sizes(std::initializer_list<int64_t> sizes) {
  for (const int64_t n : sizes)
    check<ErrorKind::Runtime>(n <= INT32_MAX, OpName("mm"),
                              "expected sizes below 2^31 on cuda, got ", n);
}

// out = alpha a b + beta out, of matrices or of batches of them; out is contiguous.
template <class T>
void multiply(const Tensor& a, const Tensor& b, const Tensor& out, const Scalar& alpha,
              const Scalar& beta) {
  if (out.numel() == 0) return;
  const size_t d = out.sizes().size() - 2;
  const int64_t batch = d ? out.sizes()[0] : 1, rows = out.sizes()[d], columns = out.sizes()[d + 1];
  const int64_t inner = a.sizes()[d + 1];
  check_sizes({batch, rows, columns, inner});
  if (inner == 0) {  // no product: the result is the addend
    if (beta.equal(0))
      aten::zero_(out);
    else
      aten::mul_(out, beta);
    return;
  }
  using C = std::conditional_t<sizeof(T) == 2, float, T>;
  const C scale = alpha.to<C>(), kept = beta.to<C>();
  const Factor left = factor_of(a), right = factor_of(b);
  const int device = out.device().index;
  const DeviceGuard guard(device);
  const Types types = types_of<T>();
  const auto operation = [](const Factor& f) { return f.transposed ? CUBLAS_OP_T : CUBLAS_OP_N; };
  const auto as_int = [](int64_t v) { return static_cast<int>(v); };
  const CublasCall call(device);
  succeed_cublas(
      cublas().gemm(call.handle(), operation(right), operation(left), as_int(columns), as_int(rows),
                    as_int(inner), &scale, right.tensor.data(), types.data, as_int(right.leading),
                    right.batch_stride, left.tensor.data(), types.data, as_int(left.leading),
                    left.batch_stride, &kept, out.data(), types.data, as_int(columns),
                    rows * columns, as_int(batch), types.compute, CUBLAS_GEMM_DEFAULT),
      "multiplying matrices");
}

template <class T>
void mm_cuda(const Tensor& self, const Tensor& mat2, const Tensor& out) {
  multiply<T>(self, mat2, out, Scalar(1), Scalar(0));
}
// Whether one vector is added to each row, and the product has done so.
template <class T>
bool multiply_and_add_row(const Tensor& row, const Tensor& a, const Tensor& b, const Scalar& alpha,
                          const Scalar& beta, const Tensor& out) {
  if constexpr (std::is_same_v<T, float> || sizeof(T) == 2) {
    const size_t last = row.sizes().size();
    const int64_t rows = out.sizes()[0], columns = out.sizes()[1], inner = a.sizes()[1];
    if (out.sizes().size() != 2 || last == 0 || last > 2 || inner == 0 || !beta.equal(1) ||
        row.sizes()[last - 1] != columns || row.strides()[last - 1] != 1 ||
        (last == 2 && row.sizes()[0] != 1 && row.strides()[0] != 0))
      return false;
    check_sizes({rows, columns, inner});
    const Factor left = factor_of(a), right = factor_of(b);
    const int device = out.device().index;
    const DeviceGuard guard(device);
    const Types types = types_of<T>();
    return multiply_with_bias({device, stream_on(device), types.data, types.compute,
                               right.transposed, left.transposed, columns, rows, inner,
                               right.leading, left.leading, right.tensor.data(), left.tensor.data(),
                               row.data(), out.data(), alpha.to<float>()});
  }
  return false;
}

// With beta == 0 the addend is ignored altogether, even a NaN in it.
template <class T>
void addmm_cuda(const Tensor& self, const Tensor& mat1, const Tensor& mat2, const Scalar& beta,
                const Scalar& alpha, const Tensor& out) {
  if (out.numel() == 0 || multiply_and_add_row<T>(self, mat1, mat2, alpha, beta, out)) return;
  if (!beta.equal(0)) fill_with(self, out);
  multiply<T>(mat1, mat2, out, alpha, beta);
}

using Multiplied =
    TypeList<float, double, Half, BFloat16, std::complex<float>, std::complex<double>>;

const auto mm_registered = register_cuda<aten::ops::mm>(
    Multiplied(), []<class T>() { return &mm_cuda<T>; }, "mm_cuda");
const auto bmm_registered = register_cuda<aten::ops::bmm>(
    Multiplied(), []<class T>() { return &mm_cuda<T>; }, "mm_cuda");
const auto addmm_registered = register_cuda<aten::ops::addmm>(
    Multiplied(), []<class T>() { return &addmm_cuda<T>; }, "addmm_cuda");
const auto baddbmm_registered = register_cuda<aten::ops::baddbmm>(
    Multiplied(), []<class T>() { return &addmm_cuda<T>; }, "addmm_cuda");

}  // namespace
}  // namespace treadle::cuda
