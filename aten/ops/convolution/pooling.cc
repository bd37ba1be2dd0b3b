// Max pooling without its indices, and max unpooling by name.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/engine/renamed_errors.h"
#include "aten/ops/_max_unpool.h"
#include "aten/ops/max_pool1d.h"
#include "aten/ops/max_pool1d_with_indices.h"
#include "aten/ops/max_pool2d.h"
#include "aten/ops/max_pool2d_with_indices.h"
#include "aten/ops/max_pool3d.h"
#include "aten/ops/max_pool3d_with_indices.h"
#include "aten/ops/max_unpool2d.h"
#include "aten/ops/max_unpool3d.h"

namespace treadle::composite {

Tensor max_pool1d(const Tensor& self, IntList kernel_size, IntList stride, IntList padding,
                  IntList dilation, bool ceil_mode) {
  return renamed("max_pool1d", "max_pool1d_with_indices", [&] {
    return std::get<0>(
        aten::max_pool1d_with_indices(self, kernel_size, stride, padding, dilation, ceil_mode));
  });
}

Tensor max_pool2d(const Tensor& self, IntList kernel_size, IntList stride, IntList padding,
                  IntList dilation, bool ceil_mode) {
  return renamed("max_pool2d", "max_pool2d_with_indices", [&] {
    return std::get<0>(
        aten::max_pool2d_with_indices(self, kernel_size, stride, padding, dilation, ceil_mode));
  });
}

Tensor max_pool3d(const Tensor& self, IntList kernel_size, IntList stride, IntList padding,
                  IntList dilation, bool ceil_mode) {
  return renamed("max_pool3d", "max_pool3d_with_indices", [&] {
    return std::get<0>(
        aten::max_pool3d_with_indices(self, kernel_size, stride, padding, dilation, ceil_mode));
  });
}

Tensor max_unpool2d(const Tensor& self, const Tensor& indices, IntList output_size) {
  return renamed("max_unpool2d", "_max_unpool",
                 [&] { return aten::_max_unpool(self, indices, output_size); });
}

Tensor max_unpool3d(const Tensor& self, const Tensor& indices, IntList output_size, IntList,
                    IntList) {
  return renamed("max_unpool3d", "_max_unpool",
                 [&] { return aten::_max_unpool(self, indices, output_size); });
}

}  // namespace treadle::composite
