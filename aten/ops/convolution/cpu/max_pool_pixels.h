// Max pooling of images whose channels are innermost, by the rules of max_pool.cc: among equal
// values the first in the order of the plane wins; among several NaN, the last.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "aten/backend/cpu/long_sums.h"
#include "aten/backend/cpu/read_once.h"
#include "aten/ops/convolution/cpu/pool_pixels.h"

namespace treadle::cpu::pixels {

// `Index` holds the number of every pixel of a plane. One of the size of the values is vectorised.
template <class T, class Index>
void max_pool_by(const T* input, const PoolPixels& p, const PoolAxes& axes, T* values,
                 int64_t* indices) {
  using C = compute_type<T>;
  const int64_t channels = p.channels;
  p.for_rows([&](int64_t n, int64_t z, int64_t y, int64_t pixel) {
    std::vector<C> tops(static_cast<size_t>(channels));
    std::vector<Index> best(static_cast<size_t>(channels));
    C* const top = tops.data();
    Index* const at = best.data();
    const T* const plane = input + n * p.in_size() * channels;
    for (int64_t x = 0; x < p.out[2]; ++x, ++pixel) {
      bool first = true;
      p.for_window(axes, z, y, x, [&](int64_t i) {
        const T* const from = plane + i * channels;
        const Index here = static_cast<Index>(i);
        if (first) {
          for (int64_t c = 0; c < channels; ++c) top[c] = static_cast<C>(from[c]);
          std::fill_n(at, channels, here);
          first = false;
          return;
        }
        for (int64_t c = 0; c < channels; ++c) {
          const C v = static_cast<C>(from[c]);
          const bool take = (v > top[c]) | (v != v);
          top[c] = take ? v : top[c];
          at[c] = take ? here : at[c];
        }
      });
      T* const to = values + pixel * channels;
      int64_t* const found = indices + pixel * channels;
      for (int64_t c = 0; c < channels; ++c) to[c] = static_cast<T>(top[c]);
      for (int64_t c = 0; c < channels; ++c) found[c] = static_cast<int64_t>(at[c]);
    }
  });
}

template <class T>
void max_pool(const Tensor& self, const PoolAxes& axes, const Tensor& out, const Tensor& indices) {
  const PoolPixels p(self.sizes(), out.sizes());
  const Tensor in = as_pixels(self);
  const auto run = [&](auto index) {
    max_pool_by<T, decltype(index)>(in.data_as<T>(), p, axes, out.data_as<T>(),
                                    indices.data_as<int64_t>());
  };
  if (p.in_size() <= INT32_MAX)
    run(int32_t{});
  else
    run(int64_t{});
}

// Calls visit(pixel of the large plane, pixel of the small one, channel) for each index of a run of
// channels of image n.
template <class F>
void for_indices(const char* op, const PoolPixels& p, const int64_t* indices, int64_t n,
                 int64_t first, int64_t count, F&& visit) {
  const int64_t size = p.in_size();
  for (int64_t o = 0; o < p.out_size(); ++o) {
    const int64_t* const at = indices + (n * p.out_size() + o) * p.channels;
    for (int64_t c = first; c < first + count; ++c) {
      const int64_t i = read_once(at + c);
      check<ErrorKind::Runtime>(i >= 0 && i < size, OpName(op), "expected indices in [0, ", size,
                                "), got ", i);
      visit(i, o, c);
    }
  }
}

template <class T>
void max_pool_backward(const Tensor& grad, const Tensor& indices, const Tensor& out) {
  using C = compute_type<T>;
  using W = wide_type<T>;  // an element may be the largest of as many windows as there are
  constexpr int64_t kChannels = 16;  // those of a cache line
  const PoolPixels p(out.sizes(), grad.sizes());
  const Tensor g = as_pixels(grad), all = as_pixels(indices);
  p.for_channels(kChannels, [&](int64_t n, int64_t first, int64_t count) {
    std::vector<W> sums(static_cast<size_t>(p.in_size() * count), W(0));
    const T* const from = g.data_as<T>() + n * p.out_size() * p.channels;
    T* const to = out.data_as<T>() + n * p.in_size() * p.channels + first;
    for_indices("_max_pool_backward", p, all.data_as<int64_t>(), n, first, count,
                [&](int64_t i, int64_t o, int64_t c) {
                  sums[i * count + c - first] += static_cast<C>(from[o * p.channels + c]);
                });
    for (int64_t i = 0; i < p.in_size(); ++i) {
      for (int64_t c = 0; c < count; ++c)
        to[i * p.channels + c] = static_cast<T>(static_cast<C>(sums[i * count + c]));
    }
  });
}

template <class T>
void max_pool_gather(const Tensor& grad, const Tensor& indices, const Tensor& out) {
  const PoolPixels p(grad.sizes(), indices.sizes());
  const Tensor g = as_pixels(grad), all = as_pixels(indices);
  p.for_channels(p.channels, [&](int64_t n, int64_t first, int64_t count) {
    const T* const from = g.data_as<T>() + n * p.in_size() * p.channels;
    T* const to = out.data_as<T>() + n * p.out_size() * p.channels;
    for_indices("_max_pool_gather", p, all.data_as<int64_t>(), n, first, count,
                [=, &p](int64_t i, int64_t o, int64_t c) {
                  to[o * p.channels + c] = from[i * p.channels + c];
                });
  });
}

}  // namespace treadle::cpu::pixels
