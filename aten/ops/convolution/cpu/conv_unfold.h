// Convolution and its gradients as matrix products, for the types and geometries that oneDNN does
// not support.
//
// A block of output positions at a time is unfolded: column p of the block holds the input elements
// under the kernel at position p. The block bounds the memory, whatever the sizes.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <vector>

#include "aten/backend/cpu/gemm.h"
#include "aten/ops/convolution/cpu/conv_geometry.h"

namespace treadle::cpu::unfolded {

// Sizes for one group.
struct Group {
  int64_t channels, filters, rows, positions, block;
  explicit Group(const ConvGeometry& g)
      : channels(g.in_channels / g.groups),
        filters(g.out_channels / g.groups),
        rows(channels * g.kernel_elements()),
        positions(g.out_positions()),
        block(std::clamp<int64_t>((int64_t{1} << 17) / std::max<int64_t>(1, rows), 1, positions)) {}
};

inline int64_t ceil_div(int64_t a, int64_t b) { return a <= 0 ? 0 : (a - 1) / b + 1; }

// Calls visit(offset in the block's matrix, offset in the image, count, step in the image) for each
// run of positions in [first, first + count) whose input elements are inside the image.
template <class F>
void for_runs(const ConvGeometry& g, int64_t channels, int64_t first, int64_t count, F&& visit) {
  const auto& [in_d, in_h, in_w] = g.in;
  const int64_t out_h = g.out[1], out_w = g.out[2];
  const int64_t first_x = first % out_w, first_y = first / out_w % out_h,
                first_z = first / out_w / out_h;
  int64_t row = 0;
  for (int64_t c = 0; c < channels; ++c) {
    for (int64_t kd = 0; kd < g.kernel[0]; ++kd) {
      for (int64_t kh = 0; kh < g.kernel[1]; ++kh) {
        for (int64_t kw = 0; kw < g.kernel[2]; ++kw, ++row) {
          // The input elements of output columns [low, high) are inside the input.
          const int64_t shift = kw * g.dilation[2] - g.padding[2], step = g.stride[2];
          const int64_t low = ceil_div(-shift, step);
          const int64_t high = std::min(out_w, ceil_div(in_w - shift, step));
          int64_t x0 = first_x, y = first_y, z = first_z;
          for (int64_t p = first; p < first + count;) {
            const int64_t x1 = std::min(out_w, x0 + first + count - p);
            const int64_t in_z = z * g.stride[0] - g.padding[0] + kd * g.dilation[0];
            const int64_t in_y = y * g.stride[1] - g.padding[1] + kh * g.dilation[1];
            const int64_t a = std::max(x0, low), b = std::min(x1, high);
            if (a < b && in_z >= 0 && in_z < in_d && in_y >= 0 && in_y < in_h) {
              visit(row * count + p - first + a - x0,
                    ((c * in_d + in_z) * in_h + in_y) * in_w + a * step + shift, b - a, step);
            }
            p += x1 - x0;
            x0 = 0;
            if (++y == out_h) y = 0, ++z;
          }
        }
      }
    }
  }
}

template <class T>
void unfold(const ConvGeometry& g, int64_t channels, const T* image, int64_t first, int64_t count,
            T* columns) {
  for_runs(g, channels, first, count, [&](int64_t to, int64_t from, int64_t n, int64_t step) {
    for (int64_t i = 0; i < n; ++i) columns[to + i] = image[from + i * step];
  });
}

template <class T>
void fold(const ConvGeometry& g, int64_t channels, const T* columns, int64_t first, int64_t count,
          T* image) {
  for_runs(g, channels, first, count, [&](int64_t from, int64_t to, int64_t n, int64_t step) {
    for (int64_t i = 0; i < n; ++i) image[to + i * step] += columns[from + i];
  });
}

// Calls f(image, group, first position, positions) for all blocks, in order.
template <class F>
void for_blocks(const ConvGeometry& g, const Group& u, F&& f) {
  for (int64_t n = 0; n < g.batch; ++n) {
    for (int64_t q = 0; q < g.groups; ++q) {
      for (int64_t p = 0; p < u.positions; p += u.block)
        f(n, q, p, std::min(u.block, u.positions - p));
    }
  }
}

template <class T>
void forward(const ConvGeometry& g, const T* in, const T* w, const T* bias, T* out) {
  const Group u(g);
  std::vector<T> columns(static_cast<size_t>(u.rows * u.block));
  for_blocks(g, u, [&](int64_t n, int64_t q, int64_t p, int64_t count) {
    std::fill(columns.begin(), columns.end(), T(0));
    unfold(g, u.channels, in + n * g.in_image() + q * u.channels * g.in_positions(), p, count,
           columns.data());
    T* result = out + n * g.out_image() + q * u.filters * u.positions + p;
    for (int64_t f = 0; f < u.filters; ++f)
      std::fill_n(result + f * u.positions, count, bias ? bias[q * u.filters + f] : T(0));
    gemm<T>({w + q * u.filters * u.rows, u.filters, u.rows, u.rows, 1},
            {columns.data(), u.rows, count, count, 1}, result, u.positions, T(1), T(1));
  });
}

template <class T>
void grad_input(const ConvGeometry& g, const T* grad, const T* w, T* out) {
  const Group u(g);
  std::vector<T> columns(static_cast<size_t>(u.rows * u.block));
  std::fill_n(out, g.batch * g.in_image(), T(0));
  for_blocks(g, u, [&](int64_t n, int64_t q, int64_t p, int64_t count) {
    gemm<T>({w + q * u.filters * u.rows, u.rows, u.filters, 1, u.rows},
            {grad + n * g.out_image() + q * u.filters * u.positions + p, u.filters, count,
             u.positions, 1},
            columns.data(), count, T(1), T(0));
    fold(g, u.channels, columns.data(), p, count,
         out + n * g.in_image() + q * u.channels * g.in_positions());
  });
}

template <class T>
void grad_weight(const ConvGeometry& g, const T* grad, const T* in, T* out) {
  const Group u(g);
  std::vector<T> columns(static_cast<size_t>(u.rows * u.block));
  std::fill_n(out, g.weight_elements(), T(0));
  for_blocks(g, u, [&](int64_t n, int64_t q, int64_t p, int64_t count) {
    std::fill(columns.begin(), columns.end(), T(0));
    unfold(g, u.channels, in + n * g.in_image() + q * u.channels * g.in_positions(), p, count,
           columns.data());
    gemm<T>({grad + n * g.out_image() + q * u.filters * u.positions + p, u.filters, count,
             u.positions, 1},
            {columns.data(), count, u.rows, 1, count}, out + q * u.filters * u.rows, u.rows, T(1),
            T(1));
  });
}

}  // namespace treadle::cpu::unfolded
