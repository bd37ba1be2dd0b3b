// Memory of the graph as tensors, for kernels that run while the graph is locked: their threads
// must not ask for what is pending.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "aten/fusion/node.h"

namespace treadle::fusion {

// The same bytes as those of the storage, which outlives it, and nothing that waits.
inline Storage plain_memory(const Storage& storage) {
  return make_intrusive<StorageImpl>(storage->address(), storage->nbytes(), kCPU, nullptr);
}
inline Storage plain_memory(const Source& source) {
  return plain_memory(source.node ? source.node->memory : source.storage);
}

inline Tensor tensor_on(const Storage& memory, ScalarType dtype, IntList sizes, IntList strides,
                        int64_t offset) {
  return Tensor(make_intrusive<TensorImpl>(memory, dtype, sizes, strides, offset));
}
inline Tensor tensor_of(const Source& source) {
  return tensor_on(plain_memory(source), source.dtype, source.sizes, source.strides, source.offset);
}

}  // namespace treadle::fusion
