// The addend of a product of matrices.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "aten/engine/copy.h"
#include "core/tensor/tensor.h"

namespace treadle::cuda {

// `addend` broadcast to the shape of `out`, copied into it.
inline void fill_with(const Tensor& addend, const Tensor& out) {
  DimVector strides(out.sizes().size(), 0);
  const size_t shift = out.sizes().size() - addend.sizes().size();
  for (size_t d = 0; d < addend.sizes().size(); ++d)
    if (addend.sizes()[d] != 1) strides[d + shift] = addend.strides()[d];
  copy_strided(out, alias_with_geometry(addend, out.sizes(), strides, addend.storage_offset()));
}

}  // namespace treadle::cuda
