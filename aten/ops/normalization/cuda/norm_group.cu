// Group normalisation and root-mean-square normalisation with their gradients. A group of channels
// of one sample is a run of elements, so in both a block normalises a row.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/ops/_group_norm_backward.h"
#include "aten/ops/_rms_norm.h"
#include "aten/ops/_rms_norm_backward.h"
#include "aten/ops/native_group_norm.h"
#include "aten/ops/normalization/cuda/norm.cuh"

namespace treadle::cuda {
namespace {

struct Groups {
  int64_t samples, channels, plane, groups;
  __host__ __device__ int64_t per_group() const { return channels / groups; }
  __host__ __device__ int64_t length() const { return per_group() * plane; }
  __host__ __device__ int64_t rows() const { return samples * groups; }
  // The channel of element i of a row.
  __device__ int64_t channel(int64_t row, int64_t i) const {
    return row % groups * per_group() + i / plane;
  }
};

template <class T>
__global__ void group_norm_kernel(const T* x, const T* weight, const T* bias, Computed<T> eps,
                                  Groups s, T* y, Computed<T>* mean, Computed<T>* rstd) {
  using C = Computed<T>;
  const int64_t row = blockIdx.x, length = s.length();
  x += row * length;
  y += row * length;
  const auto [m, r] = moments_of(x, length, eps);
  for (int64_t i = threadIdx.x; i < length; i += kBlock) {
    const int64_t c = s.channel(row, i);
    const C scale = r * parameter(weight, c, C(1)), shift = parameter(bias, c, C(0));
    y[i] = narrowed<T>((widened(x[i]) - m) * scale + shift);
  }
  if (threadIdx.x == 0) {
    mean[row] = m;
    rstd[row] = r;
  }
}

// For each channel of each sample the sums of g and of g * xhat, by 32 threads.
template <class T>
__global__ void channel_sums_kernel(const T* g, const T* x, const Computed<T>* mean,
                                    const Computed<T>* rstd, Groups s, Computed<T>* sums,
                                    Computed<T>* dots) {
  using C = Computed<T>;
  const int64_t channel = static_cast<int64_t>(blockIdx.x) * (kBlock / 32) + threadIdx.x / 32;
  const bool inside = channel < s.samples * s.channels;
  const int64_t row = inside ? channel / s.per_group() : 0;
  const C m = mean[row];
  C sum = 0, dot = 0;
  for (int64_t i = threadIdx.x % 32; inside && i < s.plane; i += 32) {
    const C slope = widened(g[channel * s.plane + i]);
    sum += slope;
    dot += slope * (widened(x[channel * s.plane + i]) - m);
  }
  for (int step = 1; step < 32; step *= 2) {
    sum += __shfl_xor_sync(0xffffffffu, sum, step);
    dot += __shfl_xor_sync(0xffffffffu, dot, step);
  }
  if (inside && threadIdx.x % 32 == 0) {
    sums[channel] = sum;
    dots[channel] = dot * rstd[row];
  }
}

// With xhat = (x - mean) * rstd and h = g * weight:  d x = rstd * (h - mean(h) - xhat * mean(h *
// xhat)).
template <class T>
__global__ void group_gradient_kernel(const T* g, const T* x, const T* weight,
                                      const Computed<T>* mean, const Computed<T>* rstd, Groups s,
                                      const Computed<T>* sums, const Computed<T>* dots, T* out) {
  using C = Computed<T>;
  const int64_t row = blockIdx.x, length = s.length(), per_group = s.per_group();
  const C m = mean[row], r = rstd[row];
  C mean_h = 0, slope = 0;
  for (int64_t k = threadIdx.x; k < per_group; k += kBlock) {
    const C scale = parameter(weight, row % s.groups * per_group + k, C(1));
    mean_h += scale * sums[row * per_group + k];
    slope += scale * dots[row * per_group + k];
  }
  mean_h = folded_in_block(mean_h, Plus()) / static_cast<C>(length);
  slope = folded_in_block(slope, Plus()) * r / static_cast<C>(length);
  for (int64_t i = threadIdx.x; i < length; i += kBlock) {
    const int64_t at = row * length + i;
    const C h = widened(g[at]) * parameter(weight, s.channel(row, i), C(1));
    out[at] = narrowed<T>(r * (h - mean_h - (widened(x[at]) - m) * slope));
  }
}

template <class T>
__global__ void group_parameters_kernel(const Computed<T>* sums, const Computed<T>* dots, Groups s,
                                        T* grad_weight, T* grad_bias) {
  using C = Computed<T>;
  for_each_element(s.channels, [=](int64_t c) {
    C weight = 0, bias = 0;
    for (int64_t n = 0; n < s.samples; ++n) {
      weight += dots[n * s.channels + c];
      bias += sums[n * s.channels + c];
    }
    grad_weight[c] = narrowed<T>(weight);
    grad_bias[c] = narrowed<T>(bias);
  });
}

template <class T>
void group_norm_cuda(const Tensor& input, const Tensor& weight, const Tensor& bias, int64_t samples,
                     int64_t channels, int64_t plane, int64_t groups, double eps, const Tensor& out,
                     const Tensor& mean, const Tensor& rstd) {
  using C = Computed<T>;
  const Groups s{samples, channels, plane, groups};
  if (s.rows() == 0) return;
  const Tensor x = dense(input), w = dense(weight), b = dense(bias);
  const Place place(input);
  group_norm_kernel<T><<<block_each(s.rows()), kBlock, 0, place.stream>>>(
      x.data_as<T>(), data_of<T>(w), data_of<T>(b), static_cast<C>(eps), s, out.data_as<T>(),
      mean.data_as<C>(), rstd.data_as<C>());
  check_launched();
}

template <class T>
void group_norm_backward_cuda(const Tensor& grad, const Tensor& input, const Tensor& weight,
                              const Tensor& mean, const Tensor& rstd, int64_t samples,
                              int64_t channels, int64_t plane, int64_t groups,
                              const Tensor& grad_input, const Tensor& grad_weight,
                              const Tensor& grad_bias) {
  using C = Computed<T>;
  const Groups s{samples, channels, plane, groups};
  if (channels == 0) return;
  const Tensor g = dense(grad), x = dense(input), w = dense(weight), m = dense(mean),
               r = dense(rstd);
  const int64_t all = samples * channels;
  const Tensor work = empty_tensor({2, all}, m.dtype(), input.device());
  C *const sums = work.data_as<C>(), *const dots = sums + all;
  const Place place(input);
  if (all > 0) {
    constexpr int64_t kTogether = kBlock / 32;
    channel_sums_kernel<T>
        <<<block_each((all + kTogether - 1) / kTogether), kBlock, 0, place.stream>>>(
            g.data_as<T>(), x.data_as<T>(), m.data_as<C>(), r.data_as<C>(), s, sums, dots);
    check_launched();
    group_gradient_kernel<T><<<block_each(s.rows()), kBlock, 0, place.stream>>>(
        g.data_as<T>(), x.data_as<T>(), data_of<T>(w), m.data_as<C>(), r.data_as<C>(), s, sums,
        dots, grad_input.data_as<T>());
    check_launched();
  }
  group_parameters_kernel<T><<<blocks_for(channels), kBlock, 0, place.stream>>>(
      sums, dots, s, grad_weight.data_as<T>(), grad_bias.data_as<T>());
  check_launched();
}

// ---- root mean square ----

template <class T>
__global__ void rms_norm_kernel(const T* x, const T* weight, Computed<T> eps, int64_t length, T* y,
                                Computed<T>* rstd) {
  using C = Computed<T>;
  x += blockIdx.x * length;
  y += blockIdx.x * length;
  C squares = 0;
  for (int64_t i = threadIdx.x; i < length; i += kBlock) squares += widened(x[i]) * widened(x[i]);
  const C mean = folded_in_block(squares, Plus()) / static_cast<C>(length);
  const C r = C(1) / sqrt(mean + eps);
  for (int64_t i = threadIdx.x; i < length; i += kBlock)
    y[i] = narrowed<T>(widened(x[i]) * r * parameter(weight, i, C(1)));
  if (threadIdx.x == 0) rstd[blockIdx.x] = r;
}

// With xhat = x * rstd and h = g * weight:  d x = rstd * (h - xhat * mean(h * xhat)).
template <class T>
__global__ void rms_gradient_kernel(const T* g, const T* x, const T* weight,
                                    const Computed<T>* rstd, int64_t length, T* out) {
  using C = Computed<T>;
  const int64_t first = blockIdx.x * length;
  const C r = rstd[blockIdx.x];
  const auto h = [=](int64_t i) { return widened(g[first + i]) * parameter(weight, i, C(1)); };
  C dot = 0;
  for (int64_t i = threadIdx.x; i < length; i += kBlock) dot += h(i) * widened(x[first + i]);
  const C slope = folded_in_block(dot, Plus()) * r * r / static_cast<C>(length);
  for (int64_t i = threadIdx.x; i < length; i += kBlock)
    out[first + i] = narrowed<T>(r * (h(i) - widened(x[first + i]) * slope));
}

template <class T>
void rms_norm_cuda(const Tensor& input, IntList normalized_shape, const Tensor& weight, double eps,
                   const Tensor& out, const Tensor& rstd) {
  using C = Computed<T>;
  const NormRows s(input.sizes(), normalized_shape);
  if (s.rows == 0) return;
  const Tensor x = dense(input), w = dense(weight);
  const Place place(input);
  rms_norm_kernel<T><<<block_each(s.rows), kBlock, 0, place.stream>>>(
      x.data_as<T>(), data_of<T>(w), static_cast<C>(eps), s.length, out.data_as<T>(),
      rstd.data_as<C>());
  check_launched();
}

template <class T>
void rms_norm_backward_cuda(const Tensor& grad, const Tensor& input, IntList normalized_shape,
                            const Tensor& rstd, const Tensor& weight, const Tensor& grad_input,
                            const Tensor& grad_weight) {
  using C = Computed<T>;
  const NormRows s(input.sizes(), normalized_shape);
  if (s.length == 0) return;
  const Tensor g = dense(grad), x = dense(input), w = dense(weight), r = dense(rstd);
  const Place place(input);
  if (s.rows > 0) {
    rms_gradient_kernel<T><<<block_each(s.rows), kBlock, 0, place.stream>>>(
        g.data_as<T>(), x.data_as<T>(), data_of<T>(w), r.data_as<C>(), s.length,
        grad_input.data_as<T>());
    check_launched();
  }
  parameter_gradients<T>(g, x, Tensor(), r, s, grad_weight, Tensor(), place.stream);
}

const auto group_registered = register_cuda<aten::ops::native_group_norm>(
    Floats(), []<class T>() { return &group_norm_cuda<T>; }, "group_norm_cuda");
const auto group_backward_registered = register_cuda<aten::ops::_group_norm_backward>(
    Floats(), []<class T>() { return &group_norm_backward_cuda<T>; }, "group_norm_backward_cuda");
const auto rms_registered = register_cuda<aten::ops::_rms_norm>(
    Floats(), []<class T>() { return &rms_norm_cuda<T>; }, "rms_norm_cuda");
const auto rms_backward_registered = register_cuda<aten::ops::_rms_norm_backward>(
    Floats(), []<class T>() { return &rms_norm_backward_cuda<T>; }, "rms_norm_backward_cuda");

}  // namespace
}  // namespace treadle::cuda
