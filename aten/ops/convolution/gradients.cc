// Gradients of convolution as convolutions of other operands.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/ops/convolution/gradients.h"

#include "aten/engine/strides/memory_format.h"
#include "aten/ops/_convolution_grad_weight.h"
#include "aten/ops/conj.h"
#include "aten/ops/convolution.h"
#include "aten/ops/convolution/shape.h"
#include "aten/ops/narrow.h"
#include "aten/ops/sum.h"

namespace treadle::autograd {
namespace {

Tensor conjugate(const Tensor& t) { return t.is_complex() ? aten::conj(t) : t; }

constexpr int64_t kZero[] = {0};

// `grad` in the memory format of the convolution of an image and a weight, of which one is a tensor
// and the other has a geometry. Its gradients have this format, too.
Tensor in_common_format(const Tensor& grad, const Tensor& one, IntList sizes, IntList strides) {
  if (grad.dim() != one.dim() || grad.sizes().size() != sizes.size()) return grad;  // no batch
  MemoryFormat format = shape::kept_format(one, sizes.size() - 2);
  if (format == MemoryFormat::Contiguous)
    format = shape::kept_format(grad.device(), sizes, strides);
  return shape::in_format(grad, format);
}

// The first positions of each dimension, as many as `sizes` has.
Tensor first_positions(Tensor t, IntList sizes) {
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (t.sizes()[d] > sizes[d]) t = aten::narrow(t, static_cast<int64_t>(d), 0, sizes[d]);
  }
  return t;
}

// The transpose of a plain convolution: from its output to an input of shape `input_size`.
Tensor transposed_to(const Tensor& output, const Tensor& weight, IntList input_size, IntList stride,
                     IntList padding, IntList dilation, int64_t groups) {
  const size_t spatial = weight.sizes().size() - 2, first = input_size.size() - spatial;
  DimVector output_padding;
  for (size_t d = 0; d < spatial; ++d) {
    const int64_t least = (output.sizes()[first + d] - 1) * shape::entry_of(stride, d) -
                          2 * shape::entry_of(padding, d) +
                          shape::entry_of(dilation, d) * (weight.sizes()[d + 2] - 1) + 1;
    output_padding.push_back(input_size[first + d] - least);
  }
  return aten::convolution(output, weight, Tensor(), stride, padding, dilation, true,
                           output_padding, groups);
}

}  // namespace

Tensor convolution_grad_input(const Tensor& grad, const Tensor& weight, IntList input_size,
                              IntList input_strides, IntList stride, IntList padding,
                              IntList dilation, bool transposed, int64_t groups) {
  const Tensor w = conjugate(weight), g = in_common_format(grad, weight, input_size, input_strides);
  if (!transposed) return transposed_to(g, w, input_size, stride, padding, dilation, groups);
  return first_positions(
      aten::convolution(g, w, Tensor(), stride, padding, dilation, false, kZero, groups),
      input_size);
}

Tensor convolution_grad_weight(const Tensor& grad, const Tensor& input, IntList weight_size,
                               IntList weight_strides, IntList stride, IntList padding,
                               IntList dilation, bool transposed, int64_t groups) {
  const Tensor x = conjugate(input), g = in_common_format(grad, input, weight_size, weight_strides);
  return aten::_convolution_grad_weight(transposed ? x : g, transposed ? g : x, weight_size, stride,
                                        padding, dilation, groups);
}

Tensor convolution_grad_bias(const Tensor& grad, int64_t weight_dim) {
  DimVector dims;
  const int64_t channel = grad.dim() - (weight_dim - 1);
  for (int64_t d = 0; d < grad.dim(); ++d) {
    if (d != channel) dims.push_back(d);
  }
  return aten::sum(grad, IntList(dims));
}

Tensor convolution_grad_weight_grad(const Tensor& grad, const Tensor& input, IntList grad_size,
                                    IntList stride, IntList padding, IntList dilation,
                                    int64_t groups) {
  return first_positions(aten::convolution(conjugate(input), grad, Tensor(), stride, padding,
                                           dilation, false, kZero, groups),
                         grad_size);
}

Tensor convolution_grad_weight_input(const Tensor& grad, const Tensor& output_grad,
                                     IntList input_size, IntList stride, IntList padding,
                                     IntList dilation, int64_t groups) {
  return transposed_to(conjugate(output_grad), grad, input_size, stride, padding, dilation, groups);
}

}  // namespace treadle::autograd
