// Arithmetic on geometries, for views and copies: shapes with a -1, strides of a new shape, dense
// tensors.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "core/tensor/tensor.h"

namespace treadle::shape {

// `sizes` with its one -1, if any, replaced so that there are `numel` elements. RuntimeError when
// that cannot be.
DimVector infer_size(const char* op, IntList sizes, int64_t numel);

// The strides with which the elements of a geometry have the shape `sizes` without being moved;
// nothing when there are none. `sizes` must have the same number of elements.
std::optional<DimVector> view_strides(IntList old_sizes, IntList old_strides, IntList sizes);

// The strides of a dense tensor in a memory format. RuntimeError when the format needs another
// number of dimensions.
DimVector strides_in_format(const char* op, IntList sizes, MemoryFormat format);

// Whether the elements fill one run of memory, each position once, in any order of dimensions.
bool is_dense(const Tensor& t);

// The shape that tensors of these sizes broadcast to; RuntimeError when they do not.
DimVector broadcast_sizes(const char* op, IntList a, IntList b);

}  // namespace treadle::shape
