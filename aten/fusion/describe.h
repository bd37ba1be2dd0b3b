// Description: the groups in which pending values would be computed now, for people and for tests.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "core/tensor/tensor.h"

namespace treadle::fusion {

// Values are numbered through all groups.
struct DescribedValue {
  int number;
};
struct Nothing {};
using DescribedArgument =
    std::variant<Nothing, DescribedValue, Scalar, ScalarType, DimVector, std::string>;
struct DescribedNode {
  int value;
  std::string op;                            // "aten::mul.Tensor"
  std::vector<DescribedArgument> arguments;  // in the order of the schema
  ScalarType dtype;
  DimVector strides;
  bool is_written;
};
struct DescribedRead {
  int value;
  ScalarType dtype;
  DimVector sizes, strides;
  std::string why_apart;  // where it is computed by another group: why the two are not one
  int source = -1;        // and the value of that group
};
struct DescribedGroup {
  DimVector shape;
  std::vector<DescribedRead> reads;
  std::vector<DescribedNode> nodes;
  int64_t bytes;        // that the group reads and writes
  int64_t bytes_alone;  // that its operators would read and write one after the other
  std::string way;      // how they are computed: "in one pass", "as one convolution"
};

// The groups in which `looked_at` would be computed; those of all that is pending if it is
// undefined. Empty where nothing is.
std::vector<DescribedGroup> describe(const Tensor& looked_at);

}  // namespace treadle::fusion
