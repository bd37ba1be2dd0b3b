// Explores the graph, and restricts it to the nodes that lead to given nodes.
//
// SPDX-License-Identifier: Apache-2.0
#include "autograd/graph/graph_task.h"

#include <algorithm>
#include <atomic>

namespace treadle::autograd {
namespace {

size_t hash_of(const Node* node) {
  return static_cast<size_t>((reinterpret_cast<uintptr_t>(node) >> 4) * 0x9E3779B97F4A7C15ull >>
                             20);
}

int64_t next_task_id() {
  static std::atomic<int64_t> next{0};
  return next.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace

GraphTask::GraphTask(ArrayRef<Edge> roots) : id(next_task_id()), slots_(64, kNone) {
  states_.reserve(32);
  for (const Edge& root : roots) ++states_[number(root.node.get())].dependencies;
  // The edges of a node are stored when its turn comes. New nodes go to the end of the list.
  for (uint32_t i = 0; i < states_.size(); ++i) {
    Node* node = states_[i].node;
    deferral = std::min(deferral, node->deferral());
    states_[i].first_target = static_cast<uint32_t>(targets_.size());
    for (const Edge& edge : node->edges()) {
      if (!edge.valid()) {
        targets_.push_back(kNone);
        continue;
      }
      const uint32_t target = number(edge.node.get());
      ++states_[target].dependencies;
      targets_.push_back(target);
    }
  }
}

uint32_t GraphTask::number(Node* node) {
  const size_t mask = slots_.size() - 1;
  for (size_t slot = hash_of(node) & mask;; slot = (slot + 1) & mask) {
    const uint32_t i = slots_[slot];
    if (i == kNone) {
      const auto made = static_cast<uint32_t>(states_.size());
      slots_[slot] = made;
      states_.push_back(State{.node = node, .first_target = 0, .gradients = {}});
      if (2 * states_.size() > slots_.size()) grow();
      return made;
    }
    if (states_[i].node == node) return i;
  }
}

void GraphTask::grow() {
  slots_.assign(4 * slots_.size(), kNone);
  const size_t mask = slots_.size() - 1;
  for (uint32_t i = 0; i < states_.size(); ++i) {
    size_t slot = hash_of(states_[i].node) & mask;
    while (slots_[slot] != kNone) slot = (slot + 1) & mask;
    slots_[slot] = i;
  }
}

uint32_t GraphTask::find(const Node* node) const {
  const size_t mask = slots_.size() - 1;
  for (size_t slot = hash_of(node) & mask; slots_[slot] != kNone; slot = (slot + 1) & mask) {
    if (states_[slots_[slot]].node == node) return slots_[slot];
  }
  return kNone;
}

void GraphTask::restrict_to(ArrayRef<Edge> edges, bool accumulate) {
  restricted_ = true;
  results.resize(edges.size());
  for (State& s : states_) s.needed = false;

  // The predecessors of each node, as lists in one array.
  std::vector<uint32_t> first(states_.size() + 1, 0);
  for (const uint32_t target : targets_)
    if (target != kNone) ++first[target + 1];
  for (size_t i = 1; i < first.size(); ++i) first[i] += first[i - 1];
  std::vector<uint32_t> sources(first.back()), filled(first.begin(), first.end() - 1);
  for (uint32_t i = 0; i < states_.size(); ++i) {
    for (size_t e = 0; e < states_[i].node->num_outputs(); ++e) {
      const uint32_t target = this->target(states_[i], e);
      if (target != kNone) sources[filled[target]++] = i;
    }
  }

  std::vector<uint32_t> reached;
  for (size_t k = 0; k < edges.size(); ++k) {
    const uint32_t i = edges[k].valid() ? find(edges[k].node.get()) : kNone;
    if (i == kNone) continue;
    State& s = states_[i];
    if (accumulate && s.node->num_outputs() == 0 && s.node->sequence_nr() == kFirstInQueue) {
      s.needed = true;
    } else {
      captures_.push_back({edges[k].input_nr, static_cast<uint32_t>(k), s.first_capture});
      s.first_capture = static_cast<uint32_t>(captures_.size() - 1);
      // A node with hooks runs, even if its own gradients are not needed.
      if (const NodeHooks* hooks = s.node->hooks(); accumulate && hooks)
        s.needed = s.needed || !hooks->pre.empty() || !hooks->post.empty();
    }
    reached.push_back(i);
  }
  while (!reached.empty()) {
    const uint32_t i = reached.back();
    reached.pop_back();
    for (uint32_t k = first[i]; k < first[i + 1]; ++k) {
      State& source = states_[sources[k]];
      if (source.needed) continue;
      source.needed = true;
      reached.push_back(sources[k]);
    }
  }
}

const uint8_t* GraphTask::wanted(uint32_t i) {
  if (!restricted_) return nullptr;
  const State& s = states_[i];
  wanted_.assign(s.node->num_outputs() + 1, 0);
  for (size_t e = 0; e < s.node->num_outputs(); ++e) {
    const uint32_t target = this->target(s, e);
    if (target == kNone) continue;
    wanted_[e] = states_[target].takes_gradients();
  }
  return wanted_.data();
}

void ReadyQueue::push(uint64_t sequence_nr, uint32_t state) {
  heap_.push_back({sequence_nr, pushed_++, state});
  std::push_heap(heap_.begin(), heap_.end());
}

uint32_t ReadyQueue::pop() {
  std::pop_heap(heap_.begin(), heap_.end());
  const uint32_t state = heap_.back().state;
  heap_.pop_back();
  return state;
}

}  // namespace treadle::autograd
