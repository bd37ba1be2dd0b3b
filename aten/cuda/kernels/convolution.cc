// Convolutions and their gradients by cuDNN, of one to three spatial dimensions. The algorithm is
// the fastest of those that give the same bits each time: by cuDNN's own estimate, or, where the
// program wants it (core/math_switches.h), by time. It is chosen once for each geometry.
#include <cudnn.h>

#include <array>
#include <map>

#include "aten/cuda/kernels/registration.h"
#include "aten/cuda/shared_library.h"
#include "aten/ops/_convolution_grad_weight.h"
#include "aten/ops/add.h"
#include "aten/ops/constant_pad_nd.h"
#include "aten/ops/contiguous.h"
#include "aten/ops/convolution.h"
#include "aten/ops/copy_.h"
#include "aten/ops/imag.h"
#include "aten/ops/real.h"
#include "aten/ops/sub.h"
#include "aten/ops/zero_.h"
#include "aten/shape/conv.h"
#include "core/math_switches.h"

namespace treadle::cuda {
namespace {

struct Cudnn {
  SharedLibrary library{"libcudnn.so.9", "computes convolutions", "nvidia-cudnn-cu13"};
#define TREADLE_CUDNN(name)                             \
  std::remove_pointer_t<decltype(&cudnn##name)>* name = \
      library.function<std::remove_pointer_t<decltype(&cudnn##name)>>("cudnn" #name)
  TREADLE_CUDNN(Create);
  TREADLE_CUDNN(SetStream);
  TREADLE_CUDNN(GetErrorString);
  TREADLE_CUDNN(CreateTensorDescriptor);
  TREADLE_CUDNN(DestroyTensorDescriptor);
  TREADLE_CUDNN(SetTensorNdDescriptor);
  TREADLE_CUDNN(CreateFilterDescriptor);
  TREADLE_CUDNN(DestroyFilterDescriptor);
  TREADLE_CUDNN(SetFilterNdDescriptor);
  TREADLE_CUDNN(CreateConvolutionDescriptor);
  TREADLE_CUDNN(DestroyConvolutionDescriptor);
  TREADLE_CUDNN(SetConvolutionNdDescriptor);
  TREADLE_CUDNN(SetConvolutionGroupCount);
  TREADLE_CUDNN(SetConvolutionMathType);
  TREADLE_CUDNN(GetConvolutionForwardAlgorithm_v7);
  TREADLE_CUDNN(GetConvolutionBackwardDataAlgorithm_v7);
  TREADLE_CUDNN(GetConvolutionBackwardFilterAlgorithm_v7);
  TREADLE_CUDNN(FindConvolutionForwardAlgorithmEx);
  TREADLE_CUDNN(FindConvolutionBackwardDataAlgorithmEx);
  TREADLE_CUDNN(FindConvolutionBackwardFilterAlgorithmEx);
  TREADLE_CUDNN(CreateActivationDescriptor);
  TREADLE_CUDNN(DestroyActivationDescriptor);
  TREADLE_CUDNN(SetActivationDescriptor);
  TREADLE_CUDNN(ConvolutionForward);
  TREADLE_CUDNN(ConvolutionBiasActivationForward);
  TREADLE_CUDNN(ConvolutionBackwardData);
  TREADLE_CUDNN(ConvolutionBackwardFilter);
#undef TREADLE_CUDNN
};
const Cudnn& cudnn() {
  static const auto* cudnn = new Cudnn;
  return *cudnn;
}

void succeed_cudnn(cudnnStatus_t code, const char* doing) {
  check<ErrorKind::Runtime>(code == CUDNN_STATUS_SUCCESS, "cuda: expected ", doing,
                            " to succeed, got ", cudnn().GetErrorString(code));
}

// This thread's handle on a device.
cudnnHandle_t handle_on(int device) {
  thread_local std::map<int, cudnnHandle_t> handles;
  cudnnHandle_t& handle = handles[device];
  if (!handle) succeed_cudnn(cudnn().Create(&handle), "starting cuDNN");
  succeed_cudnn(cudnn().SetStream(handle, stream_on(device)), "choosing cuDNN's stream");
  return handle;
}

// A descriptor for the time of a call.
template <class Handle>
class Description {
 public:
  using Make = cudnnStatus_t(Handle*);
  using Free = cudnnStatus_t(Handle);
  Description(Make* make, Free* free) : free_(free) {
    succeed_cudnn(make(&handle_), "describing a convolution");
  }
  Description(const Description&) = delete;
  ~Description() { free_(handle_); }
  Handle get() const { return handle_; }

 private:
  Handle handle_ = nullptr;
  Free* free_;
};

// Sizes as cuDNN takes them: two leading ones, then at least two of space.
using Sizes = std::vector<int>;
Sizes sizes_of(IntList sizes, size_t spatial) {
  Sizes all;
  if (sizes.size() == spatial + 1) all.push_back(1);  // an image without a batch
  for (const int64_t size : sizes) {
    check<ErrorKind::Runtime>(size <= INT32_MAX,
                              "convolution: expected sizes below 2^31 on cuda, "
                              "got ",
                              size);
    all.push_back(static_cast<int>(size));
  }
  if (spatial == 1) all.insert(all.begin() + 2, 1);
  return all;
}
Sizes entries_of(IntList list, size_t spatial, int missing) {
  Sizes all;
  if (spatial == 1) all.push_back(missing);
  for (size_t d = 0; d < spatial; ++d) all.push_back(static_cast<int>(shape::entry_of(list, d)));
  return all;
}

template <class T>
constexpr cudnnDataType_t kData = std::is_same_v<T, double>     ? CUDNN_DATA_DOUBLE
                                  : std::is_same_v<T, Half>     ? CUDNN_DATA_HALF
                                  : std::is_same_v<T, BFloat16> ? CUDNN_DATA_BFLOAT16
                                                                : CUDNN_DATA_FLOAT;

using TensorDescription = Description<cudnnTensorDescriptor_t>;
// A contiguous tensor.
template <class T>
void describe(const TensorDescription& d, const Sizes& sizes) {
  Sizes steps(sizes.size());
  int step = 1;
  for (size_t i = sizes.size(); i-- > 0; step *= sizes[i]) steps[i] = step;
  succeed_cudnn(cudnn().SetTensorNdDescriptor(d.get(), kData<T>, static_cast<int>(sizes.size()),
                                              sizes.data(), steps.data()),
                "describing a convolution");
}

struct Choice {
  int algorithm;
  cudnnMathType_t math;
  size_t workspace;
};

// The plain convolution from x to y that a call is about, in whichever direction it goes.
template <class T>
struct Convolution {
  Sizes x, w, y, stride, padding, dilation;
  int groups;
  TensorDescription x_is{cudnn().CreateTensorDescriptor, cudnn().DestroyTensorDescriptor};
  TensorDescription y_is{cudnn().CreateTensorDescriptor, cudnn().DestroyTensorDescriptor};
  Description<cudnnFilterDescriptor_t> w_is{cudnn().CreateFilterDescriptor,
                                            cudnn().DestroyFilterDescriptor};
  Description<cudnnConvolutionDescriptor_t> is{cudnn().CreateConvolutionDescriptor,
                                               cudnn().DestroyConvolutionDescriptor};

  Convolution(IntList from, IntList weight, IntList to, IntList strides, IntList paddings,
              IntList dilations, int64_t group_count)
      : groups(static_cast<int>(group_count)) {
    const size_t spatial = weight.size() - 2;
    x = sizes_of(from, spatial);
    w = sizes_of(weight, spatial);
    y = sizes_of(to, spatial);
    stride = entries_of(strides, spatial, 1);
    padding = entries_of(paddings, spatial, 0);
    dilation = entries_of(dilations, spatial, 1);
    const char* const doing = "describing a convolution";
    describe<T>(x_is, x);
    describe<T>(y_is, y);
    succeed_cudnn(cudnn().SetFilterNdDescriptor(w_is.get(), kData<T>, CUDNN_TENSOR_NCHW,
                                                static_cast<int>(w.size()), w.data()),
                  doing);
    constexpr bool narrow = sizeof(T) == 2;
    succeed_cudnn(cudnn().SetConvolutionNdDescriptor(is.get(), static_cast<int>(stride.size()),
                                                     padding.data(), stride.data(), dilation.data(),
                                                     CUDNN_CROSS_CORRELATION,
                                                     narrow ? CUDNN_DATA_FLOAT : kData<T>),
                  doing);
    succeed_cudnn(cudnn().SetConvolutionGroupCount(is.get(), groups), doing);
    use(allowed_math());
  }

  // FMA: products of float32 are products of float32. The default may round factors to TF32.
  static cudnnMathType_t allowed_math() {
    if (sizeof(T) == 2) return CUDNN_TENSOR_OP_MATH;
    return math_switches().convolution_tf32 ? CUDNN_DEFAULT_MATH : CUDNN_FMA_MATH;
  }
  void use(cudnnMathType_t math) const {
    succeed_cudnn(cudnn().SetConvolutionMathType(is.get(), math), "describing a convolution");
  }

  // What tells apart convolutions whose algorithms may differ.
  std::vector<int> key(int device, int direction) const {
    std::vector<int> all = {device, direction, static_cast<int>(kData<T>), allowed_math(), groups};
    for (const Sizes* part : {&x, &w, &y, &stride, &padding, &dilation})
      all.insert(all.end(), part->begin(), part->end());
    return all;
  }
};

Tensor workspace(size_t bytes, const Tensor& beside) {
  return empty_tensor({static_cast<int64_t>(bytes)}, ScalarType::UInt8, beside.device());
}

// Whether algorithms are to be timed; not while work is recorded rather than done.
bool by_time(int device) {
  if (!math_switches().convolution_benchmark || math_switches().convolution_deterministic)
    return false;
  cudaStreamCaptureStatus status{};
  succeed(cudaStreamIsCapturing(stream_on(device), &status), "looking at a stream");
  return status == cudaStreamCaptureStatusNone;
}

// The choice for a key, made the first time: ask(most, count, found) gives the algorithms by
// cuDNN's estimate, time(most, count, found, workspace, bytes) by measurement, which writes `out`.
template <class Found, class Ask, class Time>
Choice choice_for(std::vector<int> key, const Tensor& out, Ask ask, Time time) {
  constexpr size_t kMostWorkspace = size_t{1} << 30;
  const bool timed = by_time(out.device().index);
  key.push_back(timed);
  static auto* mutex = new std::mutex;
  static auto* known = new std::map<std::vector<int>, Choice>;
  const std::lock_guard lock(*mutex);
  const auto it = known->find(key);
  if (it != known->end()) return it->second;
  const auto fits = [](const Found& f) {
    return f.status == CUDNN_STATUS_SUCCESS && f.determinism == CUDNN_DETERMINISTIC &&
           f.memory <= kMostWorkspace;
  };
  constexpr const char* kDoing = "choosing a convolution's algorithm";
  std::array<Found, 16> found;
  int count = 0;
  succeed_cudnn(ask(static_cast<int>(found.size()), &count, found.data()), kDoing);
  if (timed) {
    size_t bytes = 0;
    for (int i = 0; i < count; ++i)
      if (fits(found[static_cast<size_t>(i)]))
        bytes = std::max(bytes, found[static_cast<size_t>(i)].memory);
    const Tensor space = workspace(bytes, out);
    succeed_cudnn(time(static_cast<int>(found.size()), &count, found.data(), space.data(), bytes),
                  kDoing);
  }
  for (int i = 0; i < count; ++i) {
    const Found& f = found[static_cast<size_t>(i)];
    if (fits(f))
      return known->emplace(key, Choice{static_cast<int>(f.algo), f.mathType, f.memory})
          .first->second;
  }
  fail<ErrorKind::NotImplemented>(
      "convolution: expected sizes that cuDNN has a deterministic "
      "algorithm for, got others");
}

template <class T>
using Factor = std::conditional_t<std::is_same_v<T, double>, double, float>;

// y of x, with the bias added where cuDNN does that in the same kernel: true then.
template <class T>
bool forward(const Convolution<T>& c, const Tensor& x, const Tensor& w, const Tensor& bias,
             const Tensor& y) {
  const int device = y.device().index;
  const cudnnHandle_t handle = handle_on(device);
  using Found = cudnnConvolutionFwdAlgoPerf_t;
  const Choice choice = choice_for<Found>(
      c.key(device, 0), y,
      [&](int most, int* count, Found* found) {
        return cudnn().GetConvolutionForwardAlgorithm_v7(
            handle, c.x_is.get(), c.w_is.get(), c.is.get(), c.y_is.get(), most, count, found);
      },
      [&](int most, int* count, Found* found, void* space, size_t bytes) {
        return cudnn().FindConvolutionForwardAlgorithmEx(
            handle, c.x_is.get(), x.data(), c.w_is.get(), w.data(), c.is.get(), c.y_is.get(),
            y.data(), most, count, found, space, bytes);
      });
  c.use(choice.math);
  const Tensor space = workspace(choice.workspace, y);
  const Factor<T> one = 1, zero = 0;
  // The only algorithm for which cuDNN adds a bias without an activation.
  if (bias.defined() && choice.algorithm == CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM) {
    const TensorDescription bias_is(cudnn().CreateTensorDescriptor,
                                    cudnn().DestroyTensorDescriptor);
    Sizes sizes(c.y.size(), 1);
    sizes[1] = c.y[1];
    describe<T>(bias_is, sizes);
    const Description<cudnnActivationDescriptor_t> none(cudnn().CreateActivationDescriptor,
                                                        cudnn().DestroyActivationDescriptor);
    succeed_cudnn(cudnn().SetActivationDescriptor(none.get(), CUDNN_ACTIVATION_IDENTITY,
                                                  CUDNN_PROPAGATE_NAN, 0),
                  "describing a convolution");
    const Tensor b = aten::contiguous(bias);
    const cudnnStatus_t status = cudnn().ConvolutionBiasActivationForward(
        handle, &one, c.x_is.get(), x.data(), c.w_is.get(), w.data(), c.is.get(),
        static_cast<cudnnConvolutionFwdAlgo_t>(choice.algorithm), space.data(), choice.workspace,
        &zero, c.y_is.get(), y.data(), bias_is.get(), b.data(), none.get(), c.y_is.get(), y.data());
    if (status == CUDNN_STATUS_SUCCESS) return true;
    // cuDNN has its rules for what it fuses. Without the bias a real failure shows again.
  }
  succeed_cudnn(cudnn().ConvolutionForward(
                    handle, &one, c.x_is.get(), x.data(), c.w_is.get(), w.data(), c.is.get(),
                    static_cast<cudnnConvolutionFwdAlgo_t>(choice.algorithm), space.data(),
                    choice.workspace, &zero, c.y_is.get(), y.data()),
                "computing a convolution");
  return false;
}

// x's gradient of y's: also what a transposed convolution computes.
template <class T>
void backward_data(const Convolution<T>& c, const Tensor& y, const Tensor& w, const Tensor& x) {
  const int device = x.device().index;
  const cudnnHandle_t handle = handle_on(device);
  using Found = cudnnConvolutionBwdDataAlgoPerf_t;
  const Choice choice = choice_for<Found>(
      c.key(device, 1), x,
      [&](int most, int* count, Found* found) {
        return cudnn().GetConvolutionBackwardDataAlgorithm_v7(
            handle, c.w_is.get(), c.y_is.get(), c.is.get(), c.x_is.get(), most, count, found);
      },
      [&](int most, int* count, Found* found, void* space, size_t bytes) {
        return cudnn().FindConvolutionBackwardDataAlgorithmEx(
            handle, c.w_is.get(), w.data(), c.y_is.get(), y.data(), c.is.get(), c.x_is.get(),
            x.data(), most, count, found, space, bytes);
      });
  c.use(choice.math);
  const Tensor space = workspace(choice.workspace, x);
  const Factor<T> one = 1, zero = 0;
  succeed_cudnn(cudnn().ConvolutionBackwardData(
                    handle, &one, c.w_is.get(), w.data(), c.y_is.get(), y.data(), c.is.get(),
                    static_cast<cudnnConvolutionBwdDataAlgo_t>(choice.algorithm), space.data(),
                    choice.workspace, &zero, c.x_is.get(), x.data()),
                "computing a convolution's gradient");
}

// y, contiguous, with zeros behind where it is shorter than the convolution of an input of sizes
// `x`: where a transposed convolution's output padding is at least its stride.
Tensor whole(const Tensor& y, IntList x, IntList weight, IntList stride, IntList padding,
             IntList dilation) {
  const size_t spatial = weight.size() - 2, first = x.size() - spatial;
  DimVector sides(2 * spatial, 0);  // pairs, the last dimension's first
  bool shorter = false;
  for (size_t d = 0; d < spatial; ++d) {
    const int64_t full = shape::convolved_length(
        "convolution", x[first + d], weight[d + 2], shape::entry_of(stride, d),
        shape::entry_of(padding, d), shape::entry_of(dilation, d));
    sides[2 * (spatial - 1 - d) + 1] = full - y.sizes()[first + d];
    shorter = shorter || full > y.sizes()[first + d];
  }
  return shorter ? aten::constant_pad_nd(y, sides) : aten::contiguous(y);
}

// Adds the bias of each channel, over all of space.
void add_bias(const Tensor& bias, size_t spatial, const Tensor& out) {
  DimVector sizes(spatial + 1, 1), strides(spatial + 1, 0);
  sizes[0] = bias.sizes()[0];
  strides[0] = bias.strides()[0];
  aten::add_(out, alias_with_geometry(bias, sizes, strides, bias.storage_offset()));
}

template <class T>
void convolution_cuda(const Tensor& input, const Tensor& weight, const Tensor& bias, IntList stride,
                      IntList padding, IntList dilation, bool transposed, IntList, int64_t groups,
                      const Tensor& out) {
  if (out.numel() == 0) return;
  const DeviceGuard guard(out.device().index);
  const Tensor w = aten::contiguous(weight);
  if (input.numel() == 0 || w.numel() == 0) {
    aten::zero_(out);
  } else if (transposed) {
    const Tensor y = whole(input, out.sizes(), w.sizes(), stride, padding, dilation);
    backward_data(
        Convolution<T>(out.sizes(), w.sizes(), y.sizes(), stride, padding, dilation, groups), y, w,
        out);
  } else {
    const Tensor x = aten::contiguous(input);
    if (forward(
            Convolution<T>(x.sizes(), w.sizes(), out.sizes(), stride, padding, dilation, groups), x,
            w, bias, out))
      return;
  }
  if (bias.defined()) add_bias(bias, w.sizes().size() - 2, out);
}

template <class T>
void convolution_grad_weight_cuda(const Tensor& grad, const Tensor& input, IntList weight_sizes,
                                  IntList stride, IntList padding, IntList dilation, int64_t groups,
                                  const Tensor& out) {
  if (out.numel() == 0) return;
  const int device = out.device().index;
  const DeviceGuard guard(device);
  if (grad.numel() == 0 || input.numel() == 0) {
    aten::zero_(out);
    return;
  }
  const Tensor y = whole(grad, input.sizes(), weight_sizes, stride, padding, dilation),
               x = aten::contiguous(input);
  const Convolution<T> c(x.sizes(), weight_sizes, y.sizes(), stride, padding, dilation, groups);
  const cudnnHandle_t handle = handle_on(device);
  using Found = cudnnConvolutionBwdFilterAlgoPerf_t;
  const Choice choice = choice_for<Found>(
      c.key(device, 2), out,
      [&](int most, int* count, Found* found) {
        return cudnn().GetConvolutionBackwardFilterAlgorithm_v7(
            handle, c.x_is.get(), c.y_is.get(), c.is.get(), c.w_is.get(), most, count, found);
      },
      [&](int most, int* count, Found* found, void* space, size_t bytes) {
        return cudnn().FindConvolutionBackwardFilterAlgorithmEx(
            handle, c.x_is.get(), x.data(), c.y_is.get(), y.data(), c.is.get(), c.w_is.get(),
            out.data(), most, count, found, space, bytes);
      });
  c.use(choice.math);
  const Tensor space = workspace(choice.workspace, out);
  const Factor<T> one = 1, zero = 0;
  succeed_cudnn(cudnn().ConvolutionBackwardFilter(
                    handle, &one, c.x_is.get(), x.data(), c.y_is.get(), y.data(), c.is.get(),
                    static_cast<cudnnConvolutionBwdFilterAlgo_t>(choice.algorithm), space.data(),
                    choice.workspace, &zero, c.w_is.get(), out.data()),
                "computing a convolution's gradient");
}

// f of complex tensors, which is linear in each of them, by f of their parts.
template <class F>
void by_parts(const Tensor& a, const Tensor& b, const Tensor& out, F f) {
  const Tensor a_real = aten::real(a), a_imag = aten::imag(a), b_real = aten::real(b),
               b_imag = aten::imag(b);
  aten::copy_(aten::real(out), aten::sub(f(a_real, b_real), f(a_imag, b_imag)));
  aten::copy_(aten::imag(out), aten::add(f(a_real, b_imag), f(a_imag, b_real)));
}

void complex_convolution_cuda(const Tensor& input, const Tensor& weight, const Tensor& bias,
                              IntList stride, IntList padding, IntList dilation, bool transposed,
                              IntList output_padding, int64_t groups, const Tensor& out) {
  by_parts(input, weight, out, [&](const Tensor& x, const Tensor& w) {
    return aten::convolution(x, w, Tensor(), stride, padding, dilation, transposed, output_padding,
                             groups);
  });
  if (bias.defined()) add_bias(bias, weight.sizes().size() - 2, out);
}
void complex_grad_weight_cuda(const Tensor& grad, const Tensor& input, IntList weight_sizes,
                              IntList stride, IntList padding, IntList dilation, int64_t groups,
                              const Tensor& out) {
  by_parts(grad, input, out, [&](const Tensor& y, const Tensor& x) {
    return aten::_convolution_grad_weight(y, x, weight_sizes, stride, padding, dilation, groups);
  });
}

using Complex = TypeList<std::complex<float>, std::complex<double>>;
const auto complex_registered = register_cuda<aten::ops::convolution>(
    Complex(), []<class T>() { return &complex_convolution_cuda; }, "complex_convolution_cuda");
const auto complex_grad_registered = register_cuda<aten::ops::_convolution_grad_weight>(
    Complex(), []<class T>() { return &complex_grad_weight_cuda; }, "complex_grad_weight_cuda");
const auto convolution_registered = register_cuda<aten::ops::convolution>(
    Floats(), []<class T>() { return &convolution_cuda<T>; }, "convolution_cuda");
const auto grad_weight_registered = register_cuda<aten::ops::_convolution_grad_weight>(
    Floats(), []<class T>() { return &convolution_grad_weight_cuda<T>; },
    "convolution_grad_weight_cuda");

}  // namespace
}  // namespace treadle::cuda
