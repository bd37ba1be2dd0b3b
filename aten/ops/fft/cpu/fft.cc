// Fourier transforms by pocketfft: one dimension after the other, with the slices of each in
// parallel.
//
// Slices are independent. They are passed on in blocks whose size depends only on the problem.
// pocketfft computes several slices of a block at once, with vector instructions.
//
// SPDX-License-Identifier: Apache-2.0
#define POCKETFFT_NO_MULTITHREADING
#define POCKETFFT_CACHE_SIZE 16  // transforms of one length share their table of roots
#include "pocketfft/pocketfft.hpp"

#include <cmath>

#include "aten/backend/cpu/dim_slices.h"
#include "aten/ops/_fft_c2c.h"
#include "aten/ops/_fft_c2r.h"
#include "aten/ops/_fft_r2c.h"
#include "aten/ops/contiguous.h"
#include "aten/ops/copy_.h"
#include "aten/ops/fft/cpu/long_transform.h"

namespace treadle::cpu {
namespace {

// Columns that a block has at least, where there are as many.
constexpr int64_t kBlockColumns = 64;

// A block of slices of a contiguous array: where it starts and how many there are, outside and
// inside of the dimension transformed.
struct Block {
  int64_t outer, column, outers, columns;
};

// f(block), for blocks that make up outer x inner, in parallel.
template <class F>
void for_each_block(int64_t outer, int64_t size, int64_t inner, F&& f) {
  if (inner <= kBlockColumns) {
    parallel_for(outer, grain_for(size * inner), [&](int64_t begin, int64_t end) {
      f(Block{begin, 0, end - begin, inner});
    });
    return;
  }
  const int64_t columns = std::max(kBlockColumns, grain_for(size));
  const int64_t blocks = (inner + columns - 1) / columns;
  parallel_chunks(outer * blocks, [&](int64_t chunk) {
    const int64_t column = chunk % blocks * columns;
    f(Block{chunk / blocks, column, 1, std::min(columns, inner - column)});
  });
}

pocketfft::stride_t byte_strides(int64_t size, int64_t inner, int64_t item) {
  return {size * inner * item, inner * item, item};
}
pocketfft::shape_t block_shape(const Block& b, int64_t size) {
  return {static_cast<size_t>(b.outers), static_cast<size_t>(size), static_cast<size_t>(b.columns)};
}
int64_t offset_of(const Block& b, int64_t size, int64_t inner) {
  return b.outer * size * inner + b.column;
}

// The factor that makes a transform of `count` points the plain one (0), unitary (1), a mean (2).
double factor(int64_t normalization, double count) {
  return normalization == 0 ? 1 : normalization == 1 ? 1 / std::sqrt(count) : 1 / count;
}
double points(const Tensor& t, IntList dim) {
  double count = 1;
  for (const int64_t d : dim) count *= static_cast<double>(t.size(d));
  return count;
}

// Transforms one dimension of contiguous `from` into `to`, which may be the same.
template <class R>
void transform(const std::complex<R>* from, std::complex<R>* to, const DimSlices& s, bool forward,
               double scale) {
  if (s.outer * s.inner == 1 && rows_of_long(s.size) > 0)
    return transform_long(from, to, s.size, forward, scale);
  constexpr int64_t item = sizeof(std::complex<R>);
  const pocketfft::stride_t strides = byte_strides(s.size, s.inner, item);
  for_each_block(s.outer, s.size, s.inner, [&](const Block& b) {
    const int64_t at = offset_of(b, s.size, s.inner);
    pocketfft::c2c(block_shape(b, s.size), strides, strides, {1}, forward, from + at, to + at,
                   static_cast<R>(scale));
  });
}

// Transforms the dimensions `dim` of contiguous `from` into `to`. The scale goes into the first.
template <class R>
void transform_all(const std::complex<R>* from, std::complex<R>* to, IntList sizes, IntList dim,
                   bool forward, double scale) {
  for (const int64_t d : dim) {
    transform(from, to, dim_slices(sizes, d), forward, scale);
    from = to;
    scale = 1;
  }
}

template <class T>
void fft_c2c_cpu(const Tensor& self, IntList dim, int64_t normalization, bool forward,
                 const Tensor& out) {
  if (out.numel() == 0) return;
  if (dim.empty()) {
    aten::copy_(out, self);
    return;
  }
  const Tensor input = aten::contiguous(self);
  transform_all(input.data_as<T>(), out.data_as<T>(), out.sizes(), dim, forward,
                factor(normalization, points(self, dim)));
}

template <class T>
void fft_r2c_cpu(const Tensor& self, IntList dim, int64_t normalization, bool forward,
                 const Tensor& out) {
  if (out.numel() == 0) return;
  const Tensor input = aten::contiguous(self);
  const T* const from = input.data_as<T>();
  auto* const to = out.data_as<std::complex<T>>();
  const double scale = factor(normalization, points(self, dim));
  const int64_t last = dim[dim.size() - 1];
  const DimSlices s = dim_slices(self.sizes(), last);
  const int64_t half = s.size / 2 + 1;
  if (s.outer * s.inner == 1 && is_long_and_real(s.size))
    return transform_long(from, to, s.size, forward, scale);
  for_each_block(s.outer, s.size, s.inner, [&](const Block& b) {
    pocketfft::r2c(block_shape(b, s.size), byte_strides(s.size, s.inner, sizeof(T)),
                   byte_strides(half, s.inner, sizeof(std::complex<T>)), 1, forward,
                   from + offset_of(b, s.size, s.inner), to + offset_of(b, half, s.inner),
                   static_cast<T>(scale));
  });
  transform_all(to, to, out.sizes(), IntList(dim.data(), dim.size() - 1), forward, 1);
}

template <class T>
void fft_c2r_cpu(const Tensor& self, IntList dim, int64_t normalization, int64_t last_dim_size,
                 bool forward, const Tensor& out) {
  using R = real_type<T>;
  if (out.numel() == 0) return;
  const IntList others(dim.data(), dim.size() - 1);
  Tensor input = aten::contiguous(self);
  if (!others.empty()) {
    const Tensor partial = empty_cpu(self.sizes(), self.dtype());
    transform_all(input.data_as<T>(), partial.data_as<T>(), self.sizes(), others, forward, 1);
    input = partial;
  }
  const T* const from = input.data_as<T>();
  R* const to = out.data_as<R>();
  const double scale = factor(normalization, points(out, dim));
  const DimSlices s = dim_slices(out.sizes(), dim[dim.size() - 1]);
  const int64_t half = last_dim_size / 2 + 1;
  if (s.outer * s.inner == 1 && is_long_and_real(s.size))
    return transform_long(from, to, s.size, forward, scale);
  for_each_block(s.outer, s.size, s.inner, [&](const Block& b) {
    pocketfft::c2r(block_shape(b, s.size), byte_strides(half, s.inner, sizeof(T)),
                   byte_strides(s.size, s.inner, sizeof(R)), 1, forward,
                   from + offset_of(b, half, s.inner), to + offset_of(b, s.size, s.inner),
                   static_cast<R>(scale));
  });
}

const auto fft_c2c_registered = register_kernels<aten::ops::_fft_c2c, DeviceType::CPU>(
    []<class T>() { return &fft_c2c_cpu<T>; }, "fft_c2c_cpu");
const auto fft_r2c_registered = register_kernels<aten::ops::_fft_r2c, DeviceType::CPU>(
    []<class T>() { return &fft_r2c_cpu<T>; }, "fft_r2c_cpu");
const auto fft_c2r_registered = register_kernels<aten::ops::_fft_c2r_direction, DeviceType::CPU>(
    []<class T>() { return &fft_c2r_cpu<T>; }, "fft_c2r_cpu");

}  // namespace
}  // namespace treadle::cpu
