// `add` without its contract, to be loaded before the library (LD_PRELOAD): what is left out is
// every test that can only refuse a call. Tests that choose between ways to compute stay.
//
// benchmarks/contract_cost.py counts the instructions of `a + b` with and without it.
//
// SPDX-License-Identifier: Apache-2.0
#define TREADLE_CONTRACT_FREE
#include "aten/engine/pointwise.cc"
#include "aten/ops/add.h"

namespace treadle::aten {

Tensor ops::add_Tensor::base(const Tensor& self, const Tensor& other, const Scalar& alpha) {
  static constexpr PointwiseOp kAdd{"add", &ops::add_Tensor::op, Promote::Common};
  return pointwise(kAdd, {&self, &other}, {Scalar(alpha)}, 0);
}

}  // namespace treadle::aten
