// var and std: two passes over fixed pieces (mean, then squared distances from it). Pieces are
// joined in order.
//
// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "aten/backend/cpu/dim_slices.h"
#include "aten/backend/cpu/long_sums.h"
#include "aten/ops/contiguous.h"
#include "aten/ops/permute.h"
#include "aten/ops/std.h"
#include "aten/ops/var.h"

namespace treadle::cpu {
namespace {

template <class Mean>
struct Moments {
  Mean mean = Mean(0);
  double squares = 0;  // sum of squared distances from the mean
  int64_t count = 0;
};

inline double squared(double v) { return v * v; }
inline double squared(std::complex<double> v) { return v.real() * v.real() + v.imag() * v.imag(); }

template <class T>
Moments<wide_type<T>> moments_of(const T* values, int64_t count) {
  using Mean = wide_type<T>;
  using C = compute_type<T>;
  constexpr int kLanes = 8;
  const auto folded = [&](auto zero, auto&& term) {
    decltype(zero) lanes[kLanes] = {};
    int64_t i = 0;
    for (; i + kLanes <= count; i += kLanes) {
      for (int l = 0; l < kLanes; ++l) lanes[l] += term(Mean(static_cast<C>(values[i + l])));
    }
    for (int l = 0; i < count; ++i, ++l) lanes[l] += term(Mean(static_cast<C>(values[i])));
    for (int l = 1; l < kLanes; ++l) zero += lanes[l];
    return zero + lanes[0];
  };
  Moments<Mean> m;
  m.count = count;
  // The mean of the distances from the first value: exact where all values are equal.
  const Mean first(static_cast<C>(values[0]));
  m.mean = first + folded(Mean(0), [&](Mean v) { return v - first; }) / static_cast<double>(count);
  m.squares = folded(0.0, [&](Mean v) { return squared(v - m.mean); });
  return m;
}

template <class Mean>
Moments<Mean> joined(const Moments<Mean>& a, const Moments<Mean>& b) {
  if (a.count == 0) return b;
  const Mean distance = b.mean - a.mean;
  const double count = static_cast<double>(a.count + b.count);
  const double share = static_cast<double>(b.count) / count;
  return {a.mean + distance * share,
          a.squares + b.squares + squared(distance) * static_cast<double>(a.count) * share,
          a.count + b.count};
}

// Moments of at most kColumns neighbouring columns. They are computed row by row, so that memory is
// read in order, and each kind of sum has its own array, so that vectors add to it.
template <class T>
void column_moments(const T* values, int64_t rows, int64_t stride, int64_t columns,
                    Moments<wide_type<T>>* out) {
  using Mean = wide_type<T>;
  using C = compute_type<T>;
  Mean mean[kColumns];
  double squares[kColumns];
  std::fill_n(mean, columns, Mean(0));
  std::fill_n(squares, columns, 0.0);
  const auto value = [&](int64_t j, int64_t k) {
    return Mean(static_cast<C>(values[j * stride + k]));
  };
  for (int64_t j = 1; j < rows; ++j) {  // as distances from the first row
    for (int64_t k = 0; k < columns; ++k) mean[k] += value(j, k) - value(0, k);
  }
  for (int64_t k = 0; k < columns; ++k) mean[k] = value(0, k) + mean[k] / static_cast<double>(rows);
  for (int64_t j = 0; j < rows; ++j) {
    for (int64_t k = 0; k < columns; ++k) squares[k] += squared(value(j, k) - mean[k]);
  }
  for (int64_t k = 0; k < columns; ++k) out[k] = {mean[k], squares[k], rows};
}

bool contains(const DimVector& dims, int64_t d) {
  return std::find(dims.begin(), dims.end(), d) != dims.end();
}

// A contiguous tensor as outer x size x inner, of which `size` are the reduced elements. If the
// reduced dimensions are not adjacent, they are moved behind the others first.
DimSlices reduced_slices(const DimVector& reduced, Tensor& input) {
  DimSlices s;
  int64_t changes = 0;
  for (int64_t d = 0; d < input.dim(); ++d) {
    const bool gone = contains(reduced, d);
    changes += d > 0 && gone != contains(reduced, d - 1);
    if (gone)
      s.size *= input.size(d);
    else if (changes == 0)
      s.outer *= input.size(d);
    else
      s.inner *= input.size(d);
  }
  const bool adjacent = changes <= 1 || (changes == 2 && !contains(reduced, 0));
  if (!adjacent) {
    DimVector order;
    for (int64_t d = 0; d < input.dim(); ++d) {
      if (!contains(reduced, d)) order.push_back(d);
    }
    for (int64_t d = 0; d < input.dim(); ++d) {
      if (contains(reduced, d)) order.push_back(d);
    }
    input = aten::permute(input, order);
    s.outer *= s.inner;
    s.inner = 1;
  }
  input = aten::contiguous(input);
  return s;
}

template <class T>
void variance(const Tensor& self, OptionalIntList dims, const std::optional<Scalar>& correction,
              bool root, const Tensor& out) {
  using Mean = wide_type<T>;
  using R = real_type<T>;
  if (out.numel() == 0) return;
  Tensor input = self;
  const DimSlices s =
      reduced_slices(wrap_dims(root ? "std" : "var", dims, self.dim(), true), input);
  const T* const from = input.data_as<T>();
  // Pieces of rows, small enough to share out and the same for any number of threads.
  const int64_t width = std::min(s.inner, kColumns);
  const int64_t rows = std::max<int64_t>(1, kGrain / width);
  const int64_t pieces = std::max<int64_t>(1, (s.size + rows - 1) / rows);
  const int64_t blocks = (s.inner + width - 1) / width;
  std::vector<Moments<Mean>> parts(s.count() * pieces);
  parallel_for(s.outer * pieces * blocks, grain_for(width * std::min(rows, s.size)),
               [&](int64_t begin, int64_t end) {
                 for (int64_t task = begin; task < end; ++task) {
                   const int64_t column = task % blocks * width;
                   const int64_t piece = task / blocks % pieces;
                   const int64_t o = task / blocks / pieces;
                   const int64_t count = std::min(rows, s.size - piece * rows);
                   if (count == 0) continue;
                   const T* values = from + (o * s.size + piece * rows) * s.inner + column;
                   Moments<Mean>* to = &parts[(o * pieces + piece) * s.inner + column];
                   if (s.inner == 1)
                     *to = moments_of(values, count);
                   else
                     column_moments(values, count, s.inner, std::min(width, s.inner - column), to);
                 }
               });
  R* const to = out.data_as<R>();
  const double divisor =
      std::max(0.0, static_cast<double>(s.size) - (correction ? correction->to<double>() : 1.0));
  parallel_for(s.count(), grain_for(8 * pieces), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      Moments<Mean> m;
      for (int64_t p = 0; p < pieces; ++p)
        m = joined(m, parts[(i / s.inner * pieces + p) * s.inner + i % s.inner]);
      const double value = m.squares / divisor;
      to[i] = static_cast<R>(static_cast<compute_type<R>>(root ? std::sqrt(value) : value));
    }
  });
}

template <class T>
void var_cpu(const Tensor& self, OptionalIntList dim, const std::optional<Scalar>& correction,
             bool /*keepdim*/, const Tensor& out) {
  variance<T>(self, dim, correction, false, out);
}
template <class T>
void std_cpu(const Tensor& self, OptionalIntList dim, const std::optional<Scalar>& correction,
             bool /*keepdim*/, const Tensor& out) {
  variance<T>(self, dim, correction, true, out);
}

const auto var_registered = register_kernels<aten::ops::var_correction, DeviceType::CPU>(
    []<class T>() { return &var_cpu<T>; }, "var_cpu");
const auto std_registered = register_kernels<aten::ops::std_correction, DeviceType::CPU>(
    []<class T>() { return &std_cpu<T>; }, "std_cpu");

}  // namespace
}  // namespace treadle::cpu
