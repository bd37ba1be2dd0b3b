// reindex of an index map that exists, for who computes parts of a result.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "aten/ops/indexing/index_map.h"
#include "core/base/scalar.h"

namespace treadle::cpu {

// The overflow value as an element of the dtype. RuntimeError if that cannot hold it.
Tensor reindex_filler(const Scalar& overflow_value, ScalarType dtype);

// Fills `out`, which is contiguous, has the map's loops as shape and at least one element. The
// dtypes of all three are the same.
void reindex_into(const shape::IndexMap& map, const Tensor& self, const Tensor& filler,
                  const Tensor& out);

}  // namespace treadle::cpu
