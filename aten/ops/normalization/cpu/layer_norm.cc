// Layer normalisation with its gradients, each in one or two passes over the data.
//
// Ba et al., "Layer normalization" (2016). Sums run in a fixed order: per row first, then over
// pieces of rows.
//
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "aten/ops/_layer_norm_backward.h"
#include "aten/ops/native_layer_norm.h"
#include "aten/ops/normalization/cpu/norm_loops.h"
#include "aten/ops/normalization/cpu/norm_sums.h"
#include "core/threads/parallel.h"

namespace treadle::cpu {
namespace {

struct Rows {
  int64_t rows, length;
  Rows(IntList input, IntList normalized) : rows(1), length(1) {
    for (const int64_t n : normalized) length *= n;
    for (size_t d = 0; d < input.size() - normalized.size(); ++d) rows *= input[d];
  }
  int64_t grain() const { return grain_of(length); }
};

// The rows [begin, end) of t, side by side.
inline Tensor dense_rows(const Tensor& t, int64_t begin, int64_t end) {
  DimVector sizes(t.sizes());
  sizes[0] = end - begin;
  return dense(
      alias_with_geometry(t, sizes, t.strides(), t.storage_offset() + begin * t.stride(0)));
}

template <class T>
void layer_norm_cpu(const Tensor& input, IntList normalized_shape, const Tensor& weight,
                    const Tensor& bias, double eps, const Tensor& out, const Tensor& mean,
                    const Tensor& rstd) {
  using C = compute_type<T>;
  const Rows s(input.sizes(), normalized_shape);
  // Rows with gaps are copied by the thread that reads them, so that they are in its core's cache.
  // It copies at least as many rows as a cache line has elements of, because otherwise each line
  // would be read again for other rows. Rows so long that these do not fit are copied all at once.
  constexpr int64_t kLine = 64 / sizeof(T), kCache = (1 << 20) / sizeof(T);
  const int64_t group = std::max(s.grain(), kLine);
  const bool apart =
      !input.is_contiguous() && input.size(0) == s.rows && s.length <= kCache / group;
  const Tensor in = apart ? input : dense(input);
  const Parameter<T> weights(weight, s.length, T(1)), biases(bias, s.length, T(0));
  const NormLoops<T>& loops = simd::norm_loops<T>();
  const auto normalize = [&](const T* x, int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r, x += s.length) {
      T* y = out.data_as<T>() + r * s.length;
      const auto n = static_cast<double>(s.length);
      const C m = static_cast<C>(loops.sum(x, s.length) / n);
      const C v = static_cast<C>(loops.squares(x, s.length, m) / n);
      const C scale = C(1) / std::sqrt(v + static_cast<C>(eps));
      mean.data_as<C>()[r] = m;
      rstd.data_as<C>()[r] = scale;
      loops.result_each(x, weights.data(), biases.data(), y, s.length, m, scale);
    }
  };
  parallel_for(s.rows, apart ? group : s.grain(), [&](int64_t begin, int64_t end) {
    if (!apart) return normalize(in.data_as<T>() + begin * s.length, begin, end);
    normalize(dense_rows(in, begin, end).data_as<T>(), begin, end);
  });
}

// With xhat = (x - mean) * rstd and h = g * weight:  d x = rstd * (h - mean(h) - xhat * mean(h *
// xhat)), d weight = sum over rows of g * xhat,  d bias = sum over rows of g.
template <class T>
void layer_norm_backward_cpu(const Tensor& grad, const Tensor& input, IntList normalized_shape,
                             const Tensor& mean, const Tensor& rstd, const Tensor& weight,
                             const Tensor& grad_input, const Tensor& grad_weight,
                             const Tensor& grad_bias) {
  using C = compute_type<T>;
  const Rows s(input.sizes(), normalized_shape);
  const Tensor gr = dense(grad), in = dense(input), mu = dense(mean), sigma = dense(rstd);
  const Parameter<T> weights(weight, s.length, T(1));
  const NormLoops<T>& loops = simd::norm_loops<T>();
  T *const gw = grad_weight.data_as<T>(), *const gb = grad_bias.data_as<T>();
  const auto row = [&](int64_t r, C* bias_sums, C* weight_sums) {
    const T *w = weights.data(), *g = gr.data_as<T>() + r * s.length;
    const T* x = in.data_as<T>() + r * s.length;
    const C m = mu.data_as<C>()[r], scale = sigma.data_as<C>()[r];
    const auto n = static_cast<double>(s.length);
    const auto [sum, dot] = loops.dots_each(g, w, x, s.length, m);
    loops.gradient_each(g, w, x, grad_input.data_as<T>() + r * s.length, s.length, m, scale,
                        static_cast<C>(sum / n), static_cast<C>(dot * scale * scale / n));
    loops.add_scaled_dots(g, x, s.length, m, scale, bias_sums, weight_sums);
  };
  sum_columns<C>(s.rows, s.length, row, [=](int64_t k, C bias_sum, C weight_sum) {
    gw[k] = static_cast<T>(weight_sum);
    gb[k] = static_cast<T>(bias_sum);
  });
}

const auto ln_registered = register_kernels<aten::ops::native_layer_norm, DeviceType::CPU>(
    []<class T>() { return &layer_norm_cpu<T>; }, "layer_norm_cpu");
const auto ln_backward_registered =
    register_kernels<aten::ops::_layer_norm_backward, DeviceType::CPU>(
        []<class T>() { return &layer_norm_backward_cpu<T>; }, "layer_norm_backward_cpu");

}  // namespace
}  // namespace treadle::cpu
