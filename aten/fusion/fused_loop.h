// FusedLoop: pointwise nodes that one function computes element by element, so that what passes
// between them stays in registers. Its C++ source calls the functors that the generator prints from
// the entries (aten/elements-inl.h), so it rounds as the operators do one by one.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "aten/fusion/partition.h"

namespace treadle::fusion {

// Nodes of a program that one loop may compute; or one that no such loop can.
struct LoopNodes {
  std::vector<Node*> nodes;    // in order
  std::vector<Node*> results;  // that are written, or that other loops read
  bool is_pointwise = false;   // on float32 or float64, by functors of the header
};

// Cuts the nodes of a program into loops, each behind those that it reads.
std::vector<LoopNodes> cut_into_loops(const Group& group, std::span<Node* const> nodes);

struct FusedLoop {
  std::vector<int> inputs;  // the values that x0, x1, ... of the source stand for
  std::vector<Scalar> scalars;
  // The same for loops that differ in shapes and in the values of numbers alone.
  std::string source;
};

// `number_of` gives the number of a value that no node of the loop computes.
FusedLoop fuse(const Group& group, const LoopNodes& loop,
               const std::function<int(const Node& reader, const Source& source)>& number_of);

}  // namespace treadle::fusion
