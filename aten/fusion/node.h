// Node: a checked operator call whose result is pending. The nodes of a program form a graph, in
// which each reads memory or the results of nodes before it.
//
// All of this is used under the lock of the graph (graph.cc).
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "aten/engine/deferral.h"
#include "aten/ops/indexing/index_map.h"
#include "core/base/array_ref.h"

namespace treadle::fusion {

struct Node;

// An input of a node: the result of another node, or memory.
struct Source {
  IntrusivePtr<Node> node;  // null for memory
  Storage storage;          // null for a node
  ScalarType dtype;
  DimVector sizes, strides;  // in elements
  int64_t offset = 0;
  // The source is a node, and each element is read for the element of the same place.
  bool is_whole = false;

  // Whether another node must be computed first.
  bool is_pending() const;
  int64_t nbytes() const;
};

// The arguments of reindex and reindex_reduce.
struct Indexing {
  const Operator* op;
  shape::IndexMap map;  // which divides by no 0
  std::string indices;
  // The rest of the arguments: the number, and its one element in the dtype of the result; or what
  // is done with the elements.
  Scalar overflow_value;
  Tensor filler;
  std::string how;
};

struct Node final : PendingValue {
  ~Node() override;

  // The operator: on elements; or one that folds the last dimensions of its input, whose elements
  // lie in order; or one that indexes.
  const PointwiseOp* pointwise = nullptr;
  const ReduceOp* fold = nullptr;
  std::unique_ptr<const Indexing> indexing;
  // A fold of any dimensions, or a reindex_reduce, whose input is computed piece by piece, or not
  // at all (contraction.h).
  bool contracts = false;
  // Above 0: a reindex, or computed from one element by element in so many steps, or products of
  // repeated factors. It is larger than what it is computed from, and waits for a look at itself.
  int waits_for_look = 0;
  ScalarType compute, dtype;  // of the computation and of the result
  std::vector<Source> inputs;
  std::array<Scalar, kMaxPointwiseScalars> scalars;
  int scalar_count = 0;
  DimVector shape, strides;  // of the result, which has offset 0
  int64_t row = 0;           // elements that a fold makes one of
  DimVector folded_dims;
  bool keepdim = false;
  // The storage that waits for the result: null where nothing but other nodes can see it.
  StorageImpl* target = nullptr;
  // The former bytes of a target that is written in place, which lie where the result goes.
  Storage lent;
  // The result once it was computed, while other nodes read it.
  Storage memory;
  bool is_computed = false;

  // The neighbours in the list of all that are not computed, oldest first.
  Node* before = nullptr;
  Node* after = nullptr;

  // For the walk that is going on.
  bool is_needed = false;
  bool is_read_outside = false;  // of its group
  int order = 0;                 // in the list
  int group = -1;
  const char* why_apart = nullptr;  // from the last group of those that it reads
  int value = -1;                   // its number in the program of its group

  int64_t numel() const;
  int64_t nbytes() const { return numel() * item_size(dtype); }
  // A fold of all elements of its input, which are too many for a tile.
  bool is_total() const { return fold != nullptr && row > CheckedFold::kLongestRow; }
  // A group of its own, which is not a program.
  bool is_alone() const { return contracts || indexing != nullptr; }
  const Operator& op() const {
    return indexing ? *indexing->op : fold ? *fold->op : *pointwise->op;
  }
  // Whether what it computes is seen outside of its group, so that it goes to memory.
  bool is_written() const { return target != nullptr || is_read_outside; }
};

// The node that the storage waits for; null where its bytes are there.
inline Node* pending_node(const StorageImpl& storage) {
  return static_cast<Node*>(storage.pending());
}

// All nodes that are not computed, in the order in which they were made, so that each comes behind
// those that it reads.
class Pending {
 public:
  void add(Node& node) noexcept;
  void remove(Node& node) noexcept;
  Node* oldest() const noexcept { return first_; }
  Node* latest() const noexcept { return last_; }
  // Of those that do not wait for a look at themselves.
  int64_t size() const noexcept { return size_; }

 private:
  Node* first_ = nullptr;
  Node* last_ = nullptr;
  int64_t size_ = 0;
};
Pending& pending() noexcept;

}  // namespace treadle::fusion
