// Group normalisation of images whose channels are innermost in memory, with its gradients: each
// image is a matrix with a column for each channel.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <vector>

#include "aten/engine/strides/memory_format.h"
#include "aten/ops/normalization/cpu/norm_loops.h"
#include "aten/ops/normalization/cpu/norm_sums.h"
#include "core/threads/parallel.h"

namespace treadle::cpu {

struct GroupPixels {
  int64_t samples, channels, plane, groups;

  int64_t per_group() const { return channels / groups; }
  double per_row() const { return static_cast<double>(per_group() * plane); }
  // The number of the group of a channel through all samples.
  int64_t row(int64_t sample, int64_t channel) const {
    return sample * groups + channel / per_group();
  }

  // f(sample, first pixel, pixels) of bands of pixels, in parallel. The pixels are counted through
  // all samples.
  template <class F>
  void for_bands(F&& f) const {
    parallel_for(samples * bands(), 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t n = i / bands(), first = i % bands() * band();
        f(n, n * plane + first, std::min(band(), plane - first));
      }
    });
  }

  // `kinds` sums of each channel of each sample: those of sample n begin at n * kinds * channels.
  // add(sample, first pixel, pixels, sums) adds the terms of some pixels.
  template <class C, class Add>
  std::vector<double> sums(int64_t kinds, Add&& add) const {
    const int64_t width = kinds * channels;
    std::vector<double> parts(static_cast<size_t>(samples * bands() * width));
    for_bands([&](int64_t n, int64_t pixel, int64_t count) {
      ColumnSums<C> own(width);
      own.add_rows(count,
                   [&](C* to, int64_t first, int64_t some) { add(n, pixel + first, some, to); });
      double* const to = parts.data() + (n * bands() + (pixel - n * plane) / band()) * width;
      own.take([=](int64_t k, double sum) { to[k] = sum; });
    });
    std::vector<double> all(static_cast<size_t>(samples * width));
    for (int64_t n = 0; n < samples; ++n) {
      for (int64_t b = 0; b < bands(); ++b) {
        const double* const from = parts.data() + (n * bands() + b) * width;
        for (int64_t k = 0; k < width; ++k) all[n * width + k] += from[k];
      }
    }
    return all;
  }

  // The factors of the channels of each sample.
  template <class C, class F>
  std::vector<C> each(F&& factor) const {
    std::vector<C> all(static_cast<size_t>(samples * channels));
    for (int64_t n = 0; n < samples; ++n) {
      for (int64_t c = 0; c < channels; ++c) all[n * channels + c] = factor(row(n, c), c);
    }
    return all;
  }

 private:
  int64_t band() const { return std::max<int64_t>(kSumRun, 65536 / channels); }
  int64_t bands() const { return (plane + band() - 1) / band(); }
};

template <class T>
void group_norm_pixels(const GroupPixels& s, const T* x, const T* w, const T* b, double eps, T* y,
                       compute_type<T>* mean, compute_type<T>* rstd) {
  using C = compute_type<T>;
  const NormLoops<T>& loops = simd::norm_loops<T>();
  const int64_t channels = s.channels, rows = s.samples * s.groups;
  std::vector<double> total(static_cast<size_t>(rows));
  const auto add_groups = [&](const std::vector<double>& sums, int64_t kinds, int64_t kind) {
    std::fill(total.begin(), total.end(), 0.0);
    for (int64_t n = 0; n < s.samples; ++n) {
      for (int64_t c = 0; c < channels; ++c)
        total[s.row(n, c)] += sums[(n * kinds + kind) * channels + c];
    }
  };
  add_groups(s.template sums<C>(1,
                                [&](int64_t, int64_t pixel, int64_t count, C* to) {
                                  loops.add(x + pixel * channels, channels, count, channels, to);
                                }),
             1, 0);
  for (int64_t r = 0; r < rows; ++r) mean[r] = static_cast<C>(total[r] / s.per_row());
  const auto about = s.template each<C>([&](int64_t r, int64_t) { return mean[r]; });
  add_groups(s.template sums<C>(2,
                                [&](int64_t n, int64_t pixel, int64_t count, C* to) {
                                  loops.add_moments(x + pixel * channels, channels, count, channels,
                                                    about.data() + n * channels, to, to + channels);
                                }),
             2, 1);
  for (int64_t r = 0; r < rows; ++r)
    rstd[r] = C(1) / std::sqrt(static_cast<C>(total[r] / s.per_row()) + static_cast<C>(eps));
  const auto scale =
      s.template each<C>([&](int64_t r, int64_t c) { return rstd[r] * static_cast<C>(w[c]); });
  const auto shift = s.template each<C>([&](int64_t, int64_t c) { return static_cast<C>(b[c]); });
  s.for_bands([&](int64_t n, int64_t pixel, int64_t count) {
    for (int64_t p = pixel; p < pixel + count; ++p)
      loops.result_columns(x + p * channels, y + p * channels, channels,
                           about.data() + n * channels, scale.data() + n * channels,
                           shift.data() + n * channels);
  });
}

// By the formulas of group_norm_backward_cpu.
template <class T>
void group_norm_backward_pixels(const GroupPixels& s, const T* g, const T* x, const T* w,
                                const compute_type<T>* mean, const compute_type<T>* rstd, T* gx,
                                T* gw, T* gb) {
  using C = compute_type<T>;
  const NormLoops<T>& loops = simd::norm_loops<T>();
  const int64_t channels = s.channels;
  const auto about = s.template each<C>([&](int64_t r, int64_t) { return mean[r]; });
  // Of g, and of g * (x - mean).
  const auto sums = s.template sums<C>(2, [&](int64_t n, int64_t pixel, int64_t count, C* to) {
    loops.add_dots(g + pixel * channels, x + pixel * channels, channels, count, channels,
                   about.data() + n * channels, to, to + channels);
  });
  std::vector<double> of_weight(static_cast<size_t>(channels)), of_bias(of_weight.size());
  std::vector<double> mean_h(static_cast<size_t>(s.samples * s.groups)), slope(mean_h.size());
  for (int64_t n = 0; n < s.samples; ++n) {
    for (int64_t c = 0; c < channels; ++c) {
      const int64_t r = s.row(n, c);
      const double sum = sums[2 * n * channels + c];
      const double dot = sums[(2 * n + 1) * channels + c] * static_cast<double>(rstd[r]);
      const auto scale = static_cast<double>(static_cast<C>(w[c]));
      of_bias[c] += sum;
      of_weight[c] += dot;
      mean_h[r] += scale * sum / s.per_row();
      slope[r] += scale * dot * static_cast<double>(rstd[r]) / s.per_row();
    }
  }
  for (int64_t c = 0; c < channels; ++c) {
    gw[c] = static_cast<T>(static_cast<C>(of_weight[c]));
    gb[c] = static_cast<T>(static_cast<C>(of_bias[c]));
  }
  // gx = g * a + x' * b + d, with x' = x - mean.
  const auto a =
      s.template each<C>([&](int64_t r, int64_t c) { return rstd[r] * static_cast<C>(w[c]); });
  const auto b =
      s.template each<C>([&](int64_t r, int64_t) { return -rstd[r] * static_cast<C>(slope[r]); });
  const auto d =
      s.template each<C>([&](int64_t r, int64_t) { return -rstd[r] * static_cast<C>(mean_h[r]); });
  s.for_bands([&](int64_t n, int64_t pixel, int64_t count) {
    const C *const an = a.data() + n * channels, *const bn = b.data() + n * channels;
    const C *const dn = d.data() + n * channels, *const from = about.data() + n * channels;
    for (int64_t at = pixel * channels; at < (pixel + count) * channels; at += channels) {
      for (int64_t c = 0; c < channels; ++c) {
        const C centred = static_cast<C>(x[at + c]) - from[c];
        gx[at + c] = static_cast<T>(static_cast<C>(g[at + c]) * an[c] + centred * bn[c] + dn[c]);
      }
    }
  });
}

}  // namespace treadle::cpu
