// Generated reductions: the choice of kernels for a call, their source, and their arguments. The
// choice and the source need no device.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "aten/backend/cuda/jit/generated_kernel.h"
#include "aten/engine/backends/generated.h"

namespace treadle::cuda {

// All properties of a call that its kernels' source depends on, and the split of its work. The
// split depends only on the sizes and strides, so the same call gives the same bits on every
// device.
struct ReducePlan {
  const ReduceExpressions* expressions = nullptr;
  ScalarType in, out, compute;
  int kept = 1, folded = 1;  // dimensions
  bool narrow = true;        // 32-bit indices
  bool rows = false;         // the elements folded follow each other in memory
  bool wide = false;         // and are aligned for reads of 16 bytes

  int width = 1;       // outputs of a block
  int64_t pieces = 1;  // of a fold; with more than one, a second kernel joins their results
  int64_t piece = 0;   // elements of a piece
};

inline constexpr size_t kMaxReduceDims = 12;

ReducePlan plan_reduce(const GeneratedReduce& call);
// A fold in one piece is one kernel. With several pieces, each is folded, then the results are
// joined.
enum class FoldStage : char { Whole, Pieces, Join };
// The kernel "fold_kernel" of the stage.
std::string reduce_source(const ReducePlan& plan, FoldStage stage);

}  // namespace treadle::cuda
