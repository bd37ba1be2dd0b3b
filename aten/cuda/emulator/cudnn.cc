// Convolutions of cuDNN for emulated devices, computed in double by the CPU's kernels.
#include <cudnn.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "aten/cuda/emulator/device.h"
#include "aten/ops/_convolution_grad_weight.h"
#include "aten/ops/contiguous.h"
#include "aten/ops/convolution.h"
#include "core/half.h"
#include "core/tensor.h"

namespace treadle::cuda::emulator {
namespace {

using Sizes = std::vector<int>;
struct Handle {
  cudaStream_t stream = nullptr;
};
struct Dense {  // a tensor's or a filter's description
  cudnnDataType_t type;
  Sizes sizes, strides;
};
struct Geometry {
  Sizes padding, stride, dilation;
  cudnnDataType_t compute;
  int groups = 1;
};

template <class Own, class Opaque>
Own& own(Opaque* opaque) {
  return *reinterpret_cast<Own*>(opaque);
}

Sizes contiguous(const Sizes& sizes) {
  Sizes strides(sizes.size());
  int step = 1;
  for (size_t d = sizes.size(); d-- > 0; step *= sizes[d]) strides[d] = step;
  return strides;
}

struct Call {
  Dense x, w, y;
  Geometry g;
  double alpha, beta;
};

template <class T>
double read(const void* data, int64_t at) {
  const T& v = static_cast<const T*>(data)[at];
  if constexpr (sizeof(T) == 2)
    return static_cast<double>(static_cast<float>(v));
  else
    return static_cast<double>(v);
}
template <class T>
void write(void* data, int64_t at, double v, double beta) {
  if (beta != 0) v += beta * read<T>(data, at);
  if constexpr (sizeof(T) == 2)
    static_cast<T*>(data)[at] = T(static_cast<float>(v));
  else
    static_cast<T*>(data)[at] = static_cast<T>(v);
}

int64_t numel(const Dense& d) {
  int64_t n = 1;
  for (const int size : d.sizes) n *= size;
  return n;
}
DimVector dims(const Sizes& sizes) {
  DimVector all;
  for (const int size : sizes) all.push_back(size);
  return all;
}
template <class T>
Tensor in_double(const Dense& d, const void* data) {
  const Tensor t = empty_cpu(dims(d.sizes), ScalarType::Float64);
  double* const to = t.data_as<double>();
  for (int64_t i = 0; i < numel(d); ++i) to[i] = read<T>(data, i);
  return t;
}

enum class Wanted { Y, X, W };
template <class T>
void compute(const Call& c, Wanted wanted, const void* first, const void* second, void* out) {
  const DimVector stride = dims(c.g.stride), padding = dims(c.g.padding),
                  dilation = dims(c.g.dilation);
  Tensor result;
  if (wanted == Wanted::Y) {
    const DimVector none(stride.size(), 0);
    result = aten::convolution(in_double<T>(c.x, first), in_double<T>(c.w, second), Tensor(),
                               stride, padding, dilation, false, none, c.g.groups);
  } else if (wanted == Wanted::X) {
    DimVector rest;  // of x behind where the last window ends
    for (size_t d = 0; d < stride.size(); ++d)
      rest.push_back(c.x.sizes[d + 2] + 2 * padding[d] - dilation[d] * (c.w.sizes[d + 2] - 1) - 1 -
                     stride[d] * (c.y.sizes[d + 2] - 1));
    result = aten::convolution(in_double<T>(c.y, second), in_double<T>(c.w, first), Tensor(),
                               stride, padding, dilation, true, rest, c.g.groups);
  } else {
    result = aten::_convolution_grad_weight(in_double<T>(c.y, second), in_double<T>(c.x, first),
                                            dims(c.w.sizes), stride, padding, dilation, c.g.groups);
  }
  result = aten::contiguous(result);
  for (int64_t i = 0; i < result.numel(); ++i)
    write<T>(out, i, c.alpha * result.data_as<double>()[i], c.beta);
}

// Whether sizes fit each other, as cuDNN checks.
bool fits(const Call& c) {
  const size_t rank = c.x.sizes.size();
  if (c.w.sizes.size() != rank || c.y.sizes.size() != rank || rank < 4 ||
      c.g.stride.size() != rank - 2 || c.x.sizes[0] != c.y.sizes[0] ||
      c.x.sizes[1] != c.w.sizes[1] * c.g.groups || c.y.sizes[1] != c.w.sizes[0] ||
      c.w.sizes[0] % c.g.groups != 0)
    return false;
  for (size_t d = 0; d < rank - 2; ++d) {
    const int reach = c.g.dilation[d] * (c.w.sizes[d + 2] - 1) + 1;
    const int free = c.x.sizes[d + 2] + 2 * c.g.padding[d] - reach;
    if (free < 0 || c.y.sizes[d + 2] != free / c.g.stride[d] + 1) return false;
  }
  return c.x.strides == contiguous(c.x.sizes) && c.y.strides == contiguous(c.y.sizes);
}

double factor(const void* value, cudnnDataType_t type) {
  return type == CUDNN_DATA_DOUBLE ? *static_cast<const double*>(value)
                                   : double{*static_cast<const float*>(value)};
}

Call call_of(cudnnTensorDescriptor_t x, cudnnFilterDescriptor_t w, cudnnTensorDescriptor_t y,
             cudnnConvolutionDescriptor_t g, const void* alpha, const void* beta) {
  const cudnnDataType_t type = own<Dense>(x).type;
  return {own<Dense>(x),    own<Dense>(w),       own<Dense>(y),
          own<Geometry>(g), factor(alpha, type), factor(beta, type)};
}

cudnnStatus_t queue_convolution(cudnnHandle_t handle, const Call& c, Wanted wanted,
                                const void* first, const void* second, void* out, void* memory,
                                size_t bytes) {
  if (!fits(c)) return CUDNN_STATUS_BAD_PARAM;
  if (bytes > 0 && !memory) return CUDNN_STATUS_BAD_PARAM;
  if (c.w.type != c.x.type || c.y.type != c.x.type) return CUDNN_STATUS_NOT_SUPPORTED;
  queue(own<Handle>(handle).stream, [=] {
    switch (c.x.type) {
      case CUDNN_DATA_DOUBLE:
        return compute<double>(c, wanted, first, second, out);
      case CUDNN_DATA_HALF:
        return compute<Half>(c, wanted, first, second, out);
      case CUDNN_DATA_BFLOAT16:
        return compute<BFloat16>(c, wanted, first, second, out);
      default:
        return compute<float>(c, wanted, first, second, out);
    }
  });
  return CUDNN_STATUS_SUCCESS;
}

// Two that would do, of which the first may differ from run to run.
template <class Found, class Algorithm>
cudnnStatus_t offer(bool fit, Algorithm first, Algorithm second, int most, int* count,
                    Found* found) {
  *count = 0;
  if (!fit) return CUDNN_STATUS_BAD_PARAM;
  const auto add = [&](Algorithm algorithm, cudnnDeterminism_t determinism) {
    if (*count == most) return;
    Found& f = found[(*count)++];
    f = {};
    f.algo = algorithm;
    f.status = CUDNN_STATUS_SUCCESS;
    f.determinism = determinism;
    f.memory = 512;
    f.mathType = CUDNN_DEFAULT_MATH;
  };
  add(first, CUDNN_NON_DETERMINISTIC);
  add(second, CUDNN_DETERMINISTIC);
  return CUDNN_STATUS_SUCCESS;
}

}  // namespace
}  // namespace treadle::cuda::emulator

namespace e = treadle::cuda::emulator;

extern "C" {

cudnnStatus_t cudnnCreate(cudnnHandle_t* handle) {
  *handle = reinterpret_cast<cudnnHandle_t>(new e::Handle);
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream) {
  e::own<e::Handle>(handle).stream = stream;
  return CUDNN_STATUS_SUCCESS;
}
const char* cudnnGetErrorString(cudnnStatus_t code) {
  return code == CUDNN_STATUS_BAD_PARAM       ? "CUDNN_STATUS_BAD_PARAM"
         : code == CUDNN_STATUS_NOT_SUPPORTED ? "CUDNN_STATUS_NOT_SUPPORTED"
                                              : "CUDNN_STATUS_EXECUTION_FAILED";
}
cudnnStatus_t cudnnCreateTensorDescriptor(cudnnTensorDescriptor_t* d) {
  *d = reinterpret_cast<cudnnTensorDescriptor_t>(new e::Dense);
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnDestroyTensorDescriptor(cudnnTensorDescriptor_t d) {
  delete &e::own<e::Dense>(d);
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetTensorNdDescriptor(cudnnTensorDescriptor_t d, cudnnDataType_t type, int rank,
                                         const int sizes[], const int strides[]) {
  if (rank < 4 || rank > 8) return CUDNN_STATUS_BAD_PARAM;
  e::own<e::Dense>(d) = {type, {sizes, sizes + rank}, {strides, strides + rank}};
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnCreateFilterDescriptor(cudnnFilterDescriptor_t* d) {
  *d = reinterpret_cast<cudnnFilterDescriptor_t>(new e::Dense);
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnDestroyFilterDescriptor(cudnnFilterDescriptor_t d) {
  delete &e::own<e::Dense>(d);
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetFilterNdDescriptor(cudnnFilterDescriptor_t d, cudnnDataType_t type,
                                         cudnnTensorFormat_t format, int rank, const int sizes[]) {
  if (format != CUDNN_TENSOR_NCHW || rank < 4) return CUDNN_STATUS_BAD_PARAM;
  const e::Sizes all(sizes, sizes + rank);
  e::own<e::Dense>(d) = {type, all, e::contiguous(all)};
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnCreateConvolutionDescriptor(cudnnConvolutionDescriptor_t* d) {
  *d = reinterpret_cast<cudnnConvolutionDescriptor_t>(new e::Geometry);
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnDestroyConvolutionDescriptor(cudnnConvolutionDescriptor_t d) {
  delete &e::own<e::Geometry>(d);
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetConvolutionNdDescriptor(cudnnConvolutionDescriptor_t d, int rank,
                                              const int padding[], const int stride[],
                                              const int dilation[], cudnnConvolutionMode_t mode,
                                              cudnnDataType_t compute) {
  if (mode != CUDNN_CROSS_CORRELATION) return CUDNN_STATUS_NOT_SUPPORTED;
  e::Geometry& g = e::own<e::Geometry>(d);
  g.padding.assign(padding, padding + rank);
  g.stride.assign(stride, stride + rank);
  g.dilation.assign(dilation, dilation + rank);
  g.compute = compute;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetConvolutionGroupCount(cudnnConvolutionDescriptor_t d, int groups) {
  e::own<e::Geometry>(d).groups = groups;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetConvolutionMathType(cudnnConvolutionDescriptor_t, cudnnMathType_t) {
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnCreateActivationDescriptor(cudnnActivationDescriptor_t* d) {
  *d = reinterpret_cast<cudnnActivationDescriptor_t>(new int);
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnDestroyActivationDescriptor(cudnnActivationDescriptor_t d) {
  delete reinterpret_cast<int*>(d);
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetActivationDescriptor(cudnnActivationDescriptor_t, cudnnActivationMode_t mode,
                                           cudnnNanPropagation_t, double) {
  return mode == CUDNN_ACTIVATION_IDENTITY ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_NOT_SUPPORTED;
}

cudnnStatus_t cudnnGetConvolutionForwardAlgorithm_v7(cudnnHandle_t, const cudnnTensorDescriptor_t x,
                                                     const cudnnFilterDescriptor_t w,
                                                     const cudnnConvolutionDescriptor_t g,
                                                     const cudnnTensorDescriptor_t y,
                                                     const int most, int* count,
                                                     cudnnConvolutionFwdAlgoPerf_t* found) {
  const float one = 1;
  const double two[2] = {1, 1};
  const void* const any = e::own<e::Dense>(x).type == CUDNN_DATA_DOUBLE
                              ? static_cast<const void*>(two)
                              : static_cast<const void*>(&one);
  return e::offer(e::fits(e::call_of(x, w, y, g, any, any)), CUDNN_CONVOLUTION_FWD_ALGO_FFT,
                  CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM, most, count, found);
}
cudnnStatus_t cudnnGetConvolutionBackwardDataAlgorithm_v7(
    cudnnHandle_t, const cudnnFilterDescriptor_t, const cudnnTensorDescriptor_t,
    const cudnnConvolutionDescriptor_t, const cudnnTensorDescriptor_t, const int most, int* count,
    cudnnConvolutionBwdDataAlgoPerf_t* found) {
  return e::offer(true, CUDNN_CONVOLUTION_BWD_DATA_ALGO_0, CUDNN_CONVOLUTION_BWD_DATA_ALGO_1, most,
                  count, found);
}
cudnnStatus_t cudnnGetConvolutionBackwardFilterAlgorithm_v7(
    cudnnHandle_t, const cudnnTensorDescriptor_t, const cudnnTensorDescriptor_t,
    const cudnnConvolutionDescriptor_t, const cudnnFilterDescriptor_t, const int most, int* count,
    cudnnConvolutionBwdFilterAlgoPerf_t* found) {
  return e::offer(true, CUDNN_CONVOLUTION_BWD_FILTER_ALGO_0, CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1,
                  most, count, found);
}
cudnnStatus_t cudnnFindConvolutionForwardAlgorithmEx(
    cudnnHandle_t handle, const cudnnTensorDescriptor_t x, const void*,
    const cudnnFilterDescriptor_t w, const void*, const cudnnConvolutionDescriptor_t g,
    const cudnnTensorDescriptor_t y, void*, const int most, int* count,
    cudnnConvolutionFwdAlgoPerf_t* found, void*, size_t) {
  return cudnnGetConvolutionForwardAlgorithm_v7(handle, x, w, g, y, most, count, found);
}
cudnnStatus_t cudnnFindConvolutionBackwardDataAlgorithmEx(
    cudnnHandle_t handle, const cudnnFilterDescriptor_t w, const void*,
    const cudnnTensorDescriptor_t y, const void*, const cudnnConvolutionDescriptor_t g,
    const cudnnTensorDescriptor_t x, void*, const int most, int* count,
    cudnnConvolutionBwdDataAlgoPerf_t* found, void*, size_t) {
  return cudnnGetConvolutionBackwardDataAlgorithm_v7(handle, w, y, g, x, most, count, found);
}
cudnnStatus_t cudnnFindConvolutionBackwardFilterAlgorithmEx(
    cudnnHandle_t handle, const cudnnTensorDescriptor_t x, const void*,
    const cudnnTensorDescriptor_t y, const void*, const cudnnConvolutionDescriptor_t g,
    const cudnnFilterDescriptor_t w, void*, const int most, int* count,
    cudnnConvolutionBwdFilterAlgoPerf_t* found, void*, size_t) {
  return cudnnGetConvolutionBackwardFilterAlgorithm_v7(handle, x, y, g, w, most, count, found);
}

cudnnStatus_t cudnnConvolutionForward(cudnnHandle_t handle, const void* alpha,
                                      const cudnnTensorDescriptor_t x_is, const void* x,
                                      const cudnnFilterDescriptor_t w_is, const void* w,
                                      const cudnnConvolutionDescriptor_t g,
                                      cudnnConvolutionFwdAlgo_t, void* memory, size_t bytes,
                                      const void* beta, const cudnnTensorDescriptor_t y_is,
                                      void* y) {
  return e::queue_convolution(handle, e::call_of(x_is, w_is, y_is, g, alpha, beta), e::Wanted::Y, x,
                              w, y, memory, bytes);
}
cudnnStatus_t cudnnConvolutionBiasActivationForward(
    cudnnHandle_t handle, const void* alpha, const cudnnTensorDescriptor_t x_is, const void* x,
    const cudnnFilterDescriptor_t w_is, const void* w, const cudnnConvolutionDescriptor_t g,
    cudnnConvolutionFwdAlgo_t algorithm, void* memory, size_t bytes, const void* beta,
    const cudnnTensorDescriptor_t, const void*, const cudnnTensorDescriptor_t bias_is,
    const void* bias, const cudnnActivationDescriptor_t, const cudnnTensorDescriptor_t y_is,
    void* y) {
  const cudnnDataType_t type = e::own<e::Dense>(y_is).type;
  const e::Sizes sizes = e::own<e::Dense>(y_is).sizes;
  e::Sizes per_channel(sizes.size(), 1);
  per_channel[1] = sizes[1];
  if (e::own<e::Dense>(bias_is).sizes != per_channel || e::own<e::Dense>(bias_is).type != type)
    return CUDNN_STATUS_BAD_PARAM;
  if (type != CUDNN_DATA_FLOAT && type != CUDNN_DATA_DOUBLE) return CUDNN_STATUS_NOT_SUPPORTED;
  const cudnnStatus_t status = cudnnConvolutionForward(handle, alpha, x_is, x, w_is, w, g,
                                                       algorithm, memory, bytes, beta, y_is, y);
  if (status != CUDNN_STATUS_SUCCESS) return status;
  e::queue(e::own<e::Handle>(handle).stream, [=] {
    int64_t points = 1, all = 1;
    for (size_t d = 0; d < sizes.size(); ++d) {
      all *= sizes[d];
      if (d > 1) points *= sizes[d];
    }
    for (int64_t i = 0; i < all; ++i) {
      const int64_t channel = i / points % sizes[1];
      if (type == CUDNN_DATA_DOUBLE)
        e::write<double>(y, i, e::read<double>(bias, channel), 1);
      else
        e::write<float>(y, i, e::read<float>(bias, channel), 1);
    }
  });
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnConvolutionBackwardData(cudnnHandle_t handle, const void* alpha,
                                           const cudnnFilterDescriptor_t w_is, const void* w,
                                           const cudnnTensorDescriptor_t y_is, const void* y,
                                           const cudnnConvolutionDescriptor_t g,
                                           cudnnConvolutionBwdDataAlgo_t, void* memory,
                                           size_t bytes, const void* beta,
                                           const cudnnTensorDescriptor_t x_is, void* x) {
  return e::queue_convolution(handle, e::call_of(x_is, w_is, y_is, g, alpha, beta), e::Wanted::X, w,
                              y, x, memory, bytes);
}
cudnnStatus_t cudnnConvolutionBackwardFilter(cudnnHandle_t handle, const void* alpha,
                                             const cudnnTensorDescriptor_t x_is, const void* x,
                                             const cudnnTensorDescriptor_t y_is, const void* y,
                                             const cudnnConvolutionDescriptor_t g,
                                             cudnnConvolutionBwdFilterAlgo_t, void* memory,
                                             size_t bytes, const void* beta,
                                             const cudnnFilterDescriptor_t w_is, void* w) {
  return e::queue_convolution(handle, e::call_of(x_is, w_is, y_is, g, alpha, beta), e::Wanted::W, x,
                              y, w, memory, bytes);
}

}  // extern "C"
