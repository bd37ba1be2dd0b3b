// Shapes of resampling, of sampling at given points, and of unfolding images into columns.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "aten/engine/structured.h"
#include "aten/ops/_grid_sampler_backward.h"
#include "aten/ops/_resample.h"
#include "aten/ops/_resample_backward.h"
#include "aten/ops/col2im.h"
#include "aten/ops/grid_sampler_2d.h"
#include "aten/ops/im2col.h"

namespace treadle::shape {

// `self` with `size` elements along `dim`. `scale`, where given, is the factor that `size` comes
// from: size = floor(self.size(dim) * scale).
TensorSpec resample(const char* op, const Tensor& self, int64_t dim, int64_t size,
                    std::optional<double> scale);
// The gradient, from `grad` to an input with `size` elements along `dim`.
TensorSpec resample_grad(const char* op, const Tensor& grad, int64_t dim, int64_t size,
                         std::optional<double> scale);

// input (N, C, spatial...), grid (N, spatial of the output..., as many coordinates) -> (N, C,
// spatial of the output...).
TensorSpec grid_sampler(const char* op, const Tensor& input, const Tensor& grid, int64_t spatial);
std::array<TensorSpec, 2> grid_sampler_grad(const char* op, const Tensor& grad, const Tensor& input,
                                            const Tensor& grid);

// ([N,] C, H, W) -> ([N,] C * kernel elements, windows), and back.
TensorSpec im2col(const char* op, const Tensor& self, IntList kernel_size, IntList dilation,
                  IntList padding, IntList stride);
TensorSpec col2im(const char* op, const Tensor& self, IntList output_size, IntList kernel_size,
                  IntList dilation, IntList padding, IntList stride);

}  // namespace treadle::shape
