// Contraction: a fold of what is not in memory, and is not written there. A product of matrices or
// a convolution, and a gradient of one, runs by the library's kernel for it (kernel_call.h). Others
// are computed piece by piece: so many elements of what is folded at one time, and then their fold.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "aten/fusion/kernel_call.h"

namespace treadle::fusion {

// Elements of a piece, at most.
inline constexpr int64_t kLargestPiece = int64_t{1} << 17;

// Whether folding parts and then their results is the fold of all.
bool can_cut(const ReduceOp& op);

// Whether products of two repeated factors are computed, of which each has fewer elements.
bool is_product_of_repeated(const PointwiseOp& op, const std::vector<Source>& factors,
                            int64_t products);

// Computes the node of a group that is alone; `result` has its bytes.
void run_alone(const Group& group, const Storage& result);

}  // namespace treadle::fusion
