// Batch normalisation with its gradients.
//
// Ioffe & Szegedy, "Batch normalization" (2015). Sums run in a fixed order: over each plane of a
// channel, then over the batch. Where a plane is a single element, the input is a matrix with a
// column for each channel. The columns are then summed side by side, row after row, because a
// single column would use one element of each cache line.
//
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <vector>

#include "aten/ops/_batch_norm_backward.h"
#include "aten/ops/_batch_norm_train.h"
#include "aten/ops/normalization/cpu/norm_sums.h"
#include "core/base/parallel.h"

namespace treadle::cpu {
namespace {

// input as (batch, channels, plane).
struct Channels {
  int64_t batch, channels, plane;
  explicit Channels(IntList s) : batch(s[0]), channels(s[1]), plane(1) {
    for (size_t d = 2; d < s.size(); ++d) plane *= s[d];
  }
  int64_t count() const { return batch * plane; }
  int64_t grain() const { return grain_of(count()); }
};

// Sum over the batch and plane of one channel; term(offset of the plane, index inside it).
template <class C, class F>
wide_type<C> channel_sum(const Channels& s, int64_t c, F&& term) {
  wide_type<C> total = 0;
  for (int64_t n = 0; n < s.batch; ++n) {
    const int64_t base = (n * s.channels + c) * s.plane;
    total += long_sum<C>(s.plane, [&](int64_t i) { return term(base, i); });
  }
  return total;
}

// `kSums` sums of each of `columns` columns: sum k of column c is at k * columns + c.
// add(row, first column, width, sums) adds a part of a row; sum k of its columns is at k * width.
// The order of additions depends only on the number of rows.
template <class C, int kSums, class Add>
std::vector<wide_type<C>> column_sums(int64_t rows, int64_t columns, Add&& add) {
  constexpr int64_t kRows = 1024, kWidth = 512;  // of a piece, which one thread sums
  const int64_t bands = (rows + kRows - 1) / kRows, blocks = (columns + kWidth - 1) / kWidth;
  const auto each = static_cast<size_t>(kSums * columns);
  std::vector<wide_type<C>> sums(each * static_cast<size_t>(bands));
  parallel_for(bands * blocks, 1, [&](int64_t begin, int64_t end) {
    for (int64_t piece = begin; piece < end; ++piece) {
      const int64_t band = piece / blocks, first = piece % blocks * kWidth;
      const int64_t width = std::min(kWidth, columns - first);
      ColumnSums<C> own(kSums * width);
      for (int64_t r = band * kRows; r < std::min(rows, (band + 1) * kRows); ++r)
        own.add_row([&](C* to) { add(r, first, width, to); });
      wide_type<C>* const out = sums.data() + band * static_cast<int64_t>(each) + first;
      own.take([&](int64_t i, wide_type<C> sum) { out[i / width * columns + i % width] = sum; });
    }
  });
  for (size_t band = 1; band < static_cast<size_t>(bands); ++band)
    for (size_t i = 0; i < each; ++i) sums[i] += sums[band * each + i];
  return sums;
}

// Of a matrix with a column for each channel.
template <class T>
void batch_norm_columns(int64_t rows, int64_t columns, const T* x, const T* w, const T* b,
                        compute_type<T> eps, T* y, compute_type<T>* mean, compute_type<T>* var) {
  using C = compute_type<T>;
  const auto n = static_cast<wide_type<C>>(rows);
  const auto sum =
      column_sums<C, 1>(rows, columns, [=](int64_t r, int64_t first, int64_t width, C* sums) {
        const T* row = x + r * columns + first;
        for (int64_t i = 0; i < width; ++i) sums[i] += static_cast<C>(row[i]);
      });
  for (int64_t c = 0; c < columns; ++c) mean[c] = static_cast<C>(sum[static_cast<size_t>(c)] / n);
  const auto squares =
      column_sums<C, 1>(rows, columns, [=](int64_t r, int64_t first, int64_t width, C* sums) {
        const T* row = x + r * columns + first;
        for (int64_t i = 0; i < width; ++i) {
          const C d = static_cast<C>(row[i]) - mean[first + i];
          sums[i] += d * d;
        }
      });
  std::vector<C> factors(static_cast<size_t>(columns));
  for (int64_t c = 0; c < columns; ++c) {
    var[c] = static_cast<C>(squares[static_cast<size_t>(c)] / n);
    factors[static_cast<size_t>(c)] = static_cast<C>(w[c]) / std::sqrt(var[c] + eps);
  }
  parallel_for(rows, grain_of(columns), [&, factor = factors.data()](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const T* row = x + r * columns;
      T* out = y + r * columns;
      for (int64_t c = 0; c < columns; ++c)
        out[c] =
            static_cast<T>((static_cast<C>(row[c]) - mean[c]) * factor[c] + static_cast<C>(b[c]));
    }
  });
}

template <class T>
void batch_norm_train_cpu(const Tensor& input, const Tensor& weight, const Tensor& bias, double eps,
                          const Tensor& out, const Tensor& mean, const Tensor& var) {
  using C = compute_type<T>;
  const Channels s(input.sizes());
  const Tensor in = dense(input);
  const Parameter<T> weights(weight, s.channels, T(1)), biases(bias, s.channels, T(0));
  const T *x = in.data_as<T>(), *w = weights.data(), *b = biases.data();
  T* y = out.data_as<T>();
  if (s.plane == 1)
    return batch_norm_columns(s.batch, s.channels, x, w, b, static_cast<C>(eps), y,
                              mean.data_as<C>(), var.data_as<C>());
  parallel_for(s.channels, s.grain(), [&](int64_t begin, int64_t end) {
    for (int64_t c = begin; c < end; ++c) {
      const auto n = static_cast<wide_type<C>>(s.count());
      const C m = static_cast<C>(
          channel_sum<C>(s, c,
                         [&](int64_t base, int64_t i) { return static_cast<C>(x[base + i]); }) /
          n);
      const C v = static_cast<C>(channel_sum<C>(s, c,
                                                [&](int64_t base, int64_t i) {
                                                  const C d = static_cast<C>(x[base + i]) - m;
                                                  return d * d;
                                                }) /
                                 n);
      mean.data_as<C>()[c] = m;
      var.data_as<C>()[c] = v;
      const C scale = static_cast<C>(w[c]) / std::sqrt(v + static_cast<C>(eps));
      const C shift = static_cast<C>(b[c]);
      for (int64_t k = 0; k < s.batch; ++k) {
        const int64_t base = (k * s.channels + c) * s.plane;
        for (int64_t i = 0; i < s.plane; ++i)
          y[base + i] = static_cast<T>((static_cast<C>(x[base + i]) - m) * scale + shift);
      }
    }
  });
}

// As batch_norm_backward_cpu, of a matrix with a column for each channel.
template <class T>
void batch_norm_backward_columns(int64_t rows, int64_t columns, const T* g, const T* x, const T* w,
                                 const compute_type<T>* mean, const compute_type<T>* var,
                                 compute_type<T> eps, T* gx, T* gw, T* gb) {
  using C = compute_type<T>;
  const auto sums =
      column_sums<C, 2>(rows, columns, [=](int64_t r, int64_t first, int64_t width, C* to) {
        const T *grow = g + r * columns + first, *row = x + r * columns + first;
        C* const dots = to + width;
        for (int64_t i = 0; i < width; ++i) {
          const C d = static_cast<C>(grow[i]);
          to[i] += d;
          dots[i] += d * (static_cast<C>(row[i]) - mean[first + i]);
        }
      });
  const auto count = static_cast<size_t>(columns);
  std::vector<C> scales(count), means(count), slopes(count);
  for (size_t c = 0; c < count; ++c) {
    const C rstd = C(1) / std::sqrt(var[c] + eps), n = static_cast<C>(rows);
    const C sum = static_cast<C>(sums[c]), dot = static_cast<C>(sums[count + c] * rstd);
    gw[c] = static_cast<T>(dot);
    gb[c] = static_cast<T>(sum);
    scales[c] = static_cast<C>(w[c]) * rstd;
    means[c] = sum / n;
    slopes[c] = dot * rstd / n;
  }
  parallel_for(rows, grain_of(columns),
               [&, scale = scales.data(), mean_g = means.data(), slope = slopes.data()](
                   int64_t begin, int64_t end) {
                 for (int64_t r = begin; r < end; ++r) {
                   const T *grow = g + r * columns, *row = x + r * columns;
                   T* out = gx + r * columns;
                   for (int64_t c = 0; c < columns; ++c)
                     out[c] =
                         static_cast<T>(scale[c] * (static_cast<C>(grow[c]) - mean_g[c] -
                                                    (static_cast<C>(row[c]) - mean[c]) * slope[c]));
                 }
               });
}

// With xhat = (x - mean) * rstd:  d weight = sum(g * xhat),  d bias = sum(g),
// d x = weight * rstd * (g - mean(g) - xhat * mean(g * xhat)).
template <class T>
void batch_norm_backward_cpu(const Tensor& grad, const Tensor& input, const Tensor& weight,
                             const Tensor& mean, const Tensor& var, double eps,
                             const Tensor& grad_input, const Tensor& grad_weight,
                             const Tensor& grad_bias) {
  using C = compute_type<T>;
  const Channels s(input.sizes());
  const Tensor gr = dense(grad), in = dense(input), mu = dense(mean), sigma = dense(var);
  const Parameter<T> weights(weight, s.channels, T(1));
  const T *g = gr.data_as<T>(), *x = in.data_as<T>(), *w = weights.data();
  T* gx = grad_input.data_as<T>();
  if (s.plane == 1)
    return batch_norm_backward_columns(s.batch, s.channels, g, x, w, mu.data_as<C>(),
                                       sigma.data_as<C>(), static_cast<C>(eps), gx,
                                       grad_weight.data_as<T>(), grad_bias.data_as<T>());
  parallel_for(s.channels, s.grain(), [&](int64_t begin, int64_t end) {
    for (int64_t c = begin; c < end; ++c) {
      const C m = mu.data_as<C>()[c];
      const C rstd = C(1) / std::sqrt(sigma.data_as<C>()[c] + static_cast<C>(eps));
      const C sum = static_cast<C>(channel_sum<C>(
          s, c, [&](int64_t base, int64_t i) { return static_cast<C>(g[base + i]); }));
      const C dot = static_cast<C>(channel_sum<C>(s, c,
                                                  [&](int64_t base, int64_t i) {
                                                    return static_cast<C>(g[base + i]) *
                                                           (static_cast<C>(x[base + i]) - m);
                                                  }) *
                                   rstd);
      grad_weight.data_as<T>()[c] = static_cast<T>(dot);
      grad_bias.data_as<T>()[c] = static_cast<T>(sum);
      const C n = static_cast<C>(s.count());
      const C scale = static_cast<C>(w[c]) * rstd, mean_g = sum / n, slope = dot * rstd / n;
      for (int64_t k = 0; k < s.batch; ++k) {
        const int64_t base = (k * s.channels + c) * s.plane;
        for (int64_t i = 0; i < s.plane; ++i) {
          gx[base + i] = static_cast<T>(scale * (static_cast<C>(g[base + i]) - mean_g -
                                                 (static_cast<C>(x[base + i]) - m) * slope));
        }
      }
    }
  });
}

const auto bn_registered = register_kernels<aten::ops::_batch_norm_train, DeviceType::CPU>(
    []<class T>() { return &batch_norm_train_cpu<T>; }, "batch_norm_train_cpu");
const auto bn_backward_registered =
    register_kernels<aten::ops::_batch_norm_backward, DeviceType::CPU>(
        []<class T>() { return &batch_norm_backward_cpu<T>; }, "batch_norm_backward_cpu");
}  // namespace
}  // namespace treadle::cpu
