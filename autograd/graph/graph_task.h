// GraphTask: the state of one backward. It holds the nodes reachable from the roots, the number of
// gradients that each still waits for, and the gradients that have arrived.
//
// Nodes are numbered when the graph is explored, and edges hold those numbers. So the traversal
// itself needs no look-up.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <vector>

#include "autograd/graph/node.h"

namespace treadle::autograd {

class GraphTask {
 public:
  static constexpr uint32_t kNone = UINT32_MAX;

  struct State {
    Node* node;             // alive as long as the roots are
    uint32_t first_target;  // in targets_: the numbers of the nodes at its edges
    uint32_t dependencies = 0;
    uint32_t first_capture = kNone;
    bool needed = true;  // whether the node is to be applied
    Grads gradients;
    // Whether the gradients that arrive here are needed.
    bool takes_gradients() const { return needed || first_capture != kNone; }
  };
  struct Capture {
    uint32_t input_nr;
    uint32_t result;  // index in the list of results
    uint32_t next;    // further capture at the same node
  };

  // Explores the graph.
  explicit GraphTask(ArrayRef<Edge> roots);
  GraphTask(const GraphTask&) = delete;
  GraphTask& operator=(const GraphTask&) = delete;

  size_t size() const { return states_.size(); }
  State& state(uint32_t i) { return states_[i]; }
  uint32_t target(const State& s, size_t edge) const { return targets_[s.first_target + edge]; }
  // The number of a node, or kNone when it is not reachable.
  uint32_t find(const Node* node) const;

  // Restricts the traversal to the nodes on a path to `edges`. Their gradients become results, or,
  // for leaves when `accumulate`, are added to .grad.
  void restrict_to(ArrayRef<Edge> edges, bool accumulate);
  bool restricted() const { return restricted_; }
  // For each edge of node i, whether its gradient is needed; null when all are.
  const uint8_t* wanted(uint32_t i);
  const Capture& capture(uint32_t i) const { return captures_[i]; }

  const int64_t id;  // all different
  std::vector<Tensor> results;
  std::vector<std::function<void()>> callbacks;
  bool keep_graph = false;  // nodes keep their saved values
  // The least number of elements of a result that waits, as it did while a node was recorded.
  int64_t deferral = kDeferNever;

 private:
  uint32_t number(Node* node);
  void grow();

  std::vector<State> states_;
  std::vector<uint32_t> targets_;
  std::vector<Capture> captures_;
  std::vector<uint8_t> wanted_;
  // Open addressing: a power of two of slots, each a number or kNone.
  std::vector<uint32_t> slots_;
  bool restricted_ = false;
};

// The ready node with the largest sequence number is first; between equal numbers, the one that
// became ready first.
class ReadyQueue {
 public:
  void push(uint64_t sequence_nr, uint32_t state);
  uint32_t pop();
  bool empty() const { return heap_.empty(); }

 private:
  struct Item {
    uint64_t sequence_nr;
    uint64_t order;
    uint32_t state;
    friend bool operator<(const Item& a, const Item& b) {
      return a.sequence_nr != b.sequence_nr ? a.sequence_nr < b.sequence_nr : a.order > b.order;
    }
  };
  std::vector<Item> heap_;
  uint64_t pushed_ = 0;
};

}  // namespace treadle::autograd
