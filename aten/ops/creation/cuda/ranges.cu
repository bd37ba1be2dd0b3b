// Elements that follow from their index: arange, linspace, and the indices of a triangle.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/backend/cuda/kernels/kernel.cuh"
#include "aten/ops/_linear_.h"
#include "aten/ops/_linspace_.h"
#include "aten/ops/_triangle_indices_.h"
#include "aten/ops/creation/cuda/triangle.h"

namespace treadle::cuda {
namespace {

template <class S, class F>
__global__ void number_kernel(S* out, int64_t n, F f) {
  for_each_element(n, [=](int64_t i) { out[i] = f(i); });
}
template <class T, class F>
void number(const Tensor& self, F f) {
  const int64_t n = self.numel();
  if (n == 0) return;
  const Place place(self);
  number_kernel<<<blocks_for(n), kBlock, 0, place.stream>>>(static_cast<Stored<T>*>(self.data()), n,
                                                            f);
  check_launched();
}

// In double, so that element i is the nearest to the exact one in every shorter type. Complex
// numbers use two doubles.
struct Wide {
  double re, im;
};
template <class T>
Wide wide(const Scalar& v) {
  if constexpr (is_complex_type<T>) {
    const auto z = v.to<std::complex<double>>();
    return {z.real(), z.imag()};
  } else {
    return {v.to<double>(), 0};
  }
}
template <class T>
__device__ Stored<T> stored(double re, double im) {
  if constexpr (is_complex_type<T>)
    return {static_cast<real_type<T>>(re), static_cast<real_type<T>>(im)};
  else
    return narrowed<T>(static_cast<Computed<T>>(re));
}

// Integers wrap.
template <class T>
struct WholeStep {
  uint64_t first, by;
  __device__ T operator()(int64_t i) const {
    return static_cast<T>(static_cast<int64_t>(first + by * static_cast<uint64_t>(i)));
  }
};
template <class T>
struct Step {
  Wide first, by;
  __device__ Stored<T> operator()(int64_t i) const {
    const double k = static_cast<double>(i);
    return stored<T>(first.re + by.re * k, first.im + by.im * k);
  }
};
template <class T>
void linear_cuda(const Tensor& self, const Scalar& start, const Scalar& step) {
  if constexpr (std::is_integral_v<T>) {
    if (start.is_integral() && step.is_integral()) {
      number<T>(self, WholeStep<T>{static_cast<uint64_t>(start.to<int64_t>()),
                                   static_cast<uint64_t>(step.to<int64_t>())});
      return;
    }
  }
  number<T>(self, Step<T>{wide<T>(start), wide<T>(step)});
}

// Both ends are exact: the second half counts back from the end.
template <class T>
struct Between {
  Wide first, last, step;
  int64_t n;
  __device__ Stored<T> operator()(int64_t i) const {
    const bool forwards = i < n / 2 || n == 1;
    const double k = forwards ? static_cast<double>(i) : -static_cast<double>(n - 1 - i);
    const Wide& from = forwards ? first : last;
    return stored<T>(from.re + step.re * k, from.im + step.im * k);
  }
};
template <class T>
void linspace_cuda(const Tensor& self, const Scalar& start, const Scalar& end) {
  const int64_t n = self.numel();
  const Wide first = wide<T>(start), last = wide<T>(end);
  const double steps = static_cast<double>(n - 1);
  const Wide step =
      n > 1 ? Wide{(last.re - first.re) / steps, (last.im - first.im) / steps} : Wide{0, 0};
  number<T>(self, Between<T>{first, last, step, n});
}

// ---- the indices of a triangle ----

template <class T>
struct TriangleIndex {
  Triangle triangle;
  int64_t count;
  __device__ T operator()(int64_t i) const {
    const int64_t at = i % count, row = triangle.row_of(at);
    return static_cast<T>(i < count ? row : triangle.column_of(at, row));
  }
};
template <class T>
void triangle_indices_cuda(const Tensor& self, int64_t row, int64_t col, int64_t offset,
                           bool upper) {
  // Beyond the matrix every offset is the same, so there is nothing to overflow.
  offset = std::clamp(offset, -row - 1, col + 1);
  number<T>(self, TriangleIndex<T>{{row, col, offset, upper}, self.numel() / 2});
}

const auto linear_registered = register_cuda<aten::ops::_linear_>(
    AllTypes(), []<class T>() { return &linear_cuda<T>; }, "linear_cuda");
const auto linspace_registered = register_cuda<aten::ops::_linspace_>(
    AllTypes(), []<class T>() { return &linspace_cuda<T>; }, "linspace_cuda");
const auto triangle_indices_registered = register_cuda<aten::ops::_triangle_indices_>(
    TypeList<int32_t, int64_t>(), []<class T>() { return &triangle_indices_cuda<T>; },
    "triangle_indices_cuda");

}  // namespace
}  // namespace treadle::cuda
