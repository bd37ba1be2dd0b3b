// The product of the weight (filters x window) and of the windows of some images (window x
// positions), whose rows are copied from images with a border of zeros.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/ops/convolution/cpu/conv_small_images.h"

#include <algorithm>
#include <cstring>

#include "aten/backend/cpu/gemm.h"
#include "aten/backend/cpu/work_space.h"
#include "core/threads/parallel.h"

namespace treadle::cpu {
namespace {

constexpr int64_t kElements = 32768;  // copied in a parallel piece

// Images with their padding, so that no window extends beyond them.
struct Padded {
  explicit Padded(const ConvGeometry& g) {
    for (int d = 0; d < 3; ++d) {
      const int64_t window = g.dilation[d] * (g.kernel[d] - 1) + 1;
      size[d] = std::max(g.in[d] + g.padding[d], (g.out[d] - 1) * g.stride[d] + window);
    }
  }
  int64_t positions() const { return size[0] * size[1] * size[2]; }
  ConvGeometry::Dims size;
};

void pad(const ConvGeometry& g, const Padded& padded, int64_t planes, const float* from,
         float* to) {
  const int64_t positions = padded.positions();
  parallel_for(planes, std::max<int64_t>(1, kElements / positions),
               [&](int64_t begin, int64_t end) {
                 std::fill(to + begin * positions, to + end * positions, 0.0f);
                 for (int64_t plane = begin; plane < end; ++plane) {
                   for (int64_t z = 0; z < g.in[0]; ++z) {
                     for (int64_t y = 0; y < g.in[1]; ++y) {
                       const int64_t row = (z + g.padding[0]) * padded.size[1] + y + g.padding[1];
                       std::copy_n(from + ((plane * g.in[0] + z) * g.in[1] + y) * g.in[2], g.in[2],
                                   to + plane * positions + row * padded.size[2] + g.padding[2]);
                     }
                   }
                 }
               });
}

void copy_run(const float* from, int64_t count, int64_t step, float* to) {
  constexpr int64_t kSome = 4;
  int64_t i = 0;
  if (step == 1 && count >= kSome) {
    for (; i < count - kSome; i += kSome) std::memcpy(to + i, from + i, kSome * sizeof(float));
    std::memcpy(to + count - kSome, from + count - kSome, kSome * sizeof(float));  // may overlap
    return;
  }
  for (; i < count; ++i) to[i] = from[i * step];
}

// Row (channel, offset in the kernel), column (image, position).
void unfold(const ConvGeometry& g, const Padded& padded, const float* images, float* windows) {
  const int64_t columns = g.batch * g.out_positions(), row = columns * g.kernel_elements();
  parallel_for(g.in_channels, std::max<int64_t>(1, kElements / row), [&](int64_t c, int64_t end) {
    float* to = windows + c * row;
    for (; c < end; ++c) {
      for (int64_t k = 0; k < g.kernel_elements(); ++k) {
        const int64_t x0 = k % g.kernel[2] * g.dilation[2],
                      y0 = k / g.kernel[2] % g.kernel[1] * g.dilation[1],
                      z0 = k / g.kernel[2] / g.kernel[1] * g.dilation[0];
        for (int64_t n = 0; n < g.batch; ++n) {
          const float* const image = images + (n * g.in_channels + c) * padded.positions();
          for (int64_t z = 0; z < g.out[0]; ++z) {
            for (int64_t y = 0; y < g.out[1]; ++y, to += g.out[2]) {
              const int64_t line = (z * g.stride[0] + z0) * padded.size[1] + y * g.stride[1] + y0;
              copy_run(image + line * padded.size[2] + x0, g.out[2], g.stride[2], to);
            }
          }
        }
      }
    }
  });
}

}  // namespace

bool is_of_small_images(const ConvGeometry& g) {
  constexpr int64_t kFewPositions = 49, kManyWeights = 1 << 19;
  if (g.groups > 1 || g.channels_last || g.weight_last || g.is_bfloat16) return false;
  return g.out_positions() <= kFewPositions && g.in_positions() <= 4 * kFewPositions &&
         Padded(g).positions() <= 16 * kFewPositions && g.weight_elements() >= kManyWeights;
}

void conv_forward_small_images(const ConvGeometry& g, const float* input, const float* weight,
                               const float* bias, float* output) {
  constexpr int64_t kColumns = 512;  // of windows, which stay in a cache
  const Padded padded(g);
  const int64_t window = g.in_channels * g.kernel_elements(), positions = g.out_positions();
  const int64_t images = std::min(g.batch, kColumns / positions);
  const WorkSpace<float> with_border(images * g.in_channels * padded.positions()),
      windows(window * images * positions), product(g.out_channels * images * positions);
  for (int64_t first = 0; first < g.batch; first += images) {
    ConvGeometry some = g;
    some.batch = std::min(images, g.batch - first);
    const int64_t columns = some.batch * positions;
    pad(some, padded, some.batch * g.in_channels, input + first * g.in_image(), with_border.data());
    unfold(some, padded, with_border.data(), windows.data());
    gemm<float>({weight, g.out_channels, window, window, 1},
                {windows.data(), window, columns, columns, 1}, product.data(), columns, 1.0f, 0.0f);
    parallel_for(some.batch * g.out_channels, std::max<int64_t>(1, kElements / positions),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t i = begin; i < end; ++i) {
                     const int64_t n = i / g.out_channels, o = i % g.out_channels;
                     const float* const from = product.data() + o * columns + n * positions;
                     float* const to = output + first * g.out_image() + i * positions;
                     const float shift = bias ? bias[o] : 0.0f;
                     for (int64_t p = 0; p < positions; ++p)
                       to[p] = bias ? from[p] + shift : from[p];
                   }
                 });
  }
}

}  // namespace treadle::cpu
