// Average pooling of images whose channels are innermost, and its gradient.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <type_traits>
#include <vector>

#include "aten/backend/cpu/long_sums.h"
#include "aten/ops/convolution/cpu/pool_pixels.h"

namespace treadle::cpu::pixels {

// divisor(z, y, x) is that of a window's sum.
template <class T, class Divisor>
void avg_pool(const Tensor& self, const PoolAxes& axes, Divisor divisor, const Tensor& out) {
  using C = compute_type<T>;
  const PoolPixels p(self.sizes(), out.sizes());
  const Tensor in = as_pixels(self);
  const int64_t channels = p.channels;
  p.for_rows([&](int64_t n, int64_t z, int64_t y, int64_t pixel) {
    ColumnSums<C> window(channels);
    const T* const plane = in.data_as<T>() + n * p.in_size() * channels;
    for (int64_t x = 0; x < p.out[2]; ++x, ++pixel) {
      p.for_window(axes, z, y, x, [&](int64_t i) {
        const T* const from = plane + i * channels;
        window.add_row([&](C* sums) {
          for (int64_t c = 0; c < channels; ++c) sums[c] += static_cast<C>(from[c]);
        });
      });
      T* const to = out.data_as<T>() + pixel * channels;
      window.take_all([&](const auto* sums) {
        using S = std::remove_cvref_t<decltype(*sums)>;
        const S count = static_cast<S>(divisor(z, y, x));
        for (int64_t c = 0; c < channels; ++c)
          to[c] = static_cast<T>(static_cast<C>(sums[c] / count));
      });
    }
  });
}

// S: the type of the sums of shares.
template <class T, class S, class Divisor>
void avg_pool_grad(const Tensor& grad, const PoolAxes& axes, Divisor divisor, const Tensor& out) {
  using C = compute_type<T>;
  constexpr int64_t kChannels = 64;
  const PoolPixels p(out.sizes(), grad.sizes());
  const Tensor g = as_pixels(grad);
  p.for_channels(kChannels, [&](int64_t n, int64_t first, int64_t count) {
    const T* from = g.data_as<T>() + n * p.out_size() * p.channels + first;
    T* const to = out.data_as<T>() + n * p.in_size() * p.channels + first;
    std::vector<S> sums(static_cast<size_t>(p.in_size() * count), S(0));
    S share[kChannels];
    for (int64_t z = 0; z < p.out[0]; ++z) {
      for (int64_t y = 0; y < p.out[1]; ++y) {
        for (int64_t x = 0; x < p.out[2]; ++x, from += p.channels) {
          const S windows = static_cast<S>(divisor(z, y, x));
          for (int64_t c = 0; c < count; ++c)
            share[c] = static_cast<S>(static_cast<C>(from[c])) / windows;
          p.for_window(axes, z, y, x, [&](int64_t i) {
            S* const sum = sums.data() + i * count;
            for (int64_t c = 0; c < count; ++c) sum[c] += share[c];
          });
        }
      }
    }
    for (int64_t i = 0; i < p.in_size(); ++i) {
      for (int64_t c = 0; c < count; ++c)
        to[i * p.channels + c] = static_cast<T>(static_cast<C>(sums[i * count + c]));
    }
  });
}

}  // namespace treadle::cpu::pixels
