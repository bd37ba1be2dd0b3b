// The positions of grid_sampler's points in an image or a volume, on every device.
//
// A grid holds coordinates in [-1, 1], the last dimension of the image first. Each coordinate
// becomes a position in pixels, and the padding mode moves it inside the image. The value is a sum
// over the neighbours of the position along each dimension: 1 (nearest), 2 (linear) or 4 (cubic).
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>

#include "aten/ops/resampling/cubic_kernel.h"
#include "aten/ops/resampling/grid_mode.h"
#include "core/tensor/tensor.h"

namespace treadle::grid_sampling {

// A position and its derivative by its coordinate.
template <class C>
struct Position {
  C at, slope;
};

template <class C>
constexpr Position<C> in_pixels(C coordinate, int64_t size, bool align_corners) {
  const C half = static_cast<C>(align_corners ? size - 1 : size) / 2;
  return {(coordinate + 1) * half - static_cast<C>(align_corners ? 0 : 0.5), half};
}

template <class C>
constexpr Position<C> clipped(Position<C> p, int64_t size) {
  const C last = static_cast<C>(size - 1);
  if (!(p.at > 0)) return {0, 0};  // NaN goes here too
  if (p.at >= last) return {last, 0};
  return p;
}

// Reflected at the centres of the outer pixels, or at their outer edges, as often as needed.
template <class C>
constexpr Position<C> reflected(Position<C> p, int64_t size, bool align_corners) {
  const C low = static_cast<C>(align_corners ? 0 : -0.5);
  const C span = static_cast<C>(align_corners ? size - 1 : size);
  if (span == 0) return {0, 0};
  C distance = p.at - low;
  if (distance < 0) {
    distance = -distance;
    p.slope = -p.slope;
  }
  const C extra = std::fmod(distance, span);
  const bool even = std::fmod(std::floor(distance / span), C(2)) == 0;
  return {low + (even ? extra : span - extra), even ? p.slope : -p.slope};
}

template <class C>
constexpr Position<C> padded(Position<C> p, int64_t size, const GridMode& mode) {
  if (mode.padding == GridMode::kBorder) return clipped(p, size);
  if (mode.padding == GridMode::kReflection)
    return clipped(reflected(p, size, mode.align_corners), size);
  return p;
}

// The neighbours of a position along one dimension: indices (-1 for one outside the image),
// weights, and the derivatives of the weights by the coordinate.
template <class C>
struct Neighbours {
  int count;
  int64_t index[4];
  C weight[4], slope[4];
};

// The index, or -1 outside [0, size) and for NaN.
template <class C>
constexpr int64_t index_of(C at, int64_t size) {
  return at >= 0 && at < static_cast<C>(size) ? static_cast<int64_t>(at) : -1;
}

template <class C>
constexpr Neighbours<C> neighbours(C coordinate, int64_t size, const GridMode& mode) {
  Position<C> p = in_pixels(coordinate, size, mode.align_corners);
  Neighbours<C> n{};
  if (mode.interpolation == GridMode::kCubic) {  // each neighbour is padded by itself
    const C left = std::floor(p.at), t = p.at - left, a = static_cast<C>(-0.75);
    n.count = 4;
    for (int k = 0; k < 4; ++k) {
      const Position<C> q = padded(Position<C>{left + static_cast<C>(k - 1), 1}, size, mode);
      n.index[k] = index_of(q.at, size);
      const C signed_distance = t - static_cast<C>(k - 1), x = std::abs(signed_distance);
      const C sign = signed_distance < 0 ? C(-1) : C(1);
      n.weight[k] = cubic_weight(x, a);
      n.slope[k] = p.slope * sign *
                   (x <= 1 ? (3 * (a + 2) * x - 2 * (a + 3)) * x : ((3 * x - 10) * x + 8) * a);
    }
    return n;
  }
  p = padded(p, size, mode);
  if (mode.interpolation == GridMode::kNearest) {
    n.count = 1;
    n.index[0] = index_of(std::nearbyint(p.at), size);
    n.weight[0] = 1;
    return n;
  }
  const C left = std::floor(p.at), t = p.at - left;
  n.count = 2;
  n.index[0] = index_of(left, size);
  n.index[1] = index_of(left + 1, size);
  n.weight[0] = 1 - t;
  n.weight[1] = t;
  n.slope[0] = -p.slope;
  n.slope[1] = p.slope;
  return n;
}

// One sampling problem, in volumes. An image has depth 1.
struct Sampling {
  int64_t batch, channels, points, coordinates;
  int64_t in[3];
  GridMode mode;

  Sampling(const Tensor& input, const Tensor& grid, const GridMode& m)
      : batch(input.size(0)), channels(input.size(1)), coordinates(input.dim() - 2), mode(m) {
    points = 1;
    for (int64_t d = 1; d <= coordinates; ++d) points *= grid.size(d);
    for (int d = 0; d < 3; ++d) in[d] = d + coordinates < 3 ? 1 : input.size(d + coordinates - 1);
  }
  constexpr int64_t in_size() const { return in[0] * in[1] * in[2]; }

  // The neighbours of the point with the coordinates coordinate(0), ..., along depth, height and
  // width.
  template <class C, class F>
  constexpr void find(F&& coordinate, Neighbours<C> (&n)[3]) const {
    for (int d = 0; d < 3; ++d) {
      const int64_t c = 2 - d;  // its index among the coordinates: width first
      if (c < coordinates) {
        n[d] = neighbours<C>(coordinate(c), in[d], mode);
      } else {
        n[d] = {1, {0}, {1}, {0}};
      }
    }
  }
  // Calls f(offset in the volume, i, j, k) for each neighbour inside it.
  template <class C, class F>
  constexpr void for_neighbours(const Neighbours<C> (&n)[3], F&& f) const {
    for (int i = 0; i < n[0].count; ++i) {
      if (n[0].index[i] < 0) continue;
      for (int j = 0; j < n[1].count; ++j) {
        if (n[1].index[j] < 0) continue;
        for (int k = 0; k < n[2].count; ++k) {
          if (n[2].index[k] < 0) continue;
          f((n[0].index[i] * in[1] + n[1].index[j]) * in[2] + n[2].index[k], i, j, k);
        }
      }
    }
  }
};

}  // namespace treadle::grid_sampling
