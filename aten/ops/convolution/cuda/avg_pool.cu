// Average pooling over one to three dimensions, by sliding or adaptive windows, and its gradient. A
// thread adds up a window, or the shares of the windows that hold its element. Sums follow the
// CPU's order: the columns of a window, each over its rows.
//
// SPDX-License-Identifier: Apache-2.0
#include <optional>

#include "aten/ops/_adaptive_avg_pool_backward.h"
#include "aten/ops/_avg_pool_backward.h"
#include "aten/ops/adaptive_avg_pool1d.h"
#include "aten/ops/adaptive_avg_pool2d.h"
#include "aten/ops/adaptive_avg_pool3d.h"
#include "aten/ops/avg_pool1d.h"
#include "aten/ops/avg_pool2d.h"
#include "aten/ops/avg_pool3d.h"
#include "aten/ops/contiguous.h"
#include "aten/ops/convolution/cuda/pool_windows.cuh"

namespace treadle::cuda {
namespace {

// The divisor of a window's sum.
struct Divisor {
  bool count_include_pad = false;
  int64_t given = 0;  // 0: the window's size

  // In double, because the product of three padded sizes may exceed 2^63.
  __device__ double at(const PoolWindows& w, int64_t z, int64_t y, int64_t x) const {
    if (given != 0) return static_cast<double>(given);
    const double size = w.size(0, z, count_include_pad) * w.size(1, y, count_include_pad) *
                        w.size(2, x, count_include_pad);
    return size < 1 ? 1 : size;
  }
};

template <class T>
__global__ void avg_pool_kernel(const T* x, PoolWindows w, Divisor divisor, T* out) {
  using C = Computed<T>;
  for_each_element(w.planes * w.out_size(), [=](int64_t i) {
    const T* const plane = x + i / w.out_size() * w.in_size();
    const int64_t place = i % w.out_size();
    const int64_t oz = place / (w.out[1] * w.out[2]), oy = place / w.out[2] % w.out[1],
                  ox = place % w.out[2];
    const Range zs = w.of_window(0, oz), ys = w.of_window(1, oy), xs = w.of_window(2, ox);
    C sum = 0;
    for (int64_t k = xs.begin; k < xs.end; ++k) {
      C column = 0;
      for (int64_t z = zs.begin; z < zs.end; ++z)
        for (int64_t y = ys.begin; y < ys.end; ++y)
          column += widened(plane[(z * w.in[1] + y) * w.in[2] + k]);
      sum += column;
    }
    out[i] = narrowed<T>(sum / static_cast<C>(divisor.at(w, oz, oy, ox)));
  });
}

template <class T>
__global__ void gradient_kernel(const T* grad, PoolWindows w, Divisor divisor, T* out) {
  using C = Computed<T>;
  for_each_element(w.planes * w.in_size(), [=](int64_t i) {
    const T* const plane = grad + i / w.in_size() * w.out_size();
    const int64_t place = i % w.in_size();
    const Range zs = w.of_position(0, place / (w.in[1] * w.in[2])),
                ys = w.of_position(1, place / w.in[2] % w.in[1]),
                xs = w.of_position(2, place % w.in[2]);
    C sum = 0;
    for (int64_t z = zs.begin; z < zs.end; ++z) {
      for (int64_t y = ys.begin; y < ys.end; ++y) {
        C row = 0;
        for (int64_t x = xs.begin; x < xs.end; ++x)
          row += widened(plane[(z * w.out[1] + y) * w.out[2] + x]) /
                 static_cast<C>(divisor.at(w, z, y, x));
        sum += row;
      }
    }
    out[i] = narrowed<T>(sum);
  });
}

template <class T>
void forward(const Tensor& self, const PoolWindows& w, const Divisor& divisor, const Tensor& out) {
  const Tensor x = aten::contiguous(self);
  const Place place(out);
  avg_pool_kernel<T><<<blocks_for(out.numel()), kBlock, 0, place.stream>>>(
      x.data_as<T>(), w, divisor, out.data_as<T>());
  check_launched();
}
template <class T>
void backward(const Tensor& grad, const PoolWindows& w, const Divisor& divisor, const Tensor& out) {
  const Tensor g = aten::contiguous(grad);
  const Place place(out);
  gradient_kernel<T><<<blocks_for(out.numel()), kBlock, 0, place.stream>>>(
      g.data_as<T>(), w, divisor, out.data_as<T>());
  check_launched();
}

template <class T>
void avg_pool_cuda(const Tensor& self, IntList kernel_size, IntList stride, IntList padding, bool,
                   bool count_include_pad, std::optional<int64_t> divisor_override,
                   const Tensor& out) {
  if (out.numel() == 0) return;
  forward<T>(self, PoolWindows(self.sizes(), out.sizes(), kernel_size, stride, padding, {}),
             {count_include_pad, divisor_override.value_or(0)}, out);
}
template <class T>
void avg_pool1d_cuda(const Tensor& self, IntList kernel_size, IntList stride, IntList padding,
                     bool ceil_mode, bool count_include_pad, const Tensor& out) {
  avg_pool_cuda<T>(self, kernel_size, stride, padding, ceil_mode, count_include_pad, std::nullopt,
                   out);
}
template <class T>
void adaptive_avg_pool_cuda(const Tensor& self, IntList output_size, const Tensor& out) {
  if (out.numel() == 0) return;
  forward<T>(self, PoolWindows(self.sizes(), out.sizes(), output_size.size()), {}, out);
}
template <class T>
void avg_pool_backward_cuda(const Tensor& grad, IntList input_size, IntList kernel_size,
                            IntList stride, IntList padding, bool, bool count_include_pad,
                            std::optional<int64_t> divisor_override, const Tensor& out) {
  if (out.numel() == 0) return;
  backward<T>(grad, PoolWindows(input_size, grad.sizes(), kernel_size, stride, padding, {}),
              {count_include_pad, divisor_override.value_or(0)}, out);
}
template <class T>
void adaptive_avg_pool_backward_cuda(const Tensor& grad, IntList input_size, int64_t spatial,
                                     const Tensor& out) {
  if (out.numel() == 0) return;
  backward<T>(grad, PoolWindows(input_size, grad.sizes(), static_cast<size_t>(spatial)), {}, out);
}

namespace ops = aten::ops;
template <class Op>
Registration register_avg_pool() {
  return register_cuda<Op>(
      Floats(), []<class T>() { return &avg_pool_cuda<T>; }, "avg_pool_cuda");
}
template <class Op>
Registration register_adaptive() {
  return register_cuda<Op>(
      Floats(), []<class T>() { return &adaptive_avg_pool_cuda<T>; }, "adaptive_avg_pool_cuda");
}
const auto one_registered = register_cuda<ops::avg_pool1d>(
    Floats(), []<class T>() { return &avg_pool1d_cuda<T>; }, "avg_pool1d_cuda");
[[maybe_unused]] const Registration sliding_registered[] = {register_avg_pool<ops::avg_pool2d>(),
                                                            register_avg_pool<ops::avg_pool3d>()};
[[maybe_unused]] const Registration adaptive_registered[] = {
    register_adaptive<ops::adaptive_avg_pool1d>(), register_adaptive<ops::adaptive_avg_pool2d>(),
    register_adaptive<ops::adaptive_avg_pool3d>()};
const auto backward_registered = register_cuda<ops::_avg_pool_backward>(
    Floats(), []<class T>() { return &avg_pool_backward_cuda<T>; }, "avg_pool_backward_cuda");
const auto adaptive_backward_registered = register_cuda<ops::_adaptive_avg_pool_backward>(
    Floats(), []<class T>() { return &adaptive_avg_pool_backward_cuda<T>; },
    "adaptive_avg_pool_backward_cuda");

}  // namespace
}  // namespace treadle::cuda
