// Group normalisation and root-mean-square normalisation with their gradients.
//
// Wu & He, "Group normalization" (2018); Zhang & Sennrich, "Root mean square layer normalization"
// (2019). A group of channels of one sample is a run of elements, so both work on rows. In group
// normalisation the weight changes with the channel, in the other with the element. Sums run in a
// fixed order.
//
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <vector>

#include "aten/ops/_group_norm_backward.h"
#include "aten/ops/_rms_norm.h"
#include "aten/ops/_rms_norm_backward.h"
#include "aten/ops/native_group_norm.h"
#include "aten/ops/normalization/cpu/norm_group_pixels.h"
#include "aten/ops/normalization/cpu/norm_loops.h"
#include "aten/ops/normalization/cpu/norm_sums.h"
#include "core/threads/parallel.h"

namespace treadle::cpu {
namespace {

template <class T>
void group_norm_cpu(const Tensor& input, const Tensor& weight, const Tensor& bias, int64_t samples,
                    int64_t channels, int64_t plane, int64_t groups, double eps, const Tensor& out,
                    const Tensor& mean, const Tensor& rstd) {
  using C = compute_type<T>;
  const MemoryFormat format = shape::format_of(out);
  const Tensor in = aten::contiguous(input, format);
  const Parameter<T> weights(weight, channels, T(1)), biases(bias, channels, T(0));
  const T *w = weights.data(), *b = biases.data();
  if (format != MemoryFormat::Contiguous)
    return group_norm_pixels<T>({samples, channels, plane, groups}, in.data_as<T>(), w, b, eps,
                                out.data_as<T>(), mean.data_as<C>(), rstd.data_as<C>());
  const int64_t per_group = channels / groups, length = per_group * plane;
  const NormLoops<T>& loops = simd::norm_loops<T>();
  parallel_for(samples * groups, grain_of(length), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const T* x = in.data_as<T>() + row * length;
      T* y = out.data_as<T>() + row * length;
      const auto n = static_cast<double>(length);
      const C m = static_cast<C>(loops.sum(x, length) / n);
      const C v = static_cast<C>(loops.squares(x, length, m) / n);
      const C r = C(1) / std::sqrt(v + static_cast<C>(eps));
      mean.data_as<C>()[row] = m;
      rstd.data_as<C>()[row] = r;
      for (int64_t k = 0; k < per_group; ++k) {
        const int64_t c = row % groups * per_group + k;
        const C scale = r * static_cast<C>(w[c]), shift = static_cast<C>(b[c]);
        loops.result(x + k * plane, y + k * plane, plane, m, scale, shift);
      }
    }
  });
}

// With xhat = (x - mean) * rstd and h = g * weight:  d x = rstd * (h - mean(h) - xhat * mean(h *
// xhat)),  d weight = sum of g * xhat,  d bias = sum of g, over samples and plane.
template <class T>
void group_norm_backward_cpu(const Tensor& grad, const Tensor& input, const Tensor& weight,
                             const Tensor& mean, const Tensor& rstd, int64_t samples,
                             int64_t channels, int64_t plane, int64_t groups,
                             const Tensor& grad_input, const Tensor& grad_weight,
                             const Tensor& grad_bias) {
  using C = compute_type<T>;
  const MemoryFormat format = shape::format_of(grad_input);
  const Tensor gr = aten::contiguous(grad, format), in = aten::contiguous(input, format);
  const Tensor mu = dense(mean), sigma = dense(rstd);
  const Parameter<T> weights(weight, channels, T(1));
  const T* w = weights.data();
  if (format != MemoryFormat::Contiguous)
    return group_norm_backward_pixels<T>({samples, channels, plane, groups}, gr.data_as<T>(),
                                         in.data_as<T>(), w, mu.data_as<C>(), sigma.data_as<C>(),
                                         grad_input.data_as<T>(), grad_weight.data_as<T>(),
                                         grad_bias.data_as<T>());
  const int64_t per_group = channels / groups, length = per_group * plane;
  // For each channel of each sample: the sums of g and of g * xhat.
  std::vector<double> sums(static_cast<size_t>(samples * channels)), dots(sums.size());
  const NormLoops<T>& loops = simd::norm_loops<T>();
  parallel_for(samples * groups, grain_of(length), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const T* g = gr.data_as<T>() + row * length;
      const T* x = in.data_as<T>() + row * length;
      T* gx = grad_input.data_as<T>() + row * length;
      const C m = mu.data_as<C>()[row], r = sigma.data_as<C>()[row];
      double mean_of_h = 0, mean_of_dot = 0;
      for (int64_t k = 0; k < per_group; ++k) {
        const T *gk = g + k * plane, *xk = x + k * plane;
        const auto [sum, centred] = loops.dots(gk, xk, plane, m);
        const double dot = centred * r;
        sums[row * per_group + k] = sum;
        dots[row * per_group + k] = dot;
        const C scale = static_cast<C>(w[row % groups * per_group + k]);
        mean_of_h += scale * sum;
        mean_of_dot += scale * dot;
      }
      const C mean_h = static_cast<C>(mean_of_h / static_cast<double>(length));
      const C slope = static_cast<C>(mean_of_dot * r / static_cast<double>(length));
      for (int64_t k = 0; k < per_group; ++k) {
        const C scale = static_cast<C>(w[row % groups * per_group + k]);
        loops.gradient(g + k * plane, x + k * plane, gx + k * plane, plane, scale, m, r, mean_h,
                       slope);
      }
    }
  });
  for (int64_t c = 0; c < channels; ++c) {
    double weight_sum = 0, bias_sum = 0;
    for (int64_t n = 0; n < samples; ++n) {
      weight_sum += dots[n * channels + c];
      bias_sum += sums[n * channels + c];
    }
    grad_weight.data_as<T>()[c] = static_cast<T>(static_cast<C>(weight_sum));
    grad_bias.data_as<T>()[c] = static_cast<T>(static_cast<C>(bias_sum));
  }
}

struct Rows {
  int64_t rows, length;
  Rows(IntList input, IntList normalized) : rows(1), length(1) {
    for (const int64_t n : normalized) length *= n;
    for (size_t d = 0; d < input.size() - normalized.size(); ++d) rows *= input[d];
  }
};

template <class T>
void rms_norm_cpu(const Tensor& input, IntList normalized_shape, const Tensor& weight, double eps,
                  const Tensor& out, const Tensor& rstd) {
  using C = compute_type<T>;
  const Rows s(input.sizes(), normalized_shape);
  const Tensor in = dense(input);
  const Parameter<T> weights(weight, s.length, T(1));
  const NormLoops<T>& loops = simd::norm_loops<T>();
  parallel_for(s.rows, grain_of(s.length), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const T* x = in.data_as<T>() + row * s.length;
      T* y = out.data_as<T>() + row * s.length;
      const C square =
          static_cast<C>(loops.squares(x, s.length, C(0)) / static_cast<double>(s.length));
      const C r = C(1) / std::sqrt(square + static_cast<C>(eps));
      rstd.data_as<C>()[row] = r;
      loops.result_each(x, weights.data(), nullptr, y, s.length, C(0), r);
    }
  });
}

// With xhat = x * rstd and h = g * weight:  d x = rstd * (h - xhat * mean(h * xhat)),  d weight =
// sum over rows of g * xhat.
template <class T>
void rms_norm_backward_cpu(const Tensor& grad, const Tensor& input, IntList normalized_shape,
                           const Tensor& rstd, const Tensor& weight, const Tensor& grad_input,
                           const Tensor& grad_weight) {
  using C = compute_type<T>;
  const Rows s(input.sizes(), normalized_shape);
  const Tensor gr = dense(grad), in = dense(input), sigma = dense(rstd);
  const Parameter<T> weights(weight, s.length, T(1));
  const NormLoops<T>& loops = simd::norm_loops<T>();
  T* const gw = grad_weight.data_as<T>();
  const auto row = [&](int64_t r, C* unused, C* weight_sums) {
    const T *w = weights.data(), *g = gr.data_as<T>() + r * s.length;
    const T* x = in.data_as<T>() + r * s.length;
    const C scale = sigma.data_as<C>()[r];
    const C slope = static_cast<C>(loops.dots_each(g, w, x, s.length, C(0))[1] * scale * scale /
                                   static_cast<double>(s.length));
    loops.gradient_each(g, w, x, grad_input.data_as<T>() + r * s.length, s.length, C(0), scale,
                        C(0), slope);
    loops.add_scaled_dots(g, x, s.length, C(0), scale, unused, weight_sums);
  };
  sum_columns<C>(s.rows, s.length, row, [=](int64_t k, C /*unused*/, C weight_sum) {
    gw[k] = static_cast<T>(weight_sum);
  });
}

const auto group_registered = register_kernels<aten::ops::native_group_norm, DeviceType::CPU>(
    []<class T>() { return &group_norm_cpu<T>; }, "group_norm_cpu");
const auto group_backward_registered =
    register_kernels<aten::ops::_group_norm_backward, DeviceType::CPU>(
        []<class T>() { return &group_norm_backward_cpu<T>; }, "group_norm_backward_cpu");
const auto rms_registered = register_kernels<aten::ops::_rms_norm, DeviceType::CPU>(
    []<class T>() { return &rms_norm_cpu<T>; }, "rms_norm_cpu");
const auto rms_backward_registered =
    register_kernels<aten::ops::_rms_norm_backward, DeviceType::CPU>(
        []<class T>() { return &rms_norm_backward_cpu<T>; }, "rms_norm_backward_cpu");

}  // namespace
}  // namespace treadle::cpu
