// Average pooling over one to three dimensions, by sliding or adaptive windows, and its gradient.
//
// The rows under a window are added up for all columns at once, then the columns of each window.
//
// SPDX-License-Identifier: Apache-2.0
#include <optional>
#include <type_traits>

#include "aten/backend/cpu/long_sums.h"
#include "aten/ops/_adaptive_avg_pool_backward.h"
#include "aten/ops/_avg_pool_backward.h"
#include "aten/ops/adaptive_avg_pool1d.h"
#include "aten/ops/adaptive_avg_pool2d.h"
#include "aten/ops/adaptive_avg_pool3d.h"
#include "aten/ops/avg_pool1d.h"
#include "aten/ops/avg_pool2d.h"
#include "aten/ops/avg_pool3d.h"
#include "aten/ops/contiguous.h"
#include "aten/ops/convolution/cpu/avg_pool_pixels.h"
#include "aten/ops/convolution/cpu/pool_windows.h"

namespace treadle::cpu {
namespace {

// The divisor of a window's sum.
struct Divisor {
  bool count_include_pad = false;
  std::optional<int64_t> override = std::nullopt;

  // In double, because the product of three padded sizes may exceed 2^63.
  double at(const PoolAxes& axes, int64_t z, int64_t y, int64_t x) const {
    if (override) return static_cast<double>(*override);
    const auto size = [&](int d, int64_t i) {
      return static_cast<double>(count_include_pad ? axes[d].extent[i] : axes[d].count(i));
    };
    return std::max(1.0, size(0, z) * size(1, y) * size(2, x));
  }
  auto of(const PoolAxes& axes) const {
    return [this, &axes](int64_t z, int64_t y, int64_t x) { return at(axes, z, y, x); };
  }
};

// Calls f(row of the plane) for the rows under window (z, y).
template <class F>
void for_rows(const PoolPlanes& p, const PoolAxes& axes, int64_t z, int64_t y, F&& f) {
  for (int64_t i = axes[0].begin[z]; i < axes[0].end[z]; ++i) {
    for (int64_t j = axes[1].begin[y]; j < axes[1].end[y]; ++j) f(i * p.in[1] + j);
  }
}

// One row of means of the windows (z, y) over the sums of their rows.
template <class S, class T, class Sum>
void put_means(const S* columns, int64_t windows, const PoolAxes& axes, const Divisor& divisor,
               int64_t z, int64_t y, T* to, Sum sum_of) {
  for (int64_t x = 0; x < windows; ++x) {
    const int64_t first = axes[2].begin[x];
    const auto sum = sum_of(columns + first, axes[2].end[x] - first);
    to[x] = static_cast<T>(static_cast<compute_type<T>>(
        sum / static_cast<std::remove_cv_t<decltype(sum)>>(divisor.at(axes, z, y, x))));
  }
}

template <class T>
void avg_pool(const Tensor& self, const PoolPlanes& p, const PoolAxes& axes, const Divisor& divisor,
              const Tensor& out) {
  using C = compute_type<T>;
  if (by_pixels(out)) return pixels::avg_pool<T>(self, axes, divisor.of(axes), out);
  const Tensor input = aten::contiguous(self);
  const int64_t width = p.in[2];
  if (p.out_size() == 1 && axes[0].count(0) * axes[1].count(0) * axes[2].count(0) == p.in_size()) {
    // The mean of a whole plane, whose elements are consecutive.
    p.for_each([&](int64_t begin, int64_t end) {
      const T* plane = input.data_as<T>() + begin * p.in_size();
      T* to = out.data_as<T>() + begin;
      for (; begin < end; ++begin, ++to, plane += p.in_size()) {
        const auto sum =
            long_sum<C>(p.in_size(), [&](int64_t i) { return static_cast<C>(plane[i]); });
        const auto count = static_cast<wide_type<C>>(divisor.at(axes, 0, 0, 0));
        *to = static_cast<T>(static_cast<C>(sum / count));
      }
    });
    return;
  }
  bool narrow = true;
  for (int64_t x = 0; x < p.out[2]; ++x) narrow = narrow && axes[2].count(x) <= kSumRun;
  const auto few_columns = [](const auto* columns, int64_t count) {
    std::remove_cvref_t<decltype(*columns)> sum = 0;
    for (int64_t k = 0; k < count; ++k) sum += columns[k];
    return sum;
  };
  const auto many_columns = [](const auto* columns, int64_t count) {
    using S = std::remove_cvref_t<decltype(*columns)>;
    return long_sum<S>(count, [=](int64_t k) { return columns[k]; });
  };
  p.for_each([&](int64_t begin, int64_t end) {
    ColumnSums<C> rows(width);
    for (int64_t n = begin; n < end; ++n) {
      const T* plane = input.data_as<T>() + n * p.in_size();
      T* to = out.data_as<T>() + n * p.out_size();
      for (int64_t z = 0; z < p.out[0]; ++z) {
        for (int64_t y = 0; y < p.out[1]; ++y, to += p.out[2]) {
          for_rows(p, axes, z, y, [&](int64_t row) {
            const T* from = plane + row * width;
            rows.add_row([&](C* sums) {
              for (int64_t x = 0; x < width; ++x) sums[x] += static_cast<C>(from[x]);
            });
          });
          rows.take_all([&](const auto* columns) {
            if (narrow)
              put_means(columns, p.out[2], axes, divisor, z, y, to, few_columns);
            else
              put_means(columns, p.out[2], axes, divisor, z, y, to, many_columns);
          });
        }
      }
    }
  });
}

// The maximum number of windows that contain an element.
int64_t most_windows(const PoolAxes& axes) {
  int64_t most = 1;
  for (const auto& axis : axes) {
    const int64_t windows = static_cast<int64_t>(axis.begin.size());
    int64_t meet = 1;
    for (int64_t first = 0, last = 0; last < windows; ++last) {
      while (axis.end[first] <= axis.begin[last] && first < last) ++first;
      meet = std::max(meet, last - first + 1);
    }
    most *= std::min(meet, kSumRun + 1);
  }
  return most;
}

// S: the type of the sums of shares.
template <class T, class S>
void add_shares(const Tensor& grad, const PoolPlanes& p, const PoolAxes& axes,
                const Divisor& divisor, const Tensor& out) {
  using C = compute_type<T>;
  if (by_pixels(out)) return pixels::avg_pool_grad<T, S>(grad, axes, divisor.of(axes), out);
  const Tensor g = aten::contiguous(grad);
  const int64_t width = p.in[2];
  p.for_each([&](int64_t begin, int64_t end) {
    std::vector<S> columns(static_cast<size_t>(width)), sums(static_cast<size_t>(p.in_size()));
    for (int64_t n = begin; n < end; ++n) {
      const T* from = g.data_as<T>() + n * p.out_size();
      std::fill(sums.begin(), sums.end(), S(0));
      for (int64_t z = 0; z < p.out[0]; ++z) {
        for (int64_t y = 0; y < p.out[1]; ++y, from += p.out[2]) {
          std::fill(columns.begin(), columns.end(), S(0));
          for (int64_t x = 0; x < p.out[2]; ++x) {
            const S share =
                static_cast<S>(static_cast<C>(from[x])) / static_cast<S>(divisor.at(axes, z, y, x));
            for (int64_t k = axes[2].begin[x]; k < axes[2].end[x]; ++k) columns[k] += share;
          }
          for_rows(p, axes, z, y, [&, to = sums.data()](int64_t row) {
            for (int64_t x = 0; x < width; ++x) to[row * width + x] += columns[x];
          });
        }
      }
      std::transform(sums.begin(), sums.end(), out.data_as<T>() + n * p.in_size(),
                     [](S sum) { return static_cast<T>(static_cast<C>(sum)); });
    }
  });
}

template <class T>
void avg_pool_grad(const Tensor& grad, const PoolPlanes& p, const PoolAxes& axes,
                   const Divisor& divisor, const Tensor& out) {
  using C = compute_type<T>;
  if (most_windows(axes) <= kSumRun)
    add_shares<T, C>(grad, p, axes, divisor, out);
  else
    add_shares<T, wide_type<C>>(grad, p, axes, divisor, out);
}

template <class T>
void avg_pool_cpu(const Tensor& self, IntList kernel_size, IntList stride, IntList padding, bool,
                  bool count_include_pad, std::optional<int64_t> divisor_override,
                  const Tensor& out) {
  if (out.numel() == 0) return;
  const PoolPlanes p(self.sizes(), out.sizes(), kernel_size.size());
  avg_pool<T>(self, p, sliding_windows(p, kernel_size, stride, padding, {}),
              {count_include_pad, divisor_override}, out);
}

template <class T>
void avg_pool1d_cpu(const Tensor& self, IntList kernel_size, IntList stride, IntList padding,
                    bool ceil_mode, bool count_include_pad, const Tensor& out) {
  avg_pool_cpu<T>(self, kernel_size, stride, padding, ceil_mode, count_include_pad, std::nullopt,
                  out);
}

template <class T>
void adaptive_avg_pool_cpu(const Tensor& self, IntList output_size, const Tensor& out) {
  if (out.numel() == 0) return;
  const PoolPlanes p(self.sizes(), out.sizes(), output_size.size());
  avg_pool<T>(self, p, adaptive_windows(p, output_size.size()), {}, out);
}

template <class T>
void avg_pool_backward_cpu(const Tensor& grad, IntList input_size, IntList kernel_size,
                           IntList stride, IntList padding, bool, bool count_include_pad,
                           std::optional<int64_t> divisor_override, const Tensor& out) {
  if (out.numel() == 0) return;
  const PoolPlanes p(input_size, grad.sizes(), kernel_size.size());
  avg_pool_grad<T>(grad, p, sliding_windows(p, kernel_size, stride, padding, {}),
                   {count_include_pad, divisor_override}, out);
}

template <class T>
void adaptive_avg_pool_backward_cpu(const Tensor& grad, IntList input_size, int64_t spatial,
                                    const Tensor& out) {
  if (out.numel() == 0) return;
  const PoolPlanes p(input_size, grad.sizes(), static_cast<size_t>(spatial));
  avg_pool_grad<T>(grad, p, adaptive_windows(p, static_cast<size_t>(spatial)), {}, out);
}

namespace ops = aten::ops;
template <class Op>
Registration register_avg_pool() {
  return register_kernels<Op, DeviceType::CPU>([]<class T>() { return &avg_pool_cpu<T>; },
                                               "avg_pool_cpu");
}
template <class Op>
Registration register_adaptive() {
  return register_kernels<Op, DeviceType::CPU>([]<class T>() { return &adaptive_avg_pool_cpu<T>; },
                                               "adaptive_avg_pool_cpu");
}
const auto one_registered = register_kernels<ops::avg_pool1d, DeviceType::CPU>(
    []<class T>() { return &avg_pool1d_cpu<T>; }, "avg_pool1d_cpu");
[[maybe_unused]] const Registration sliding_registered[] = {register_avg_pool<ops::avg_pool2d>(),
                                                            register_avg_pool<ops::avg_pool3d>()};
[[maybe_unused]] const Registration adaptive_registered[] = {
    register_adaptive<ops::adaptive_avg_pool1d>(), register_adaptive<ops::adaptive_avg_pool2d>(),
    register_adaptive<ops::adaptive_avg_pool3d>()};
const auto backward_registered = register_kernels<ops::_avg_pool_backward, DeviceType::CPU>(
    []<class T>() { return &avg_pool_backward_cpu<T>; }, "avg_pool_backward_cpu");
const auto adaptive_backward_registered =
    register_kernels<ops::_adaptive_avg_pool_backward, DeviceType::CPU>(
        []<class T>() { return &adaptive_avg_pool_backward_cpu<T>; },
        "adaptive_avg_pool_backward_cpu");

}  // namespace
}  // namespace treadle::cpu
