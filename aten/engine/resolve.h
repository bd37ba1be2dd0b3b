// Layer::Resolve: protects kernels from tensors whose bytes they would misread.
//
//   x.conj() only sets a bit: x's memory is shared. The first kernel that gets it is given the
//   conjugated values in its place.
//
//   x.to(treadle.float8_e5m2) is moved as integers. A kernel that computes with it is given its
//   values in float32. Results are rounded to float8 if the rules of promotion give them this
//   dtype.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/tensor/tensor.h"

namespace treadle {

// Whether kernels must not see the tensor.
inline bool needs_resolving(const Tensor& t) {
  return (t.layers() & layer_bit(Layer::Resolve)) != 0;
}

// The same memory, as its bytes say: neither conjugated nor negated.
Tensor as_bytes_say(const Tensor& t);
// The values that `t` stands for, in memory of their own where it is conjugated or negated lazily;
// else `t`.
Tensor resolved(const Tensor& t);
// The values in a type that programs have, which is computed_type() for one that only stores.
Tensor readable(const Tensor& t);
// As copy_strided() and copy_between_devices(), for tensors of which one needs resolving.
void copy_resolved(const Tensor& dst, const Tensor& src);

}  // namespace treadle
