// layer_norm and its gradients. A block normalises a row; the parameters' gradients are sums over
// rows, each column by one thread, in the rows' order.
#include "aten/cuda/kernels/kernel.cuh"
#include "aten/ops/_layer_norm_backward.h"
#include "aten/ops/contiguous.h"
#include "aten/ops/native_layer_norm.h"

namespace treadle::cuda {
namespace {

template <class T>
__global__ void layer_norm_kernel(const T* x, const T* weight, const T* bias, Computed<T> eps,
                                  int64_t length, T* y, Computed<T>* mean, Computed<T>* rstd) {
  using C = Computed<T>;
  x += blockIdx.x * length;
  y += blockIdx.x * length;
  C sum = 0;
  for (int64_t i = threadIdx.x; i < length; i += kBlock) sum += widened(x[i]);
  const C m = folded_in_block(sum, Plus()) / static_cast<C>(length);
  C squares = 0;
  for (int64_t i = threadIdx.x; i < length; i += kBlock) {
    const C d = widened(x[i]) - m;
    squares += d * d;
  }
  const C variance = folded_in_block(squares, Plus()) / static_cast<C>(length);
  const C scale = C(1) / sqrt(variance + eps);
  for (int64_t i = threadIdx.x; i < length; i += kBlock) {
    const C w = weight ? widened(weight[i]) : C(1), b = bias ? widened(bias[i]) : C(0);
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
  const auto h = [=](int64_t i) {
    return widened(g[first + i]) * (weight ? widened(weight[i]) : C(1));
  };
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

// Rows in 8 parts, of 32 columns each: a block's sums of the parts are added in order.
constexpr int kColumns = 32, kParts = kBlock / kColumns;
template <class T>
__global__ void parameter_gradients_kernel(const T* g, const T* x, const Computed<T>* mean,
                                           const Computed<T>* rstd, int64_t rows, int64_t length,
                                           T* grad_weight, T* grad_bias) {
  using C = Computed<T>;
  __shared__ C weights[kParts][kColumns], biases[kParts][kColumns];
  const int column = threadIdx.x % kColumns, part = threadIdx.x / kColumns;
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kColumns + column;
  C w = 0, b = 0;
  if (i < length) {
    for (int64_t r = part; r < rows; r += kParts) {
      const C slope = widened(g[r * length + i]);
      w += slope * (widened(x[r * length + i]) - mean[r]) * rstd[r];
      b += slope;
    }
  }
  weights[part][column] = w;
  biases[part][column] = b;
  __syncthreads();
  if (part != 0 || i >= length) return;
  for (int p = 1; p < kParts; ++p) {
    w += weights[p][column];
    b += biases[p][column];
  }
  grad_weight[i] = narrowed<T>(w);
  grad_bias[i] = narrowed<T>(b);
}

Tensor dense(const Tensor& t) { return t.defined() ? aten::contiguous(t) : t; }
template <class T>
const T* data_of(const Tensor& t) {
  return t.defined() ? t.data_as<T>() : nullptr;
}
struct Rows {
  int64_t rows = 1, length = 1;
  Rows(IntList input, IntList normalized) {
    for (const int64_t n : normalized) length *= n;
    for (size_t d = 0; d < input.size() - normalized.size(); ++d) rows *= input[d];
  }
};

template <class T>
void layer_norm_cuda(const Tensor& input, IntList normalized_shape, const Tensor& weight,
                     const Tensor& bias, double eps, const Tensor& out, const Tensor& mean,
                     const Tensor& rstd) {
  using C = Computed<T>;
  const Rows s(input.sizes(), normalized_shape);
  if (s.rows == 0) return;
  const Tensor x = dense(input), w = dense(weight), b = dense(bias);
  const Place place(input);
  layer_norm_kernel<T><<<static_cast<unsigned>(s.rows), kBlock, 0, place.stream>>>(
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
  const Rows s(input.sizes(), normalized_shape);
  if (s.length == 0) return;
  const Tensor g = dense(grad), x = dense(input), w = dense(weight), m = dense(mean),
               r = dense(rstd);
  const Place place(input);
  if (s.rows > 0) {
    input_gradient_kernel<T><<<static_cast<unsigned>(s.rows), kBlock, 0, place.stream>>>(
        g.data_as<T>(), x.data_as<T>(), data_of<T>(w), m.data_as<C>(), r.data_as<C>(), s.length,
        grad_input.data_as<T>());
    check_launched();
  }
  parameter_gradients_kernel<T>
      <<<static_cast<unsigned>((s.length + kColumns - 1) / kColumns), kBlock, 0, place.stream>>>(
          g.data_as<T>(), x.data_as<T>(), m.data_as<C>(), r.data_as<C>(), s.rows, s.length,
          grad_weight.data_as<T>(), grad_bias.data_as<T>());
  check_launched();
}

const auto forward_registered = register_cuda<aten::ops::native_layer_norm>(
    Floats(), []<class T>() { return &layer_norm_cuda<T>; }, "layer_norm_cuda");
const auto backward_registered = register_cuda<aten::ops::_layer_norm_backward>(
    Floats(), []<class T>() { return &layer_norm_backward_cuda<T>; }, "layer_norm_backward_cuda");

}  // namespace
}  // namespace treadle::cuda
