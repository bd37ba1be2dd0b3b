// The values of several ranks become one: out[i] = in[0][i] op in[1][i] op ..., in the order of the
// inputs. Float16 and BFloat16 are added in float32 and rounded once, at the end.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "distributed/call.h"

namespace treadle::distributed {

// Whether there is arithmetic for the operation on the dtype.
bool can_reduce(ReduceOp op, ScalarType dtype);

// The bytes of an element of a dtype with arithmetic.
size_t element_size(ScalarType dtype);

// `out` may be one of the inputs. Average divides by `ranks`.
void reduce(ReduceOp op, ScalarType dtype, double factor, int ranks,
            const std::vector<const void*>& inputs, void* out, size_t bytes);

}  // namespace treadle::distributed
