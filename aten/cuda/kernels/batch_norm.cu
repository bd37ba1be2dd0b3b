// batch_norm in training, and its gradients: a block does a channel.
#include "aten/cuda/kernels/kernel.cuh"
#include "aten/ops/_batch_norm_backward.h"
#include "aten/ops/_batch_norm_train.h"
#include "aten/ops/contiguous.h"

namespace treadle::cuda {
namespace {

struct Channels {
  int64_t batch, channels, plane = 1;
  explicit Channels(IntList s) : batch(s[0]), channels(s[1]) {
    for (size_t d = 2; d < s.size(); ++d) plane *= s[d];
  }
  __host__ __device__ int64_t count() const { return batch * plane; }
  // The place of element k of the channel of this block.
  __device__ int64_t place(int64_t k) const {
    return (k / plane * channels + blockIdx.x) * plane + k % plane;
  }
};

template <class T>
__global__ void train_kernel(const T* x, const T* weight, const T* bias, Computed<T> eps,
                             Channels s, T* y, Computed<T>* mean, Computed<T>* var) {
  using C = Computed<T>;
  const int64_t count = s.count();
  C sum = 0;
  for (int64_t k = threadIdx.x; k < count; k += kBlock) sum += widened(x[s.place(k)]);
  const C m = folded_in_block(sum, Plus()) / static_cast<C>(count);
  C squares = 0;
  for (int64_t k = threadIdx.x; k < count; k += kBlock) {
    const C d = widened(x[s.place(k)]) - m;
    squares += d * d;
  }
  const C v = folded_in_block(squares, Plus()) / static_cast<C>(count);
  const int64_t c = blockIdx.x;
  const C scale = (weight ? widened(weight[c]) : C(1)) / sqrt(v + eps);
  const C shift = bias ? widened(bias[c]) : C(0);
  for (int64_t k = threadIdx.x; k < count; k += kBlock) {
    const int64_t i = s.place(k);
    y[i] = narrowed<T>((widened(x[i]) - m) * scale + shift);
  }
  if (threadIdx.x == 0) {
    mean[c] = m;
    var[c] = v;
  }
}

// With xhat = (x - mean) * rstd:  d weight = sum(g * xhat),  d bias = sum(g),
// d x = weight * rstd * (g - mean(g) - xhat * mean(g * xhat)).
template <class T>
__global__ void backward_kernel(const T* g, const T* x, const T* weight, const Computed<T>* mean,
                                const Computed<T>* var, Computed<T> eps, Channels s, T* grad_input,
                                T* grad_weight, T* grad_bias) {
  using C = Computed<T>;
  const int64_t count = s.count(), c = blockIdx.x;
  const C m = mean[c], rstd = C(1) / sqrt(var[c] + eps);
  C sum = 0, dot = 0;
  for (int64_t k = threadIdx.x; k < count; k += kBlock) {
    const int64_t i = s.place(k);
    sum += widened(g[i]);
    dot += widened(g[i]) * (widened(x[i]) - m);
  }
  sum = folded_in_block(sum, Plus());
  dot = folded_in_block(dot, Plus()) * rstd;
  const C n = static_cast<C>(count), scale = (weight ? widened(weight[c]) : C(1)) * rstd;
  const C mean_g = sum / n, slope = dot * rstd / n;
  for (int64_t k = threadIdx.x; k < count; k += kBlock) {
    const int64_t i = s.place(k);
    grad_input[i] = narrowed<T>(scale * (widened(g[i]) - mean_g - (widened(x[i]) - m) * slope));
  }
  if (threadIdx.x == 0) {
    grad_weight[c] = narrowed<T>(dot);
    grad_bias[c] = narrowed<T>(sum);
  }
}

Tensor dense(const Tensor& t) { return t.defined() ? aten::contiguous(t) : t; }
template <class T>
const T* data_of(const Tensor& t) {
  return t.defined() ? t.data_as<T>() : nullptr;
}

template <class T>
void batch_norm_train_cuda(const Tensor& input, const Tensor& weight, const Tensor& bias,
                           double eps, const Tensor& out, const Tensor& mean, const Tensor& var) {
  using C = Computed<T>;
  const Channels s(input.sizes());
  if (s.channels == 0) return;
  const Tensor x = dense(input), w = dense(weight), b = dense(bias);
  const Place place(input);
  train_kernel<T><<<static_cast<unsigned>(s.channels), kBlock, 0, place.stream>>>(
      x.data_as<T>(), data_of<T>(w), data_of<T>(b), static_cast<C>(eps), s, out.data_as<T>(),
      mean.data_as<C>(), var.data_as<C>());
  check_launched();
}

template <class T>
void batch_norm_backward_cuda(const Tensor& grad, const Tensor& input, const Tensor& weight,
                              const Tensor& mean, const Tensor& var, double eps,
                              const Tensor& grad_input, const Tensor& grad_weight,
                              const Tensor& grad_bias) {
  using C = Computed<T>;
  const Channels s(input.sizes());
  if (s.channels == 0) return;
  const Tensor g = dense(grad), x = dense(input), w = dense(weight), m = dense(mean),
               v = dense(var);
  const Place place(input);
  backward_kernel<T><<<static_cast<unsigned>(s.channels), kBlock, 0, place.stream>>>(
      g.data_as<T>(), x.data_as<T>(), data_of<T>(w), m.data_as<C>(), v.data_as<C>(),
      static_cast<C>(eps), s, grad_input.data_as<T>(), grad_weight.data_as<T>(),
      grad_bias.data_as<T>());
  check_launched();
}

const auto train_registered = register_cuda<aten::ops::_batch_norm_train>(
    Floats(), []<class T>() { return &batch_norm_train_cuda<T>; }, "batch_norm_train_cuda");
const auto backward_registered = register_cuda<aten::ops::_batch_norm_backward>(
    Floats(), []<class T>() { return &batch_norm_backward_cuda<T>; }, "batch_norm_backward_cuda");

}  // namespace
}  // namespace treadle::cuda
