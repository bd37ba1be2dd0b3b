// Partition: cuts the graph of pending nodes into groups. The nodes of a group are computed in one
// pass over tiles, so that what passes between them stays in the nearest cache; what passes between
// groups is written to memory. The groups are ordered: each reads only groups before it.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "aten/fusion/body.h"

namespace treadle::fusion {

struct Group {
  std::vector<Node*> nodes;  // in order
  DimVector shape;           // of the elements
  int64_t row = 0;          // elements of a row, which folds make one of; 0 where nothing is folded
  size_t row_dims = 0;      // dimensions of a row: the last ones of the shape
  bool has_totals = false;  // folds of all elements, with which the group ends
  Body body;                // of the one node, where that is a contraction

  // Whether the group is one node, which is not a program.
  bool is_alone() const { return nodes[0]->is_alone(); }
  // The sources of such a group in memory.
  std::vector<const Source*> reads() const;

  // Whether a node of the group computes an element for each row, and not for each element.
  bool is_of_rows(const Node& node) const {
    return node.fold != nullptr || IntList(node.shape) != IntList(shape);
  }
  // Whether the shape of the node, which folds nothing, is that of the rows, perhaps with a
  // dimension of 1 for each that was folded.
  bool has_rows_of(const Node& node) const;
  // Why the node cannot read the result of a node of the group while it is in the cache; null where
  // it can.
  const char* why_outside(const Node& node, const Source& source) const;
  bool has_inside(const Node& node, const Source& source) const {
    return why_outside(node, source) == nullptr;
  }
  // The dimensions whose elements are the rows.
  IntList rows() const { return {shape.data(), shape.size() - row_dims}; }
};

// Why the node reads a value that another of the groups computes from memory.
const char* why_apart(const Node& node, const Source& source, const std::vector<Group>& groups);

// Whether what the node reads from memory has an element for each row of the group.
bool reads_for_rows(const Node& node, const Group& group);

// The groups in which `root`, if it is not null, and what it needs are computed, and `everything`
// that can be seen and does not wait for a look at itself. Sets what the nodes keep for the walk.
std::vector<Group> partition(const Node* root, bool everything);

// Whether two sources are the same elements of memory.
bool is_same_memory(const Source& a, const Source& b);

}  // namespace treadle::fusion
