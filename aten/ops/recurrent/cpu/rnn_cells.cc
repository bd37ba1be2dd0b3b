// The pointwise part of LSTM and GRU cells and its gradients: the rest of a step after the matrix
// products. Backward recomputes the activations from the gates.
//
//   lstm: gates (B, 4H) hold i, f, g, o.   c' = sigmoid(f) c + sigmoid(i) tanh(g),
//                                           h' = sigmoid(o) tanh(c')
//   gru: gates of the input and of the hidden state (B, 3H) hold r, z, n.
//        n' = tanh(xn + sigmoid(xr + hr) hn),  h' = n' + sigmoid(xz + hz) (h - n')
//
// Hochreiter & Schmidhuber (1997); Cho et al. (2014).
//
// SPDX-License-Identifier: Apache-2.0
#define TREADLE_TARGET_INCLUDE "aten/ops/recurrent/cpu/rnn_cells.cc"
#include "aten/backend/cpu/foreach_target.h"

#include <algorithm>

#include "aten/scalar/math-inl.h"
#include "aten/scalar/narrow-inl.h"

#ifndef TREADLE_ATEN_CPU_RNN_CELLS_TABLE
#define TREADLE_ATEN_CPU_RNN_CELLS_TABLE
namespace treadle::cpu {

// One row of a batch: `n` hidden units.
template <class T>
struct CellLoops {
  void (*lstm)(const T* gates, const T* cx, T* hy, T* cy, int64_t n);
  void (*lstm_backward)(const T* grad_h, const T* grad_c, const T* gates, const T* cx, const T* cy,
                        T* grad_gates, T* grad_cx, int64_t n);
  void (*gru)(const T* x, const T* h, const T* hx, T* hy, int64_t n);
  void (*gru_backward)(const T* grad, const T* x, const T* h, const T* hx, T* grad_x, T* grad_h,
                       T* grad_hx, int64_t n);
};

}  // namespace treadle::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace treadle::simd::HWY_NAMESPACE {

// 16-bit elements are computed as floats, which are rounded as they are stored.
template <class T>
struct CellTarget {
  using C = compute_type<T>;
  using V = Vec<C>;

  // f(first, lanes) for n elements.
  template <class F>
  static HWY_INLINE void for_lanes(int64_t n, F f) {
    for (int64_t i = 0; i < n; i += V::kLanes) f(i, std::min<int64_t>(V::kLanes, n - i));
  }

  static void lstm(const T* gates, const T* cx, T* hy, T* cy, int64_t n) {
    for_lanes(n, [&](int64_t k, int64_t lanes) {
      const V i = sigmoid(load_computed(gates + k, lanes)),
              f = sigmoid(load_computed(gates + n + k, lanes));
      const V g = tanh(load_computed(gates + 2 * n + k, lanes)),
              o = sigmoid(load_computed(gates + 3 * n + k, lanes));
      const V c = f * load_computed(cx + k, lanes) + i * g;
      store_computed(c, cy + k, lanes);
      store_computed(o * tanh(c), hy + k, lanes);
    });
  }

  static void lstm_backward(const T* grad_h, const T* grad_c, const T* gates, const T* cx,
                            const T* cy, T* grad_gates, T* grad_cx, int64_t n) {
    const V one = set(C(1));
    for_lanes(n, [&](int64_t k, int64_t lanes) {
      const V i = sigmoid(load_computed(gates + k, lanes)),
              f = sigmoid(load_computed(gates + n + k, lanes));
      const V g = tanh(load_computed(gates + 2 * n + k, lanes)),
              o = sigmoid(load_computed(gates + 3 * n + k, lanes));
      const V t = tanh(load_computed(cy + k, lanes)), gh = load_computed(grad_h + k, lanes);
      const V dc = load_computed(grad_c + k, lanes) + gh * o * (one - t * t);
      store_computed(dc * g * i * (one - i), grad_gates + k, lanes);
      store_computed(dc * load_computed(cx + k, lanes) * f * (one - f), grad_gates + n + k, lanes);
      store_computed(dc * i * (one - g * g), grad_gates + 2 * n + k, lanes);
      store_computed(gh * t * o * (one - o), grad_gates + 3 * n + k, lanes);
      store_computed(dc * f, grad_cx + k, lanes);
    });
  }

  static void gru(const T* x, const T* h, const T* hx, T* hy, int64_t n) {
    for_lanes(n, [&](int64_t k, int64_t lanes) {
      const V r = sigmoid(load_computed(x + k, lanes) + load_computed(h + k, lanes));
      const V z = sigmoid(load_computed(x + n + k, lanes) + load_computed(h + n + k, lanes));
      const V m =
          tanh(load_computed(x + 2 * n + k, lanes) + r * load_computed(h + 2 * n + k, lanes));
      store_computed(m + z * (load_computed(hx + k, lanes) - m), hy + k, lanes);
    });
  }

  static void gru_backward(const T* grad, const T* x, const T* h, const T* hx, T* grad_x, T* grad_h,
                           T* grad_hx, int64_t n) {
    const V one = set(C(1));
    for_lanes(n, [&](int64_t k, int64_t lanes) {
      const V hn = load_computed(h + 2 * n + k, lanes), g = load_computed(grad + k, lanes);
      const V r = sigmoid(load_computed(x + k, lanes) + load_computed(h + k, lanes));
      const V z = sigmoid(load_computed(x + n + k, lanes) + load_computed(h + n + k, lanes));
      const V m = tanh(load_computed(x + 2 * n + k, lanes) + r * hn);
      const V dm = g * (one - z) * (one - m * m);
      const V dz = g * (load_computed(hx + k, lanes) - m) * z * (one - z);
      const V dr = dm * hn * r * (one - r);
      store_computed(dr, grad_x + k, lanes);
      store_computed(dz, grad_x + n + k, lanes);
      store_computed(dm, grad_x + 2 * n + k, lanes);
      store_computed(dr, grad_h + k, lanes);
      store_computed(dz, grad_h + n + k, lanes);
      store_computed(dm * r, grad_h + 2 * n + k, lanes);
      store_computed(g * z, grad_hx + k, lanes);
    });
  }

  static constexpr cpu::CellLoops<T> kLoops = {&lstm, &lstm_backward, &gru, &gru_backward};
};

const cpu::CellLoops<float>& cells_float() { return CellTarget<float>::kLoops; }
const cpu::CellLoops<double>& cells_double() { return CellTarget<double>::kLoops; }
const cpu::CellLoops<Half>& cells_half() { return CellTarget<Half>::kLoops; }
const cpu::CellLoops<BFloat16>& cells_bfloat16() { return CellTarget<BFloat16>::kLoops; }

}  // namespace treadle::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "aten/ops/recurrent/cpu/rnn_cells.h"

#include "aten/ops/_gru_cell.h"
#include "aten/ops/_gru_cell_backward.h"
#include "aten/ops/_lstm_cell.h"
#include "aten/ops/_lstm_cell_backward.h"
#include "aten/ops/contiguous.h"
#include "core/threads/parallel.h"

namespace treadle::simd {

HWY_EXPORT(cells_float);
HWY_EXPORT(cells_double);
HWY_EXPORT(cells_half);
HWY_EXPORT(cells_bfloat16);

template <class T>
static const cpu::CellLoops<T>& cell_loops() {
  if constexpr (std::is_same_v<T, float>)
    return HWY_DYNAMIC_DISPATCH(cells_float)();
  else if constexpr (std::is_same_v<T, double>)
    return HWY_DYNAMIC_DISPATCH(cells_double)();
  else if constexpr (std::is_same_v<T, Half>)
    return HWY_DYNAMIC_DISPATCH(cells_half)();
  else
    return HWY_DYNAMIC_DISPATCH(cells_bfloat16)();
}

}  // namespace treadle::simd

namespace treadle::cpu {
namespace {

template <class F>
void for_rows(const Tensor& state, F&& f) {
  const int64_t units = state.size(1);
  parallel_for(state.size(0), std::max<int64_t>(1, 4096 / std::max<int64_t>(1, units)),
               [&](int64_t begin, int64_t end) {
                 for (int64_t row = begin; row < end; ++row) f(row, units);
               });
}

// A matrix by its rows. An argument whose rows are not contiguous is copied.
template <class T>
class Rows {
 public:
  explicit Rows(const Tensor& t)
      : held_(t.stride(1) == 1 ? t : aten::contiguous(t)),
        first_(held_.data_as<T>()),
        stride_(held_.stride(0)) {}
  T* operator[](int64_t row) const { return first_ + row * stride_; }

 private:
  Tensor held_;
  T* first_;
  int64_t stride_;
};

}  // namespace

template <class T>
void lstm_cell_cpu(const Tensor& gates, const Tensor& cx, const Tensor& hy, const Tensor& cy) {
  const Rows<T> g(gates), c(cx), h_out(hy), c_out(cy);
  for_rows(hy, [&](int64_t row, int64_t n) {
    simd::cell_loops<T>().lstm(g[row], c[row], h_out[row], c_out[row], n);
  });
}

template <class T>
void lstm_cell_backward_cpu(const Tensor& grad_h, const Tensor& grad_c, const Tensor& gates,
                            const Tensor& cx, const Tensor& cy, const Tensor& grad_gates,
                            const Tensor& grad_cx) {
  const Rows<T> gh(grad_h), gc(grad_c), g(gates), c(cx), y(cy), g_out(grad_gates), c_out(grad_cx);
  for_rows(cx, [&](int64_t row, int64_t n) {
    simd::cell_loops<T>().lstm_backward(gh[row], gc[row], g[row], c[row], y[row], g_out[row],
                                        c_out[row], n);
  });
}

template <class T>
void gru_cell_cpu(const Tensor& input_gates, const Tensor& hidden_gates, const Tensor& hx,
                  const Tensor& hy) {
  const Rows<T> x(input_gates), g(hidden_gates), h(hx), h_out(hy);
  for_rows(hy, [&](int64_t row, int64_t n) {
    simd::cell_loops<T>().gru(x[row], g[row], h[row], h_out[row], n);
  });
}

template <class T>
void gru_cell_backward_cpu(const Tensor& grad, const Tensor& input_gates,
                           const Tensor& hidden_gates, const Tensor& hx, const Tensor& grad_input,
                           const Tensor& grad_hidden, const Tensor& grad_hx) {
  const Rows<T> d(grad), x(input_gates), g(hidden_gates), h(hx), x_out(grad_input),
      g_out(grad_hidden), h_out(grad_hx);
  for_rows(hx, [&](int64_t row, int64_t n) {
    simd::cell_loops<T>().gru_backward(d[row], x[row], g[row], h[row], x_out[row], g_out[row],
                                       h_out[row], n);
  });
}

namespace {

const auto lstm_registered = register_kernels<aten::ops::_lstm_cell, DeviceType::CPU>(
    []<class T>() { return &lstm_cell_cpu<T>; }, "lstm_cell_cpu");
const auto lstm_backward_registered =
    register_kernels<aten::ops::_lstm_cell_backward, DeviceType::CPU>(
        []<class T>() { return &lstm_cell_backward_cpu<T>; }, "lstm_cell_backward_cpu");
const auto gru_registered = register_kernels<aten::ops::_gru_cell, DeviceType::CPU>(
    []<class T>() { return &gru_cell_cpu<T>; }, "gru_cell_cpu");
const auto gru_backward_registered =
    register_kernels<aten::ops::_gru_cell_backward, DeviceType::CPU>(
        []<class T>() { return &gru_cell_backward_cpu<T>; }, "gru_cell_backward_cpu");

}  // namespace
}  // namespace treadle::cpu
#endif  // HWY_ONCE
