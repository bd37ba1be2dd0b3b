// The positions of grid_sampler's points in an image or a volume, on every device. Choices are
// between numbers that are computed anyway, so that a loop over points has no branch.
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
  const C above = p.at > 0 ? p.at : C(0);  // of NaN 0
  const bool moves = (p.at > 0) & (p.at < last);
  return {above < last ? above : last, moves ? p.slope : C(0)};
}

// Reflected at the centres of the outer pixels, or at their outer edges, as often as needed; NaN
// where there is no way between the two.
template <class C>
constexpr Position<C> reflected(Position<C> p, int64_t size, bool align_corners) {
  const C low = static_cast<C>(align_corners ? 0 : -0.5);
  const C span = static_cast<C>(align_corners ? size - 1 : size);
  const C signed_distance = p.at - low, distance = std::abs(signed_distance);
  const C turns = std::floor(distance / span), extra = distance - turns * span;
  const C odd = turns - 2 * std::floor(turns / 2);  // 1 where the last way leads back
  return {low + (odd == 0 ? extra : span - extra),
          p.slope * std::copysign(C(1), signed_distance) * (1 - 2 * odd)};
}

template <class C>
constexpr Position<C> padded(Position<C> p, int64_t size, const GridMode& mode) {
  if (mode.padding == GridMode::kBorder) return clipped(p, size);
  if (mode.padding == GridMode::kReflection)
    return clipped(reflected(p, size, mode.align_corners), size);
  return p;
}

// The index, or -1 outside [0, size) and for NaN.
template <class C>
constexpr C index_of(C at, int64_t size) {
  return (at >= 0) & (at < static_cast<C>(size)) ? at : C(-1);
}

// Where a coordinate is. The cubic interpolation pads each neighbour by itself.
template <class C>
constexpr Position<C> position(C coordinate, int64_t size, const GridMode& mode) {
  const Position<C> p = in_pixels(coordinate, size, mode.align_corners);
  return mode.interpolation == GridMode::kCubic ? p : padded(p, size, mode);
}

// A neighbour of a position along one dimension: the index, a whole number (-1 outside the image),
// the weight, and the derivative of the weight by the coordinate.
template <class C>
struct Neighbour {
  C index, weight, slope;
};
constexpr int neighbours_along(const GridMode& mode) {
  return mode.interpolation == GridMode::kCubic    ? 4
         : mode.interpolation == GridMode::kLinear ? 2
                                                   : 1;
}
// Number k of them.
template <class C>
constexpr Neighbour<C> neighbour(Position<C> p, int k, int64_t size, const GridMode& mode) {
  if (mode.interpolation == GridMode::kNearest) return {index_of(std::nearbyint(p.at), size), 1, 0};
  const C left = std::floor(p.at), t = p.at - left;
  if (mode.interpolation == GridMode::kLinear) {
    if (k == 0) return {index_of(left, size), 1 - t, -p.slope};
    return {index_of(left + 1, size), t, p.slope};
  }
  const C step = static_cast<C>(k - 1), a = static_cast<C>(-0.75);
  const C signed_distance = t - step, x = std::abs(signed_distance);
  const C near = (3 * (a + 2) * x - 2 * (a + 3)) * x, far = ((3 * x - 10) * x + 8) * a;
  const C rise = x <= 1 ? near : far;
  return {index_of(padded(Position<C>{left + step, 1}, size, mode).at, size), cubic_weight(x, a),
          p.slope * (signed_distance < 0 ? -rise : rise)};
}

// All along one dimension.
template <class C>
struct Neighbours {
  int count;
  C index[4], weight[4], slope[4];
};
template <class C>
constexpr Neighbours<C> neighbours(C coordinate, int64_t size, const GridMode& mode) {
  const Position<C> p = position(coordinate, size, mode);
  Neighbours<C> all{};
  all.count = neighbours_along(mode);
  for (int k = 0; k < all.count; ++k) {
    const Neighbour<C> n = neighbour(p, k, size, mode);
    all.index[k] = n.index;
    all.weight[k] = n.weight;
    all.slope[k] = n.slope;
  }
  return all;
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
          const auto z = static_cast<int64_t>(n[0].index[i]),
                     y = static_cast<int64_t>(n[1].index[j]),
                     x = static_cast<int64_t>(n[2].index[k]);
          f((z * in[1] + y) * in[2] + x, i, j, k);
        }
      }
    }
  }
};

}  // namespace treadle::grid_sampling
