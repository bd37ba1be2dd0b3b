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
#include "core/base/parallel.h"

namespace treadle::cpu {
namespace {

using grid_sampling::Neighbours;
using grid_sampling::Sampling;

// The coordinates of a point, as they are computed with.
template <class T>
auto reader(const T* point) {
  return [=](int64_t c) { return static_cast<compute_type<T>>(point[c]); };
}

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
      s.find<C>(reader(g.data_as<T>() + p * s.coordinates), n);
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
  // An image at a time: its points add to the same elements.
  parallel_chunks(s.batch, [&](int64_t image) {
    Neighbours<C> n[3];
    ImageSums<C> sums(s);
    for (int64_t p = 0; p < s.points; ++p) {
      const int64_t at_grid = (image * s.points + p) * s.coordinates;
      s.find<C>(reader(g.data_as<T>() + at_grid), n);
      int64_t places[64], count = 0;
      s.for_neighbours(n, [&](int64_t at, int, int, int) { places[count++] = sums.place(at); });
      C slope[3] = {0, 0, 0};
      for (int64_t c = 0; c < s.channels; ++c) {
        const int64_t plane = image * s.channels + c;
        const T* from = in.data_as<T>() + plane * s.in_size();
        const C share = static_cast<C>(gr.data_as<T>()[plane * s.points + p]);
        const int64_t* place = places;
        s.for_neighbours(n, [&](int64_t at, int i, int j, int k) {
          const C wz = n[0].weight[i], wy = n[1].weight[j], wx = n[2].weight[k];
          sums[*place++ + c * sums.step()] += share * (wz * wy * wx);
          const C value = share * static_cast<C>(from[at]);
          // A point that stands still has no slope, whatever the pixel is.
          const auto along = [&](C own, C others) {
            return own == 0 && !cubic ? C(0) : value * own * others;
          };
          slope[0] += along(n[0].slope[i], wy * wx);
          slope[1] += along(n[1].slope[j], wz * wx);
          slope[2] += along(n[2].slope[k], wz * wy);
        });
      }
      for (int64_t c = 0; c < s.coordinates; ++c)
        grad_grid.data_as<T>()[at_grid + c] = static_cast<T>(slope[2 - c]);
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
