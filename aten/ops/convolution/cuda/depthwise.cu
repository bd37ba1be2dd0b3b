// A thread computes several neighbours of a row of y, so that they share their reads of x. With
// stride 1 the gradient of x is the convolution of y's gradient with flipped windows. Otherwise it
// sums over the outputs that used each element. The gradient of w is summed by blocks over fixed
// runs of images. The blocks' sums are then added in their order: the same bits each time, without
// atomics.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/backend/cuda/kernels/kernel.cuh"
#include "aten/ops/convolution/cuda/depthwise.h"

namespace treadle::cuda {
namespace {

constexpr int kRun = 4;  // neighbours of a thread, for windows whose size is known here

struct Shape {
  int64_t images, channels;  // of y
  int per_input;             // channels of y for each of x
  int height, width;         // of x
  int rows, columns;         // of y
  int window[2], stride[2], padding[2], dilation[2];
};

// Neighbours that are stored at once where they are aligned.
template <class T, int n>
struct alignas(n * sizeof(T) < 16 ? n * sizeof(T) : 16) Run {
  T of[n];
};

// K x K windows that step by S, next to each other; K = 0: any. I holds numbers of elements of y.
template <class T, class I, int K, int S, bool turned>
__global__ void forward_kernel(const T* x, const T* w, const T* bias, T* y, Shape s) {
  using C = Computed<T>;
  constexpr int run = K ? kRun : 1;
  const I runs = static_cast<I>((s.columns + run - 1) / run);
  const I rows = static_cast<I>(s.rows), channels = static_cast<I>(s.channels);
  for_each_element(static_cast<int64_t>(runs) * s.rows * s.channels * s.images, [=](int64_t at) {
    const auto i = static_cast<I>(at);
    const int first = static_cast<int>(i % runs) * run, row = static_cast<int>(i / runs % rows);
    const int64_t image = i / runs / rows, channel = static_cast<I>(image) % channels;
    const T* const from = x + image / s.per_input * s.height * s.width;
    const int taps = K ? K * K : s.window[0] * s.window[1];
    const T* const filter = w + channel * taps;
    C sums[run];
#pragma unroll
    for (int r = 0; r < run; ++r) sums[r] = C(0);
    if constexpr (K > 0) {
      constexpr int span = (run - 1) * S + K;
#pragma unroll
      for (int a = 0; a < K; ++a) {
        const int h = row * S - s.padding[0] + a;
        if (h < 0 || h >= s.height) continue;
        const T* const line = from + static_cast<int64_t>(h) * s.width;
        const int left = first * S - s.padding[1];
        C values[span];
#pragma unroll
        for (int v = 0; v < span; ++v)
          values[v] = left + v >= 0 && left + v < s.width ? widened(line[left + v]) : C(0);
#pragma unroll
        for (int b = 0; b < K; ++b) {
          const C f = widened(filter[turned ? K * K - 1 - (a * K + b) : a * K + b]);
#pragma unroll
          for (int r = 0; r < run; ++r) sums[r] += f * values[r * S + b];
        }
      }
    } else {
      for (int a = 0; a < s.window[0]; ++a) {
        const int h = row * s.stride[0] - s.padding[0] + a * s.dilation[0];
        if (h < 0 || h >= s.height) continue;
        for (int b = 0; b < s.window[1]; ++b) {
          const int v = first * s.stride[1] - s.padding[1] + b * s.dilation[1];
          if (v >= 0 && v < s.width)
            sums[0] += widened(filter[a * s.window[1] + b]) *
                       widened(from[static_cast<int64_t>(h) * s.width + v]);
        }
      }
    }
    const C addend = bias ? widened(bias[channel]) : C(0);
    T* const to = y + (image * s.rows + row) * s.columns + first;
    Run<T, run> results;
#pragma unroll
    for (int r = 0; r < run; ++r) results.of[r] = narrowed<T>(sums[r] + addend);
    if (first + run <= s.columns && reinterpret_cast<uintptr_t>(to) % alignof(Run<T, run>) == 0) {
      *reinterpret_cast<Run<T, run>*>(to) = results;
    } else {
#pragma unroll
      for (int r = 0; r < run; ++r)
        if (first + r < s.columns) to[r] = results.of[r];
    }
  });
}

// x of y's gradient. K and S as above, I for elements of x.
template <class T, class I, int K, int S>
__global__ void backward_kernel(const T* grad, const T* w, T* x, Shape s) {
  using C = Computed<T>;
  const I width = static_cast<I>(s.width), height = static_cast<I>(s.height);
  const I inputs = static_cast<I>(s.channels / s.per_input);
  const int window[2] = {K ? K : s.window[0], K ? K : s.window[1]};
  const int stride[2] = {S ? S : s.stride[0], S ? S : s.stride[1]};
  for_each_element(s.images * inputs * s.height * s.width, [=](int64_t at) {
    const auto i = static_cast<I>(at);
    const int right = static_cast<int>(i % width) + s.padding[1],
              down = static_cast<int>(i / width % height) + s.padding[0];
    const int64_t image = i / width / height, input = static_cast<I>(image) % inputs;
    C sum(0);
    for (int copy = 0; copy < s.per_input; ++copy) {
      const T* const filter = w + (input * s.per_input + copy) * window[0] * window[1];
      const T* const from = grad + (image * s.per_input + copy) * s.rows * s.columns;
#pragma unroll
      for (int a = 0; a < window[0]; ++a) {
        const int h = down - a * s.dilation[0];
        if (h < 0 || h % stride[0] != 0 || h / stride[0] >= s.rows) continue;
        const T* const line = from + static_cast<int64_t>(h / stride[0]) * s.columns;
#pragma unroll
        for (int b = 0; b < window[1]; ++b) {
          const int v = right - b * s.dilation[1];
          if (v >= 0 && v % stride[1] == 0 && v / stride[1] < s.columns)
            sum += widened(filter[a * window[1] + b]) * widened(line[v / stride[1]]);
        }
      }
    }
    x[at] = narrowed<T>(sum);
  });
}

// A block sums a channel's taps over the images of a run: all K x K of them, or the one that the
// third grid index selects. sums: (runs, channels, taps).
template <class T, int K>
__global__ void weight_kernel(const T* x, const T* grad, Computed<T>* sums, Shape s) {
  using C = Computed<T>;
  constexpr int taps = K ? K * K : 1;
  const int all_taps = K ? K * K : s.window[0] * s.window[1];
  const int64_t channel = blockIdx.x, inputs = s.channels / s.per_input;
  const int64_t begin = s.images * blockIdx.y / gridDim.y,
                end = s.images * (blockIdx.y + 1) / gridDim.y;
  const int area = s.rows * s.columns;
  C mine[taps];
#pragma unroll
  for (int t = 0; t < taps; ++t) mine[t] = C(0);
  for (int64_t image = begin; image < end; ++image) {
    const T* const from =
        x + (image * inputs + channel / s.per_input) * s.height * static_cast<int64_t>(s.width);
    const T* const slopes = grad + (image * s.channels + channel) * area;
    for (int p = static_cast<int>(threadIdx.x); p < area; p += kBlock) {
      const C slope = widened(slopes[p]);
      const int down = p / s.columns * s.stride[0] - s.padding[0],
                right = p % s.columns * s.stride[1] - s.padding[1];
#pragma unroll
      for (int t = 0; t < taps; ++t) {
        const int tap = K ? t : static_cast<int>(blockIdx.z), side = K ? K : s.window[1];
        const int h = down + tap / side * s.dilation[0], v = right + tap % side * s.dilation[1];
        if (h >= 0 && h < s.height && v >= 0 && v < s.width)
          mine[t] += slope * widened(from[static_cast<int64_t>(h) * s.width + v]);
      }
    }
  }
  C* const to = sums + (blockIdx.y * s.channels + channel) * all_taps + blockIdx.z;
#pragma unroll
  for (int t = 0; t < taps; ++t) {
    const C sum = folded_in_block(mine[t], Plus());
    if (threadIdx.x == 0) to[t] = sum;
  }
}
template <class T>
__global__ void add_runs(const Computed<T>* sums, int64_t runs, int64_t n, T* w) {
  for_each_element(n, [=](int64_t i) {
    Computed<T> sum = sums[i];
    for (int64_t r = 1; r < runs; ++r) sum += sums[r * n + i];
    w[i] = narrowed<T>(sum);
  });
}

Shape shape_of(const ConvolutionGeometry& g) {
  Shape s;
  s.images = g.y[0];
  s.channels = g.y[1];
  s.per_input = static_cast<int>(g.y[1] / g.x[1]);
  s.height = static_cast<int>(g.x[2]);
  s.width = static_cast<int>(g.x[3]);
  s.rows = static_cast<int>(g.y[2]);
  s.columns = static_cast<int>(g.y[3]);
  for (size_t d = 0; d < 2; ++d) {
    s.window[d] = static_cast<int>(g.w[d + 2]);
    s.stride[d] = static_cast<int>(g.stride[d]);
    s.padding[d] = static_cast<int>(g.padding[d]);
    s.dilation[d] = static_cast<int>(g.dilation[d]);
  }
  return s;
}

// Square windows without gaps, of a size and a step that kernels know; 0 for others.
int known_window(const Shape& s) {
  const bool near = s.dilation[0] == 1 && s.dilation[1] == 1 && s.window[0] == s.window[1];
  return near && (s.window[0] == 3 || s.window[0] == 5) ? s.window[0] : 0;
}
int known_stride(const Shape& s) {
  return s.stride[0] == s.stride[1] && s.stride[0] <= 2 ? s.stride[0] : 0;
}
// Calls f with constants of their values, where K = 0 where a kernel does not know S.
template <class F>
void with_constants(int window, int stride, F f) {
  const auto with = [&]<int K>() {
    if (stride == 1)
      f.template operator()<K, 1>();
    else
      f.template operator()<K, 2>();
  };
  if (window == 0 || stride == 0)
    f.template operator()<0, 0>();
  else if (window == 3)
    with.template operator()<3>();
  else
    with.template operator()<5>();
}
// The integer types of the elements' sizes.
template <class F>
void with_index(int64_t elements, F f) {
  if (elements < INT32_MAX)
    f.template operator()<uint32_t>();
  else
    f.template operator()<uint64_t>();
}

template <class T, bool turned>
void launch_forward(const Shape& s, const T* x, const T* w, const T* bias, T* y,
                    cudaStream_t stream) {
  const int64_t lines = s.images * s.channels * s.rows;
  with_constants(known_window(s), known_stride(s), [&]<int K, int S>() {
    const unsigned blocks = blocks_for(lines * (K ? (s.columns + kRun - 1) / kRun : s.columns));
    with_index(lines * s.columns, [&]<class I>() {
      forward_kernel<T, I, K, S, turned><<<blocks, kBlock, 0, stream>>>(x, w, bias, y, s);
    });
  });
  check_launched();
}

template <class T>
void launch_backward(const Shape& s, const T* grad, const T* w, T* x, cudaStream_t stream) {
  if (known_window(s) && s.stride[0] == 1 && s.stride[1] == 1 && s.per_input == 1) {
    Shape back = s;
    std::swap(back.height, back.rows);
    std::swap(back.width, back.columns);
    for (size_t d = 0; d < 2; ++d) back.padding[d] = s.window[d] - 1 - s.padding[d];
    return launch_forward<T, true>(back, grad, w, nullptr, x, stream);
  }
  const int64_t n = s.images * (s.channels / s.per_input) * s.height * s.width;
  with_constants(known_window(s), known_stride(s), [&]<int K, int S>() {
    with_index(n, [&]<class I>() {
      backward_kernel<T, I, K, S><<<blocks_for(n), kBlock, 0, stream>>>(grad, w, x, s);
    });
  });
  check_launched();
}

template <class T>
void launch_weight(const Shape& s, const T* x, const T* grad, const Tensor& w,
                   cudaStream_t stream) {
  // Enough blocks to keep a large device busy, by sizes alone, so the bits do not depend on the
  // device.
  constexpr int64_t kBlocks = 4096;
  const int64_t runs =
      std::clamp<int64_t>(kBlocks / s.channels, 1, std::min<int64_t>(s.images, 65535));
  const int64_t n = w.numel();
  const Tensor sums = empty_tensor({runs * n}, scalar_type_of<Computed<T>>, w.device());
  auto* const sum = sums.data_as<Computed<T>>();
  const int window = known_window(s);
  const dim3 grid(block_each(s.channels), static_cast<unsigned>(runs),
                  window ? 1 : static_cast<unsigned>(s.window[0] * s.window[1]));
  if (window == 3)
    weight_kernel<T, 3><<<grid, kBlock, 0, stream>>>(x, grad, sum, s);
  else if (window == 5)
    weight_kernel<T, 5><<<grid, kBlock, 0, stream>>>(x, grad, sum, s);
  else
    weight_kernel<T, 0><<<grid, kBlock, 0, stream>>>(x, grad, sum, s);
  check_launched();
  add_runs<<<blocks_for(n), kBlock, 0, stream>>>(sum, runs, n, w.data_as<T>());
  check_launched();
}

}  // namespace

bool is_depthwise(const ConvolutionGeometry& g) {
  if (g.x.size() != 4 || g.w[1] != 1 || g.x[1] == 1) return false;
  // Places within an image, and the grid of the gradient of w, are of 32 and 16 bits.
  const int64_t reach = g.padding[0] + g.padding[1] + g.dilation[0] * g.w[2] +
                        g.dilation[1] * g.w[3] + g.stride[0] + g.stride[1];
  return g.x[2] * g.x[3] < INT32_MAX / 4 && g.y[2] * g.y[3] < INT32_MAX / 4 &&
         reach < INT32_MAX / 4 && g.w[2] * g.w[3] <= 65535 && g.y[1] <= INT32_MAX;
}

template <class T>
void depthwise(const ConvolutionGeometry& g, ConvolutionPart part, const Tensor& x, const Tensor& w,
               const Tensor& y, const Tensor& bias) {
  const Place place(x);
  const Shape s = shape_of(g);
  auto *const xs = x.data_as<T>(), *const ws = w.data_as<T>(), *const ys = y.data_as<T>();
  if (part == ConvolutionPart::Y)
    launch_forward<T, false>(s, xs, ws, bias.defined() ? bias.data_as<T>() : nullptr, ys,
                             place.stream);
  else if (part == ConvolutionPart::X)
    launch_backward(s, ys, ws, xs, place.stream);
  else
    launch_weight(s, xs, ys, w, place.stream);
}

#define TREADLE_DEPTHWISE(T)                                                             \
  template void depthwise<T>(const ConvolutionGeometry&, ConvolutionPart, const Tensor&, \
                             const Tensor&, const Tensor&, const Tensor&);
TREADLE_DEPTHWISE(float)
TREADLE_DEPTHWISE(double)
TREADLE_DEPTHWISE(Half)
TREADLE_DEPTHWISE(BFloat16)
#undef TREADLE_DEPTHWISE

}  // namespace treadle::cuda
