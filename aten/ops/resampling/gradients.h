// Helpers for the formulas of padding, interpolation and sampling.
#pragma once

#include <array>
#include <tuple>

#include "core/tensor/tensor.h"

namespace treadle::autograd {

// Constant padding undone: what was added is cut, and what was cut is zero.
Tensor constant_pad_backward(const Tensor& grad, IntList pad);

// Height and width of an image.
inline IntList last_two(IntList sizes) { return sizes.slice(sizes.size() - 2); }

// Gradients of a grid sampler with respect to input and grid, those that `mask` asks for. While
// gradients are recorded, the sampler is composed of differentiable operators and differentiated;
// otherwise one kernel computes them.
std::tuple<Tensor, Tensor> grid_sampler_backward(const Tensor& grad, const Tensor& input,
                                                 const Tensor& grid, int64_t interpolation_mode,
                                                 int64_t padding_mode, bool align_corners,
                                                 std::array<bool, 2> mask);

}  // namespace treadle::autograd
