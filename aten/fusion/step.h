// The step of a program that computes a node on elements.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "aten/engine/cpu/program.h"
#include "aten/fusion/node.h"

namespace treadle::fusion {

inline simd::ProgramStep pointwise_step(const Node& node) {
  simd::ProgramStep step{};
  step.compute = node.compute;
  const simd::PointwiseBlocks& blocks = node.pointwise->cpu_blocks();
  step.block = blocks.by_dtype[static_cast<size_t>(node.compute)];
  step.results[0] = {blocks.bool_result ? ScalarType::Bool : node.compute, node.dtype};
  step.scalars = node.scalars.data();
  return step;
}

}  // namespace treadle::fusion
