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
      if (groups_[static_cast<size_t>(g)].nodes.empty()) continue;
      const char* const refusal = why_not(node, g);
      if (g == first) node.why_apart = refusal;
      if (refusal != nullptr) continue;
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
      if (why_not_shape(node, group) == nullptr && group.has_inside(node, source))
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

  // Why the node cannot stand in the group; null where it can.
  const char* why_not(const Node& node, int g) const {
    const Group& group = groups_[static_cast<size_t>(g)];
    if (const char* const why = why_not_shape(node, group)) return why;
    size_t operands = reads_[static_cast<size_t>(g)].size() + written_[static_cast<size_t>(g)] +
                      (node.target ? 1 : 0);
    for (const Source& source : node.inputs) {
      if (is_inside(node, source, g)) continue;
      if (source.is_pending() && source.node->group == g) return group.why_outside(node, source);
      if (!reads(node, source, g)) ++operands;
    }
    return operands <= kMostOperands ? nullptr : "a pass would have too many operands";
  }

  // The same of its shape alone, and of what it folds.
  static const char* why_not_shape(const Node& node, const Group& group) {
    if (group.is_alone()) return "it is not computed in a pass";
    if (node.fold == nullptr) {
      if (IntList(node.shape) == IntList(group.shape) || group.has_rows_of(node)) return nullptr;
      return "it is of another shape";
    }
    if (IntList(node.inputs[0].sizes) != IntList(group.shape)) return "it is of another shape";
    if (node.is_total())
      return group.row == 0 ? nullptr : "rows are folded with it, and here all elements";
    if (group.has_totals) return "all elements are folded with it, and here rows";
    return group.row == 0 || group.row == node.row ? nullptr
                                                   : "rows of another length are folded with it";
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

bool Group::has_rows_of(const Node& node) const {
  const IntList of_rows = rows(), of_node = node.shape;
  if (row == 0 || of_node.size() < of_rows.size() ||
      IntList(node.strides) != IntList(contiguous_strides(of_node)) ||
      (of_node.size() != of_rows.size() && of_node.size() != shape.size())) {
    return false;
  }
  for (size_t d = 0; d < of_node.size(); ++d)
    if (of_node[d] != (d < of_rows.size() ? of_rows[d] : 1)) return false;
  return true;
}

const char* Group::why_outside(const Node& node, const Source& source) const {
  static constexpr const char *kView = "it is read through a view",
                              *kRows = "it folds rows, which have to be there first";
  const Node& computed = *source.node;
  if (computed.is_alone()) return "it is not computed in a pass";
  if (node.is_alone()) return "it is not read in a pass";
  if (computed.is_total()) return "it folds all elements, which have to be there first";
  const bool source_of_rows = is_of_rows(computed);
  const char* const rows_first =
      computed.fold != nullptr ? kRows : "it needs folds of rows, which have to be there first";
  if (node.fold != nullptr) {
    if (source_of_rows) return rows_first;
    return source.is_whole ? nullptr : kView;
  }
  if (IntList(node.shape) == IntList(shape)) {
    if (source_of_rows) return runs_along_rows(source, *this) ? nullptr : rows_first;
    return source.is_whole ? nullptr : kView;
  }
  if (has_rows_of(node)) return source_of_rows && is_in_order(source) ? nullptr : kView;
  if (source_of_rows) return rows_first;
  const bool is_all = product(source.sizes) == computed.numel();
  return is_all && IntList(source.sizes) != IntList(node.shape) ? "it is of another shape" : kView;
}

const char* why_apart(const Node& node, const Source& source, const std::vector<Group>& groups) {
  const auto group_of = [&](const Source& s) -> const Group& {
    return groups[static_cast<size_t>(s.node->group)];
  };
  if (const char* const why = group_of(source).why_outside(node, source)) return why;
  for (const Source& other : node.inputs) {
    if (!other.is_pending() || &other == &source) continue;
    if (other.node->group > source.node->group)
      return "what else is read with it is computed later";
    if (other.node->group == source.node->group && !group_of(other).has_inside(node, other))
      return "what else is read with it has to be there first";
  }
  return node.why_apart != nullptr ? node.why_apart : "another pass reads more of what is read";
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
