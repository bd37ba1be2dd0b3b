// The gradients of pooling, chosen by the number of dimensions.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/ops/convolution/gradients_pooling.h"

#include "aten/engine/strides/memory_format.h"
#include "aten/ops/_max_pool_gather.h"
#include "aten/ops/adaptive_avg_pool1d.h"
#include "aten/ops/adaptive_avg_pool2d.h"
#include "aten/ops/adaptive_avg_pool3d.h"
#include "aten/ops/avg_pool1d.h"
#include "aten/ops/avg_pool2d.h"
#include "aten/ops/avg_pool3d.h"

namespace treadle::autograd {

Tensor in_format_of(const Tensor& grad, IntList sizes, IntList strides) {
  return shape::in_format(grad, shape::kept_format(grad.device(), sizes, strides));
}

Tensor avg_pool_of(const Tensor& t, IntList kernel_size, IntList stride, IntList padding,
                   bool ceil_mode, bool count_include_pad,
                   std::optional<int64_t> divisor_override) {
  switch (kernel_size.size()) {
    case 1:
      return aten::avg_pool1d(t, kernel_size, stride, padding, ceil_mode, count_include_pad);
    case 2:
      return aten::avg_pool2d(t, kernel_size, stride, padding, ceil_mode, count_include_pad,
                              divisor_override);
    default:
      return aten::avg_pool3d(t, kernel_size, stride, padding, ceil_mode, count_include_pad,
                              divisor_override);
  }
}

Tensor unpool_backward(const Tensor& grad, const Tensor& indices, IntList output_size) {
  return aten::_max_pool_gather(grad, indices, static_cast<int64_t>(output_size.size()));
}

Tensor adaptive_avg_pool_to(const Tensor& t, IntList sizes, int64_t spatial) {
  const IntList size = sizes.slice(sizes.size() - static_cast<size_t>(spatial));
  return spatial == 1   ? aten::adaptive_avg_pool1d(t, size)
         : spatial == 2 ? aten::adaptive_avg_pool2d(t, size)
                        : aten::adaptive_avg_pool3d(t, size);
}

}  // namespace treadle::autograd
