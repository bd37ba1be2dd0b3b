// Connectionist temporal classification and its gradient, by the recursions of
// aten/ops/losses/cpu/ctc.cc. A block computes a sample. Its threads take the positions of the
// target, frame after frame.
//
// The gradient of a class in a frame is a sum over the positions of the class. Each position knows
// the next one of its class, and the first one adds up all of them, in their order.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/backend/cuda/kernels/kernel.cuh"
#include "aten/ops/_ctc_loss.h"
#include "aten/ops/_ctc_loss_backward.h"
#include "aten/ops/contiguous.h"

namespace treadle::cuda {
namespace {

__device__ const char kName[] = "ctc_loss";

template <class T>
__device__ inline T log_add(T a, T b) {
  const T most = a < b ? b : a, least = b < a ? b : a;
  return most == -INFINITY ? most : most + log1p(exp(least - most));
}

// The samples: frames of each, labels in its target, and the target's start in `targets`.
struct Samples {
  const int64_t *frames, *labels, *first;
  const int64_t* targets;
  int64_t step;  // between labels
  int64_t count, classes, blank;
  int64_t width;  // positions that each sample has room for

  __device__ int64_t places(int64_t n) const { return 2 * labels[n] + 1; }
  // The class at a position. Blanks are between labels. A label that is no class is a fault, and
  // counts as blank.
  __device__ int64_t at(int64_t n, int64_t place, const FaultPlace& fault) const {
    if (place % 2 == 0) return blank;
    const int64_t label = targets[first[n] + place / 2 * step];
    if (label >= 0 && label < classes) return label;
    record_fault(fault, kIndexOutOfRange, kName, 0, classes, label);
    return blank;
  }
};
struct Strides {
  int64_t frame, sample, symbol;
};

// classes[n][s]; next[n][s]: the next position of the same class, -1 for none, and -1 - that if the
// position is not the first of its class.
__global__ void places_kernel(Samples s, int64_t* classes, int64_t* next, FaultPlace fault) {
  for_each_element(s.count * s.width, [=](int64_t i) {
    const int64_t n = i / s.width, place = i % s.width, places = s.places(n);
    if (place >= places) return;
    const int64_t label = s.at(n, place, fault);
    classes[i] = label;
    if (next == nullptr) return;
    int64_t behind = place + 1, before = place - 1;
    while (behind < places && s.at(n, behind, fault) != label) ++behind;
    while (before >= 0 && s.at(n, before, fault) != label) --before;
    const int64_t link = behind < places ? behind + 1 : 0;  // 0: none
    next[i] = before < 0 ? link : -1 - link;
  });
}

// Whether a path may reach a position from two before it.
__device__ inline bool skips(const int64_t* classes, int64_t place, int64_t blank) {
  return place >= 2 && classes[place] != blank && classes[place] != classes[place - 2];
}

template <class T>
__global__ void forward_kernel(const T* log_probs, Strides over, Samples s, const int64_t* classes,
                               int64_t steps, T* log_alpha, T* loss) {
  const int64_t n = blockIdx.x, places = s.places(n), frames = s.frames[n];
  const T* const x = log_probs + n * over.sample;
  T* const alpha = log_alpha + n * steps * s.width;
  classes += n * s.width;
  for (int64_t i = threadIdx.x; i < steps * s.width; i += kBlock) alpha[i] = -INFINITY;
  if (frames == 0) {
    if (threadIdx.x == 0) loss[n] = places == 1 ? T(0) : T(INFINITY);
    return;
  }
  __syncthreads();
  if (threadIdx.x < 2 && threadIdx.x < places)
    alpha[threadIdx.x] = x[classes[threadIdx.x] * over.symbol];
  for (int64_t t = 1; t < frames; ++t) {
    __syncthreads();
    const T* const before = alpha + (t - 1) * s.width;
    for (int64_t place = threadIdx.x; place < places; place += kBlock) {
      T sum = before[place];
      if (place >= 1) sum = log_add(sum, before[place - 1]);
      if (skips(classes, place, s.blank)) sum = log_add(sum, before[place - 2]);
      alpha[t * s.width + place] = sum + x[t * over.frame + classes[place] * over.symbol];
    }
  }
  __syncthreads();
  if (threadIdx.x != 0) return;
  const T* const last = alpha + (frames - 1) * s.width;
  loss[n] = -(places == 1 ? last[0] : log_add(last[places - 1], last[places - 2]));
}

// posterior[n][t][place] = exp(alpha + beta + loss) * grad. `beta` has two rows for each sample.
template <class T>
__global__ void posterior_kernel(const T* grad, const T* log_probs, Strides over, Samples s,
                                 const int64_t* classes, int64_t steps, const T* loss,
                                 const T* log_alpha, T* beta, T* posterior) {
  const int64_t n = blockIdx.x, places = s.places(n);
  const T total = loss[n], g = grad[n];
  const T* const x = log_probs + n * over.sample;
  classes += n * s.width;
  beta += n * 2 * s.width;
  log_alpha += n * steps * s.width;
  posterior += n * steps * s.width;
  for (int64_t t = s.frames[n] - 1; t >= 0; --t) {
    T* const now = beta + t % 2 * s.width;
    const T* const next = beta + (t + 1) % 2 * s.width;
    const bool last = t == s.frames[n] - 1;
    for (int64_t place = threadIdx.x; place < places; place += kBlock) {
      T sum;
      if (last) {
        sum = place + 2 >= places ? T(0) : T(-INFINITY);
      } else {
        sum = next[place];
        if (place + 1 < places) sum = log_add(sum, next[place + 1]);
        if (place + 2 < places && skips(classes, place + 2, s.blank))
          sum = log_add(sum, next[place + 2]);
      }
      // Without the frame's own probability, which alpha has.
      const T both = log_alpha[t * s.width + place] + sum;
      posterior[t * s.width + place] = both == -INFINITY ? T(0) : exp(both + total) * g;
      now[place] = sum + x[t * over.frame + classes[place] * over.symbol];
    }
    __syncthreads();
  }
}

// The gradient, which begins as zeros. A sample without an alignment has an infinite loss: it has
// no gradient, or one of zeros.
template <class T>
__global__ void gradient_kernel(Samples s, const int64_t* classes, const int64_t* next,
                                int64_t steps, const T* loss, const T* posterior,
                                bool zero_infinity, T* out) {
  const int64_t n = blockIdx.y;
  const bool impossible = loss[n] == INFINITY;
  if (impossible && zero_infinity) return;
  classes += n * s.width;
  next += n * s.width;
  const int64_t width = impossible ? s.classes : s.places(n);
  for_each_element(s.frames[n] * width, [=](int64_t i) {
    const int64_t t = i / width, place = i % width;
    T* const to = out + (t * s.count + n) * s.classes;
    if (impossible) {
      to[place] = NAN;
      return;
    }
    if (next[place] < 0) return;  // not the first of its class
    const T* const of_frame = posterior + (n * steps + t) * s.width;
    T sum = of_frame[place];
    for (int64_t link = next[place]; link != 0;) {
      sum += of_frame[link - 1];
      const int64_t further = next[link - 1];
      link = further < 0 ? -1 - further : further;
    }
    to[classes[place]] = -sum;
  });
}

// The host's data about the samples, copied to the device.
Tensor numbers_of(const Tensor& targets, IntList input_lengths, IntList target_lengths,
                  Device device) {
  const auto count = static_cast<int64_t>(target_lengths.size());
  const Tensor here = empty_cpu({3, count}, ScalarType::Int64);
  auto* const all = here.data_as<int64_t>();
  int64_t behind = 0;
  for (int64_t n = 0; n < count; ++n) {
    all[n] = input_lengths[static_cast<size_t>(n)];
    all[count + n] = target_lengths[static_cast<size_t>(n)];
    all[2 * count + n] = targets.dim() == 2 ? n * targets.stride(0) : behind;
    behind += all[count + n] * targets.stride(-1);
  }
  const Tensor there = empty_tensor({3, count}, ScalarType::Int64, device);
  move_bytes({there.data(), 0, device}, {here.data(), 0, kCPU}, static_cast<size_t>(here.nbytes()),
             false);
  return there;
}
Samples samples_of(const Tensor& numbers, const Tensor& targets, const Tensor& log_probs,
                   const Tensor& log_alpha, int64_t blank) {
  const int64_t count = numbers.size(1);
  const auto* const all = numbers.data_as<int64_t>();
  return {all,   all + count,       all + 2 * count, targets.data_as<int64_t>(), targets.stride(-1),
          count, log_probs.size(2), blank,           log_alpha.size(2)};
}
Strides strides_of(const Tensor& log_probs) {
  return {log_probs.stride(0), log_probs.stride(1), log_probs.stride(2)};
}

template <class T>
void ctc_loss_cuda(const Tensor& log_probs, const Tensor& targets, IntList input_lengths,
                   IntList target_lengths, int64_t blank, bool /*zero_infinity*/,
                   const Tensor& loss, const Tensor& log_alpha) {
  if (loss.numel() == 0) return;
  const Place place(loss);
  const Tensor numbers = numbers_of(targets, input_lengths, target_lengths, loss.device());
  const Samples s = samples_of(numbers, targets, log_probs, log_alpha, blank);
  const Tensor classes = empty_tensor({s.count, s.width}, ScalarType::Int64, loss.device());
  places_kernel<<<blocks_for(s.count * s.width), kBlock, 0, place.stream>>>(
      s, classes.data_as<int64_t>(), nullptr, faults().place(place.device));
  check_launched();
  forward_kernel<T><<<block_each(s.count), kBlock, 0, place.stream>>>(
      log_probs.data_as<T>(), strides_of(log_probs), s, classes.data_as<int64_t>(),
      log_alpha.size(1), log_alpha.data_as<T>(), loss.data_as<T>());
  check_launched();
}

template <class T>
void ctc_loss_backward_cuda(const Tensor& grad, const Tensor& log_probs, const Tensor& targets,
                            IntList input_lengths, IntList target_lengths, const Tensor& loss,
                            const Tensor& log_alpha, int64_t blank, bool zero_infinity,
                            const Tensor& out) {
  if (out.numel() == 0) return;
  const Tensor alphas = aten::contiguous(log_alpha), losses = aten::contiguous(loss),
               grads = aten::contiguous(grad);
  const Place place(out);
  succeed(cudaMemsetAsync(out.data(), 0, static_cast<size_t>(out.nbytes()), place.stream),
          "filling memory");
  const Tensor numbers = numbers_of(targets, input_lengths, target_lengths, out.device());
  const Samples s = samples_of(numbers, targets, log_probs, alphas, blank);
  check<ErrorKind::Runtime>(s.count <= 65535, OpName("ctc_loss"),
                            "expected at most 65535 samples on cuda, got ", s.count);
  const int64_t steps = alphas.size(1);
  const Tensor places = empty_tensor({2, s.count, s.width}, ScalarType::Int64, out.device());
  auto* const classes = places.data_as<int64_t>();
  auto* const next = classes + s.count * s.width;
  places_kernel<<<blocks_for(s.count * s.width), kBlock, 0, place.stream>>>(
      s, classes, next, faults().place(place.device));
  check_launched();
  const Tensor beta = empty_tensor({s.count, 2, s.width}, out.dtype(), out.device());
  const Tensor posterior = empty_tensor(alphas.sizes(), out.dtype(), out.device());
  posterior_kernel<T><<<block_each(s.count), kBlock, 0, place.stream>>>(
      grads.data_as<T>(), log_probs.data_as<T>(), strides_of(log_probs), s, classes, steps,
      losses.data_as<T>(), alphas.data_as<T>(), beta.data_as<T>(), posterior.data_as<T>());
  check_launched();
  const unsigned blocks = std::min(blocks_for(steps * std::max(s.width, s.classes)), 1024u);
  if (blocks == 0) return;
  gradient_kernel<T><<<dim3(blocks, static_cast<unsigned>(s.count)), kBlock, 0, place.stream>>>(
      s, classes, next, steps, losses.data_as<T>(), posterior.data_as<T>(), zero_infinity,
      out.data_as<T>());
  check_launched();
}

using CtcFloats = TypeList<float, double>;
const auto registered = register_cuda<aten::ops::_ctc_loss>(
    CtcFloats(), []<class T>() { return &ctc_loss_cuda<T>; }, "ctc_loss_cuda");
const auto backward_registered = register_cuda<aten::ops::_ctc_loss_backward>(
    CtcFloats(), []<class T>() { return &ctc_loss_backward_cuda<T>; }, "ctc_loss_backward_cuda");

}  // namespace
}  // namespace treadle::cuda
