#include "aten/shape/pool.h"

namespace treadle::shape {
namespace {

// Output length along one dimension; with ceil_mode the last window may start inside the input or
// the left padding only.
int64_t pooled(const char* op, int64_t input, int64_t kernel, int64_t stride, int64_t padding,
               int64_t dilation, bool ceil_mode) {
  int64_t span;
  check<ErrorKind::Runtime>(input > 0, op, ": expected a height and width of at least 1, got ",
                            input);
  check<ErrorKind::Runtime>(!__builtin_mul_overflow(dilation, kernel - 1, &span) &&
                                span < INT64_MAX / 4 && padding < INT64_MAX / 4,
                            op, ": expected sizes below 2^61, got kernel_size = ", kernel,
                            ", dilation = ", dilation);
  check<ErrorKind::Runtime>(padding * 2 <= kernel, op,
                            ": expected padding of at most half of kernel_size, got padding = ",
                            padding, " and kernel_size = ", kernel);
  const int64_t room = input + 2 * padding - span - 1;
  check<ErrorKind::Runtime>(room >= 0, op,
                            ": expected a window that fits into the padded input, got window ",
                            span + 1, " and padded input size ", input + 2 * padding);
  int64_t length = room / stride + 1;
  if (ceil_mode && room % stride != 0 && length * stride < input + padding) ++length;
  return length;
}

DimVector pooled_sizes(const char* op, IntList input, IntList kernel, IntList stride,
                       IntList padding, IntList dilation, bool ceil_mode) {
  check<ErrorKind::Runtime>(
      input.size() == 3 || input.size() == 4, op,
      ": expected input with 3 or 4 dimensions ([batch,] channels, height, width), got shape ",
      input);
  check<ErrorKind::Value>(stride.empty() || stride.size() == 2, op,
                          ": expected stride to have 2 entries, got ", stride);
  for (const int64_t k : kernel)
    check<ErrorKind::Runtime>(k > 0, op, ": expected kernel_size > 0, got kernel_size = ", kernel);
  for (const int64_t s : stride)
    check<ErrorKind::Runtime>(s > 0, op, ": expected stride > 0, got stride = ", stride);
  const IntList step = stride.empty() ? kernel : stride;
  DimVector out(input);
  for (size_t d = 0; d < 2; ++d) {
    const size_t at = input.size() - 2 + d;
    out[at] = pooled(op, input[at], kernel[d], step[d], padding[d], dilation[d], ceil_mode);
  }
  return out;
}

constexpr int64_t kOnes[] = {1, 1};

}  // namespace

std::array<TensorSpec, 2> max_pool(const char* op, const Tensor& self, IntList kernel_size,
                                   IntList stride, IntList padding, IntList dilation,
                                   bool ceil_mode) {
  const DimVector out =
      pooled_sizes(op, self.sizes(), kernel_size, stride, padding, dilation, ceil_mode);
  return {TensorSpec{out, self.dtype(), self.device()},
          TensorSpec{out, ScalarType::Int64, self.device()}};
}

TensorSpec avg_pool(const char* op, const Tensor& self, IntList kernel_size, IntList stride,
                    IntList padding, bool ceil_mode) {
  return {
      pooled_sizes(op, self.sizes(), kernel_size, stride, padding, IntList(kOnes, 2), ceil_mode),
      self.dtype(), self.device()};
}

TensorSpec max_pool_grad(const char* op, const Tensor& grad, const Tensor& indices,
                         IntList input_size) {
  checked_numel(input_size);
  check<ErrorKind::Runtime>(grad.sizes() == indices.sizes() && indices.dtype() == ScalarType::Int64,
                            op, ": expected grad and int64 indices of one shape, got ", grad,
                            " and ", indices);
  check<ErrorKind::Runtime>(
      input_size.size() == grad.sizes().size() && input_size.size() >= 2 &&
          input_size.slice(0, input_size.size() - 2) ==
              grad.sizes().slice(0, input_size.size() - 2),
      op, ": expected input_size to match grad in all but the last two dimensions, got ",
      input_size, " and ", grad.sizes());
  return {input_size, grad.dtype(), grad.device()};
}

TensorSpec max_pool_double_grad(const char* op, const Tensor& grad, const Tensor& indices) {
  check<ErrorKind::Runtime>(
      grad.dim() == indices.dim() && grad.dim() >= 2 && indices.dtype() == ScalarType::Int64 &&
          grad.sizes().slice(0, grad.sizes().size() - 2) ==
              indices.sizes().slice(0, grad.sizes().size() - 2),
      op, ": expected int64 indices that match grad in all but the last two dimensions, got ",
      indices, " and ", grad);
  return {indices.sizes(), grad.dtype(), grad.device()};
}

TensorSpec avg_pool_grad(const char* op, const Tensor& grad, IntList input_size,
                         IntList kernel_size, IntList stride, IntList padding, bool ceil_mode) {
  checked_numel(input_size);
  const DimVector out =
      pooled_sizes(op, input_size, kernel_size, stride, padding, IntList(kOnes, 2), ceil_mode);
  check<ErrorKind::Runtime>(grad.sizes() == IntList(out), op, ": expected grad of shape ", out,
                            ", got ", grad.sizes());
  return {input_size, grad.dtype(), grad.device()};
}

}  // namespace treadle::shape
