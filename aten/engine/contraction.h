// Contractions: folds whose input need not be in memory as a whole, such as the sum of the products
// that a convolution adds up.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "aten/engine/reduce.h"

namespace treadle {

// A fold whose input waits. `dims` are any dimensions of the input, sorted.
struct CheckedContraction {
  const ReduceOp& op;
  ScalarType compute, result;
  const Tensor& input;
  IntList shape;  // of the result
  IntList dims;
  bool keepdim;
};

// The pending result; undefined where the call is another fold, or must run now. Defined by
// aten/fusion/.
Tensor defer_contraction(const CheckedContraction& call);

}  // namespace treadle
