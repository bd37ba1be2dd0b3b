// Convolution with named padding, pooling without indices, and constant padding.
#include "aten/ops/constant_pad_nd.h"
#include "aten/ops/conv2d.h"
#include "aten/ops/copy_.h"
#include "aten/ops/max_pool2d.h"
#include "aten/ops/max_pool2d_with_indices.h"
#include "aten/ops/narrow.h"
#include "aten/ops/new_full.h"
#include "core/error.h"

namespace treadle::composite {

Tensor conv2d_padding(const Tensor& input, const Tensor& weight, const Tensor& bias, IntList stride,
                      std::string_view padding, IntList dilation, int64_t groups) {
  check<ErrorKind::Value>(padding == "valid" || padding == "same",
                          "conv2d: expected padding \"valid\" or \"same\", got \"", padding, "\"");
  const int64_t none[] = {0, 0};
  if (padding == "valid") return aten::conv2d(input, weight, bias, stride, none, dilation, groups);
  check<ErrorKind::Value>(
      stride[0] == 1 && stride[1] == 1,
      "conv2d: expected stride = (1, 1) with padding \"same\", got stride = ", stride);
  check<ErrorKind::Runtime>(
      weight.dim() == 4, "conv2d: expected weight with 4 dimensions, got shape ", weight.sizes());
  int64_t both[2];
  bool odd = false;
  for (size_t d = 0; d < 2; ++d) {
    check<ErrorKind::Runtime>(
        !__builtin_mul_overflow(dilation[d], weight.sizes()[d + 2] - 1, &both[d]) && both[d] >= 0,
        "conv2d: expected sizes below 2^63, got dilation = ", dilation);
    odd = odd || both[d] % 2;
  }
  const int64_t half[] = {both[0] / 2, both[1] / 2};
  if (!odd) return aten::conv2d(input, weight, bias, stride, half, dilation, groups);
  // An odd total puts the extra element behind.
  const Tensor padded =
      aten::constant_pad_nd(input, {half[1], both[1] - half[1], half[0], both[0] - half[0]});
  return aten::conv2d(padded, weight, bias, stride, none, dilation, groups);
}

Tensor max_pool2d(const Tensor& self, IntList kernel_size, IntList stride, IntList padding,
                  IntList dilation, bool ceil_mode) {
  return std::get<0>(
      aten::max_pool2d_with_indices(self, kernel_size, stride, padding, dilation, ceil_mode));
}

Tensor constant_pad_nd(const Tensor& self, IntList pad, const Scalar& value) {
  check<ErrorKind::Runtime>(pad.size() % 2 == 0 && pad.size() / 2 <= self.sizes().size(),
                            "constant_pad_nd: expected pad as (before, after) pairs for at most ",
                            self.dim(), " dimensions, got pad = ", pad);
  DimVector sizes(self.sizes());
  Tensor kept = self;
  for (size_t i = 0; i < pad.size() / 2; ++i) {
    const size_t d = sizes.size() - 1 - i;
    const int64_t before = pad[2 * i], after = pad[2 * i + 1];
    int64_t size;
    check<ErrorKind::Runtime>(
        !__builtin_add_overflow(sizes[d], before, &size) &&
            !__builtin_add_overflow(size, after, &size) && size >= 0,
        "constant_pad_nd: expected a size that stays non-negative, got pad = ", pad, " for shape ",
        self.sizes());
    // Negative entries cut.
    const int64_t start = std::min(std::max<int64_t>(0, -before), sizes[d]);
    const int64_t length = std::max<int64_t>(0, sizes[d] - start - std::max<int64_t>(0, -after));
    kept = aten::narrow(kept, static_cast<int64_t>(d), start, length);
    sizes[d] = size;
  }
  const Tensor out = aten::new_full(self, sizes, value);
  Tensor inside = out;
  for (size_t i = 0; i < pad.size() / 2; ++i) {
    const int64_t d = static_cast<int64_t>(sizes.size() - 1 - i);
    inside = aten::narrow(inside, d, std::min(std::max<int64_t>(0, pad[2 * i]), inside.size(d)),
                          kept.size(d));
  }
  aten::copy_(inside, kept);
  return out;
}

}  // namespace treadle::composite
