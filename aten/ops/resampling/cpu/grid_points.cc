// The loops of grid_sampler over points. The compiler makes vectors of those that find neighbours.
//
// SPDX-License-Identifier: Apache-2.0
#define TREADLE_TARGET_INCLUDE "aten/ops/resampling/cpu/grid_points.cc"
#include "aten/backend/cpu/foreach_target.h"

#include <algorithm>
#include <array>

#include "aten/ops/resampling/cpu/grid_points.h"

HWY_BEFORE_NAMESPACE();
namespace treadle::simd::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using cpu::GridPoints;
using grid_sampling::Position;
using grid_sampling::Sampling;

// The neighbours of the points of a block along one dimension.
template <class C>
struct GridAlong {
  static constexpr int64_t kPoints = GridPoints<C, int32_t>::kPoints;
  alignas(64) C index[4][kPoints];
  alignas(64) C weight[4][kPoints];
  alignas(64) C slope[4][kPoints];

  using Find = void (*)(const C* coordinates, int64_t n, int64_t size, bool align_corners,
                        GridAlong& to);
  template <int64_t kInterpolation, int64_t kPadding, bool kSlopes>
  static void find(const C* coordinates, int64_t n, int64_t size, bool align_corners,
                   GridAlong& to) {
    alignas(64) C at[kPoints], slope[kPoints];
    find_positions<kInterpolation, kPadding>(coordinates, n, size, align_corners, at, slope);
    find_number<kInterpolation, kPadding, kSlopes, 0>(at, slope, n, size, align_corners, to);
    if constexpr (kInterpolation != GridMode::kNearest)
      find_number<kInterpolation, kPadding, kSlopes, 1>(at, slope, n, size, align_corners, to);
    if constexpr (kInterpolation == GridMode::kCubic) {
      find_number<kInterpolation, kPadding, kSlopes, 2>(at, slope, n, size, align_corners, to);
      find_number<kInterpolation, kPadding, kSlopes, 3>(at, slope, n, size, align_corners, to);
    }
  }
  // Modes are constants, so that the compiler leaves branches out.
  template <int64_t kInterpolation, int64_t kPadding>
  [[gnu::flatten]] static void find_positions(const C* HWY_RESTRICT coordinates, int64_t n,
                                              int64_t size, bool align_corners, C* HWY_RESTRICT at,
                                              C* HWY_RESTRICT slope) {
    const GridMode mode{kInterpolation, kPadding, align_corners};
    for (int64_t p = 0; p < n; ++p) {
      const auto found = grid_sampling::position(coordinates[p], size, mode);
      at[p] = found.at;
      slope[p] = found.slope;
    }
  }
  // Neighbour k of each point.
  template <int64_t kInterpolation, int64_t kPadding, bool kSlopes, int k>
  [[gnu::flatten]] static void find_number(const C* HWY_RESTRICT at, const C* HWY_RESTRICT slopes,
                                           int64_t n, int64_t size, bool align_corners,
                                           GridAlong& to) {
    const GridMode mode{kInterpolation, kPadding, align_corners};
    C *HWY_RESTRICT const index = to.index[k], *HWY_RESTRICT const weight = to.weight[k],
                          *HWY_RESTRICT const slope = to.slope[k];
    for (int64_t p = 0; p < n; ++p) {
      const auto found = grid_sampling::neighbour(Position<C>{at[p], slopes[p]}, k, size, mode);
      index[p] = found.index;
      weight[p] = found.weight;
      if constexpr (kSlopes) slope[p] = found.slope;
    }
  }
  template <int64_t kInterpolation, bool kSlopes>
  static Find finder_of(int64_t padding) {
    switch (padding) {
      case GridMode::kBorder:
        return &find<kInterpolation, GridMode::kBorder, kSlopes>;
      case GridMode::kReflection:
        return &find<kInterpolation, GridMode::kReflection, kSlopes>;
      default:
        return &find<kInterpolation, GridMode::kZeros, kSlopes>;
    }
  }
  template <bool kSlopes>
  static Find finder(const GridMode& mode) {
    switch (mode.interpolation) {
      case GridMode::kCubic:
        return finder_of<GridMode::kCubic, kSlopes>(mode.padding);
      case GridMode::kNearest:
        return finder_of<GridMode::kNearest, kSlopes>(mode.padding);
      default:
        return finder_of<GridMode::kLinear, kSlopes>(mode.padding);
    }
  }
};

template <class T, class Offset>
struct PointLoops {
  using C = compute_type<T>;
  using Points = GridPoints<C, Offset>;
  static constexpr int64_t kPoints = Points::kPoints, kStep = 16;

  template <bool kSlopes>
  static void find(const Sampling& s, const T* coordinates, int64_t n, Points& to) {
    if (s.coordinates == 3)
      find_in<3, kSlopes>(s, coordinates, n, to);
    else
      find_in<2, kSlopes>(s, coordinates, n, to);
  }

  // Dimension d of 3 - kD and more, of depth, height and width, has a coordinate.
  template <int kD, bool kSlopes>
  static void find_in(const Sampling& s, const T* coordinates, int64_t n, Points& to) {
    const int64_t whole = (n + kStep - 1) / kStep * kStep;
    const auto find_along = GridAlong<C>::template finder<kSlopes>(s.mode);
    GridAlong<C> along[kD];
    for (int d = 0; d < kD; ++d) {  // width first
      alignas(64) C own[kPoints];
      for (int64_t p = 0; p < n; ++p) own[p] = static_cast<C>(coordinates[p * kD + d]);
      std::fill(own + n, own + whole, C(0));
      find_along(own, whole, s.in[2 - d], s.mode.align_corners, along[d]);
      if constexpr (kSlopes) {
        const bool always = s.mode.interpolation == GridMode::kCubic;
        for (int64_t p = 0; p < n; ++p) to.moves[2 - d][p] = always | (along[d].slope[0][p] != 0);
      }
    }
    const int count = grid_sampling::neighbours_along(s.mode);
    to.points = n;
    to.coordinates = kD;
    to.neighbours = 0;
    for (int i = 0; i < (kD == 3 ? count : 1); ++i) {
      for (int j = 0; j < count; ++j) {
        for (int k = 0; k < count; ++k) join<kD, kSlopes>(s, along, std::array{k, j, i}, whole, to);
      }
    }
    for (int k = 0; k < to.neighbours; ++k)
      std::fill(to.offset[k] + n, to.offset[k] + whole, Offset(-1));
  }

  // The next neighbour of each point: that with these numbers along each dimension.
  template <int kD, bool kSlopes>
  static void join(const Sampling& s, const GridAlong<C>* along, std::array<int, 3> number,
                   int64_t n, Points& to) {
    const int next = to.neighbours++;
    const auto height = static_cast<Offset>(s.in[1]), width = static_cast<Offset>(s.in[2]);
    const C *const x = along[0].index[number[0]], *const wx = along[0].weight[number[0]],
                   *const sx = along[0].slope[number[0]];
    const C *const y = along[1].index[number[1]], *const wy = along[1].weight[number[1]],
                   *const sy = along[1].slope[number[1]];
    constexpr int kZ = kD - 1;
    const C *const z = along[kZ].index[number[kZ]], *const wz = along[kZ].weight[number[kZ]],
                   *const sz = along[kZ].slope[number[kZ]];
    Offset* const offset = to.offset[next];
    C *const weight = to.weight[next], *const by_z = to.slope[0][next],
             *const by_y = to.slope[1][next], *const by_x = to.slope[2][next];
#pragma GCC ivdep
    for (int64_t p = 0; p < n; ++p) {
      const bool inside = (x[p] >= 0) & (y[p] >= 0) & (z[p] >= 0);
      const Offset row =
          static_cast<Offset>(y[p]) + (kD == 3 ? static_cast<Offset>(z[p]) * height : Offset(0));
      const Offset at = row * width + static_cast<Offset>(x[p]);
      const C w = (kD == 3 ? wz[p] * wy[p] : wy[p]) * wx[p];
      offset[p] = inside ? at : Offset(-1);
      weight[p] = inside ? w : C(0);
    }
    if constexpr (kSlopes) {
#pragma GCC ivdep
      for (int64_t p = 0; p < n; ++p) {
        const bool inside = offset[p] >= 0;
        const C wzx = kD == 3 ? wz[p] * wx[p] : wx[p], wzy = kD == 3 ? wz[p] * wy[p] : wy[p];
        const C slope_y = sy[p] * wzx, slope_x = sx[p] * wzy;
        by_y[p] = inside ? slope_y : C(0);
        by_x[p] = inside ? slope_x : C(0);
        if constexpr (kD == 3) {
          const C slope_z = sz[p] * (wy[p] * wx[p]);
          by_z[p] = inside ? slope_z : C(0);
        }
      }
    }
  }

  // Vectors of pixels, where the target has loads from any places.
  static constexpr bool kGathers =
      std::is_same_v<T, C> && std::is_same_v<Offset, int32_t> && HWY_LANES(uint8_t) >= 32;
  using D = hn::CappedTag<C, kStep>;
  static constexpr int64_t kLanes = static_cast<int64_t>(hn::MaxLanes(D()));

  // Of a vector of neighbours: their pixels, and whether they are inside the image. One outside
  // counts as 0, whatever its weight would be.
  struct Pixels {
    hn::VFromD<D> value;
    hn::MFromD<D> inside;
  };
  static HWY_INLINE Pixels pixels(const T* from, const Offset* offset) {
    const D d;
    const hn::RebindToSigned<D> places;
    const hn::Rebind<int32_t, D> narrow;
    const auto gather = [&](auto at) HWY_ATTR -> Pixels {
      const auto first = hn::Zero(places);
      const auto inside = hn::RebindMask(d, hn::Not(hn::Lt(at, first)));
      return {hn::IfThenElseZero(inside, hn::GatherIndex(d, from, hn::Max(at, first))), inside};
    };
    const auto at = hn::LoadU(narrow, offset);
    if constexpr (sizeof(C) == 4)
      return gather(at);
    else
      return gather(hn::PromoteTo(places, at));
  }
  static HWY_INLINE C pixel(const T* from, Offset offset) {
    return offset >= 0 ? static_cast<C>(from[offset]) : C(0);
  }

  static void read(const Points& points, const T* from, T* out) {
    const int64_t n = points.points;
    if constexpr (kGathers) {
      const D d;
      for (int64_t p = 0; p < n; p += kLanes) {
        auto sum = hn::Zero(d);
        for (int k = 0; k < points.neighbours; ++k) {
          sum = hn::Add(sum, hn::Mul(pixels(from, points.offset[k] + p).value,
                                     hn::Load(d, points.weight[k] + p)));
        }
        if (p + kLanes <= n) {
          hn::StoreU(sum, d, out + p);
        } else {
          HWY_ALIGN C last[kLanes];
          hn::Store(sum, d, last);
          std::copy_n(last, n - p, out + p);
        }
      }
    } else {
      for (int64_t p = 0; p < n; ++p) {
        C sum = 0;
        for (int k = 0; k < points.neighbours; ++k)
          sum += pixel(from, points.offset[k][p]) * points.weight[k][p];
        out[p] = static_cast<T>(sum);
      }
    }
  }

  static void add_slopes(const Points& points, const T* from, const C* shares, C (*sums)[kPoints]) {
    for (int k = 0; k < points.neighbours; ++k) {
      const Offset* const offset = points.offset[k];
      if constexpr (kGathers) {
        const D d;
        for (int64_t p = 0; p < points.points; p += kLanes) {
          const Pixels found = pixels(from, offset + p);
          const auto value =
              hn::IfThenElseZero(found.inside, hn::Mul(hn::Load(d, shares + p), found.value));
          for (int64_t c = 3 - points.coordinates; c < 3; ++c) {
            const auto slope = hn::Load(d, points.slope[c][k] + p);
            C* const to = sums[c] + p;
            hn::Store(hn::Add(hn::Load(d, to), hn::Mul(value, slope)), d, to);
          }
        }
      } else {
        for (int64_t p = 0; p < points.points; ++p) {
          if (offset[p] < 0) continue;
          const C value = shares[p] * static_cast<C>(from[offset[p]]);
          for (int64_t c = 3 - points.coordinates; c < 3; ++c)
            sums[c][p] += value * points.slope[c][k][p];
        }
      }
    }
  }

  static constexpr cpu::GridLoops<T, Offset> loops() {
    return {&find<false>, &find<true>, &read, &add_slopes};
  }
};

template <class... Ts>
constexpr cpu::AllGridLoops grid_loops_of(TypeList<Ts...>) {
  return {PointLoops<Ts, int32_t>::loops()..., PointLoops<Ts, int64_t>::loops()...};
}
const cpu::AllGridLoops& all_grid_loops() {
  static constexpr cpu::AllGridLoops all = grid_loops_of(cpu::GridTypes());
  return all;
}

}  // namespace treadle::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace treadle::simd {

HWY_EXPORT(all_grid_loops);

const cpu::AllGridLoops& all_grid_loops() { return HWY_DYNAMIC_DISPATCH(all_grid_loops)(); }

}  // namespace treadle::simd
#endif  // HWY_ONCE
