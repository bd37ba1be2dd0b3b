// Halves of spectra: the points that stand for two.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/ops/fft/gradients.h"

#include "aten/ops/_fft_c2r.h"
#include "aten/ops/_fft_r2c.h"
#include "aten/ops/cat.h"
#include "aten/ops/full.h"
#include "aten/ops/mul.h"

namespace treadle::autograd {
namespace {

// Multiplies the points of a half spectrum of `size` points in all that stand for two.
Tensor scale_doubles(const Tensor& half, int64_t dim, int64_t size, double factor) {
  const int64_t doubles = (size - 1) / 2;
  if (doubles == 0) return half;
  const auto values = [&](int64_t count, double value) {
    DimVector sizes(static_cast<size_t>(half.dim()), 1);
    sizes[static_cast<size_t>(dim)] = count;
    return aten::full(sizes, value, to_real(half.dtype()), std::nullopt, half.device());
  };
  const int64_t single = half.size(dim) - 1 - doubles;
  return aten::mul(
      half, aten::cat(std::vector<Tensor>{values(1, 1), values(doubles, factor), values(single, 1)},
                      dim));
}

}  // namespace

Tensor fft_r2c_backward(const Tensor& grad, IntList dim, int64_t normalization, bool forward,
                        int64_t last_dim_size) {
  return aten::_fft_c2r(scale_doubles(grad, dim.back(), last_dim_size, 0.5), dim, normalization,
                        last_dim_size, !forward);
}

Tensor fft_c2r_backward(const Tensor& grad, IntList dim, int64_t normalization, bool forward) {
  return scale_doubles(aten::_fft_r2c(grad, dim, normalization, !forward), dim.back(),
                       grad.size(dim.back()), 2);
}

}  // namespace treadle::autograd
