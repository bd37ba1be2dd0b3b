// Two-dimensional pooling and its gradients. Planes (one image, one channel) are independent and
// spread over threads.
#include <algorithm>
#include <cmath>
#include <limits>

#include "aten/ops/_max_pool2d_double_backward.h"
#include "aten/ops/avg_pool2d.h"
#include "aten/ops/avg_pool2d_backward.h"
#include "aten/ops/contiguous.h"
#include "aten/ops/max_pool2d_with_indices.h"
#include "aten/ops/max_pool2d_with_indices_backward.h"
#include "core/parallel.h"

namespace treadle::cpu {
namespace {

struct Plane {
  int64_t count, in_height, in_width, out_height, out_width;
  int64_t in() const { return in_height * in_width; }
  int64_t out() const { return out_height * out_width; }
  // Work for about 32K elements at a time.
  int64_t grain() const {
    return std::max<int64_t>(1, 32768 / std::max<int64_t>(1, std::max(in(), out())));
  }
};

Plane planes(IntList input, IntList output) {
  const size_t d = input.size() - 2;
  int64_t count = 1;
  for (size_t i = 0; i < d; ++i) count *= input[i];
  return {count, input[d], input[d + 1], output[d], output[d + 1]};
}

struct Window {
  IntList kernel, stride, padding;
  Window(IntList k, IntList s, IntList p) : kernel(k), stride(s.empty() ? k : s), padding(p) {}
};

template <class T>
bool is_nan(T v) {
  if constexpr (std::is_integral_v<T>)
    return false;
  else
    return std::isnan(static_cast<compute_type<T>>(v));
}

template <class T>
void max_pool2d_with_indices_cpu(const Tensor& self, IntList kernel_size, IntList stride,
                                 IntList padding, IntList dilation, bool, const Tensor& out,
                                 const Tensor& indices) {
  const Window w(kernel_size, stride, padding);
  const Plane p = planes(self.sizes(), out.sizes());
  const Tensor input = aten::contiguous(self);
  parallel_for(p.count, p.grain(), [&](int64_t begin, int64_t end) {
    for (int64_t n = begin; n < end; ++n) {
      const T* in = input.data_as<T>() + n * p.in();
      T* values = out.data_as<T>() + n * p.out();
      int64_t* at = indices.data_as<int64_t>() + n * p.out();
      for (int64_t y = 0; y < p.out_height; ++y) {
        for (int64_t x = 0; x < p.out_width; ++x) {
          const int64_t y0 = y * w.stride[0] - w.padding[0], x0 = x * w.stride[1] - w.padding[1];
          // The first place inside the image, so that a window of -inf (or the type's least value)
          // has an index too.
          int64_t first_y = y0, first_x = x0;
          while (first_y < 0) first_y += dilation[0];
          while (first_x < 0) first_x += dilation[1];
          int64_t best =
              std::min(first_y, p.in_height - 1) * p.in_width + std::min(first_x, p.in_width - 1);
          T top = in[best];
          for (int64_t i = first_y;
               i < std::min(y0 + (w.kernel[0] - 1) * dilation[0] + 1, p.in_height) && !is_nan(top);
               i += dilation[0]) {
            for (int64_t j = first_x;
                 j < std::min(x0 + (w.kernel[1] - 1) * dilation[1] + 1, p.in_width);
                 j += dilation[1]) {
              const T v = in[i * p.in_width + j];
              if (v > top || is_nan(v)) {
                top = v;
                best = i * p.in_width + j;
                if (is_nan(v)) break;
              }
            }
          }
          values[y * p.out_width + x] = top;
          at[y * p.out_width + x] = best;
        }
      }
    }
  });
}

// Moves values between a pooled plane and its input: `visit(plane offset in the input, index inside
// it, offset in the output)`.
template <class F>
void for_indices(const char* op, const Plane& p, const Tensor& indices, F&& visit) {
  const Tensor idx = aten::contiguous(indices);
  const int64_t* at = idx.data_as<int64_t>();
  parallel_for(p.count, p.grain(), [&](int64_t begin, int64_t end) {
    for (int64_t n = begin; n < end; ++n) {
      for (int64_t o = n * p.out(); o < (n + 1) * p.out(); ++o) {
        check<ErrorKind::Index>(at[o] >= 0 && at[o] < p.in(), op, ": expected indices in [0, ",
                                p.in(), "), got ", at[o]);
        visit(n * p.in() + at[o], o);
      }
    }
  });
}

template <class T>
void max_pool2d_with_indices_backward_cpu(const Tensor& grad, const Tensor& indices,
                                          IntList input_size, const Tensor& out) {
  const Plane p = planes(input_size, grad.sizes());
  const Tensor g = aten::contiguous(grad);
  std::fill_n(out.data_as<T>(), out.numel(), T(0));
  for_indices("max_pool2d_with_indices_backward", p, indices,
              [from = g.data_as<T>(), to = out.data_as<T>()](int64_t in, int64_t o) {
                to[in] = static_cast<T>(to[in] + from[o]);
              });
}

template <class T>
void max_pool2d_double_backward_cpu(const Tensor& grad, const Tensor& indices, const Tensor& out) {
  const Plane p = planes(grad.sizes(), indices.sizes());
  const Tensor g = aten::contiguous(grad);
  for_indices(
      "_max_pool2d_double_backward", p, indices,
      [from = g.data_as<T>(), to = out.data_as<T>()](int64_t in, int64_t o) { to[o] = from[in]; });
}

// The part of window (y, x) inside the image, and the number its sum is divided by.
struct Cell {
  int64_t y0, y1, x0, x1, divisor;
};
Cell cell(const Plane& p, const Window& w, int64_t y, int64_t x, bool count_include_pad,
          std::optional<int64_t> divisor_override) {
  const int64_t y0 = y * w.stride[0] - w.padding[0], x0 = x * w.stride[1] - w.padding[1];
  const int64_t y1 = std::min(y0 + w.kernel[0], p.in_height + w.padding[0]),
                x1 = std::min(x0 + w.kernel[1], p.in_width + w.padding[1]);
  Cell c{std::max<int64_t>(y0, 0), std::min(y1, p.in_height), std::max<int64_t>(x0, 0),
         std::min(x1, p.in_width), 0};
  c.divisor = divisor_override    ? *divisor_override
              : count_include_pad ? (y1 - y0) * (x1 - x0)
                                  : std::max<int64_t>(1, (c.y1 - c.y0) * (c.x1 - c.x0));
  return c;
}

template <class T>
void avg_pool2d_cpu(const Tensor& self, IntList kernel_size, IntList stride, IntList padding, bool,
                    bool count_include_pad, std::optional<int64_t> divisor_override,
                    const Tensor& out) {
  using C = compute_type<T>;
  const Window w(kernel_size, stride, padding);
  const Plane p = planes(self.sizes(), out.sizes());
  const Tensor input = aten::contiguous(self);
  parallel_for(p.count, p.grain(), [&](int64_t begin, int64_t end) {
    for (int64_t n = begin; n < end; ++n) {
      const T* in = input.data_as<T>() + n * p.in();
      T* values = out.data_as<T>() + n * p.out();
      for (int64_t y = 0; y < p.out_height; ++y) {
        for (int64_t x = 0; x < p.out_width; ++x) {
          const Cell c = cell(p, w, y, x, count_include_pad, divisor_override);
          C sum = 0;
          for (int64_t i = c.y0; i < c.y1; ++i) {
            for (int64_t j = c.x0; j < c.x1; ++j) sum += static_cast<C>(in[i * p.in_width + j]);
          }
          values[y * p.out_width + x] = static_cast<T>(sum / static_cast<C>(c.divisor));
        }
      }
    }
  });
}

template <class T>
void avg_pool2d_backward_cpu(const Tensor& grad, IntList input_size, IntList kernel_size,
                             IntList stride, IntList padding, bool, bool count_include_pad,
                             std::optional<int64_t> divisor_override, const Tensor& out) {
  using C = compute_type<T>;
  const Window w(kernel_size, stride, padding);
  const Plane p = planes(input_size, grad.sizes());
  const Tensor g = aten::contiguous(grad);
  parallel_for(p.count, p.grain(), [&](int64_t begin, int64_t end) {
    std::vector<C> sums(static_cast<size_t>(p.in()));
    for (int64_t n = begin; n < end; ++n) {
      const T* from = g.data_as<T>() + n * p.out();
      std::fill(sums.begin(), sums.end(), C(0));
      for (int64_t y = 0; y < p.out_height; ++y) {
        for (int64_t x = 0; x < p.out_width; ++x) {
          const Cell c = cell(p, w, y, x, count_include_pad, divisor_override);
          const C share = static_cast<C>(from[y * p.out_width + x]) / static_cast<C>(c.divisor);
          for (int64_t i = c.y0; i < c.y1; ++i) {
            for (int64_t j = c.x0; j < c.x1; ++j) sums[i * p.in_width + j] += share;
          }
        }
      }
      std::copy(sums.begin(), sums.end(), out.data_as<T>() + n * p.in());
    }
  });
}

const auto max_registered = register_kernels<aten::ops::max_pool2d_with_indices, DeviceType::CPU>(
    []<class T>() { return &max_pool2d_with_indices_cpu<T>; }, "max_pool2d_with_indices_cpu");
const auto max_backward_registered =
    register_kernels<aten::ops::max_pool2d_with_indices_backward, DeviceType::CPU>(
        []<class T>() { return &max_pool2d_with_indices_backward_cpu<T>; },
        "max_pool2d_with_indices_backward_cpu");
const auto max_double_registered =
    register_kernels<aten::ops::_max_pool2d_double_backward, DeviceType::CPU>(
        []<class T>() { return &max_pool2d_double_backward_cpu<T>; },
        "max_pool2d_double_backward_cpu");
const auto avg_registered = register_kernels<aten::ops::avg_pool2d, DeviceType::CPU>(
    []<class T>() { return &avg_pool2d_cpu<T>; }, "avg_pool2d_cpu");
const auto avg_backward_registered =
    register_kernels<aten::ops::avg_pool2d_backward, DeviceType::CPU>(
        []<class T>() { return &avg_pool2d_backward_cpu<T>; }, "avg_pool2d_backward_cpu");

}  // namespace
}  // namespace treadle::cpu
