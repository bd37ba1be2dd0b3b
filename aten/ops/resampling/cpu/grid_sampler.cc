// grid_sampler: values of images or volumes at given points, and the gradients. The positions of
// the points are defined in aten/ops/resampling/grid_sampling.h.
//
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <unordered_map>
#include <vector>

#include "aten/backend/cpu/long_sums.h"
#include "aten/ops/_grid_sampler_backward.h"
#include "aten/ops/contiguous.h"
#include "aten/ops/grid_sampler_2d.h"
#include "aten/ops/grid_sampler_3d.h"
#include "aten/ops/resampling/grid_sampling.h"
#include "core/threads/parallel.h"

namespace treadle::cpu {
namespace {

using grid_sampling::Neighbours;
using grid_sampling::Sampling;

// The coordinates of a point, as they are computed with.
template <class T>
auto reader(const T* point) {
  return [=](int64_t c) { return static_cast<compute_type<T>>(point[c]); };
}

// The neighbours of some points, those of all points side by side. In a loop over points there is
// then no branch, so that the loads of several points are under way at once.
template <class C>
class PointBlock {
 public:
  static constexpr int64_t kPoints = 128;
  explicit PointBlock(const Sampling& s) : s_(s) {}

  // point(p): a function of c, coordinate c of point p.
  template <class F>
  void find(int64_t points, const F& point) {
    points_ = points;
    at_edge_.clear();
    if (s_.mode.interpolation == GridMode::kNearest)
      find_in_space<GridMode::kNearest>(point);
    else if (s_.mode.interpolation == GridMode::kLinear)
      find_in_space<GridMode::kLinear>(point);
    else
      find_of<GridMode::kCubic, 2>(point);
  }

  // The values of an image's channel at the points.
  template <class T>
  void read(const T* from, T* out) const {
    C sums[kPoints] = {};
    for (int k = 0; k < count_; ++k) {
      for (int64_t p = 0; p < points_; ++p)
        sums[p] += static_cast<C>(from[offset_[k][p]]) * weight_[k][p];
    }
    // A neighbour outside the image counts as 0, even where the image's first element is NaN.
    for (const auto& [p, found] : at_edge_) {
      sums[p] = 0;
      for (int k = 0; k < found; ++k)
        sums[p] += static_cast<C>(from[offset_[k][p]]) * weight_[k][p];
    }
    for (int64_t p = 0; p < points_; ++p) out[p] = static_cast<T>(sums[p]);
  }

 private:
  static constexpr int kMost = 16;  // neighbours of a point

  template <int64_t kInterpolation, class F>
  void find_in_space(const F& point) {
    if (s_.coordinates == 2)
      find_of<kInterpolation, 2>(point);
    else
      find_of<kInterpolation, 3>(point);
  }
  template <int64_t kInterpolation, int64_t kCoordinates, class F>
  [[gnu::flatten]] void find_of(const F& point) {
    Sampling s = s_;  // with two constants, by which the compiler leaves branches out
    s.mode.interpolation = kInterpolation;
    s.coordinates = kCoordinates;
    for (int64_t p = 0; p < points_; ++p) {
      Neighbours<C> n[3];
      s.find<C>(point(p), n);
      count_ = n[0].count * n[1].count * n[2].count;
      int found = 0;
      s.for_neighbours(n, [&](int64_t at, int i, int j, int k) {
        offset_[found][p] = at;
        weight_[found++][p] = n[0].weight[i] * n[1].weight[j] * n[2].weight[k];
      });
      if (found < count_) at_edge_.push_back({p, found});
      for (; found < count_; ++found) offset_[found][p] = 0, weight_[found][p] = 0;
    }
  }

  struct Edge {
    int64_t point;
    int found;  // neighbours inside the image
  };

  const Sampling& s_;
  int64_t points_ = 0;
  int count_ = 0;
  int64_t offset_[kMost][kPoints];
  C weight_[kMost][kPoints];
  std::vector<Edge> at_edge_;
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
    PointBlock<C> block(s);
    for (int64_t first = begin, n = 0; first < end; first += n) {
      const int64_t image = first / s.points, point = first % s.points;
      n = std::min({PointBlock<C>::kPoints, end - first, s.points - point});
      const T* const points = g.data_as<T>() + first * s.coordinates;
      block.find(n, [&](int64_t p) { return reader(points + p * s.coordinates); });
      for (int64_t c = image * s.channels; c < (image + 1) * s.channels; ++c)
        block.read(in.data_as<T>() + c * s.in_size(), out.data_as<T>() + c * s.points + point);
    }
  });
}

// The sums of the gradients of an image's elements, in every channel. If there are far more
// elements than points, only elements that receive a gradient have sums: most of them receive none.
template <class C>
class ImageSums {
  using W = wide_type<C>;

 public:
  explicit ImageSums(const Sampling& s)
      : size_(s.in_size()),
        channels_(s.channels),
        sparse_(s.points < size_ * channels_ / kFewPoints),
        step_(sparse_ ? 1 : size_),
        sums_(static_cast<size_t>(sparse_ ? 0 : size_ * channels_)) {}

  // The sum of the first channel at an offset in the image. The others follow, step() apart.
  int64_t place(int64_t at) {
    if (!sparse_) return at;
    const auto [found, added] = places_.try_emplace(at, static_cast<int64_t>(sums_.size()));
    if (added) sums_.resize(sums_.size() + static_cast<size_t>(channels_));
    return found->second;
  }
  int64_t step() const { return step_; }
  W& operator[](int64_t place) { return sums_[static_cast<size_t>(place)]; }

  // `out`: the image.
  template <class T>
  void store(T* out) const {
    const auto rounded = [](W sum) { return static_cast<T>(static_cast<C>(sum)); };
    if (!sparse_) {
      std::transform(sums_.begin(), sums_.end(), out, rounded);
      return;
    }
    std::fill_n(out, size_ * channels_, T(0));
    for (const auto& [at, place] : places_) {
      for (int64_t c = 0; c < channels_; ++c)
        out[c * size_ + at] = rounded(sums_[static_cast<size_t>(place + c)]);
    }
  }

 private:
  static constexpr int64_t kFewPoints = 64;

  int64_t size_, channels_;
  bool sparse_;
  int64_t step_;
  std::vector<W> sums_;
  std::unordered_map<int64_t, int64_t> places_;  // of `sums_`, by the offset in the image
};

template <class T>
void grid_sampler_backward_cpu(const Tensor& grad, const Tensor& input, const Tensor& grid,
                               int64_t interpolation_mode, int64_t padding_mode, bool align_corners,
                               const Tensor& grad_input, const Tensor& grad_grid) {
  using C = compute_type<T>;
  if (grad.numel() == 0) {
    std::fill_n(grad_input.data_as<T>(), grad_input.numel(), T(0));
    std::fill_n(grad_grid.data_as<T>(), grad_grid.numel(), T(0));
    return;
  }
  const Sampling s(input, grid, {interpolation_mode, padding_mode, align_corners});
  const Tensor in = aten::contiguous(input), g = aten::contiguous(grid),
               gr = aten::contiguous(grad);
  const bool cubic = interpolation_mode == GridMode::kCubic;
  // A pixel, as all channels see it. A point that stands still along a dimension has no slope
  // there, whatever the pixel is.
  struct Pixel {
    int64_t at, place, point;
    C weight, slope[3];
    bool still[3];
  };
  // An image at a time: its points add to the same elements. Some points are taken through a
  // channel together, since the channels of a point lie far apart in memory.
  constexpr int64_t kPoints = 32;
  parallel_chunks(s.batch, [&](int64_t image) {
    Neighbours<C> n[3];
    ImageSums<C> sums(s);
    std::vector<Pixel> pixels;
    for (int64_t first = 0; first < s.points; first += kPoints) {
      const int64_t points = std::min(kPoints, s.points - first);
      const int64_t at_grid = (image * s.points + first) * s.coordinates;
      pixels.clear();
      for (int64_t p = 0; p < points; ++p) {
        s.find<C>(reader(g.data_as<T>() + at_grid + p * s.coordinates), n);
        s.for_neighbours(n, [&](int64_t at, int i, int j, int k) {
          const C wz = n[0].weight[i], wy = n[1].weight[j], wx = n[2].weight[k];
          const C sz = n[0].slope[i], sy = n[1].slope[j], sx = n[2].slope[k];
          pixels.push_back({at,
                            sums.place(at),
                            p,
                            wz * wy * wx,
                            {sz * (wy * wx), sy * (wz * wx), sx * (wz * wy)},
                            {sz == 0 && !cubic, sy == 0 && !cubic, sx == 0 && !cubic}});
        });
      }
      C slopes[kPoints][3] = {};
      for (int64_t c = 0; c < s.channels; ++c) {
        const int64_t plane = image * s.channels + c;
        const T* const from = in.data_as<T>() + plane * s.in_size();
        const T* const shares = gr.data_as<T>() + plane * s.points + first;
        for (const Pixel& pixel : pixels) {
          const C share = static_cast<C>(shares[pixel.point]);
          sums[pixel.place + c * sums.step()] += share * pixel.weight;
          const C value = share * static_cast<C>(from[pixel.at]);
          for (int64_t d = 3 - s.coordinates; d < 3; ++d)
            slopes[pixel.point][d] += pixel.still[d] ? C(0) : value * pixel.slope[d];
        }
      }
      for (int64_t p = 0; p < points; ++p) {
        for (int64_t c = 0; c < s.coordinates; ++c)
          grad_grid.data_as<T>()[at_grid + p * s.coordinates + c] =
              static_cast<T>(slopes[p][2 - c]);
      }
    }
    sums.store(grad_input.data_as<T>() + image * s.channels * s.in_size());
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
