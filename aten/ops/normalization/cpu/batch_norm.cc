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
#include <type_traits>
#include <vector>

#include "aten/ops/_batch_norm_backward.h"
#include "aten/ops/_batch_norm_train.h"
#include "aten/ops/normalization/cpu/norm_loops.h"
#include "aten/ops/normalization/cpu/norm_sums.h"
#include "core/threads/parallel.h"

namespace treadle::cpu {
namespace {

// input as (batch, channels, plane).
struct Channels {
  int64_t batch, channels, plane;
  explicit Channels(IntList s) : batch(s[0]), channels(s[1]), plane(1) {
    for (size_t d = 2; d < s.size(); ++d) plane *= s[d];
  }
  int64_t count() const { return batch * plane; }

  // Passes over the planes: f(plane, offset, channel) of each plane, or f(channel) once a channel's
  // planes are done. Planes of less than a page are taken as they lie in memory, because jumps
  // between them cost more than a second reading. Otherwise a channel's planes are taken through
  // all passes, while they are in a cache.
  template <class... F>
  void for_planes(int64_t item, F&&... passes) const {
    if (plane * item < kPage) {
      (in_memory_order(passes), ...);
      return;
    }
    parallel_for(channels, grain_of(count()), [&](int64_t begin, int64_t end) {
      for (int64_t c = begin; c < end; ++c) (of_channel(c, passes), ...);
    });
  }
  // The sum over the batch of a value of each plane.
  double over_batch(const std::vector<double>& of_planes, int64_t c) const {
    double total = 0;
    for (int64_t n = 0; n < batch; ++n) total += of_planes[static_cast<size_t>(n * channels + c)];
    return total;
  }

 private:
  static constexpr int64_t kPage = 4096;
  template <class F>
  static constexpr bool kOfPlanes = std::is_invocable_v<F, int64_t, int64_t, int64_t>;

  template <class F>
  void of_channel(int64_t c, F& f) const {
    if constexpr (kOfPlanes<F>) {
      for (int64_t i = c; i < batch * channels; i += channels) f(i, i * plane, c);
    } else {
      f(c);
    }
  }
  template <class F>
  void in_memory_order(F& f) const {
    if constexpr (kOfPlanes<F>) {
      parallel_for(batch * channels, grain_of(plane), [&](int64_t begin, int64_t end) {
        for (int64_t i = begin, c = begin % channels; i < end; ++i) {
          f(i, i * plane, c);
          if (++c == channels) c = 0;
        }
      });
    } else {
      for (int64_t c = 0; c < channels; ++c) f(c);
    }
  }
};

// A matrix with a column for each channel, as rows that are worth a loop: short ones are taken
// several at once, so that a channel has several columns. The last row may be shorter.
struct Columns {
  static constexpr int64_t kLeast = 64;         // elements of a row that are worth a loop
  static constexpr int64_t kPiece = 64 * 1024;  // elements that stay in a cache
  static constexpr int64_t kWidth = 4096;       // of a piece, which one thread sums

  int64_t channels, elements, width, rows, band_rows, bands;
  Columns(int64_t matrix_rows, int64_t matrix_columns)
      : channels(matrix_columns),
        elements(matrix_rows * matrix_columns),
        width(channels * std::max<int64_t>(1, std::min(matrix_rows, kLeast / channels))),
        rows((elements + width - 1) / width),
        band_rows(std::max<int64_t>(kSumRun, kPiece / std::min(width, kWidth))),
        bands((rows + band_rows - 1) / band_rows) {}

  // Elements of row r among `count` columns from the first on.
  int64_t length(int64_t r, int64_t first, int64_t count) const {
    return std::clamp<int64_t>(elements - r * width - first, 0, count);
  }
  // Elements of a column in a band.
  int64_t height(int64_t band, int64_t column) const {
    const int64_t end = std::min(rows, (band + 1) * band_rows);
    return end - band * band_rows - (end == rows && (rows - 1) * width + column >= elements);
  }
  // The factors of channels, for each column.
  template <class C, class F>
  std::vector<C> each(F&& factor) const {
    std::vector<C> all(static_cast<size_t>(width));
    for (int64_t k = 0; k < width; ++k)
      all[static_cast<size_t>(k)] =
          k < channels ? factor(k) : all[static_cast<size_t>(k - channels)];
    return all;
  }
  // f(index, channel, elements) of each column of each band: column k of band b has the index
  // b * width + k.
  template <class F>
  void for_columns(F&& f) const {
    size_t i = 0;
    for (int64_t band = 0; band < bands; ++band) {
      for (int64_t k = 0; k < width; k += channels) {
        for (int64_t c = 0; c < channels; ++c, ++i)
          f(i, static_cast<size_t>(c), static_cast<double>(height(band, k + c)));
      }
    }
  }
  // f(band, first column, columns) of each piece.
  template <class F>
  void for_pieces(F&& f) const {
    const int64_t blocks = (width + kWidth - 1) / kWidth;
    parallel_for(bands * blocks, 1, [&](int64_t begin, int64_t end) {
      for (int64_t piece = begin; piece < end; ++piece) {
        const int64_t first = piece % blocks * kWidth;
        f(piece / blocks, first, std::min(kWidth, width - first));
      }
    });
  }
  // f(offset, length) of each row, for results. The last rows come first, because they were summed
  // last and are in a cache.
  template <class F>
  void for_rows(F&& f) const {
    parallel_for(rows, grain_of(width), [&](int64_t begin, int64_t end) {
      for (int64_t r = rows - end; r < rows - begin; ++r) f(r * width, length(r, 0, width));
    });
  }
  // Adds the terms of the rows of a piece to `sums`. add(offset, rows, length, sums) adds those of
  // rows of one length.
  template <class C, class F>
  void add_piece(int64_t band, int64_t first, int64_t count, ColumnSums<C>& sums, F&& add) const {
    const int64_t begin = band * band_rows, end = std::min(rows, begin + band_rows);
    const int64_t last = length(end - 1, first, count), whole = end - (last < count);
    sums.add_rows(whole - begin, [&](C* to, int64_t r, int64_t some) {
      add((begin + r) * width + first, some, count, to);
    });
    if (whole < end) sums.add_row([&](C* to) { add(whole * width + first, 1, last, to); });
  }
};

// Two sums of each column in each band: those of band b and column k are at b * width + k.
struct BandSums {
  std::vector<double> first, second;
  explicit BandSums(const Columns& s)
      : first(static_cast<size_t>(s.bands * s.width)), second(first.size()) {}
};

// Sums up a piece; add(offset, rows, length, firsts, seconds) adds parts of rows.
template <class C, class Add>
void sum_piece(const Columns& s, int64_t band, int64_t first, int64_t count, BandSums& to,
               Add&& add) {
  ColumnSums<C> own(2 * count);
  s.add_piece(band, first, count, own, [&](int64_t at, int64_t rows, int64_t length, C* sums) {
    add(at, rows, length, sums, sums + count);
  });
  double* const firsts = to.first.data() + band * s.width + first;
  double* const seconds = to.second.data() + band * s.width + first;
  own.take([&](int64_t k, double sum) { (k < count ? firsts[k] : seconds[k - count]) = sum; });
}

// The mean and variance of each channel. A band is read from memory once: its squares are about its
// own mean, and then moved to the mean of all.
template <class T>
void column_moments(const Columns& s, const T* x, compute_type<T>* mean, compute_type<T>* var) {
  using C = compute_type<T>;
  const NormLoops<T>& loops = simd::norm_loops<T>();
  std::vector<C> abouts(static_cast<size_t>(s.bands * s.width));
  BandSums sums(s);
  s.for_pieces([&](int64_t band, int64_t first, int64_t count) {
    C* const about = abouts.data() + band * s.width + first;
    ColumnSums<C> own(count);
    s.add_piece(band, first, count, own, [&](int64_t at, int64_t rows, int64_t length, C* to) {
      loops.add(x + at, s.width, rows, length, to);
    });
    own.take([&](int64_t k, double sum) {
      const int64_t height = s.height(band, first + k);
      about[k] = height > 0 ? static_cast<C>(sum / static_cast<double>(height)) : C(0);
    });
    sum_piece<C>(s, band, first, count, sums,
                 [&](int64_t at, int64_t rows, int64_t length, C* to, C* squares) {
                   loops.add_moments(x + at, s.width, rows, length, about, to, squares);
                 });
  });
  const auto n = static_cast<double>(s.elements / s.channels);
  std::vector<double> means(static_cast<size_t>(s.channels)), moments(means.size());
  s.for_columns([&](size_t i, size_t c, double height) {
    means[c] += height * static_cast<double>(abouts[i]) + sums.first[i];
  });
  for (double& m : means) m /= n;
  s.for_columns([&](size_t i, size_t c, double height) {
    const double shift = static_cast<double>(abouts[i]) - means[c];
    moments[c] += sums.second[i] + shift * (2 * sums.first[i] + height * shift);
  });
  for (size_t c = 0; c < means.size(); ++c) {
    mean[c] = static_cast<C>(means[c]);
    var[c] = static_cast<C>(std::max(0.0, moments[c]) / n);
  }
}

// Of a matrix with a column for each channel.
template <class T>
void batch_norm_columns(const Columns& s, const T* x, const T* w, const T* b, compute_type<T> eps,
                        T* y, compute_type<T>* mean, compute_type<T>* var) {
  using C = compute_type<T>;
  const NormLoops<T>& loops = simd::norm_loops<T>();
  column_moments(s, x, mean, var);
  const auto about = s.each<C>([&](int64_t c) { return mean[c]; });
  const auto scale =
      s.each<C>([&](int64_t c) { return static_cast<C>(w[c]) / std::sqrt(var[c] + eps); });
  const auto shift = s.each<C>([&](int64_t c) { return static_cast<C>(b[c]); });
  s.for_rows([&](int64_t at, int64_t length) {
    loops.result_columns(x + at, y + at, length, about.data(), scale.data(), shift.data());
  });
}

// An input with a plane for each channel of each sample.
template <class T>
void batch_norm_planes(const Channels& s, const T* x, const T* w, const T* b, compute_type<T> eps,
                       T* y, compute_type<T>* mean, compute_type<T>* var) {
  using C = compute_type<T>;
  const NormLoops<T>& loops = simd::norm_loops<T>();
  const auto n = static_cast<double>(s.count());
  std::vector<double> sums(static_cast<size_t>(s.batch * s.channels));
  s.for_planes(
      sizeof(T),
      [&](int64_t i, int64_t at, int64_t /*c*/) {
        sums[static_cast<size_t>(i)] = loops.sum(x + at, s.plane);
      },
      [&](int64_t c) { mean[c] = static_cast<C>(s.over_batch(sums, c) / n); },
      [&](int64_t i, int64_t at, int64_t c) {
        sums[static_cast<size_t>(i)] = loops.squares(x + at, s.plane, mean[c]);
      },
      [&](int64_t c) { var[c] = static_cast<C>(s.over_batch(sums, c) / n); },
      [&](int64_t /*i*/, int64_t at, int64_t c) {
        const C scale = static_cast<C>(w[c]) / std::sqrt(var[c] + eps);
        loops.result(x + at, y + at, s.plane, mean[c], scale, static_cast<C>(b[c]));
      });
}

template <class T>
void batch_norm_train_cpu(const Tensor& input, const Tensor& weight, const Tensor& bias, double eps,
                          const Tensor& out, const Tensor& mean, const Tensor& var) {
  using C = compute_type<T>;
  const Channels s(input.sizes());
  const Parameter<T> weights(weight, s.channels, T(1)), biases(bias, s.channels, T(0));
  const auto run = [&](const Tensor& in, auto&& normalise) {
    normalise(in.data_as<T>(), weights.data(), biases.data(), static_cast<C>(eps), out.data_as<T>(),
              mean.data_as<C>(), var.data_as<C>());
  };
  if (s.plane == 1)
    run(dense(input),
        [&](auto... to) { batch_norm_columns<T>(Columns(s.batch, s.channels), to...); });
  else
    run(dense(input), [&](auto... to) { batch_norm_planes<T>(s, to...); });
}

// The gradients of a channel's parameters and the factors of its input's gradient, from the sums of
// g and of g * (x - mean).
template <class C>
struct GradientFactors {
  C bias, weight;             // the gradients
  C scale, mean_of_g, slope;  // d x = scale * (g - mean_of_g - (x - mean) * slope)
  GradientFactors() = default;
  GradientFactors(double sum, double dot, double n, C w, C var, C eps) {
    const C rstd = C(1) / std::sqrt(var + eps), count = static_cast<C>(n);
    bias = static_cast<C>(sum);
    weight = static_cast<C>(dot * static_cast<double>(rstd));
    scale = w * rstd;
    mean_of_g = bias / count;
    slope = weight * rstd / count;
  }
};

// As batch_norm_backward_cpu, of a matrix with a column for each channel.
template <class T>
void batch_norm_backward_columns(const Columns& s, const T* g, const T* x, const T* w,
                                 const compute_type<T>* mean, const compute_type<T>* var,
                                 compute_type<T> eps, T* gx, T* gw, T* gb) {
  using C = compute_type<T>;
  const NormLoops<T>& loops = simd::norm_loops<T>();
  const auto about = s.each<C>([&](int64_t c) { return mean[c]; });
  BandSums sums(s);
  s.for_pieces([&](int64_t band, int64_t first, int64_t count) {
    sum_piece<C>(
        s, band, first, count, sums, [&](int64_t at, int64_t rows, int64_t length, C* to, C* dots) {
          loops.add_dots(g + at, x + at, s.width, rows, length, about.data() + first, to, dots);
        });
  });
  std::vector<double> sum(static_cast<size_t>(s.channels)), dot(sum.size());
  s.for_columns([&](size_t i, size_t c, double /*elements*/) {
    sum[c] += sums.first[i];
    dot[c] += sums.second[i];
  });
  std::vector<GradientFactors<C>> factors;
  factors.reserve(sum.size());
  for (size_t c = 0; c < sum.size(); ++c) {
    factors.emplace_back(sum[c], dot[c], static_cast<double>(s.elements / s.channels),
                         static_cast<C>(w[c]), var[c], eps);
    gw[c] = static_cast<T>(factors[c].weight);
    gb[c] = static_cast<T>(factors[c].bias);
  }
  const auto of = [&](int64_t c) { return factors[static_cast<size_t>(c)]; };
  const auto scale = s.each<C>([&](int64_t c) { return of(c).scale; });
  const auto mean_of_g = s.each<C>([&](int64_t c) { return of(c).mean_of_g; });
  const auto slope = s.each<C>([&](int64_t c) { return of(c).slope; });
  s.for_rows([&](int64_t at, int64_t length) {
    loops.gradient_columns(g + at, x + at, gx + at, length, about.data(), scale.data(),
                           mean_of_g.data(), slope.data());
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
    return batch_norm_backward_columns(Columns(s.batch, s.channels), g, x, w, mu.data_as<C>(),
                                       sigma.data_as<C>(), static_cast<C>(eps), gx,
                                       grad_weight.data_as<T>(), grad_bias.data_as<T>());
  const C* const mean_x = mu.data_as<C>();
  const NormLoops<T>& loops = simd::norm_loops<T>();
  std::vector<double> sums(static_cast<size_t>(s.batch * s.channels)), dots(sums.size());
  std::vector<GradientFactors<C>> factors(static_cast<size_t>(s.channels));
  s.for_planes(
      sizeof(T),
      [&](int64_t i, int64_t at, int64_t c) {
        const auto [sum, dot] = loops.dots(g + at, x + at, s.plane, mean_x[c]);
        sums[static_cast<size_t>(i)] = sum;
        dots[static_cast<size_t>(i)] = dot;
      },
      [&](int64_t c) {
        auto& f = factors[static_cast<size_t>(c)];
        f = GradientFactors<C>(s.over_batch(sums, c), s.over_batch(dots, c),
                               static_cast<double>(s.count()), static_cast<C>(w[c]),
                               sigma.data_as<C>()[c], static_cast<C>(eps));
        grad_weight.data_as<T>()[c] = static_cast<T>(f.weight);
        grad_bias.data_as<T>()[c] = static_cast<T>(f.bias);
      },
      [&](int64_t /*i*/, int64_t at, int64_t c) {
        const GradientFactors<C>& f = factors[static_cast<size_t>(c)];
        loops.gradient(g + at, x + at, gx + at, s.plane, C(1), mean_x[c], f.scale, f.mean_of_g,
                       f.slope);
      });
}

const auto bn_registered = register_kernels<aten::ops::_batch_norm_train, DeviceType::CPU>(
    []<class T>() { return &batch_norm_train_cpu<T>; }, "batch_norm_train_cpu");
const auto bn_backward_registered =
    register_kernels<aten::ops::_batch_norm_backward, DeviceType::CPU>(
        []<class T>() { return &batch_norm_backward_cpu<T>; }, "batch_norm_backward_cpu");
}  // namespace
}  // namespace treadle::cpu
