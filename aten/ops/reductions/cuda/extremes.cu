// max and min along a dimension with positions, argmax and argmin. Among equal elements the first
// wins, and the first NaN wins over all other elements, whatever the order of comparisons.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/backend/cuda/kernels/fold_lines.cuh"
#include "aten/backend/cuda/kernels/lines.cuh"
#include "aten/ops/argmax.h"
#include "aten/ops/argmin.h"
#include "aten/ops/contiguous.h"
#include "aten/ops/max.h"
#include "aten/ops/min.h"

namespace treadle::cuda {
namespace {

template <class T, bool largest>
struct Extreme {
  struct State {
    Computed<T> value;
    int64_t at;
  };
  const T* from;
  Lines lines;
  T* values;  // may be null
  int64_t* indices;

  __device__ State load(int64_t line, int64_t j) const {
    return {widened(from[lines.at(line, j)]), j};
  }
  __device__ State join(const State& a, const State& b) const { return wins(a, b) ? a : b; }
  __device__ void store(int64_t line, const State& best) const {
    if (values) values[line] = narrowed<T>(best.value);
    indices[line] = best.at;
  }

 private:
  __device__ static bool wins(const State& a, const State& b) {
    const bool a_nan = a.value != a.value, b_nan = b.value != b.value;
    if (a_nan || b_nan) return a_nan && (!b_nan || a.at < b.at);
    if (a.value == b.value) return a.at < b.at;
    return largest ? a.value > b.value : a.value < b.value;
  }
};

template <bool largest, class T>
void search(const Tensor& self, const Lines& lines, T* values, const Tensor& indices) {
  if (indices.numel() == 0 || lines.size == 0) return;
  const Place place(indices);
  const Tensor input = aten::contiguous(self);
  fold_lines(Extreme<T, largest>{input.data_as<T>(), lines, values, indices.data_as<int64_t>()},
             lines.count, lines.size, lines.inner > 1, place);
}

template <class T>
void max_dim_cuda(const Tensor& self, int64_t dim, bool /*keepdim*/, const Tensor& values,
                  const Tensor& indices) {
  search<true>(self, lines_of(self.sizes(), dim), values.data_as<T>(), indices);
}
template <class T>
void min_dim_cuda(const Tensor& self, int64_t dim, bool /*keepdim*/, const Tensor& values,
                  const Tensor& indices) {
  search<false>(self, lines_of(self.sizes(), dim), values.data_as<T>(), indices);
}

Lines lines_along(const Tensor& self, std::optional<int64_t> dim) {
  return dim ? lines_of(self.sizes(), *dim) : Lines{1, self.numel(), 1};
}
template <class T>
void argmax_cuda(const Tensor& self, std::optional<int64_t> dim, bool /*keepdim*/,
                 const Tensor& out) {
  search<true, T>(self, lines_along(self, dim), nullptr, out);
}
template <class T>
void argmin_cuda(const Tensor& self, std::optional<int64_t> dim, bool /*keepdim*/,
                 const Tensor& out) {
  search<false, T>(self, lines_along(self, dim), nullptr, out);
}

using Types = DeclaredTypes<aten::ops::argmax>;
const auto max_dim_registered = register_cuda<aten::ops::max_dim>(
    Types(), []<class T>() { return &max_dim_cuda<T>; }, "max_dim_cuda");
const auto min_dim_registered = register_cuda<aten::ops::min_dim>(
    Types(), []<class T>() { return &min_dim_cuda<T>; }, "min_dim_cuda");
const auto argmax_registered = register_cuda<aten::ops::argmax>(
    Types(), []<class T>() { return &argmax_cuda<T>; }, "argmax_cuda");
const auto argmin_registered = register_cuda<aten::ops::argmin>(
    Types(), []<class T>() { return &argmin_cuda<T>; }, "argmin_cuda");

}  // namespace
}  // namespace treadle::cuda
