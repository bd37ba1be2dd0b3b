// The pointwise part of LSTM and GRU cells and its gradients, in one kernel: the rest of a step
// after the matrix products. The formulas are at aten/ops/recurrent/cpu/rnn_cells.cc. A thread
// computes one hidden unit of one row.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/backend/cuda/kernels/kernel.cuh"
#include "aten/ops/_gru_cell.h"
#include "aten/ops/_gru_cell_backward.h"
#include "aten/ops/_lstm_cell.h"
#include "aten/ops/_lstm_cell_backward.h"
#include "aten/ops/contiguous.h"

namespace treadle::cuda {
namespace {

template <class C>
__device__ inline C sigmoid(C x) {
  return C(1) / (C(1) + exp(-x));
}

// The gates of a unit in a row of `count * units`: gate g of element i (of rows of `units`).
template <class T>
struct Gates {
  T* data;
  int64_t units;
  int count;
  __device__ int64_t place(int64_t i, int g) const {
    return (i / units * count + g) * units + i % units;
  }
  __device__ Computed<T> get(int64_t i, int g) const { return widened(data[place(i, g)]); }
  __device__ void put(int64_t i, int g, Computed<T> v) const { data[place(i, g)] = narrowed<T>(v); }
};

template <class T>
__global__ void lstm_kernel(Gates<T> gates, const T* cx, int64_t n, T* hy, T* cy) {
  using C = Computed<T>;
  for_each_element(n, [=](int64_t k) {
    const C i = sigmoid(gates.get(k, 0)), f = sigmoid(gates.get(k, 1)), g = tanh(gates.get(k, 2)),
            o = sigmoid(gates.get(k, 3));
    const C c = f * widened(cx[k]) + i * g;
    cy[k] = narrowed<T>(c);
    hy[k] = narrowed<T>(o * tanh(c));
  });
}

template <class T>
__global__ void lstm_gradient_kernel(const T* grad_h, const T* grad_c, Gates<T> gates, const T* cx,
                                     const T* cy, int64_t n, Gates<T> grad_gates, T* grad_cx) {
  using C = Computed<T>;
  for_each_element(n, [=](int64_t k) {
    const C i = sigmoid(gates.get(k, 0)), f = sigmoid(gates.get(k, 1)), g = tanh(gates.get(k, 2)),
            o = sigmoid(gates.get(k, 3));
    const C t = tanh(widened(cy[k])), gh = widened(grad_h[k]), one = 1;
    const C dc = widened(grad_c[k]) + gh * o * (one - t * t);
    grad_gates.put(k, 0, dc * g * i * (one - i));
    grad_gates.put(k, 1, dc * widened(cx[k]) * f * (one - f));
    grad_gates.put(k, 2, dc * i * (one - g * g));
    grad_gates.put(k, 3, gh * t * o * (one - o));
    grad_cx[k] = narrowed<T>(dc * f);
  });
}

template <class T>
__global__ void gru_kernel(Gates<T> x, Gates<T> h, const T* hx, int64_t n, T* hy) {
  using C = Computed<T>;
  for_each_element(n, [=](int64_t k) {
    const C r = sigmoid(x.get(k, 0) + h.get(k, 0)), z = sigmoid(x.get(k, 1) + h.get(k, 1));
    const C m = tanh(x.get(k, 2) + r * h.get(k, 2));
    hy[k] = narrowed<T>(m + z * (widened(hx[k]) - m));
  });
}

template <class T>
__global__ void gru_gradient_kernel(const T* grad, Gates<T> x, Gates<T> h, const T* hx, int64_t n,
                                    Gates<T> grad_x, Gates<T> grad_h, T* grad_hx) {
  using C = Computed<T>;
  for_each_element(n, [=](int64_t k) {
    const C hn = h.get(k, 2), g = widened(grad[k]), one = 1;
    const C r = sigmoid(x.get(k, 0) + h.get(k, 0)), z = sigmoid(x.get(k, 1) + h.get(k, 1));
    const C m = tanh(x.get(k, 2) + r * hn);
    const C dm = g * (one - z) * (one - m * m);
    const C dz = g * (widened(hx[k]) - m) * z * (one - z);
    const C dr = dm * hn * r * (one - r);
    grad_x.put(k, 0, dr);
    grad_x.put(k, 1, dz);
    grad_x.put(k, 2, dm);
    grad_h.put(k, 0, dr);
    grad_h.put(k, 1, dz);
    grad_h.put(k, 2, dm * r);
    grad_hx[k] = narrowed<T>(g * z);
  });
}

template <class T>
Gates<T> gates_of(const Tensor& t, int count) {
  return {t.data_as<T>(), t.size(1) / count, count};
}

template <class T>
void lstm_cell_cuda(const Tensor& gates, const Tensor& cx, const Tensor& hy, const Tensor& cy) {
  if (hy.numel() == 0) return;
  const Tensor g = aten::contiguous(gates), c = aten::contiguous(cx);
  const Place place(hy);
  lstm_kernel<T><<<blocks_for(hy.numel()), kBlock, 0, place.stream>>>(
      gates_of<T>(g, 4), c.data_as<T>(), hy.numel(), hy.data_as<T>(), cy.data_as<T>());
  check_launched();
}

template <class T>
void lstm_cell_backward_cuda(const Tensor& grad_h, const Tensor& grad_c, const Tensor& gates,
                             const Tensor& cx, const Tensor& cy, const Tensor& grad_gates,
                             const Tensor& grad_cx) {
  if (cx.numel() == 0) return;
  const Tensor gh = aten::contiguous(grad_h), gc = aten::contiguous(grad_c),
               g = aten::contiguous(gates), c = aten::contiguous(cx), y = aten::contiguous(cy);
  const Place place(cx);
  lstm_gradient_kernel<T><<<blocks_for(cx.numel()), kBlock, 0, place.stream>>>(
      gh.data_as<T>(), gc.data_as<T>(), gates_of<T>(g, 4), c.data_as<T>(), y.data_as<T>(),
      cx.numel(), gates_of<T>(grad_gates, 4), grad_cx.data_as<T>());
  check_launched();
}

template <class T>
void gru_cell_cuda(const Tensor& input_gates, const Tensor& hidden_gates, const Tensor& hx,
                   const Tensor& hy) {
  if (hy.numel() == 0) return;
  const Tensor x = aten::contiguous(input_gates), g = aten::contiguous(hidden_gates),
               h = aten::contiguous(hx);
  const Place place(hy);
  gru_kernel<T><<<blocks_for(hy.numel()), kBlock, 0, place.stream>>>(
      gates_of<T>(x, 3), gates_of<T>(g, 3), h.data_as<T>(), hy.numel(), hy.data_as<T>());
  check_launched();
}

template <class T>
void gru_cell_backward_cuda(const Tensor& grad, const Tensor& input_gates,
                            const Tensor& hidden_gates, const Tensor& hx, const Tensor& grad_input,
                            const Tensor& grad_hidden, const Tensor& grad_hx) {
  if (hx.numel() == 0) return;
  const Tensor d = aten::contiguous(grad), x = aten::contiguous(input_gates),
               g = aten::contiguous(hidden_gates), h = aten::contiguous(hx);
  const Place place(hx);
  gru_gradient_kernel<T><<<blocks_for(hx.numel()), kBlock, 0, place.stream>>>(
      d.data_as<T>(), gates_of<T>(x, 3), gates_of<T>(g, 3), h.data_as<T>(), hx.numel(),
      gates_of<T>(grad_input, 3), gates_of<T>(grad_hidden, 3), grad_hx.data_as<T>());
  check_launched();
}

const auto lstm_registered = register_cuda<aten::ops::_lstm_cell>(
    Floats(), []<class T>() { return &lstm_cell_cuda<T>; }, "lstm_cell_cuda");
const auto lstm_backward_registered = register_cuda<aten::ops::_lstm_cell_backward>(
    Floats(), []<class T>() { return &lstm_cell_backward_cuda<T>; }, "lstm_cell_backward_cuda");
const auto gru_registered = register_cuda<aten::ops::_gru_cell>(
    Floats(), []<class T>() { return &gru_cell_cuda<T>; }, "gru_cell_cuda");
const auto gru_backward_registered = register_cuda<aten::ops::_gru_cell_backward>(
    Floats(), []<class T>() { return &gru_cell_backward_cuda<T>; }, "gru_cell_backward_cuda");

}  // namespace
}  // namespace treadle::cuda
