// The alias of a tensor: a plain one, or one of the tensor's class.
//
// SPDX-License-Identifier: Apache-2.0
#include "autograd/alias.h"

#include "aten/ops/detach.h"

namespace treadle::autograd {

Tensor alias_without_history(const Tensor& t) {
  if (t.layers() & layer_bit(Layer::Dispatch) && t.is_taken_over()) [[unlikely]] {
    const ExcludeLayers below(Layer::Autograd);
    return aten::detach(t);
  }
  // Of another layout an alias has the same parts, without history.
  if (!t.is_strided()) [[unlikely]]
    return aten::detach(t);
  return alias_with_geometry(t, t.sizes(), t.strides(), t.storage_offset());
}

}  // namespace treadle::autograd
