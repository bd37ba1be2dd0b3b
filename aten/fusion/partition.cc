// SPDX-License-Identifier: Apache-2.0
#include "aten/fusion/partition.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace treadle::fusion {
namespace {

// Operands of a group, so that those of its tiles fit the nearest caches.
constexpr size_t kMostOperands = 24;

// Whether the source is all of its node's result, element by element, whatever the shape.
bool is_in_order(const Source& source) {
  return source.offset == 0 && source.dtype == source.node->dtype &&
         product(source.sizes) == source.node->numel() &&
         IntList(source.strides) == IntList(contiguous_strides(source.sizes));
}

// Whether the source, an element for each row of the group, is seen along the rows.
bool runs_along_rows(const Source& source, const Group& group) {
  if (source.offset != 0 || source.dtype != source.node->dtype) return false;
  const DimVector strides = broadcast_strides(group.shape, source.sizes, source.strides);
  const size_t rows = group.rows().size();
  int64_t expected = 1;
  for (size_t d = group.shape.size(); d-- > 0;) {
    if (d < rows) {
      if (group.shape[d] != 1 && strides[d] != expected) return false;
      expected *= group.shape[d];
    } else if (group.shape[d] != 1 && strides[d] != 0) {
      return false;
    }
  }
  return true;
}

// A source that a group reads from memory, for elements or for rows.
struct Operand {
  const Source* source;
  bool is_of_rows;
};

// The groups so far, with their operands.
class Groups {
 public:
  void place(Node& node) {
    if (node.is_alone()) return place_alone(node);
    const int first = first_after_inputs(node);
    join_inputs(node, first);
    int best = -1;
    int64_t most = 0;
    for (int g = first; g < static_cast<int>(groups_.size()); ++g) {
      if (groups_[static_cast<size_t>(g)].nodes.empty() || !fits(node, g)) continue;
      const int64_t shared = shared_bytes(node, g);
      if (shared > most) best = g, most = shared;
    }
    if (best < 0) {
      best = static_cast<int>(groups_.size());
      groups_.emplace_back();
      groups_.back().shape = node.fold ? node.inputs[0].sizes : node.shape;
      reads_.emplace_back();
      written_.push_back(0);
    }
    add(node, best);
  }

  std::vector<Group> take() && {
    std::erase_if(groups_, [](const Group& group) { return group.nodes.empty(); });
    for (int g = 0; g < static_cast<int>(groups_.size()); ++g)
      for (Node* node : groups_[static_cast<size_t>(g)].nodes) node->group = g;
    for (const Group& group : groups_)
      for (const Source* source : sources_of(group))
        if (source->is_pending()) source->node->is_read_outside = true;
    return std::move(groups_);
  }

 private:
  // The sources of a group in memory and in other groups.
  static std::vector<const Source*> sources_of(const Group& group) {
    if (group.nodes.empty()) return {};
    if (group.is_alone()) return group.reads();
    std::vector<const Source*> found;
    for (const Node* node : group.nodes)
      for (const Source& source : node->inputs)
        if (!source.is_pending() || source.node->group != node->group ||
            !group.has_inside(*node, source))
          found.push_back(&source);
    return found;
  }

  // Values that had nothing in common stand in groups apart. A node that reads several of them
  // makes one group of these, where no group between is in the way.
  void join_inputs(const Node& node, int last) {
    for (const Source& source : node.inputs) {
      if (!source.is_pending() || source.node->group == last) continue;
      const Group& group = groups_[static_cast<size_t>(last)];
      if (has_shape_of(node, group) && group.has_inside(node, source))
        join(source.node->group, last);
    }
  }

  // Moves the nodes of a group to a later one, unless a rule of groups forbids it.
  void join(int from, int to) {
    Group &early = groups_[static_cast<size_t>(from)], &late = groups_[static_cast<size_t>(to)];
    if (IntList(early.shape) != IntList(late.shape) || early.row != 0 || early.has_totals ||
        early.is_alone() || late.is_alone()) {
      return;
    }
    for (int g = from + 1; g < to; ++g)
      for (const Source* source : sources_of(groups_[static_cast<size_t>(g)]))
        if (source->is_pending() && source->node->group == from) return;
    for (const Node* node : late.nodes)
      for (const Source& source : node->inputs)
        if (source.is_pending() && source.node->group == from && !late.has_inside(*node, source))
          return;
    std::vector<Node*> nodes;
    std::merge(early.nodes.begin(), early.nodes.end(), late.nodes.begin(), late.nodes.end(),
               std::back_inserter(nodes),
               [](const Node* a, const Node* b) { return a->order < b->order; });
    for (Node* node : early.nodes) node->group = to;
    auto& all = reads_[static_cast<size_t>(to)];
    const std::vector<Operand> before = std::exchange(all, {});
    for (const Node* node : nodes) add_reads(*node, to);
    const size_t written = written_[static_cast<size_t>(from)] + written_[static_cast<size_t>(to)];
    if (all.size() + written > kMostOperands) {
      all = before;
      for (Node* node : early.nodes) node->group = from;
      return;
    }
    late.nodes = std::move(nodes);
    written_[static_cast<size_t>(to)] = written;
    early.nodes.clear();
  }

  void place_alone(Node& node) {
    node.group = static_cast<int>(groups_.size());
    Group& group = groups_.emplace_back();
    group.nodes.push_back(&node);
    group.shape = node.contracts ? node.inputs[0].sizes : node.shape;
    if (node.contracts) group.body = body_of(node);
    reads_.emplace_back();
    written_.push_back(1);
  }

  // The last group of those that the node reads: it stands in that or behind it.
  static int first_after_inputs(const Node& node) {
    int first = 0;
    for (const Source& source : node.inputs) {
      if (source.is_pending()) first = std::max(first, source.node->group);
    }
    return first;
  }

  // The bytes that the node would not read, or not read again, if it were in the group.
  int64_t shared_bytes(const Node& node, int g) const {
    int64_t bytes = 0;
    for (const Source& source : node.inputs) {
      if (is_inside(node, source, g) || reads(node, source, g)) bytes += source.nbytes();
    }
    return bytes;
  }

  bool is_inside(const Node& node, const Source& source, int g) const {
    return source.is_pending() && source.node->group == g &&
           groups_[static_cast<size_t>(g)].has_inside(node, source);
  }
  bool reads(const Node& node, const Source& source, int g) const {
    const auto& all = reads_[static_cast<size_t>(g)];
    const bool of_rows = reads_for_rows(node, groups_[static_cast<size_t>(g)]);
    return std::any_of(all.begin(), all.end(), [&](const Operand& o) {
      return o.is_of_rows == of_rows && is_same_memory(*o.source, source);
    });
  }

  bool fits(const Node& node, int g) const {
    const auto group = static_cast<size_t>(g);
    if (groups_[group].is_alone() || !has_shape_of(node, groups_[group])) return false;
    size_t operands = reads_[group].size() + written_[group] + (node.target ? 1 : 0);
    for (const Source& source : node.inputs) {
      const bool inside = is_inside(node, source, g);
      if (source.is_pending() && source.node->group == g && !inside) return false;
      if (!inside && !reads(node, source, g)) ++operands;
    }
    return operands <= kMostOperands;
  }

  static bool has_shape_of(const Node& node, const Group& group) {
    if (node.fold) {
      if (IntList(node.inputs[0].sizes) != IntList(group.shape)) return false;
      if (node.is_total()) return group.row == 0;
      return !group.has_totals && (group.row == 0 || group.row == node.row);
    }
    if (IntList(node.shape) == IntList(group.shape)) return true;
    // For rows: the shape of the rows, perhaps with a dimension of 1 for each that was folded.
    const IntList rows = group.rows(), shape = node.shape;
    if (group.row == 0 || shape.size() < rows.size() ||
        IntList(node.strides) != IntList(contiguous_strides(shape)) ||
        (shape.size() != rows.size() && shape.size() != group.shape.size())) {
      return false;
    }
    for (size_t d = 0; d < shape.size(); ++d)
      if (shape[d] != (d < rows.size() ? rows[d] : 1)) return false;
    return true;
  }

  void add(Node& node, int g) {
    const auto at = static_cast<size_t>(g);
    Group& group = groups_[at];
    if (node.is_total()) {
      group.has_totals = true;
    } else if (node.fold) {
      group.row = node.row;
      group.row_dims = node.folded_dims.size();
    }
    node.group = g;
    group.nodes.push_back(&node);
    if (node.target) ++written_[at];
    add_reads(node, g);
  }

  void add_reads(const Node& node, int g) {
    const auto at = static_cast<size_t>(g);
    for (const Source& source : node.inputs) {
      if (!is_inside(node, source, g) && !reads(node, source, g))
        reads_[at].push_back({&source, reads_for_rows(node, groups_[at])});
    }
  }

  std::vector<Group> groups_;
  std::vector<std::vector<Operand>> reads_;  // of each group, from memory
  std::vector<size_t> written_;              // results of each group that tensors hold
};

void mark(const Node& reader, const Source& source) {
  if (!source.is_pending()) return;
  (reader.is_needed ? source.node->is_needed : source.node->is_read_outside) = true;
}

// A contraction needs no value of its body, but what that is computed from.
void mark_sources(const Node& node) {
  if (!node.contracts || !node.is_needed) {
    for (const Source& source : node.inputs) mark(node, source);
  }
  if (!node.contracts) return;
  for (const Source* source : body_of(node).reads()) mark(node, *source);
}

void mark_needed(const Node* root, bool everything) {
  for (Node* node = pending().oldest(); node != nullptr; node = node->after) {
    const bool is_seen = node->target != nullptr && node->waits_for_look == 0;
    node->is_needed = node == root || (everything && is_seen);
    node->is_read_outside = false;
    node->group = -1;
  }
  for (Node* node = pending().latest(); node != nullptr; node = node->before) mark_sources(*node);
}

}  // namespace

std::vector<const Source*> Group::reads() const {
  if (nodes[0]->contracts) return body.reads();
  return {&nodes[0]->inputs[0]};
}

bool Group::has_inside(const Node& node, const Source& source) const {
  if (is_alone()) return false;
  if (source.node->is_total()) return false;
  const bool node_of_rows = is_of_rows(node), source_of_rows = is_of_rows(*source.node);
  if (node.fold) return !source_of_rows && source.is_whole;
  if (node_of_rows) return source_of_rows && is_in_order(source);
  return source_of_rows ? runs_along_rows(source, *this) : source.is_whole;
}

bool reads_for_rows(const Node& node, const Group& group) {
  return node.fold == nullptr && group.is_of_rows(node);
}

bool is_same_memory(const Source& a, const Source& b) {
  return a.node == b.node && a.storage == b.storage && a.offset == b.offset && a.dtype == b.dtype &&
         IntList(a.sizes) == IntList(b.sizes) && IntList(a.strides) == IntList(b.strides);
}

std::vector<Group> partition(const Node* root, bool everything) {
  mark_needed(root, everything);
  Groups groups;
  int order = 0;
  for (Node* node = pending().oldest(); node != nullptr; node = node->after) {
    node->order = order++;
    if (node->is_needed) groups.place(*node);
  }
  return std::move(groups).take();
}

}  // namespace treadle::fusion
