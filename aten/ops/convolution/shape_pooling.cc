// Sizes of pooled inputs, with messages that name the setting that does not fit.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/ops/convolution/shape_pooling.h"

#include "aten/engine/strides/memory_format.h"

namespace treadle::shape {
namespace {

// Output length along one dimension; with ceil_mode the last window may start inside the input or
// the left padding only.
int64_t pooled(const char* op, int64_t input, int64_t kernel, int64_t stride, int64_t padding,
               int64_t dilation, bool ceil_mode) {
  int64_t span;
  check<ErrorKind::Runtime>(!__builtin_mul_overflow(dilation, kernel - 1, &span) &&
                                span < INT64_MAX / 4 && padding < INT64_MAX / 8 &&
                                input < INT64_MAX / 4,
                            OpName(op), "expected sizes below 2^60, got kernel_size = ", kernel,
                            ", dilation = ", dilation);
  check<ErrorKind::Runtime>(padding * 2 <= kernel, OpName(op),
                            "expected padding of at most half of kernel_size, got padding = ",
                            padding, " and kernel_size = ", kernel);
  check<ErrorKind::Runtime>(
      padding == 0 || dilation <= input, OpName(op),
      "expected dilation of at most the input size where there is padding, got dilation = ",
      dilation, " and input size ", input);
  const int64_t room = input + 2 * padding - span - 1;
  check<ErrorKind::Runtime>(room >= 0, OpName(op),
                            "expected a window that fits into the padded input, got window ",
                            span + 1, " and padded input size ", input + 2 * padding);
  int64_t length = room / stride + 1, next;
  if (ceil_mode && room % stride != 0 && !__builtin_mul_overflow(length, stride, &next) &&
      next < input + padding) {
    ++length;
  }
  return length;
}

// Checks that `input` has the pooled dimensions, none of them empty, after the channels.
void check_pooled(const char* op, IntList input, size_t spatial) {
  check<ErrorKind::Runtime>(
      spatial >= 1 && spatial <= 3 && (input.size() == spatial + 1 || input.size() == spatial + 2),
      OpName(op), "expected input with ", spatial + 1, " or ", spatial + 2,
      " dimensions ([batch,] channels and ", spatial, " more), got shape ", input);
  for (const int64_t size : input.slice(input.size() - spatial)) {
    check<ErrorKind::Runtime>(size > 0, OpName(op),
                              "expected at least one element in each of the last ", spatial,
                              " dimensions, got shape ", input);
  }
}

// Checks that the channels are not empty, in a batch or not.
void check_channels(const char* op, IntList input, size_t spatial) {
  check<ErrorKind::Runtime>(input[input.size() - spatial - 1] > 0, OpName(op),
                            "expected at least one channel, got shape ", input);
}

DimVector pooled_sizes(const char* op, IntList input, IntList kernel, IntList stride,
                       IntList padding, IntList dilation, bool ceil_mode) {
  const size_t spatial = kernel.size();
  check_pooled(op, input, spatial);
  check_channels(op, input, spatial);
  check<ErrorKind::Value>((stride.empty() || stride.size() == spatial) && padding.size() == spatial,
                          OpName(op), "expected stride and padding to have ", spatial,
                          " entries, got stride = ", stride, " and padding = ", padding);
  for (const int64_t k : kernel)
    check<ErrorKind::Runtime>(k > 0, OpName(op),
                              "expected kernel_size > 0, got kernel_size = ", kernel);
  for (const int64_t s : stride)
    check<ErrorKind::Runtime>(s > 0, OpName(op), "expected stride > 0, got stride = ", stride);
  const IntList step = stride.empty() ? kernel : stride;
  DimVector out(input);
  for (size_t d = 0; d < spatial; ++d) {
    const size_t at = input.size() - spatial + d;
    out[at] = pooled(op, input[at], kernel[d], step[d], padding[d],
                     dilation.empty() ? 1 : dilation[d], ceil_mode);
  }
  return out;
}

DimVector adaptive_sizes(const char* op, IntList input, IntList output_size) {
  check_pooled(op, input, output_size.size());
  DimVector out(input);
  std::copy(output_size.begin(), output_size.end(), out.end() - output_size.size());
  checked_numel(out);
  return out;
}

// Same sizes in all dimensions but the last `spatial`.
bool same_planes(IntList a, IntList b, int64_t spatial) {
  const size_t n = static_cast<size_t>(spatial);
  return a.size() == b.size() && a.size() >= n &&
         a.slice(0, a.size() - n) == b.slice(0, b.size() - n);
}

// As self, of these sizes.
TensorSpec pooled_like(const Tensor& self, const DimVector& sizes, size_t spatial) {
  return {sizes, self.dtype(), self.device(), kept_format(self, spatial)};
}
std::array<TensorSpec, 2> with_indices(TensorSpec values) {
  TensorSpec indices = values;
  indices.dtype = ScalarType::Int64;
  return {std::move(values), std::move(indices)};
}

}  // namespace

std::array<TensorSpec, 2> max_pool(const char* op, const Tensor& self, IntList kernel_size,
                                   IntList stride, IntList padding, IntList dilation,
                                   bool ceil_mode) {
  const DimVector out =
      pooled_sizes(op, self.sizes(), kernel_size, stride, padding, dilation, ceil_mode);
  return with_indices(pooled_like(self, out, kernel_size.size()));
}

TensorSpec avg_pool(const char* op, const Tensor& self, IntList kernel_size, IntList stride,
                    IntList padding, bool ceil_mode) {
  const DimVector out = pooled_sizes(op, self.sizes(), kernel_size, stride, padding, {}, ceil_mode);
  return pooled_like(self, out, kernel_size.size());
}

TensorSpec adaptive_pool(const char* op, const Tensor& self, IntList output_size) {
  return pooled_like(self, adaptive_sizes(op, self.sizes(), output_size), output_size.size());
}

std::array<TensorSpec, 2> adaptive_max_pool(const char* op, const Tensor& self,
                                            IntList output_size) {
  const DimVector out = adaptive_sizes(op, self.sizes(), output_size);
  if (self.dim() == static_cast<int64_t>(output_size.size()) + 2)
    check_channels(op, self.sizes(), output_size.size());
  return with_indices(pooled_like(self, out, output_size.size()));
}

TensorSpec max_unpool(const char* op, const Tensor& self, const Tensor& indices,
                      IntList output_size) {
  check_pooled(op, self.sizes(), output_size.size());
  check<ErrorKind::Runtime>(self.sizes() == indices.sizes() && indices.dtype() == ScalarType::Int64,
                            OpName(op), "expected int64 indices of the input's shape, got ", self,
                            " and ", indices);
  return {adaptive_sizes(op, self.sizes(), output_size), self.dtype(), self.device()};
}

TensorSpec max_pool_grad(const char* op, const Tensor& grad, const Tensor& indices,
                         IntList input_size, int64_t spatial) {
  checked_numel(input_size);
  check<ErrorKind::Runtime>(grad.sizes() == indices.sizes() && indices.dtype() == ScalarType::Int64,
                            OpName(op), "expected grad and int64 indices of one shape, got ", grad,
                            " and ", indices);
  check<ErrorKind::Runtime>(same_planes(input_size, grad.sizes(), spatial), OpName(op),
                            "expected input_size to match grad in all but the last ", spatial,
                            " dimensions, got ", input_size, " and ", grad.sizes());
  return {input_size, grad.dtype(), grad.device(),
          kept_format(indices, static_cast<size_t>(spatial))};
}

TensorSpec max_pool_gather(const char* op, const Tensor& grad, const Tensor& indices,
                           int64_t spatial) {
  check<ErrorKind::Runtime>(
      same_planes(grad.sizes(), indices.sizes(), spatial) && indices.dtype() == ScalarType::Int64,
      OpName(op), "expected int64 indices that match grad in all but the last ", spatial,
      " dimensions, got ", indices, " and ", grad);
  return {indices.sizes(), grad.dtype(), grad.device(),
          kept_format(indices, static_cast<size_t>(spatial))};
}

TensorSpec avg_pool_grad(const char* op, const Tensor& grad, IntList input_size,
                         IntList kernel_size, IntList stride, IntList padding, bool ceil_mode) {
  checked_numel(input_size);
  const DimVector out = pooled_sizes(op, input_size, kernel_size, stride, padding, {}, ceil_mode);
  check<ErrorKind::Runtime>(grad.sizes() == IntList(out), OpName(op), "expected grad of shape ",
                            out, ", got ", grad.sizes());
  return pooled_like(grad, input_size, kernel_size.size());
}

TensorSpec adaptive_pool_grad(const char* op, const Tensor& grad, IntList input_size,
                              int64_t spatial) {
  checked_numel(input_size);
  check_pooled(op, input_size, static_cast<size_t>(spatial));
  check<ErrorKind::Runtime>(same_planes(input_size, grad.sizes(), spatial), OpName(op),
                            "expected input_size to match grad in all but the last ", spatial,
                            " dimensions, got ", input_size, " and ", grad.sizes());
  return pooled_like(grad, input_size, static_cast<size_t>(spatial));
}

}  // namespace treadle::shape
