// Convolutions of one, two and three dimensions by name. Each is `convolution` with its settings.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/ops/convolution.h"

#include "aten/engine/renamed_errors.h"
#include "aten/ops/constant_pad_nd.h"
#include "aten/ops/conv1d.h"
#include "aten/ops/conv2d.h"
#include "aten/ops/conv3d.h"
#include "aten/ops/conv_transpose1d.h"
#include "aten/ops/conv_transpose2d.h"
#include "aten/ops/conv_transpose3d.h"
#include "aten/ops/convolution/integers.h"
#include "core/base/error.h"

namespace treadle::composite {
namespace {

constexpr int64_t kNone[] = {0, 0, 0};

// The dimensions that a weight slides over: one to three, by the contracts of all that is below.
size_t spatial_dims(const Tensor& weight) { return weight.sizes().size() - 2; }

Tensor plain(const char* op, const Tensor& input, const Tensor& weight, const Tensor& bias,
             IntList stride, IntList padding, IntList dilation, int64_t groups) {
  if (is_integral(input.dtype(), false))
    return integer_convolution(op, input, weight, bias, stride, padding, dilation, false,
                               IntList(kNone, spatial_dims(weight)), groups);
  return renamed(op, "convolution", [&] {
    return aten::convolution(input, weight, bias, stride, padding, dilation, false,
                             IntList(kNone, spatial_dims(weight)), groups);
  });
}

Tensor transposed(const char* op, const Tensor& input, const Tensor& weight, const Tensor& bias,
                  IntList stride, IntList padding, IntList output_padding, int64_t groups,
                  IntList dilation) {
  if (is_integral(input.dtype(), false))
    return integer_convolution(op, input, weight, bias, stride, padding, dilation, true,
                               output_padding, groups);
  return renamed(op, "convolution", [&] {
    return aten::convolution(input, weight, bias, stride, padding, dilation, true, output_padding,
                             groups);
  });
}

// Padding by name: "valid" is none, "same" makes the output as large as the input.
Tensor padded(const char* op, const Tensor& input, const Tensor& weight, const Tensor& bias,
              IntList stride, std::string_view padding, IntList dilation, int64_t groups) {
  const size_t spatial = spatial_dims(weight);
  const IntList none(kNone, spatial);
  // A dilation of another length is refused by the convolution itself.
  const bool fits = dilation.size() == 1 || dilation.size() == spatial;
  if (padding == "valid" || !fits)
    return plain(op, input, weight, bias, stride, none, dilation, groups);
  for (const int64_t s : stride) {
    check<ErrorKind::Runtime>(
        s == 1, OpName(op), "expected a stride of 1 with padding \"same\", got stride = ", stride);
  }
  DimVector half(spatial), sides(2 * spatial);
  bool odd = false;
  for (size_t d = 0; d < spatial; ++d) {
    int64_t both = 0;
    check<ErrorKind::Runtime>(
        !__builtin_mul_overflow(dilation[dilation.size() == 1 ? 0 : d], weight.sizes()[d + 2] - 1,
                                &both) &&
            both >= 0,
        OpName(op),
        "expected sizes below 2^63 and a kernel that is not empty, got dilation = ", dilation,
        " and weight shape ", weight.sizes());
    half[d] = both / 2;
    odd = odd || both % 2;
    // An odd total puts the extra element behind; pads begin with the last dimension.
    sides[2 * (spatial - 1 - d)] = both / 2;
    sides[2 * (spatial - 1 - d) + 1] = both - both / 2;
  }
  if (!odd) return plain(op, input, weight, bias, stride, half, dilation, groups);
  check<ErrorKind::Runtime>(input.sizes().size() >= spatial + 1, OpName(op), "expected input with ",
                            spatial + 1, " or ", spatial + 2, " dimensions, got shape ",
                            input.sizes());
  const Tensor wide =
      renamed(op, "constant_pad_nd", [&] { return aten::constant_pad_nd(input, sides); });
  return plain(op, wide, weight, bias, stride, none, dilation, groups);
}

}  // namespace

Tensor conv1d(const Tensor& input, const Tensor& weight, const Tensor& bias, IntList stride,
              IntList padding, IntList dilation, int64_t groups) {
  return plain("conv1d", input, weight, bias, stride, padding, dilation, groups);
}
Tensor conv2d(const Tensor& input, const Tensor& weight, const Tensor& bias, IntList stride,
              IntList padding, IntList dilation, int64_t groups) {
  return plain("conv2d", input, weight, bias, stride, padding, dilation, groups);
}
Tensor conv3d(const Tensor& input, const Tensor& weight, const Tensor& bias, IntList stride,
              IntList padding, IntList dilation, int64_t groups) {
  return plain("conv3d", input, weight, bias, stride, padding, dilation, groups);
}

Tensor conv1d_padding(const Tensor& input, const Tensor& weight, const Tensor& bias, IntList stride,
                      std::string_view padding, IntList dilation, int64_t groups) {
  return padded("conv1d", input, weight, bias, stride, padding, dilation, groups);
}
Tensor conv2d_padding(const Tensor& input, const Tensor& weight, const Tensor& bias, IntList stride,
                      std::string_view padding, IntList dilation, int64_t groups) {
  return padded("conv2d", input, weight, bias, stride, padding, dilation, groups);
}
Tensor conv3d_padding(const Tensor& input, const Tensor& weight, const Tensor& bias, IntList stride,
                      std::string_view padding, IntList dilation, int64_t groups) {
  return padded("conv3d", input, weight, bias, stride, padding, dilation, groups);
}

Tensor conv_transpose1d(const Tensor& input, const Tensor& weight, const Tensor& bias,
                        IntList stride, IntList padding, IntList output_padding, int64_t groups,
                        IntList dilation) {
  return transposed("conv_transpose1d", input, weight, bias, stride, padding, output_padding,
                    groups, dilation);
}
Tensor conv_transpose2d(const Tensor& input, const Tensor& weight, const Tensor& bias,
                        IntList stride, IntList padding, IntList output_padding, int64_t groups,
                        IntList dilation) {
  return transposed("conv_transpose2d", input, weight, bias, stride, padding, output_padding,
                    groups, dilation);
}
Tensor conv_transpose3d(const Tensor& input, const Tensor& weight, const Tensor& bias,
                        IntList stride, IntList padding, IntList output_padding, int64_t groups,
                        IntList dilation) {
  return transposed("conv_transpose3d", input, weight, bias, stride, padding, output_padding,
                    groups, dilation);
}

}  // namespace treadle::composite
