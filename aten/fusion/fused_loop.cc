// SPDX-License-Identifier: Apache-2.0
#include "aten/fusion/fused_loop.h"

#include <algorithm>
#include <map>
#include <unordered_map>

#include "aten/engine/cpu/pointwise_blocks.h"
#include "aten/engine/promotion.h"

namespace treadle::fusion {
namespace {

bool is_of_bools(const Node& node) { return node.pointwise->cpu_blocks().bool_result; }

// Whether a loop of vectors computes the node, and rounds as the node does.
bool is_fusable(const Node& node) {
  if (node.pointwise == nullptr || node.pointwise->element == nullptr) return false;
  if (node.compute != ScalarType::Float32 && node.compute != ScalarType::Float64) return false;
  return is_of_bools(node) || compute_of(node.dtype) == node.compute;
}

// Nodes with the same key are computed by one loop. A node is a level above what it reads from
// other loops, so loops of lower levels are computed first.
struct Key {
  int level;
  bool is_fusable;
  ScalarType compute;
  bool is_of_rows;
  auto operator<=>(const Key&) const = default;
};

class Cut {
 public:
  Cut(const Group& group, std::span<Node* const> nodes) : group_(group), nodes_(nodes) {}

  std::vector<LoopNodes> take() {
    std::vector<Key> keys;
    for (const Node* node : nodes_) {
      keys.push_back(key_of(*node, keys));
      positions_.emplace(node, keys.size() - 1);
    }
    std::map<Key, LoopNodes> fused;
    std::multimap<int, LoopNodes> by_level;
    for (size_t k = 0; k < nodes_.size(); ++k) {
      if (keys[k].is_fusable)
        fused[keys[k]].nodes.push_back(nodes_[k]);
      else
        by_level.emplace(keys[k].level, LoopNodes{{nodes_[k]}, {nodes_[k]}, false});
    }
    const std::vector<bool> is_result = results(keys);
    for (auto& [key, loop] : fused) {
      loop.is_pointwise = true;
      for (Node* node : loop.nodes)
        if (is_result[positions_.at(node)]) loop.results.push_back(node);
      by_level.emplace(key.level, std::move(loop));
    }
    std::vector<LoopNodes> loops;
    for (auto& [level, loop] : by_level) loops.push_back(std::move(loop));
    return loops;
  }

 private:
  // The position of the node that computes the source in the program; null where there is none.
  const size_t* position_of(const Node& node, const Source& source) const {
    if (!source.node || !group_.has_inside(node, source)) return nullptr;
    const auto found = positions_.find(source.node.get());
    return found == positions_.end() ? nullptr : &found->second;
  }

  Key key_of(const Node& node, const std::vector<Key>& keys) const {
    Key key{0, is_fusable(node), node.compute, group_.is_of_rows(node)};
    for (const Source& source : node.inputs) {
      const size_t* const at = position_of(node, source);
      if (at == nullptr) continue;
      Key read = keys[*at];
      const int level = read.level;
      read.level = key.level;
      key.level = std::max(key.level, key.is_fusable && read == key ? level : level + 1);
    }
    return key;
  }

  std::vector<bool> results(const std::vector<Key>& keys) const {
    std::vector<bool> found(nodes_.size());
    for (size_t k = 0; k < nodes_.size(); ++k) {
      if (nodes_[k]->is_written()) found[k] = true;
      for (const Source& source : nodes_[k]->inputs) {
        const size_t* const at = position_of(*nodes_[k], source);
        if (at != nullptr && !(keys[*at] == keys[k] && keys[k].is_fusable)) found[*at] = true;
      }
    }
    return found;
  }

  const Group& group_;
  std::span<Node* const> nodes_;
  std::unordered_map<const Node*, size_t> positions_;
};

// The value of a call as a tensor of the node's dtype holds it.
std::string as_held(const Node& node, const std::string& call) {
  const std::string value = "as_value(" + call + ")";
  if (node.dtype == node.compute) return value;
  return (node.dtype == ScalarType::Float16 ? "rounded<Half>(" : "rounded<BFloat16>(") + value +
         ")";
}

std::string name(char letter, size_t number) { return letter + std::to_string(number); }

}  // namespace

std::vector<LoopNodes> cut_into_loops(const Group& group, std::span<Node* const> nodes) {
  return Cut(group, nodes).take();
}

FusedLoop fuse(const Group& group, const LoopNodes& loop,
               const std::function<int(const Node& reader, const Source& source)>& number_of) {
  FusedLoop fused;
  std::unordered_map<const Node*, size_t> inside;
  std::string lines;
  const auto input = [&](const Node& node, const Source& source) {
    if (source.node && group.has_inside(node, source)) {
      if (const auto found = inside.find(source.node.get()); found != inside.end()) {
        const std::string value = name('v', found->second);
        return is_of_bools(*source.node) ? "as_value(" + value + ")" : value;
      }
    }
    const int number = number_of(node, source);
    const auto at = std::find(fused.inputs.begin(), fused.inputs.end(), number);
    const auto position = static_cast<size_t>(at - fused.inputs.begin());
    if (at == fused.inputs.end()) fused.inputs.push_back(number);
    return name('x', position);
  };
  for (const Node* node : loop.nodes) {
    std::string call = std::string(node->pointwise->element) + "::eval(";
    const char* separator = "";
    for (const Source& source : node->inputs) {
      call += separator + input(*node, source);
      separator = ", ";
    }
    for (int s = 0; s < node->scalar_count; ++s) {
      call += separator + name('s', fused.scalars.size());
      fused.scalars.push_back(node->scalars[static_cast<size_t>(s)]);
      separator = ", ";
    }
    call += ")";
    const std::string value = name('v', inside.size());
    lines += is_of_bools(*node) ? "    const auto " + value + " = " + call + ";\n"
                                : "    const V " + value + " = " + as_held(*node, call) + ";\n";
    inside.emplace(node, inside.size());
  }
  const char* const type = loop.nodes[0]->compute == ScalarType::Float64 ? "double" : "float";
  const bool is_one = loop.results.size() == 1;
  std::string parameters, block, bools;
  for (size_t k = 0; k < fused.inputs.size(); ++k) parameters += (k ? ", V " : "V ") + name('x', k);
  for (size_t k = 0; k < fused.scalars.size(); ++k)
    parameters += (parameters.empty() ? "V " : ", V ") + name('s', k);
  if (is_one) {
    lines += "    return " + name('v', inside.at(loop.results[0])) + ";\n";
  } else {
    parameters += ", const Put& put";
    for (size_t r = 0; r < loop.results.size(); ++r)
      lines += "    put(std::integral_constant<int, " + std::to_string(r) + ">(), " +
               name('v', inside.at(loop.results[r])) + ");\n";
  }
  for (const Node* result : loop.results) bools += is_of_bools(*result) ? ", true" : ", false";
  const std::string counts =
      std::to_string(fused.inputs.size()) + ", " + std::to_string(fused.scalars.size());
  block = is_one ? "pointwise_block<Loop, " + std::string(type) + bools + ", " + counts + ">"
                 : "fused_block<Loop, " + std::string(type) + ", " + counts + bools + ">";
  fused.source = "struct Loop {\n  template <class V" + std::string(is_one ? "" : ", class Put") +
                 ">\n  static HWY_INLINE auto eval(" + parameters + ") {\n" + lines +
                 "  }\n};\nconst auto block = &" + block + ";\n";
  return fused;
}

}  // namespace treadle::fusion
