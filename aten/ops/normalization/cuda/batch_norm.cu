// batch_norm in training, and its gradients. Channels are few and long. Each is cut into pieces, by
// sizes alone. A block sums up a piece, and the pieces are joined in their order.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/ops/_batch_norm_backward.h"
#include "aten/ops/_batch_norm_train.h"
#include "aten/ops/normalization/cuda/norm.cuh"

namespace treadle::cuda {
namespace {

struct Channels {
  int64_t batch, channels, plane = 1, pieces;
  explicit Channels(IntList s) : batch(s[0]), channels(s[1]) {
    for (size_t d = 2; d < s.size(); ++d) plane *= s[d];
    // About a thousand blocks, none of which has next to nothing to do.
    pieces = std::max<int64_t>(
        1, std::min((count() + 1023) / 1024, 1024 / std::max<int64_t>(1, channels)));
  }
  __host__ __device__ int64_t count() const { return batch * plane; }
  __host__ __device__ int64_t size() const { return count() * channels; }
  // Elements of the channel in a piece; the last pieces may be shorter, or empty.
  __device__ int64_t begin(int64_t piece) const {
    const int64_t at = piece * ((count() + pieces - 1) / pieces);
    return at < count() ? at : count();
  }
  // The offset of element k of a channel.
  __device__ int64_t place(int64_t channel, int64_t k) const {
    return (k / plane * channels + channel) * plane + k % plane;
  }
  __device__ int64_t channel_of(int64_t place) const { return place / plane % channels; }
};

// f(offset) for the elements of this block's piece, distributed over its threads.
template <class F>
__device__ inline void for_piece(const Channels& s, F f) {
  const int64_t end = s.begin(blockIdx.y + 1);
#pragma unroll 4
  for (int64_t k = s.begin(blockIdx.y) + threadIdx.x; k < end; k += kBlock)
    f(s.place(blockIdx.x, k));
}

// For each piece of each channel its mean, and the sum of squared differences from it.
template <class T>
__global__ void moments_kernel(const T* x, Channels s, Computed<T>* means, Computed<T>* squares) {
  using C = Computed<T>;
  const int64_t count = s.begin(blockIdx.y + 1) - s.begin(blockIdx.y);
  C sum = 0;
  for_piece(s, [&](int64_t i) { sum += widened(x[i]); });
  sum = folded_in_block(sum, Plus());
  const C mean = count > 0 ? sum / static_cast<C>(count) : C(0);
  C square = 0;
  for_piece(s, [&](int64_t i) {
    const C d = widened(x[i]) - mean;
    square += d * d;
  });
  square = folded_in_block(square, Plus());
  if (threadIdx.x != 0) return;
  const int64_t at = blockIdx.x * s.pieces + blockIdx.y;
  means[at] = mean;
  squares[at] = square;
}

// Chan, Golub & LeVeque, "Updating formulae and a pairwise algorithm for computing sample
// variances" (1979).
template <class C>
__global__ void join_moments_kernel(const C* means, const C* squares, Channels s, C* mean, C* var) {
  for_each_element(s.channels, [=](int64_t c) {
    C m = 0, square = 0, seen = 0;
    for (int64_t p = 0; p < s.pieces; ++p) {
      const C n = static_cast<C>(s.begin(p + 1) - s.begin(p)), all = seen + n;
      if (n == C(0)) continue;
      const C delta = means[c * s.pieces + p] - m;
      m += delta * (n / all);
      square += squares[c * s.pieces + p] + delta * delta * (seen * (n / all));
      seen = all;
    }
    mean[c] = seen == C(0) ? C(NAN) : m;  // of no elements
    var[c] = square / static_cast<C>(s.count());
  });
}

template <class T>
__global__ void normalise_kernel(const T* x, const T* weight, const T* bias, Computed<T> eps,
                                 Channels s, const Computed<T>* mean, const Computed<T>* var,
                                 T* y) {
  using C = Computed<T>;
  for_each_element(s.size(), [=](int64_t i) {
    const int64_t c = s.channel_of(i);
    const C scale = parameter(weight, c, C(1)) / sqrt(var[c] + eps);
    y[i] = narrowed<T>((widened(x[i]) - mean[c]) * scale + parameter(bias, c, C(0)));
  });
}

// With xhat = (x - mean) * rstd:  d weight = sum(g * xhat),  d bias = sum(g),
// d x = weight * rstd * (g - mean(g) - xhat * mean(g * xhat)).
template <class T>
__global__ void gradient_sums_kernel(const T* g, const T* x, const Computed<T>* mean, Channels s,
                                     Computed<T>* sums, Computed<T>* dots) {
  using C = Computed<T>;
  const C m = mean[blockIdx.x];
  C sum = 0, dot = 0;
  for_piece(s, [&](int64_t i) {
    sum += widened(g[i]);
    dot += widened(g[i]) * (widened(x[i]) - m);
  });
  sum = folded_in_block(sum, Plus());
  dot = folded_in_block(dot, Plus());
  if (threadIdx.x != 0) return;
  const int64_t at = blockIdx.x * s.pieces + blockIdx.y;
  sums[at] = sum;
  dots[at] = dot;
}

// The sums of a channel replace those of its first piece.
template <class T>
__global__ void join_sums_kernel(const Computed<T>* var, Computed<T> eps, Channels s,
                                 Computed<T>* sums, Computed<T>* dots, T* grad_weight,
                                 T* grad_bias) {
  using C = Computed<T>;
  for_each_element(s.channels, [=](int64_t c) {
    C sum = 0, dot = 0;
    for (int64_t p = 0; p < s.pieces; ++p) {
      sum += sums[c * s.pieces + p];
      dot += dots[c * s.pieces + p];
    }
    dot *= C(1) / sqrt(var[c] + eps);
    sums[c * s.pieces] = sum;
    dots[c * s.pieces] = dot;
    grad_weight[c] = narrowed<T>(dot);
    grad_bias[c] = narrowed<T>(sum);
  });
}

template <class T>
__global__ void input_gradient_kernel(const T* g, const T* x, const T* weight,
                                      const Computed<T>* mean, const Computed<T>* var,
                                      Computed<T> eps, Channels s, const Computed<T>* sums,
                                      const Computed<T>* dots, T* out) {
  using C = Computed<T>;
  const C n = static_cast<C>(s.count());
  for_each_element(s.size(), [=](int64_t i) {
    const int64_t c = s.channel_of(i);
    const C rstd = C(1) / sqrt(var[c] + eps), scale = parameter(weight, c, C(1)) * rstd;
    const C mean_g = sums[c * s.pieces] / n, slope = dots[c * s.pieces] * rstd / n;
    out[i] = narrowed<T>(scale * (widened(g[i]) - mean_g - (widened(x[i]) - mean[c]) * slope));
  });
}

// Two numbers for each piece.
Tensor room_for(const Channels& s, const Tensor& like) {
  return empty_tensor({2, s.channels * s.pieces}, like.dtype(), like.device());
}
dim3 blocks_of(const Channels& s) {
  return {block_each(s.channels), static_cast<unsigned>(s.pieces)};
}

template <class T>
void batch_norm_train_cuda(const Tensor& input, const Tensor& weight, const Tensor& bias,
                           double eps, const Tensor& out, const Tensor& mean, const Tensor& var) {
  using C = Computed<T>;
  const Channels s(input.sizes());
  if (s.channels == 0) return;
  const Tensor x = dense(input), w = dense(weight), b = dense(bias), room = room_for(s, mean);
  C *const means = room.data_as<C>(), *const squares = means + s.channels * s.pieces;
  const Place place(input);
  moments_kernel<T><<<blocks_of(s), kBlock, 0, place.stream>>>(x.data_as<T>(), s, means, squares);
  check_launched();
  join_moments_kernel<C><<<blocks_for(s.channels), kBlock, 0, place.stream>>>(
      means, squares, s, mean.data_as<C>(), var.data_as<C>());
  check_launched();
  if (s.size() == 0) return;
  normalise_kernel<T><<<blocks_for(s.size()), kBlock, 0, place.stream>>>(
      x.data_as<T>(), data_of<T>(w), data_of<T>(b), static_cast<C>(eps), s, mean.data_as<C>(),
      var.data_as<C>(), out.data_as<T>());
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
               v = dense(var), room = room_for(s, m);
  C *const sums = room.data_as<C>(), *const dots = sums + s.channels * s.pieces;
  const Place place(input);
  gradient_sums_kernel<T><<<blocks_of(s), kBlock, 0, place.stream>>>(g.data_as<T>(), x.data_as<T>(),
                                                                     m.data_as<C>(), s, sums, dots);
  check_launched();
  join_sums_kernel<T><<<blocks_for(s.channels), kBlock, 0, place.stream>>>(
      v.data_as<C>(), static_cast<C>(eps), s, sums, dots, grad_weight.data_as<T>(),
      grad_bias.data_as<T>());
  check_launched();
  if (s.size() == 0) return;
  input_gradient_kernel<T><<<blocks_for(s.size()), kBlock, 0, place.stream>>>(
      g.data_as<T>(), x.data_as<T>(), data_of<T>(w), m.data_as<C>(), v.data_as<C>(),
      static_cast<C>(eps), s, sums, dots, grad_input.data_as<T>());
  check_launched();
}

const auto train_registered = register_cuda<aten::ops::_batch_norm_train>(
    Floats(), []<class T>() { return &batch_norm_train_cuda<T>; }, "batch_norm_train_cuda");
const auto backward_registered = register_cuda<aten::ops::_batch_norm_backward>(
    Floats(), []<class T>() { return &batch_norm_backward_cuda<T>; }, "batch_norm_backward_cuda");

}  // namespace
}  // namespace treadle::cuda
