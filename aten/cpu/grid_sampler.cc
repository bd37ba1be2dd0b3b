// grid_sampler: values of images or volumes at given points, and the gradients.
//
// A grid holds coordinates in [-1, 1], the last dimension of the image first. Each is turned into a
// position in pixels, and by the padding mode into one inside the image; the value is a sum over
// the neighbours of the position along each dimension: 1 (nearest), 2 (linear) or 4 (cubic).
#include <cmath>

#include "aten/grid_mode.h"
#include "aten/ops/_grid_sampler_backward.h"
#include "aten/ops/contiguous.h"
#include "aten/ops/grid_sampler_2d.h"
#include "aten/ops/grid_sampler_3d.h"
#include "core/parallel.h"

namespace treadle::cpu {
namespace {

// A position and its slope over the coordinate it comes from.
template <class C>
struct Position {
  C at, slope;
};

template <class C>
Position<C> in_pixels(C coordinate, int64_t size, bool align_corners) {
  const C half = static_cast<C>(align_corners ? size - 1 : size) / 2;
  return {(coordinate + 1) * half - static_cast<C>(align_corners ? 0 : 0.5), half};
}

template <class C>
Position<C> clipped(Position<C> p, int64_t size) {
  const C last = static_cast<C>(size - 1);
  if (!(p.at > 0)) return {0, 0};  // NaN goes here too
  if (p.at >= last) return {last, 0};
  return p;
}

// Reflected at the centres of the outer pixels, or at their outer edges, as often as needed.
template <class C>
Position<C> reflected(Position<C> p, int64_t size, bool align_corners) {
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
Position<C> padded(Position<C> p, int64_t size, const GridMode& mode) {
  if (mode.padding == GridMode::kBorder) return clipped(p, size);
  if (mode.padding == GridMode::kReflection)
    return clipped(reflected(p, size, mode.align_corners), size);
  return p;
}

// The neighbours of a position along one dimension: indices (-1 for one outside the image), weights
// and the slopes of the weights over the coordinate.
template <class C>
struct Neighbours {
  int count;
  int64_t index[4];
  C weight[4], slope[4];
};

// As an index, -1 outside [0, size) and for NaN.
template <class C>
int64_t index_of(C at, int64_t size) {
  return at >= 0 && at < static_cast<C>(size) ? static_cast<int64_t>(at) : -1;
}

template <class C>
Neighbours<C> neighbours(C coordinate, int64_t size, const GridMode& mode) {
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
      n.weight[k] =
          x <= 1 ? ((a + 2) * x - (a + 3)) * x * x + 1 : ((x - 5) * x + 8) * x * a - 4 * a;
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

// One sampling problem, as volumes: an image has depth 1.
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
  int64_t in_size() const { return in[0] * in[1] * in[2]; }

  // Of the point whose coordinates are at `grid`, along depth, height and width.
  template <class T>
  void find(const T* grid, Neighbours<compute_type<T>> (&n)[3]) const {
    using C = compute_type<T>;
    for (int d = 0; d < 3; ++d) {
      const int64_t c = 2 - d;  // its place among the coordinates: width first
      if (c < coordinates) {
        n[d] = neighbours(static_cast<C>(grid[c]), in[d], mode);
      } else {
        n[d] = {1, {0}, {1}, {0}};
      }
    }
  }
  // Calls f(offset in the volume, i, j, k) for each neighbour inside it.
  template <class C, class F>
  void for_neighbours(const Neighbours<C> (&n)[3], F&& f) const {
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

template <class T>
void grid_sampler_cpu(const Tensor& input, const Tensor& grid, int64_t interpolation_mode,
                      int64_t padding_mode, bool align_corners, const Tensor& out) {
  using C = compute_type<T>;
  if (out.numel() == 0) return;
  const Sampling s(input, grid, {interpolation_mode, padding_mode, align_corners});
  const Tensor in = aten::contiguous(input), g = aten::contiguous(grid);
  const int64_t grain = std::max<int64_t>(1, 8192 / s.channels);
  parallel_for(s.batch * s.points, grain, [&](int64_t begin, int64_t end) {
    Neighbours<C> n[3];
    for (int64_t p = begin; p < end; ++p) {
      s.find(g.data_as<T>() + p * s.coordinates, n);
      const int64_t image = p / s.points;
      for (int64_t c = 0; c < s.channels; ++c) {
        const T* from = in.data_as<T>() + (image * s.channels + c) * s.in_size();
        C sum = 0;
        s.for_neighbours(n, [&](int64_t at, int i, int j, int k) {
          sum += static_cast<C>(from[at]) * (n[0].weight[i] * n[1].weight[j] * n[2].weight[k]);
        });
        out.data_as<T>()[(image * s.channels + c) * s.points + p % s.points] = static_cast<T>(sum);
      }
    }
  });
}

template <class T>
void grid_sampler_backward_cpu(const Tensor& grad, const Tensor& input, const Tensor& grid,
                               int64_t interpolation_mode, int64_t padding_mode, bool align_corners,
                               const Tensor& grad_input, const Tensor& grad_grid) {
  using C = compute_type<T>;
  std::fill_n(grad_input.data_as<T>(), grad_input.numel(), T(0));
  std::fill_n(grad_grid.data_as<T>(), grad_grid.numel(), T(0));
  if (grad.numel() == 0) return;
  const Sampling s(input, grid, {interpolation_mode, padding_mode, align_corners});
  const Tensor in = aten::contiguous(input), g = aten::contiguous(grid),
               gr = aten::contiguous(grad);
  // An image at a time: its points add to the same elements.
  parallel_chunks(s.batch, [&](int64_t image) {
    Neighbours<C> n[3];
    std::vector<C> sums(static_cast<size_t>(s.channels * s.in_size()), C(0));
    for (int64_t p = 0; p < s.points; ++p) {
      const int64_t at_grid = (image * s.points + p) * s.coordinates;
      s.find(g.data_as<T>() + at_grid, n);
      C slope[3] = {0, 0, 0};
      for (int64_t c = 0; c < s.channels; ++c) {
        const int64_t plane = image * s.channels + c;
        const T* from = in.data_as<T>() + plane * s.in_size();
        const C share = static_cast<C>(gr.data_as<T>()[plane * s.points + p]);
        s.for_neighbours(n, [&](int64_t at, int i, int j, int k) {
          const C wz = n[0].weight[i], wy = n[1].weight[j], wx = n[2].weight[k];
          sums[c * s.in_size() + at] += share * (wz * wy * wx);
          const C value = share * static_cast<C>(from[at]);
          slope[0] += value * n[0].slope[i] * wy * wx;
          slope[1] += value * wz * n[1].slope[j] * wx;
          slope[2] += value * wz * wy * n[2].slope[k];
        });
      }
      for (int64_t c = 0; c < s.coordinates; ++c)
        grad_grid.data_as<T>()[at_grid + c] = static_cast<T>(slope[2 - c]);
    }
    std::copy(sums.begin(), sums.end(), grad_input.data_as<T>() + image * s.channels * s.in_size());
  });
}

const auto two_registered = register_kernels<aten::ops::grid_sampler_2d, DeviceType::CPU>(
    []<class T>() { return &grid_sampler_cpu<T>; }, "grid_sampler_cpu");
const auto three_registered = register_kernels<aten::ops::grid_sampler_3d, DeviceType::CPU>(
    []<class T>() { return &grid_sampler_cpu<T>; }, "grid_sampler_cpu");
const auto backward_registered =
    register_kernels<aten::ops::_grid_sampler_backward, DeviceType::CPU>(
        []<class T>() { return &grid_sampler_backward_cpu<T>; }, "grid_sampler_backward_cpu");

}  // namespace
}  // namespace treadle::cpu
