// grid_sampler: values of images or volumes at given points, and the gradients.
//
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>
#include <unordered_map>
#include <vector>

#include "aten/backend/cpu/long_sums.h"
#include "aten/ops/_grid_sampler_backward.h"
#include "aten/ops/contiguous.h"
#include "aten/ops/grid_sampler_2d.h"
#include "aten/ops/grid_sampler_3d.h"
#include "aten/ops/resampling/cpu/grid_points.h"
#include "core/threads/parallel.h"

namespace treadle::cpu {
namespace {

using grid_sampling::Sampling;

// f(Offset()), by the integers that hold the number of an image's elements.
template <class F>
void with_offset(const Sampling& s, F&& f) {
  if (s.in_size() < std::numeric_limits<int32_t>::max())
    f(int32_t());
  else
    f(int64_t());
}

template <class T>
void grid_sampler_cpu(const Tensor& input, const Tensor& grid, int64_t interpolation_mode,
                      int64_t padding_mode, bool align_corners, const Tensor& out) {
  if (out.numel() == 0) return;
  const Sampling s(input, grid, {interpolation_mode, padding_mode, align_corners});
  const Tensor in = aten::contiguous(input), g = aten::contiguous(grid);
  const int64_t grain = std::max<int64_t>(1, 8192 / s.channels);
  with_offset(s, [&](auto offset) {
    using Points = GridPoints<compute_type<T>, decltype(offset)>;
    const auto& loops = simd::grid_loops<T, decltype(offset)>();
    parallel_for(s.batch * s.points, grain, [&](int64_t begin, int64_t end) {
      Points block;
      for (int64_t first = begin, n = 0; first < end; first += n) {
        const int64_t image = first / s.points, point = first % s.points;
        n = std::min({Points::kPoints, end - first, s.points - point});
        loops.find(s, g.data_as<T>() + first * s.coordinates, n, block);
        for (int64_t c = image * s.channels; c < (image + 1) * s.channels; ++c)
          loops.read(block, in.data_as<T>() + c * s.in_size(),
                     out.data_as<T>() + c * s.points + point);
      }
    });
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
        step_(sparse_ ? 1 : size_ + 1),
        sums_(static_cast<size_t>(sparse_ ? channels_ : step_ * channels_)) {}

  // The sum of the first channel at an offset in the image. The others follow, step() apart. What
  // is outside (-1) has a sum, too, of which nothing is stored.
  int64_t place(int64_t at) {
    if (!sparse_) return at + 1;
    if (at < 0) return 0;
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
    for (int64_t c = 0; !sparse_ && c < channels_; ++c) {
      const W* const own = sums_.data() + c * step_ + 1;
      std::transform(own, own + size_, out + c * size_, rounded);
    }
    if (!sparse_) return;
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
  // An image at a time: its points add to the same elements. Some points are taken through a
  // channel together, since the channels of a point lie far apart in memory.
  with_offset(s, [&](auto offset) {
    using Points = GridPoints<C, decltype(offset)>;
    constexpr int64_t kPoints = Points::kPoints;
    const auto& loops = simd::grid_loops<T, decltype(offset)>();
    parallel_chunks(s.batch, [&](int64_t image) {
      ImageSums<C> sums(s);
      Points block;
      int64_t places[Points::kMost][kPoints];
      for (int64_t first = 0; first < s.points; first += kPoints) {
        const int64_t n = std::min(kPoints, s.points - first);
        const int64_t at_grid = (image * s.points + first) * s.coordinates;
        loops.find_slopes(s, g.data_as<T>() + at_grid, n, block);
        for (int k = 0; k < block.neighbours; ++k) {
          for (int64_t p = 0; p < n; ++p) places[k][p] = sums.place(block.offset[k][p]);
        }
        alignas(64) C slopes[3][kPoints] = {};
        alignas(64) C shares[kPoints] = {};
        for (int64_t c = 0; c < s.channels; ++c) {
          const int64_t plane = image * s.channels + c;
          const T* const from = gr.data_as<T>() + plane * s.points + first;
          std::transform(from, from + n, shares, [](T share) { return static_cast<C>(share); });
          for (int k = 0; k < block.neighbours; ++k) {
            for (int64_t p = 0; p < n; ++p)
              sums[places[k][p] + c * sums.step()] += shares[p] * block.weight[k][p];
          }
          loops.add_slopes(block, in.data_as<T>() + plane * s.in_size(), shares, slopes);
        }
        // A point that stands still has no slope, whatever the pixels are.
        T* const to = grad_grid.data_as<T>() + at_grid;
        for (int64_t p = 0; p < n; ++p) {
          for (int64_t c = 0; c < s.coordinates; ++c)
            to[p * s.coordinates + c] =
                static_cast<T>(block.moves[2 - c][p] ? slopes[2 - c][p] : C(0));
        }
      }
      sums.store(grad_input.data_as<T>() + image * s.channels * s.in_size());
    });
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
