// SPDX-License-Identifier: Apache-2.0
#include "aten/fusion/describe.h"

#include <algorithm>

#include "aten/fusion/lock.h"
#include "aten/fusion/partition.h"
#include "core/schema/function_schema.h"

namespace treadle::fusion {
namespace {

// Why a node and a source of it that is pending, too, are in different groups.
const char* why_apart(const Node& node, const Source& source, const Group& group) {
  if (source.node->is_total()) return "it folds all elements, which have to be there first";
  if (source.node->fold && group.row == 0) return "it folds rows, which have to be there first";
  if (product(source.sizes) != source.node->numel()) return "it is read through a view";
  if (IntList(source.sizes) != IntList(node.shape)) return "it is of another shape";
  if (!source.is_whole) return "it is read through a view";
  for (const Source& other : node.inputs) {
    if (other.is_pending() && other.node->group > source.node->group)
      return "what else is read with it is computed later";
  }
  return "a pass would have too many operands, or rows of another length";
}

class Description {
 public:
  std::vector<DescribedGroup> of(const std::vector<Group>& groups) {
    std::vector<DescribedGroup> all;
    for (const Group& group : groups) all.push_back(describe(group));
    for (const Group& group : groups)
      for (Node* node : group.nodes) node->value = -1;
    return all;
  }

 private:
  DescribedGroup describe(const Group& group) {
    DescribedGroup d{group.shape, {}, {}, 0, 0};
    reads_.clear();
    for (Node* node : group.nodes) {
      d.nodes.push_back(describe(group, *node, d));
      node->value = d.nodes.back().value = next_++;
      d.bytes_alone += node->nbytes();
      if (node->is_written()) d.bytes += node->nbytes();
    }
    return d;
  }

  DescribedNode describe(const Group& group, const Node& node, DescribedGroup& d) {
    DescribedNode n{0, node.op().info().name, {}, node.dtype, node.strides, node.is_written()};
    size_t next_input = 0, next_scalar = 0;
    for (const schema::Argument& a : node.op().schema().arguments) {
      if (a.type.is_tensor()) {
        const Source& source = node.inputs[next_input++];
        n.arguments.push_back(DescribedValue{value_of(group, node, source, d)});
        d.bytes_alone += source.nbytes();
      } else if (node.fold) {
        n.arguments.push_back(argument_of_fold(a, node));
      } else {
        n.arguments.push_back(node.scalars[next_scalar++]);
      }
    }
    return n;
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
    if (source.is_pending() && source.node->group == node.group && group.has_inside(node, source))
      return source.node->value;
    for (const auto& [known, value] : reads_)
      if (is_same_memory(*known, source)) return value;
    reads_.emplace_back(&source, next_);
    d.reads.push_back({next_, source.dtype, source.sizes, source.strides,
                       source.is_pending() ? why_apart(node, source, group) : "",
                       source.is_pending() ? source.node->value : -1});
    d.bytes += source.nbytes();
    return next_++;
  }

  std::vector<std::pair<const Source*, int>> reads_;  // of the group, with their values
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
  return Description().of(partition(root));
}

}  // namespace treadle::fusion
