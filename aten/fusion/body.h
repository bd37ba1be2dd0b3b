// Body: what a contraction folds, as far as it is not in memory. Operators on elements, and what
// they read: memory, and the results of reindex.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "aten/fusion/node.h"

namespace treadle::fusion {

struct Body {
  static constexpr size_t kMostNodes = 16, kMostLeaves = 12;

  std::vector<const Node*> nodes;     // in order; the last one computes what is folded
  std::vector<const Source*> leaves;  // of all elements; those of reindexes first read their input
  // Sources that must be in memory first.
  std::vector<const Source*> reads() const;
  bool fits() const { return nodes.size() <= kMostNodes && leaves.size() <= kMostLeaves; }
};

// Whether the source is the whole result of a reindex that nobody else needs.
inline bool is_reindexed(const Source& source) {
  return source.is_pending() && source.is_whole && !source.node->is_needed &&
         source.node->indexing != nullptr && !source.node->contracts;
}

// Of the one input of a contraction. Values that are needed for themselves are memory.
Body body_of(const Node& contraction);
// Of a contraction whose input is the whole result of this node.
Body body_from(const Node& folded);

}  // namespace treadle::fusion
