// The normalization of rows by their root mean square, and its gradient, as an extension for
// PyTorch's stable ABI. One binary of it runs on PyTorch 2.11 and later, and on Treadle.
//
// SPDX-License-Identifier: Apache-2.0
#define TORCH_TARGET_VERSION (((0ULL + 2) << 56) | ((0ULL + 11) << 48))
#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>
#include <torch/csrc/stable/tensor.h>
#include <torch/headeronly/core/Dispatch_v2.h>

#include <cmath>
#include <tuple>

namespace {

using torch::stable::Tensor;

void check_arguments(const Tensor& x, const Tensor& weight) {
  STD_TORCH_CHECK(x.dim() > 0 && weight.dim() == 1 && weight.size(0) == x.size(-1),
                  "rms_norm: expected one weight for each element of a row");
  STD_TORCH_CHECK(x.scalar_type() == weight.scalar_type(),
                  "rms_norm: expected x and weight of one dtype");
}
int64_t rows_of(const Tensor& x) { return x.numel() / std::max<int64_t>(x.size(-1), 1); }

template <typename T>
T scale_of(const T* row, int64_t n, double eps) {
  T sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += row[i] * row[i];
  return 1 / std::sqrt(sum / static_cast<T>(n) + static_cast<T>(eps));
}

// y = x * weight / rms(x), row by row.
Tensor rms_norm(Tensor x, Tensor weight, double eps) {
  check_arguments(x, weight);
  x = torch::stable::contiguous(x);
  weight = torch::stable::contiguous(weight);
  Tensor y = torch::stable::empty_like(x);
  const int64_t n = x.size(-1);
  THO_DISPATCH_V2(x.scalar_type(), "rms_norm", AT_WRAP([&] {
                    const scalar_t* const from = x.const_data_ptr<scalar_t>();
                    const scalar_t* const w = weight.const_data_ptr<scalar_t>();
                    scalar_t* const to = y.mutable_data_ptr<scalar_t>();
                    torch::stable::parallel_for(0, rows_of(x), 16, [&](int64_t row, int64_t end) {
                      for (; row < end; ++row) {
                        const scalar_t* const a = from + row * n;
                        const scalar_t scale = scale_of(a, n, eps);
                        for (int64_t i = 0; i < n; ++i) to[row * n + i] = a[i] * scale * w[i];
                      }
                    });
                  }),
                  AT_EXPAND(AT_FLOATING_TYPES));
  return y;
}

// The gradients of x, and of the weight for each row.
std::tuple<Tensor, Tensor> rms_norm_backward(Tensor grad, Tensor x, Tensor weight, double eps) {
  check_arguments(x, weight);
  grad = torch::stable::contiguous(grad);
  x = torch::stable::contiguous(x);
  weight = torch::stable::contiguous(weight);
  Tensor grad_x = torch::stable::empty_like(x), grad_weight = torch::stable::empty_like(x);
  const int64_t n = x.size(-1);
  THO_DISPATCH_V2(x.scalar_type(), "rms_norm_backward", AT_WRAP([&] {
                    const scalar_t* const from = x.const_data_ptr<scalar_t>();
                    const scalar_t* const g = grad.const_data_ptr<scalar_t>();
                    const scalar_t* const w = weight.const_data_ptr<scalar_t>();
                    scalar_t* const to_x = grad_x.mutable_data_ptr<scalar_t>();
                    scalar_t* const to_w = grad_weight.mutable_data_ptr<scalar_t>();
                    torch::stable::parallel_for(0, rows_of(x), 16, [&](int64_t row, int64_t end) {
                      for (; row < end; ++row) {
                        const int64_t at = row * n;
                        const scalar_t scale = scale_of(from + at, n, eps);
                        scalar_t dot = 0;
                        for (int64_t i = at; i < at + n; ++i) dot += g[i] * w[i - at] * from[i];
                        dot *= scale * scale * scale / static_cast<scalar_t>(n);
                        for (int64_t i = at; i < at + n; ++i) {
                          to_x[i] = g[i] * w[i - at] * scale - from[i] * dot;
                          to_w[i] = g[i] * from[i] * scale;
                        }
                      }
                    });
                  }),
                  AT_EXPAND(AT_FLOATING_TYPES));
  return {grad_x, grad_weight};
}

Tensor rms_norm_meta(Tensor x, Tensor weight, double) {
  check_arguments(x, weight);
  return torch::stable::empty_like(x);
}

}  // namespace

STABLE_TORCH_LIBRARY(binary_extension, m) {
  m.def("rms_norm(Tensor x, Tensor weight, float eps=1e-06) -> Tensor");
  m.def("rms_norm_backward(Tensor grad, Tensor x, Tensor weight, float eps) -> (Tensor, Tensor)");
}
STABLE_TORCH_LIBRARY_IMPL(binary_extension, CPU, m) {
  m.impl("rms_norm", TORCH_BOX(&rms_norm));
  m.impl("rms_norm_backward", TORCH_BOX(&rms_norm_backward));
}
STABLE_TORCH_LIBRARY_IMPL(binary_extension, Meta, m) {
  m.impl("rms_norm", TORCH_BOX(&rms_norm_meta));
}
