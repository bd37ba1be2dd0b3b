// The Tensor class for programs. Methods are called on the argument `self`, wherever it stands in
// the schema.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/tensor_methods.h"

#include <gtest/gtest.h>

namespace treadle {
namespace {

TEST(TensorMethods, AreCalledOnSelf) {
  const api::Tensor ones = aten::ones({3}), zeros = aten::zeros({3});
  const Tensor no = aten::zeros({3}, ScalarType::Bool);
  // where(condition, self, other): the tensor is what is chosen from, not what chooses.
  EXPECT_EQ(ones.where(no, zeros).sum().item().to<double>(), 0.0);
  EXPECT_EQ(zeros.where(no, ones).sum().item().to<double>(), 3.0);
  EXPECT_EQ(ones.split(1, 0).size(), 3u);
}

}  // namespace
}  // namespace treadle
