// Kernels generated from operators' expressions, for pointwise calls and reductions.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "aten/engine/backends/generated.h"

namespace treadle::cuda {

// Queues the call on this thread's stream of its device. False if it has more dimensions than a
// kernel's arguments can hold.
bool run_pointwise(const GeneratedPointwise& call);
bool run_reduce(const GeneratedReduce& call);

}  // namespace treadle::cuda
