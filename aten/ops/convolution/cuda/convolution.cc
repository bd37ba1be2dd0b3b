// Convolutions and their gradients, of one to three spatial dimensions. Depthwise ones run on
// kernels of our own, all others on cuDNN. Among the algorithms that give the same bits each time,
// the fastest is used: by cuDNN's own estimate, or by measured time where the program asks for it
// (core/base/math_switches.h). The choice is made once for each geometry.
//
// SPDX-License-Identifier: Apache-2.0
#include <map>
#include <mutex>

#include "aten/backend/cuda/libraries/kept_by_thread.h"
#include "aten/ops/_convolution_grad_weight.h"
#include "aten/ops/add.h"
#include "aten/ops/clone.h"
#include "aten/ops/constant_pad_nd.h"
#include "aten/ops/contiguous.h"
#include "aten/ops/convolution.h"
#include "aten/ops/convolution/cuda/depthwise.h"
#include "aten/ops/convolution/shape.h"
#include "aten/ops/copy_.h"
#include "aten/ops/imag.h"
#include "aten/ops/real.h"
#include "aten/ops/sub.h"
#include "aten/ops/zero_.h"
#include "core/base/math_switches.h"

namespace treadle::cuda {
namespace {

using Sizes = ConvolutionGeometry::Sizes;

// Sizes as cuDNN takes them: two leading ones, then at least two of space.
Sizes sizes_of(IntList sizes, size_t spatial) {
  Sizes all(sizes.begin(), sizes.end());
  if (sizes.size() == spatial + 1) all.insert(all.begin(), 1);  // an image without a batch
  if (spatial == 1) all.insert(all.begin() + 2, 1);
  return all;
}
Sizes entries_of(IntList list, size_t spatial, int64_t missing) {
  Sizes all;
  if (spatial == 1) all.push_back(missing);
  for (size_t d = 0; d < spatial; ++d) all.push_back(shape::entry_of(list, d));
  return all;
}

template <class T>
ConvolutionGeometry geometry(IntList x, IntList w, IntList y, IntList stride, IntList padding,
                             IntList dilation) {
  const size_t spatial = w.size() - 2;
  ConvolutionGeometry g;
  g.type = kData<T>;
  g.x = sizes_of(x, spatial);
  g.w = sizes_of(w, spatial);
  g.y = sizes_of(y, spatial);
  g.stride = entries_of(stride, spatial, 1);
  g.padding = entries_of(padding, spatial, 0);
  g.dilation = entries_of(dilation, spatial, 1);
  g.exact = exact_factors(g.type);
  return g;
}

// The key of convolutions whose plans may differ.
using Key = std::vector<int64_t>;
Key key_of(const ConvolutionGeometry& g, ConvolutionPart part, int device, bool timed) {
  Key all = {device, static_cast<int64_t>(part),           g.type, g.bias, g.exact,
             timed,  static_cast<int64_t>(g.stride.size())};
  for (const Sizes* sizes : {&g.x, &g.w, &g.y, &g.stride, &g.padding, &g.dilation})
    all.insert(all.end(), sizes->begin(), sizes->end());
  return all;
}

// Whether plans are to be timed. They are not while work is captured instead of run.
bool by_time(int device) {
  if (!math_switches().convolution_benchmark || math_switches().convolution_deterministic)
    return false;
  cudaStreamCaptureStatus status{};
  succeed(cudaStreamIsCapturing(stream_on(device), &status), "looking at a stream");
  return status == cudaStreamCaptureStatusNone;
}

// Milliseconds, the best of three runs after one; nothing where the plan fails.
std::optional<float> time_of(const ConvolutionPlan& plan, cudnnHandle_t handle,
                             const ConvolutionPlan::Places& at, Device device) {
  const Tensor space = cudnn_workspace(plan.workspace(), device);
  const cudaStream_t stream = stream_on(device.index);
  cudaEvent_t begin = nullptr, end = nullptr;
  succeed(cudaEventCreateWithFlags(&begin, cudaEventDefault), "making an event");
  succeed(cudaEventCreateWithFlags(&end, cudaEventDefault), "making an event");
  std::optional<float> best;
  for (int run = 0; run < 4; ++run) {
    succeed(cudaEventRecord(begin, stream), "timing a convolution");
    if (plan.run(handle, at, space.data()) != CUDNN_STATUS_SUCCESS) {
      best.reset();
      break;
    }
    succeed(cudaEventRecord(end, stream), "timing a convolution");
    succeed(cudaEventSynchronize(end), "timing a convolution");
    float time = 0;
    succeed(cudaEventElapsedTime(&time, begin, end), "timing a convolution");
    if (run > 0) best = std::min(time, best.value_or(time));
  }
  cudaEventDestroy(begin);
  cudaEventDestroy(end);
  return best;
}

// The plan for a geometry, made the first time: the first that the device takes, or the fastest.
// Timing writes the part that is computed. Null where cuDNN has none.
const ConvolutionPlan* plan_for(const ConvolutionGeometry& g, ConvolutionPart part,
                                cudnnHandle_t handle, const ConvolutionPlan::Places& at,
                                Device device) {
  // A thread's own: not every plan can be run by several at once.
  auto& plans = kept_by_thread<std::map<Key, std::optional<ConvolutionPlan>>>();
  const bool timed = by_time(device.index);
  const Key key = key_of(g, part, device.index, timed);
  const auto known = plans.find(key);
  if (known != plans.end()) return known->second ? &*known->second : nullptr;
  // But all threads go the same way: the bits would differ otherwise.
  static auto* mutex = new std::mutex;
  static auto* chosen = new std::map<Key, size_t>;
  const std::lock_guard lock(*mutex);
  const CudnnTarget target{handle};
  std::vector<CudnnDescriptor> ways = convolution_ways(g, part, target);
  std::optional<ConvolutionPlan> best;
  if (const auto way = chosen->find(key); way != chosen->end()) {
    best = ConvolutionPlan::make(std::move(ways[way->second]), target);
  } else {
    const int64_t most = timed ? math_switches().convolution_candidates.load() : 1;
    int64_t tried = 0;
    float least = 0;
    for (size_t i = 0; i < ways.size() && (most == 0 || tried < most); ++i) {
      std::optional<ConvolutionPlan> plan = ConvolutionPlan::make(std::move(ways[i]), target);
      if (!plan) continue;
      const std::optional<float> time = timed ? time_of(*plan, handle, at, device) : 0;
      if (!time) continue;
      ++tried;
      if (best && *time >= least) continue;
      best = std::move(plan);
      least = *time;
      (*chosen)[key] = i;
    }
  }
  const std::optional<ConvolutionPlan>& kept = plans[key] = std::move(best);
  return kept ? &*kept : nullptr;
}

// `t`, or a copy of it where its address is none that a plan takes.
Tensor aligned(const Tensor& t) {
  if (!t.defined() || reinterpret_cast<uintptr_t>(t.data()) % kPlanAlignment == 0) return t;
  return aten::clone(t);
}

// Computes a part of the others by cuDNN; all are contiguous. False where it has no plan.
bool compute_by_plan(ConvolutionGeometry g, ConvolutionPart part, const Tensor& x, const Tensor& w,
                     const Tensor& y, const Tensor& bias) {
  const Device device = x.device();
  const cudnnHandle_t handle = cudnn_on(device.index);
  g.bias = bias.defined();
  const Tensor own_x = aligned(x), own_w = aligned(w), own_y = aligned(y), own_bias = aligned(bias);
  const ConvolutionPlan::Places at{own_x.data(), own_w.data(), own_y.data(),
                                   bias.defined() ? own_bias.data() : nullptr};
  const ConvolutionPlan* const plan = plan_for(g, part, handle, at, device);
  if (!plan) return false;
  const Tensor space = cudnn_workspace(plan->workspace(), device);
  succeed_cudnn(plan->run(handle, at, space.data()), "computing a convolution");
  const auto put = [](const Tensor& made, const Tensor& to) {
    if (!made.is_same(to)) aten::copy_(to, made);
  };
  if (part == ConvolutionPart::X) put(own_x, x);
  if (part == ConvolutionPart::W) put(own_w, w);
  if (part == ConvolutionPart::Y) put(own_y, y);
  return true;
}

// Adds the bias of each channel, over all of space.
void add_bias(const Tensor& bias, size_t spatial, const Tensor& out) {
  DimVector sizes(spatial + 1, 1), strides(spatial + 1, 0);
  sizes[0] = bias.sizes()[0];
  strides[0] = bias.strides()[0];
  aten::add_(out, alias_with_geometry(bias, sizes, strides, bias.storage_offset()));
}

// Computes a part of the others, which are contiguous. A bias is for y.
template <class T>
void compute(const ConvolutionGeometry& g, ConvolutionPart part, const Tensor& x, const Tensor& w,
             const Tensor& y, const Tensor& bias = {}) {
  const Tensor b = bias.defined() ? aten::contiguous(bias) : bias;
  if (is_depthwise(g)) return depthwise<T>(g, part, x, w, y, b);
  if (b.defined() && compute_by_plan(g, part, x, w, y, b)) return;
  check<ErrorKind::NotImplemented>(
      compute_by_plan(g, part, x, w, y, {}), OpName("convolution"),
      "expected sizes that cuDNN has a deterministic plan for, got others");
  if (b.defined()) add_bias(b, w.sizes().size() - 2, y);
}

// y, contiguous, with zeros at the end if it is shorter than the convolution of an input of sizes
// `x`. That happens if a transposed convolution's output padding is at least its stride.
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

template <class T>
void convolution_cuda(const Tensor& input, const Tensor& weight, const Tensor& bias, IntList stride,
                      IntList padding, IntList dilation, bool transposed, IntList, int64_t,
                      const Tensor& out) {
  if (out.numel() == 0) return;
  const DeviceGuard guard(out.device().index);
  const Tensor w = aten::contiguous(weight);
  if (input.numel() == 0 || w.numel() == 0) {
    aten::zero_(out);
  } else if (transposed) {
    const Tensor y = whole(input, out.sizes(), w.sizes(), stride, padding, dilation);
    compute<T>(geometry<T>(out.sizes(), w.sizes(), y.sizes(), stride, padding, dilation),
               ConvolutionPart::X, out, w, y);
  } else {
    const Tensor x = aten::contiguous(input);
    return compute<T>(geometry<T>(x.sizes(), w.sizes(), out.sizes(), stride, padding, dilation),
                      ConvolutionPart::Y, x, w, out, bias);
  }
  if (bias.defined()) add_bias(bias, w.sizes().size() - 2, out);
}

template <class T>
void convolution_grad_weight_cuda(const Tensor& grad, const Tensor& input, IntList weight_sizes,
                                  IntList stride, IntList padding, IntList dilation, int64_t,
                                  const Tensor& out) {
  if (out.numel() == 0) return;
  const DeviceGuard guard(out.device().index);
  if (grad.numel() == 0 || input.numel() == 0) {
    aten::zero_(out);
    return;
  }
  const Tensor y = whole(grad, input.sizes(), weight_sizes, stride, padding, dilation),
               x = aten::contiguous(input);
  compute<T>(geometry<T>(x.sizes(), weight_sizes, y.sizes(), stride, padding, dilation),
             ConvolutionPart::W, x, out, y);
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
