// layer_norm and its gradients: a block normalises a row.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/ops/_layer_norm_backward.h"
#include "aten/ops/native_layer_norm.h"
#include "aten/ops/normalization/cuda/norm.cuh"

namespace treadle::cuda {
namespace {

template <class T>
__global__ void layer_norm_kernel(const T* x, const T* weight, const T* bias, Computed<T> eps,
                                  int64_t length, T* y, Computed<T>* mean, Computed<T>* rstd) {
  using C = Computed<T>;
  x += blockIdx.x * length;
  y += blockIdx.x * length;
  const auto [m, scale] = moments_of(x, length, eps);
  for (int64_t i = threadIdx.x; i < length; i += kBlock) {
    const C w = parameter(weight, i, C(1)), b = parameter(bias, i, C(0));
    y[i] = narrowed<T>((widened(x[i]) - m) * scale * w + b);
  }
  if (threadIdx.x == 0) {
    mean[blockIdx.x] = m;
    rstd[blockIdx.x] = scale;
  }
}

// With xhat = (x - mean) * rstd and h = g * weight:  d x = rstd * (h - mean(h) - xhat * mean(h *
// xhat)).
template <class T>
__global__ void input_gradient_kernel(const T* g, const T* x, const T* weight,
                                      const Computed<T>* mean, const Computed<T>* rstd,
                                      int64_t length, T* out) {
  using C = Computed<T>;
  const int64_t first = blockIdx.x * length;
  const C m = mean[blockIdx.x], scale = rstd[blockIdx.x];
  const auto h = [=](int64_t i) { return widened(g[first + i]) * parameter(weight, i, C(1)); };
  C sum = 0, product = 0;
  for (int64_t i = threadIdx.x; i < length; i += kBlock) {
    sum += h(i);
    product += h(i) * (widened(x[first + i]) - m);
  }
  const C mean_h = folded_in_block(sum, Plus()) / static_cast<C>(length);
  const C slope = folded_in_block(product, Plus()) * scale * scale / static_cast<C>(length);
  for (int64_t i = threadIdx.x; i < length; i += kBlock)
    out[first + i] = narrowed<T>(scale * (h(i) - mean_h - (widened(x[first + i]) - m) * slope));
}

template <class T>
void layer_norm_cuda(const Tensor& input, IntList normalized_shape, const Tensor& weight,
                     const Tensor& bias, double eps, const Tensor& out, const Tensor& mean,
                     const Tensor& rstd) {
  using C = Computed<T>;
  const NormRows s(input.sizes(), normalized_shape);
  if (s.rows == 0) return;
  const Tensor x = dense(input), w = dense(weight), b = dense(bias);
  const Place place(input);
  layer_norm_kernel<T><<<block_each(s.rows), kBlock, 0, place.stream>>>(
      x.data_as<T>(), data_of<T>(w), data_of<T>(b), static_cast<C>(eps), s.length, out.data_as<T>(),
      mean.data_as<C>(), rstd.data_as<C>());
  check_launched();
}

template <class T>
void layer_norm_backward_cuda(const Tensor& grad, const Tensor& input, IntList normalized_shape,
                              const Tensor& mean, const Tensor& rstd, const Tensor& weight,
                              const Tensor& grad_input, const Tensor& grad_weight,
                              const Tensor& grad_bias) {
  using C = Computed<T>;
  const NormRows s(input.sizes(), normalized_shape);
  if (s.length == 0) return;
  const Tensor g = dense(grad), x = dense(input), w = dense(weight), m = dense(mean),
               r = dense(rstd);
  const Place place(input);
  if (s.rows > 0) {
    input_gradient_kernel<T><<<block_each(s.rows), kBlock, 0, place.stream>>>(
        g.data_as<T>(), x.data_as<T>(), data_of<T>(w), m.data_as<C>(), r.data_as<C>(), s.length,
        grad_input.data_as<T>());
    check_launched();
  }
  parameter_gradients<T>(g, x, m, r, s, grad_weight, grad_bias, place.stream);
}

const auto forward_registered = register_cuda<aten::ops::native_layer_norm>(
    Floats(), []<class T>() { return &layer_norm_cuda<T>; }, "layer_norm_cuda");
const auto backward_registered = register_cuda<aten::ops::_layer_norm_backward>(
    Floats(), []<class T>() { return &layer_norm_backward_cuda<T>; }, "layer_norm_backward_cuda");

}  // namespace
}  // namespace treadle::cuda
