// Helpers for the formulas of padding, interpolation and sampling.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <tuple>

#include "core/tensor/tensor.h"

namespace treadle::autograd {

// The gradient of constant padding: added elements are cut, and cut elements get zero.
Tensor constant_pad_backward(const Tensor& grad, IntList pad);

// Height and width of an image.
inline IntList last_two(IntList sizes) { return sizes.slice(sizes.size() - 2); }

// Gradients of a grid sampler with respect to input and grid, as `mask` requests. While gradients
// are recorded, the sampler is composed of differentiable operators and differentiated. Otherwise
// one kernel computes them.
std::tuple<Tensor, Tensor> grid_sampler_backward(const Tensor& grad, const Tensor& input,
                                                 const Tensor& grid, int64_t interpolation_mode,
                                                 int64_t padding_mode, bool align_corners,
                                                 std::array<bool, 2> mask);

}  // namespace treadle::autograd
