// SPDX-License-Identifier: Apache-2.0
#include "aten/fusion/describe.h"

#include <algorithm>
#include <unordered_map>

#include "aten/fusion/contraction.h"
#include "aten/fusion/lock.h"
#include "aten/fusion/partition.h"
#include "core/schema/function_schema.h"

namespace treadle::fusion {
namespace {

class Description {
 public:
  explicit Description(const std::vector<Group>& groups) : groups_(groups) {}

  std::vector<DescribedGroup> all() {
    std::vector<DescribedGroup> all;
    for (const Group& group : groups_) all.push_back(describe(group));
    return all;
  }

 private:
  // The nodes that a group computes. A contraction has its body.
  static std::vector<const Node*> nodes_of(const Group& group) {
    std::vector<const Node*> nodes;
    for (const Source* leaf : group.body.leaves) {
      const Node* const node = leaf->node.get();
      if (is_reindexed(*leaf) && std::find(nodes.begin(), nodes.end(), node) == nodes.end())
        nodes.push_back(node);
    }
    nodes.insert(nodes.end(), group.body.nodes.begin(), group.body.nodes.end());
    nodes.insert(nodes.end(), group.nodes.begin(), group.nodes.end());
    return nodes;
  }

  static std::string way_of(const Group& group) {
    if (!group.is_alone()) return "in one pass";
    const Node& node = *group.nodes[0];
    if (!node.contracts) return "by its kernel";
    const auto call = find_kernel(node, group.body);
    return call ? std::string("as ") + call->name() : "piece by piece";
  }

  DescribedGroup describe(const Group& group) {
    DescribedGroup d{group.shape, {}, {}, 0, 0, way_of(group)};
    reads_.clear();
    inside_.clear();
    for (const Node* node : nodes_of(group)) {
      d.nodes.push_back(describe(group, *node, d));
      d.nodes.back().value = next_;
      inside_.emplace_back(node, next_);
      numbers_[node] = next_++;
      add(d.bytes_alone, node->nbytes());
      if (d.nodes.back().is_written) d.bytes += node->nbytes();
    }
    return d;
  }

  // Kernels read what is repeated in memory once.
  static int64_t bytes_in_memory(const Source& source) {
    int64_t bytes = item_size(source.dtype);
    for (size_t d = 0; d < source.sizes.size(); ++d)
      if (source.strides[d] != 0) bytes *= source.sizes[d];
    return bytes;
  }

  // Values that are not written may have more bytes than an int64_t counts.
  static void add(int64_t& bytes, int64_t more) {
    if (__builtin_add_overflow(bytes, more, &bytes)) bytes = INT64_MAX;
  }

  DescribedNode describe(const Group& group, const Node& node, DescribedGroup& d) {
    const bool is_of_body = group.is_alone() && &node != group.nodes[0];
    DescribedNode n{0,          node.op().info().name, {},
                    node.dtype, node.strides,          !is_of_body && node.is_written()};
    size_t next_input = 0, next_scalar = 0;
    for (const schema::Argument& a : node.op().schema().arguments) {
      if (a.type.is_tensor()) {
        const Source& source = node.inputs[next_input++];
        n.arguments.push_back(DescribedValue{value_of(group, node, source, d)});
        add(d.bytes_alone, source.nbytes());
      } else if (node.indexing) {
        n.arguments.push_back(argument_of_indexing(a, node));
      } else if (node.fold) {
        n.arguments.push_back(argument_of_fold(a, node));
      } else {
        n.arguments.push_back(node.scalars[next_scalar++]);
      }
    }
    return n;
  }

  static DescribedArgument argument_of_indexing(const schema::Argument& a, const Node& node) {
    const Indexing& indexing = *node.indexing;
    if (a.type.list) return node.shape;
    if (a.type.base == schema::BaseType::Scalar) return indexing.overflow_value;
    return a.name == "op" ? indexing.how : indexing.indices;
  }

  static DescribedArgument argument_of_fold(const schema::Argument& a, const Node& node) {
    if (a.type.base == schema::BaseType::ScalarType) {
      if (node.dtype == node.inputs[0].dtype) return Nothing{};
      return node.dtype;
    }
    if (a.type.base == schema::BaseType::Bool) return Scalar(node.keepdim);
    if (a.type.list) return node.folded_dims;
    return Scalar(node.folded_dims[0]);
  }

  int value_of(const Group& group, const Node& node, const Source& source, DescribedGroup& d) {
    const bool is_inside = group.is_alone()
                               ? source.is_whole && source.is_pending()
                               : source.is_pending() && source.node->group == node.group &&
                                     group.has_inside(node, source);
    if (is_inside) {
      for (const auto& [known, value] : inside_)
        if (known == source.node.get()) return value;
    }
    for (const auto& [known, value] : reads_)
      if (is_same_memory(*known, source)) return value;
    reads_.emplace_back(&source, next_);
    const Node& reader = group.is_alone() ? *group.nodes[0] : node;
    d.reads.push_back({next_, source.dtype, source.sizes, source.strides,
                       source.is_pending() ? why_apart(reader, source, groups_) : "",
                       source.is_pending() ? numbers_.at(source.node.get()) : -1});
    add(d.bytes, group.is_alone() ? bytes_in_memory(source) : source.nbytes());
    return next_++;
  }

  const std::vector<Group>& groups_;
  std::vector<std::pair<const Source*, int>> reads_;  // of the group, with their values
  std::vector<std::pair<const Node*, int>> inside_;   // computed by the group
  std::unordered_map<const Node*, int> numbers_;      // of all groups so far
  int next_ = 0;
};

}  // namespace

std::vector<DescribedGroup> describe(const Tensor& looked_at) {
  const Lock lock;
  const Node* root = nullptr;
  if (looked_at.defined()) {
    root = pending_node(*looked_at.storage());
    if (root == nullptr) return {};
  }
  return Description(partition(root, root == nullptr)).all();
}

}  // namespace treadle::fusion
