// The weights of resampling along one dimension, on every device: each output is a weighted sum of
// a few inputs.
//
//   linear, 4 -> 8, align_corners = False:  out[3] = 0.75 * in[1] + 0.25 * in[2]
//
// Source positions and weights are computed in double. The nearest positions without a given scale
// are computed in integers. From one output to the next, neither the first nor the last of the
// inputs moves back.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string_view>

#include "aten/ops/resampling/cubic_kernel.h"

namespace treadle {

enum class ResampleMode { Nearest, NearestExact, Linear, Cubic, LinearAntialias, CubicAntialias };

inline ResampleMode resample_mode(std::string_view name) {
  if (name == "nearest") return ResampleMode::Nearest;
  if (name == "nearest-exact") return ResampleMode::NearestExact;
  if (name == "linear") return ResampleMode::Linear;
  if (name == "cubic") return ResampleMode::Cubic;
  return name == "linear-antialias" ? ResampleMode::LinearAntialias : ResampleMode::CubicAntialias;
}

class ResampleTaps {
 public:
  // `scale`: outputs per input, where one was given.
  ResampleTaps(std::string_view mode, int64_t in, int64_t out, bool align_corners,
               std::optional<double> scale)
      : in(in),
        out(out),
        mode_(resample_mode(mode)),
        align_corners_(align_corners),
        has_scale_(scale.has_value()),
        scale_(scale.value_or(1)) {}

  int64_t in, out;

  // The maximum number of taps of an output.
  int64_t most() const {
    switch (mode_) {
      case ResampleMode::Nearest:
      case ResampleMode::NearestExact:
        return 1;
      case ResampleMode::Linear:
        return 2;
      case ResampleMode::Cubic:
        return 4;
      default: {
        const double reach = 2 * half_width() * std::max(1.0, step()) + 2;
        return reach < static_cast<double>(in) ? static_cast<int64_t>(reach) : in;
      }
    }
  }

  // Calls add(input, weight) for each tap of output `o`.
  template <class Add>
  constexpr void of(int64_t o, Add&& add) const {
    switch (mode_) {
      case ResampleMode::Nearest:
        return add(nearest(o, false), 1.0);
      case ResampleMode::NearestExact:
        return add(nearest(o, true), 1.0);
      case ResampleMode::Linear:
        return linear(o, add);
      case ResampleMode::Cubic:
        return cubic(o, add);
      default:
        return antialiased(o, add);
    }
  }

 private:
  // Inputs for each output.
  constexpr double step() const {
    if (align_corners_)
      return out > 1 ? static_cast<double>(in - 1) / static_cast<double>(out - 1) : 0.0;
    return has_scale_ ? 1.0 / scale_ : static_cast<double>(in) / static_cast<double>(out);
  }
  constexpr double source(int64_t o) const {
    return align_corners_ ? step() * static_cast<double>(o)
                          : step() * (static_cast<double>(o) + 0.5) - 0.5;
  }
  static constexpr int64_t whole_within(double position, double last) {
    return static_cast<int64_t>(std::clamp(position, 0.0, last));
  }
  constexpr int64_t clamped(double position) const {
    return whole_within(position, static_cast<double>(in - 1));
  }

  constexpr int64_t nearest(int64_t o, bool exact) const {
    if (has_scale_)
      return std::min(clamped(std::floor((static_cast<double>(o) + (exact ? 0.5 : 0.0)) / scale_)),
                      in - 1);
    const __int128 twice = static_cast<__int128>(2) * o + (exact ? 1 : 0);
    return std::min(static_cast<int64_t>(twice * in / (static_cast<__int128>(2) * out)), in - 1);
  }

  template <class Add>
  constexpr void linear(int64_t o, Add&& add) const {
    const double at = std::max(0.0, source(o));
    const int64_t left = clamped(std::floor(at)), right = std::min(left + 1, in - 1);
    const double t = std::min(1.0, at - static_cast<double>(left));
    if (right == left || t == 0.0) return add(left, 1.0);
    add(left, 1.0 - t);
    add(right, t);
  }

  static constexpr double size_of(double x) { return x < 0 ? -x : x; }
  template <class Add>
  constexpr void cubic(int64_t o, Add&& add) const {
    const double at = source(o), left = std::floor(at), t = at - left;
    for (int k = -1; k <= 2; ++k)
      add(clamped(left + k), cubic_weight(size_of(t - static_cast<double>(k)), -0.75));
  }

  constexpr double half_width() const { return mode_ == ResampleMode::LinearAntialias ? 1.0 : 2.0; }
  constexpr double kernel(double x) const {
    if (mode_ == ResampleMode::CubicAntialias) return cubic_weight(size_of(x), -0.5);
    return std::max(0.0, 1.0 - size_of(x));
  }
  // The kernel is widened to the distance between outputs, so that all inputs count if there are
  // fewer outputs. Weights add up to one.
  template <class Add>
  constexpr void antialiased(int64_t o, Add&& add) const {
    const double widening = std::max(1.0, step()), support = half_width() * widening;
    const double centre = step() * (static_cast<double>(o) + 0.5), size = static_cast<double>(in);
    const int64_t first = whole_within(centre - support + 0.5, size - 1);
    const int64_t last = whole_within(centre + support + 0.5, size);
    double total = 0;
    for (int64_t i = first; i < last; ++i)
      total += kernel((static_cast<double>(i) - centre + 0.5) / widening);
    if (total == 0) return add(clamped(centre), 1.0);
    for (int64_t i = first; i < last; ++i)
      add(i, kernel((static_cast<double>(i) - centre + 0.5) / widening) / total);
  }

  ResampleMode mode_;
  bool align_corners_, has_scale_;
  double scale_;
};

}  // namespace treadle
