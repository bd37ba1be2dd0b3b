// The expressions of operators as trees for plug-ins.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "plugin/treadle/plugin.h"

namespace treadle::plugin {

// The nodes of one expression; children come before their parents.
class Tree {
 public:
  Tree() = default;
  explicit Tree(std::string_view text);
  treadle_expression expression() const { return {nodes_.data(), nodes_.size()}; }

 private:
  std::vector<treadle_node> nodes_;
};

// The tree of `pointwise:`, or those of `reduce:`, by the address of the expression's text. The
// text and the result live forever.
const Tree& pointwise_tree(const char* expression);
struct ReduceTrees {
  Tree init, step, combine, final;
};
const ReduceTrees& reduce_trees(const char* expression);

}  // namespace treadle::plugin
