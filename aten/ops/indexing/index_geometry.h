// The partition of a shape by advanced indexing: the dimensions that an index tensor replaces,
// those before and those after.
//
//   self (2, 3, 4, 5), indices {None, i, j}, i and j broadcast to (7,)
//   before (2), indexed (3, 4), after (5); the result is before + (7,) + after
//
// When the indexed dimensions are not adjacent, the index's shape comes first, as in NumPy:
// `before` is empty, and every dimension that is not indexed is in `after`.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/tensor/tensor.h"

namespace treadle::shape {

struct IndexGeometry {
  DimVector index_sizes;                            // what the index tensors broadcast to
  DimVector before_dims, indexed_dims, after_dims;  // dimensions of self
  DimVector result;                                 // sizes of the result
};

// `indices` are integer tensors or undefined (the whole dimension); at least one is defined.
// IndexError when there are too many, when one has another dtype, or when they do not broadcast.
IndexGeometry index_geometry(const char* op, const Tensor& self, TensorList indices);

}  // namespace treadle::shape
