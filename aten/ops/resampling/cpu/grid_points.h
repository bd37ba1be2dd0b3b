// Points of grid_sampler in blocks: the neighbours of all points of a block, side by side, so that
// vectors hold several points. What a point's neighbours are is defined in
// aten/ops/resampling/grid_sampling.h.
//
//   GridPoints<C, int32_t> points;
//   const auto& loops = simd::grid_loops<T, int32_t>();
//   loops.find(s, coordinates, n, points);
//   loops.read(points, image, out);
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tuple>

#include "aten/ops/resampling/grid_sampling.h"
#include "core/base/scalar_type.h"

namespace treadle::cpu {

// Offset: an integer that holds the number of an image's elements.
template <class C, class Offset>
struct GridPoints {
  static constexpr int64_t kPoints = 128;
  static constexpr int kMost = 16;  // neighbours of a point

  int64_t points, coordinates;
  int neighbours;  // of each point
  // Of neighbour k of point p: its place in the image, -1 if it is outside, and its weight. Behind
  // the last point all neighbours are outside, up to a multiple of 16 points.
  alignas(64) Offset offset[kMost][kPoints];
  alignas(64) C weight[kMost][kPoints];
  // The derivatives of the weight by the point's coordinates along depth, height and width, and
  // whether the point moves with the coordinate.
  alignas(64) C slope[3][kMost][kPoints];
  bool moves[3][kPoints];
};

template <class T, class Offset>
struct GridLoops {
  using C = compute_type<T>;
  using Points = GridPoints<C, Offset>;

  // The neighbours of n <= kPoints points, of which the coordinates lie one behind the other; with
  // what find_slopes says also their slopes.
  void (*find)(const grid_sampling::Sampling& s, const T* coordinates, int64_t n, Points& to);
  void (*find_slopes)(const grid_sampling::Sampling& s, const T* coordinates, int64_t n,
                      Points& to);
  // The values of an image's channel at the points.
  void (*read)(const Points& points, const T* from, T* out);
  // Adds share * pixel * slope of all neighbours to the sums of each point.
  void (*add_slopes)(const Points& points, const T* from, const C* shares,
                     C (*sums)[Points::kPoints]);
};

using GridTypes = TypeList<Half, BFloat16, float, double>;
template <class... Ts>
auto all_grid_loops_type(TypeList<Ts...>)
    -> std::tuple<GridLoops<Ts, int32_t>..., GridLoops<Ts, int64_t>...>;
using AllGridLoops = decltype(all_grid_loops_type(GridTypes()));

}  // namespace treadle::cpu

namespace treadle::simd {

// Those of the best target that this machine has.
const cpu::AllGridLoops& all_grid_loops();
template <class T, class Offset>
const cpu::GridLoops<T, Offset>& grid_loops() {
  return std::get<cpu::GridLoops<T, Offset>>(all_grid_loops());
}

}  // namespace treadle::simd
