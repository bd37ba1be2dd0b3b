// Running sums, products, extremes and sums of exponentials along a dimension.
//
// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "aten/backend/cpu/wrapping.h"
#include "aten/backend/cuda/kernels/lines.cuh"
#include "aten/backend/cuda/kernels/scan.cuh"
#include "aten/ops/contiguous.h"
#include "aten/ops/cummax.h"
#include "aten/ops/cummin.h"
#include "aten/ops/cumprod.h"
#include "aten/ops/cumsum.h"
#include "aten/ops/logcumsumexp.h"
#include "aten/ops/to.h"

namespace treadle::cuda {
namespace {

// ---- cumsum and cumprod ----

// The type of a running value: wider than the elements if they are floating.
template <class T>
using Running = std::conditional_t<std::is_same_v<T, float>, double, Computed<T>>;

template <class T, bool product>
struct RunningFold {
  using State = Running<T>;
  const T* from;
  T* to;
  Lines lines;
  __device__ State load(int64_t line, int64_t j) const {
    return static_cast<State>(widened(from[lines.at(line, j)]));
  }
  __device__ State join(State a, State b) const {
    if constexpr (product)
      return cpu::product_of(a, b);
    else
      return cpu::sum_of(a, b);
  }
  __device__ void store(int64_t line, int64_t j, State all) const {
    to[lines.at(line, j)] = narrowed<T>(static_cast<Computed<T>>(all));
  }
};

// The result's dtype may be any, whatever self's is.
template <bool product>
void scan_to_dtype(const Tensor& self, int64_t dim, const Tensor& out) {
  if (out.numel() == 0) return;
  const Place place(out);
  const Tensor input =
      aten::contiguous(self.dtype() == out.dtype() ? self : aten::to(self, out.dtype()));
  const Lines lines = lines_of(out.sizes(), dim);
  visit_type(AllTypes{}, out.dtype(), [&]<class T>() {
    using S = Stored<T>;
    scan_lines(RunningFold<S, product>{static_cast<const S*>(input.data()),
                                       static_cast<S*>(out.data()), lines},
               lines.count, lines.size, lines.inner > 1, place);
  });
}
template <class T>
void cumsum_cuda(const Tensor& self, int64_t dim, std::optional<ScalarType> /*dtype*/,
                 const Tensor& out) {
  scan_to_dtype<false>(self, dim, out);
}
template <class T>
void cumprod_cuda(const Tensor& self, int64_t dim, std::optional<ScalarType> /*dtype*/,
                  const Tensor& out) {
  scan_to_dtype<true>(self, dim, out);
}

// ---- cummax and cummin: of equal elements the last counts, and the last NaN above all ----

template <class T, bool largest>
struct RunningExtreme {
  struct State {
    Computed<T> value;
    int64_t at;
  };
  const T* from;
  T* values;
  int64_t* indices;
  Lines lines;
  __device__ State load(int64_t line, int64_t j) const {
    return {widened(from[lines.at(line, j)]), j};
  }
  __device__ State join(State a, State b) const {
    const bool takes_over = largest ? b.value >= a.value : b.value <= a.value;
    return takes_over || b.value != b.value ? b : a;
  }
  __device__ void store(int64_t line, int64_t j, State best) const {
    const int64_t at = lines.at(line, j);
    values[at] = narrowed<T>(best.value);
    indices[at] = best.at;
  }
};
template <bool largest, class T>
void extreme_lines(const Tensor& self, int64_t dim, const Tensor& values, const Tensor& indices) {
  if (values.numel() == 0) return;
  const Place place(values);
  const Tensor input = aten::contiguous(self);
  const Lines lines = lines_of(values.sizes(), dim);
  scan_lines(RunningExtreme<T, largest>{input.data_as<T>(), values.data_as<T>(),
                                        indices.data_as<int64_t>(), lines},
             lines.count, lines.size, lines.inner > 1, place);
}
template <class T>
void cummax_cuda(const Tensor& self, int64_t dim, const Tensor& values, const Tensor& indices) {
  extreme_lines<true, T>(self, dim, values, indices);
}
template <class T>
void cummin_cuda(const Tensor& self, int64_t dim, const Tensor& values, const Tensor& indices) {
  extreme_lines<false, T>(self, dim, values, indices);
}

// ---- logcumsumexp ----

template <class T>
struct RunningLogSum {
  struct State {
    double largest, sum;  // of exp(x - largest)
  };
  const T* from;
  T* to;
  Lines lines;
  __device__ State load(int64_t line, int64_t j) const {
    return {static_cast<double>(widened(from[lines.at(line, j)])), 1.0};
  }
  __device__ State join(State a, State b) const {
    if (a.largest != a.largest) return a;
    if (b.largest != b.largest) return b;
    // Equal infinities would subtract to NaN.
    if (a.largest == b.largest) return {a.largest, a.sum + b.sum};
    if (a.largest > b.largest) return {a.largest, a.sum + b.sum * exp(b.largest - a.largest)};
    return {b.largest, a.sum * exp(a.largest - b.largest) + b.sum};
  }
  __device__ void store(int64_t line, int64_t j, State all) const {
    const double value = isfinite(all.largest) ? all.largest + log(all.sum) : all.largest;
    to[lines.at(line, j)] = narrowed<T>(static_cast<Computed<T>>(value));
  }
};
template <class T>
void logcumsumexp_cuda(const Tensor& self, int64_t dim, const Tensor& out) {
  if (out.numel() == 0) return;
  const Place place(out);
  const Tensor input = aten::contiguous(self);
  const Lines lines = lines_of(out.sizes(), dim);
  scan_lines(RunningLogSum<T>{input.data_as<T>(), out.data_as<T>(), lines}, lines.count, lines.size,
             lines.inner > 1, place);
}

const auto cumsum_registered = register_cuda<aten::ops::cumsum>(
    AllTypes(), []<class T>() { return &cumsum_cuda<T>; }, "cumsum_cuda");
const auto cumprod_registered = register_cuda<aten::ops::cumprod>(
    AllTypes(), []<class T>() { return &cumprod_cuda<T>; }, "cumprod_cuda");
const auto cummax_registered = register_cuda<aten::ops::cummax>(
    DeclaredTypes<aten::ops::cummax>(), []<class T>() { return &cummax_cuda<T>; }, "cummax_cuda");
const auto cummin_registered = register_cuda<aten::ops::cummin>(
    DeclaredTypes<aten::ops::cummin>(), []<class T>() { return &cummin_cuda<T>; }, "cummin_cuda");
const auto logcumsumexp_registered = register_cuda<aten::ops::logcumsumexp>(
    Floats(), []<class T>() { return &logcumsumexp_cuda<T>; }, "logcumsumexp_cuda");

}  // namespace
}  // namespace treadle::cuda
