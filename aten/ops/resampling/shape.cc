// Checks and sizes of images that are resampled, sampled or unfolded.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/ops/resampling/shape.h"

#include <cmath>

#include "aten/engine/strides/memory_format.h"
#include "aten/ops/convolution/shape.h"

namespace treadle::shape {
namespace {

// Lengths of an input and of its resampling must fit together and to the scale.
void check_lengths(const char* op, int64_t input, int64_t output, std::optional<double> scale) {
  check<ErrorKind::Runtime>(input > 0 && output > 0, OpName(op),
                            "expected input and output sizes of at least 1, got input size ", input,
                            " and output size ", output);
  if (!scale) return;
  const double exact = static_cast<double>(input) * *scale;
  check<ErrorKind::Value>(*scale > 0 && std::isfinite(*scale) &&
                              exact - static_cast<double>(output) > -1 &&
                              exact - static_cast<double>(output) < 2,
                          OpName(op), "expected a scale that makes the input size ", input,
                          " the output size ", output, ", got ", *scale);
}

DimVector with_size(IntList sizes, int64_t dim, int64_t size) {
  DimVector out(sizes);
  out[static_cast<size_t>(dim)] = size;
  return out;
}

void check_dim(const char* op, const Tensor& t) {
  check<ErrorKind::Runtime>(t.dim() > 0, OpName(op), "expected at least one dimension, got shape ",
                            t.sizes());
}

// ([N,] C, H, W)'s windows, and their number.
struct Windows {
  int64_t count, kernel;
};
Windows windows_of(const char* op, IntList image, IntList kernel, IntList dilation, IntList padding,
                   IntList stride) {
  Windows w{1, 1};
  for (size_t d = 0; d < 2; ++d) {
    const int64_t n = convolved_length(op, image[image.size() - 2 + d], kernel[d], stride[d],
                                       padding[d], dilation[d]);
    check<ErrorKind::Runtime>(
        !__builtin_mul_overflow(w.count, n, &w.count) &&
            !__builtin_mul_overflow(w.kernel, kernel[d], &w.kernel),
        OpName(op),
        "expected fewer than 2^63 windows and kernel elements, got kernel_size = ", kernel,
        " and image size ", image);
  }
  return w;
}

void check_images(const char* op, const char* what, IntList sizes, size_t with_batch) {
  check<ErrorKind::Runtime>(sizes.size() == with_batch || sizes.size() == with_batch - 1,
                            OpName(op), "expected ", what, " with ", with_batch - 1, " or ",
                            with_batch, " dimensions, got shape ", sizes);
}

}  // namespace

TensorSpec resample(const char* op, const Tensor& self, int64_t dim, int64_t size,
                    std::optional<double> scale) {
  check_dim(op, self);
  dim = wrap_dim(op, dim, self.dim());
  check_lengths(op, self.size(dim), size, scale);
  const DimVector out = with_size(self.sizes(), dim, size);
  checked_numel(out);
  return {out, self.dtype(), self.device(), kept_format(self)};
}

TensorSpec resample_grad(const char* op, const Tensor& grad, int64_t dim, int64_t size,
                         std::optional<double> scale) {
  check_dim(op, grad);
  dim = wrap_dim(op, dim, grad.dim());
  check_lengths(op, size, grad.size(dim), scale);
  const DimVector out = with_size(grad.sizes(), dim, size);
  checked_numel(out);
  return {out, grad.dtype(), grad.device(), kept_format(grad)};
}

TensorSpec grid_sampler(const char* op, const Tensor& input, const Tensor& grid, int64_t spatial) {
  check<ErrorKind::Runtime>(input.dim() == spatial + 2 && grid.dim() == spatial + 2, OpName(op),
                            "expected input and grid with ", spatial + 2,
                            " dimensions, got shapes ", input.sizes(), " and ", grid.sizes());
  check<ErrorKind::Runtime>(input.dtype() == grid.dtype(), OpName(op),
                            "expected input and grid of one dtype, got ", input.dtype(), " and ",
                            grid.dtype());
  check<ErrorKind::Runtime>(grid.size(0) == input.size(0) && grid.size(-1) == spatial, OpName(op),
                            "expected grid of shape (", input.size(0), ", ..., ", spatial,
                            ") for input of shape ", input.sizes(), ", got ", grid.sizes());
  DimVector out{input.size(0), input.size(1)};
  for (int64_t d = 0; d < spatial; ++d) {
    check<ErrorKind::Runtime>(input.size(d + 2) > 0, OpName(op),
                              "expected input with at least one element in each spatial "
                              "dimension, got shape ",
                              input.sizes());
    out.push_back(grid.size(d + 1));
  }
  checked_numel(out);
  return {out, input.dtype(), input.device()};
}

std::array<TensorSpec, 2> grid_sampler_grad(const char* op, const Tensor& grad, const Tensor& input,
                                            const Tensor& grid) {
  check<ErrorKind::Runtime>(input.dim() == 4 || input.dim() == 5, OpName(op),
                            "expected input with 4 or 5 dimensions, got shape ", input.sizes());
  const TensorSpec out = grid_sampler(op, input, grid, input.dim() - 2);
  check<ErrorKind::Runtime>(grad.sizes() == IntList(out.sizes) && grad.dtype() == out.dtype,
                            OpName(op), "expected grad of shape ", out.sizes, " and dtype ",
                            out.dtype, ", got ", grad);
  return {TensorSpec{input.sizes(), input.dtype(), input.device()},
          TensorSpec{grid.sizes(), grid.dtype(), grid.device()}};
}

TensorSpec im2col(const char* op, const Tensor& self, IntList kernel_size, IntList dilation,
                  IntList padding, IntList stride) {
  check_images(op, "input", self.sizes(), 4);
  const Windows w = windows_of(op, self.sizes(), kernel_size, dilation, padding, stride);
  DimVector out(self.sizes().slice(0, self.sizes().size() - 2));
  check<ErrorKind::Runtime>(!__builtin_mul_overflow(out.back(), w.kernel, &out.back()), OpName(op),
                            "expected fewer than 2^63 rows, got kernel_size = ", kernel_size);
  out.push_back(w.count);
  checked_numel(out);
  return {out, self.dtype(), self.device()};
}

TensorSpec col2im(const char* op, const Tensor& self, IntList output_size, IntList kernel_size,
                  IntList dilation, IntList padding, IntList stride) {
  check_images(op, "input", self.sizes(), 3);
  const Windows w = windows_of(op, output_size, kernel_size, dilation, padding, stride);
  check<ErrorKind::Runtime>(self.size(-2) % w.kernel == 0 && self.size(-1) == w.count, OpName(op),
                            "expected input ([N,] C * ", w.kernel, ", ", w.count,
                            ") for output_size = ", output_size, ", got shape ", self.sizes());
  DimVector out(self.sizes().slice(0, self.sizes().size() - 1));
  out.back() /= w.kernel;
  out.push_back(output_size[0]);
  out.push_back(output_size[1]);
  checked_numel(out);
  return {out, self.dtype(), self.device()};
}

}  // namespace treadle::shape
