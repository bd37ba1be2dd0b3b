// grid_sampler and its gradients, by the positions and weights of
// aten/ops/resampling/grid_sampling.h.
//
// A thread reads all channels of a point, or some of them. One thread computes a point's gradient.
// Where several points use one element of the image, their contributions are added in the points'
// order.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/backend/cuda/kernels/kernel.cuh"
#include "aten/ops/_grid_sampler_backward.h"
#include "aten/ops/contiguous.h"
#include "aten/ops/grid_sampler_2d.h"
#include "aten/ops/grid_sampler_3d.h"
#include "aten/ops/indexing/cuda/deterministic_scatter.cuh"
#include "aten/ops/resampling/grid_sampling.h"

namespace treadle::cuda {
namespace {

using grid_sampling::Neighbours;
using grid_sampling::Sampling;

// The neighbours of point p, counted over all images.
template <class T>
__device__ inline void find(const Sampling& s, const T* grid, int64_t p,
                            Neighbours<Computed<T>> (&n)[3]) {
  const T* const point = grid + p * s.coordinates;
  s.find<Computed<T>>([=](int64_t c) { return widened(point[c]); }, n);
}

constexpr int64_t kChannels = 8;  // that a thread reads

template <class T>
__global__ void sample_kernel(Sampling s, const T* input, const T* grid, T* out) {
  using C = Computed<T>;
  const int64_t parts = (s.channels + kChannels - 1) / kChannels;
  for_each_element(s.batch * parts * s.points, [=](int64_t i) {
    const int64_t p = i % s.points, part = i / s.points % parts, image = i / s.points / parts;
    Neighbours<C> n[3];
    find(s, grid, image * s.points + p, n);
    const int64_t last = (part + 1) * kChannels < s.channels ? (part + 1) * kChannels : s.channels;
    for (int64_t c = part * kChannels; c < last; ++c) {
      const int64_t plane = image * s.channels + c;
      const T* const from = input + plane * s.in_size();
      C sum = 0;
      s.for_neighbours(n, [&](int64_t at, int i, int j, int k) {
        sum += widened(from[at]) * (n[0].weight[i] * n[1].weight[j] * n[2].weight[k]);
      });
      out[plane * s.points + p] = narrowed<T>(sum);
    }
  });
}

template <class T>
__global__ void grid_gradient_kernel(Sampling s, const T* grad, const T* input, const T* grid,
                                     T* out) {
  using C = Computed<T>;
  for_each_element(s.batch * s.points, [=](int64_t p) {
    const int64_t image = p / s.points;
    Neighbours<C> n[3];
    find(s, grid, p, n);
    C slope[3] = {0, 0, 0};
    for (int64_t c = 0; c < s.channels; ++c) {
      const int64_t plane = image * s.channels + c;
      const T* const from = input + plane * s.in_size();
      const C share = widened(grad[plane * s.points + p % s.points]);
      s.for_neighbours(n, [&](int64_t at, int i, int j, int k) {
        const C wz = n[0].weight[i], wy = n[1].weight[j], wx = n[2].weight[k];
        const C value = share * widened(from[at]);
        slope[0] += value * n[0].slope[i] * wy * wx;
        slope[1] += value * wz * n[1].slope[j] * wx;
        slope[2] += value * wz * wy * n[2].slope[k];
      });
    }
    for (int64_t c = 0; c < s.coordinates; ++c)
      out[p * s.coordinates + c] = narrowed<T>(slope[2 - c]);
  });
}

// Entry p * taps + t is the neighbour t of point p: its element of the images (-1: none), and its
// weight.
template <class T>
__global__ void list_neighbours(Sampling s, const T* grid, int64_t taps, int64_t* places,
                                Computed<T>* weights) {
  for_each_element(s.batch * s.points, [=](int64_t p) {
    Neighbours<Computed<T>> n[3];
    find(s, grid, p, n);
    int64_t entry = p * taps;
    s.for_neighbours(n, [&](int64_t at, int i, int j, int k) {
      places[entry] = p / s.points * s.in_size() + at;
      weights[entry++] = n[0].weight[i] * n[1].weight[j] * n[2].weight[k];
    });
    for (; entry < (p + 1) * taps; ++entry) places[entry] = -1;
  });
}
struct ListedPlaces {
  const int64_t* places;
  __device__ int64_t operator()(int64_t entry) const { return places[entry]; }
};
// The contribution of a neighbour to its element, in each channel.
template <class T>
struct AddShares {
  using Value = Computed<T>;
  Sampling s;
  const T* grad;
  const Value* weights;
  int64_t taps;
  T* out;
  __device__ Value load(int64_t entry, int64_t channel) const {
    const int64_t p = entry / taps, image = p / s.points;
    return widened(grad[(image * s.channels + channel) * s.points + p % s.points]) * weights[entry];
  }
  __device__ Value join(Value a, Value b) const { return a + b; }
  __device__ void store(int64_t place, int64_t channel, Value sum, int64_t) const {
    const int64_t image = place / s.in_size(), at = place % s.in_size();
    out[(image * s.channels + channel) * s.in_size() + at] = narrowed<T>(sum);
  }
};

template <class T>
void grid_sampler_cuda(const Tensor& input, const Tensor& grid, int64_t interpolation_mode,
                       int64_t padding_mode, bool align_corners, const Tensor& out) {
  if (out.numel() == 0) return;
  const Sampling s(input, grid, {interpolation_mode, padding_mode, align_corners});
  const Tensor in = aten::contiguous(input), g = aten::contiguous(grid);
  const Place place(out);
  const int64_t parts = (s.channels + kChannels - 1) / kChannels;
  sample_kernel<T><<<blocks_for(s.batch * parts * s.points), kBlock, 0, place.stream>>>(
      s, in.data_as<T>(), g.data_as<T>(), out.data_as<T>());
  check_launched();
}

template <class T>
void grid_sampler_backward_cuda(const Tensor& grad, const Tensor& input, const Tensor& grid,
                                int64_t interpolation_mode, int64_t padding_mode,
                                bool align_corners, const Tensor& grad_input,
                                const Tensor& grad_grid) {
  using C = Computed<T>;
  const Place place(grad_input);
  for (const Tensor* t : {&grad_input, &grad_grid}) {
    if (t->numel() == 0) continue;
    succeed(cudaMemsetAsync(t->data(), 0, static_cast<size_t>(t->nbytes()), place.stream),
            "filling memory");
  }
  if (grad.numel() == 0) return;
  const Sampling s(input, grid, {interpolation_mode, padding_mode, align_corners});
  const Tensor in = aten::contiguous(input), g = aten::contiguous(grid),
               gr = aten::contiguous(grad);
  const int64_t points = s.batch * s.points;
  grid_gradient_kernel<T><<<blocks_for(points), kBlock, 0, place.stream>>>(
      s, gr.data_as<T>(), in.data_as<T>(), g.data_as<T>(), grad_grid.data_as<T>());
  check_launched();
  const int64_t along = interpolation_mode == GridMode::kNearest  ? 1
                        : interpolation_mode == GridMode::kLinear ? 2
                                                                  : 4;
  int64_t taps = 1;
  for (int64_t d = 0; d < s.coordinates; ++d) taps *= along;
  const Tensor places = empty_tensor({points * taps}, ScalarType::Int64, grad.device());
  const Tensor weights = empty_tensor({points * taps}, scalar_type_of<C>, grad.device());
  list_neighbours<T><<<blocks_for(points), kBlock, 0, place.stream>>>(
      s, g.data_as<T>(), taps, places.data_as<int64_t>(), weights.data_as<C>());
  check_launched();
  const int64_t elements = s.batch * s.in_size();
  const SortedPairs pairs = sorted_entries("grid_sampler", ListedPlaces{places.data_as<int64_t>()},
                                           points * taps, elements, place);
  scatter_fold(
      pairs, elements, s.channels,
      AddShares<T>{s, gr.data_as<T>(), weights.data_as<C>(), taps, grad_input.data_as<T>()}, place);
}

const auto two_registered = register_cuda<aten::ops::grid_sampler_2d>(
    Floats(), []<class T>() { return &grid_sampler_cuda<T>; }, "grid_sampler_cuda");
const auto three_registered = register_cuda<aten::ops::grid_sampler_3d>(
    Floats(), []<class T>() { return &grid_sampler_cuda<T>; }, "grid_sampler_cuda");
const auto backward_registered = register_cuda<aten::ops::_grid_sampler_backward>(
    Floats(), []<class T>() { return &grid_sampler_backward_cuda<T>; },
    "grid_sampler_backward_cuda");

}  // namespace
}  // namespace treadle::cuda
