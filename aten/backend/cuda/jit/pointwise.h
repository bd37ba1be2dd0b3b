// Generated pointwise kernels: the choice of a kernel for a call, its source, and its arguments.
// The choice and the source need no device.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "aten/backend/cuda/jit/generated_kernel.h"
#include "aten/engine/backends/generated.h"

namespace treadle::cuda {

// All properties of a call that its kernel's source depends on.
struct PointwisePlan {
  struct Operand {
    ScalarType dtype;
    bool single;  // one element, of a contiguous call
  };
  const Expression* expression = nullptr;
  ScalarType compute = ScalarType::Float32;
  size_t count = 0;                             // of operands
  Operand operands[kMaxGeneratedOperands + 1];  // the output first
  size_t numbers = 0;
  const char* names[kMaxGeneratedOperands + kMaxGeneratedNumbers];  // of inputs, then of numbers
  bool contiguous = false;
  bool narrow = true;  // 32-bit indices
  int dims = 1;        // of a call that is not contiguous
  int pack = 1;        // elements read and written at once, of a contiguous call
  int times = 4;       // packs, or elements, that a thread does
};

inline constexpr size_t kMaxPointwiseDims = 16;

// `processors` is the device's number of them. Few elements are spread over all of them.
PointwisePlan plan_pointwise(const GeneratedPointwise& call, int processors);
// The kernel "pointwise", for the types of the plan's operands and numbers.
std::string pointwise_source(const PointwisePlan& plan);
// The number of blocks, and the arguments in the source's order.
int64_t pointwise_blocks(const PointwisePlan& plan, int64_t numel);
void add_pointwise_arguments(const PointwisePlan& plan, const GeneratedPointwise& call,
                             Arguments& arguments);

}  // namespace treadle::cuda
