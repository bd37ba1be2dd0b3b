// Builds the trees of expressions, once for each expression.
//
// SPDX-License-Identifier: Apache-2.0
#include "plugin/host/expressions.h"

#include <charconv>
#include <mutex>
#include <set>
#include <unordered_map>

#include "aten/engine/backends/generated.h"
#include "core/base/error.h"
#include "core/base/fork_safe_mutex.h"
#include "core/schema/expr.h"

namespace treadle::plugin {
namespace {

// A text that lives for ever, ending with 0.
const char* kept(const std::string& text) {
  static auto* mutex = new ForkSafeMutex;
  static auto* texts = new std::set<std::string>;
  const std::lock_guard lock(*mutex);
  return texts->insert(text).first->c_str();
}

treadle_node_kind kind_of(const schema::ExprNode& e) {
  using schema::ExprKind;
  switch (e.kind) {
    case ExprKind::Name:
      return TREADLE_NODE_NAME;
    case ExprKind::Int:
      return TREADLE_NODE_INT;
    case ExprKind::Float:
      return TREADLE_NODE_FLOAT;
    case ExprKind::Bool:
      return TREADLE_NODE_BOOL;
    case ExprKind::Call:
      return TREADLE_NODE_CALL;
    case ExprKind::Binary:
      return TREADLE_NODE_BINARY;
    case ExprKind::Unary:
      return TREADLE_NODE_UNARY;
    case ExprKind::Select:
      return TREADLE_NODE_SELECT;
    default:
      fail<ErrorKind::Internal>("internal error, please report it: an expression of a kernel has ",
                                e.text);
  }
}

int32_t add(const schema::ExprNode& e, std::vector<treadle_node>& nodes) {
  check_internal(e.children.size() <= TREADLE_MAX_CHILDREN, "a node has at most four children");
  treadle_node node{};
  node.kind = kind_of(e);
  node.text = kept(e.text);
  node.child_count = static_cast<int32_t>(e.children.size());
  for (size_t i = 0; i < e.children.size(); ++i) node.children[i] = add(*e.children[i], nodes);
  if (node.kind == TREADLE_NODE_INT)
    std::from_chars(e.text.data(), e.text.data() + e.text.size(), node.integer);
  if (node.kind == TREADLE_NODE_FLOAT)
    std::from_chars(e.text.data(), e.text.data() + e.text.size(), node.number);
  if (node.kind == TREADLE_NODE_BOOL) node.integer = e.text == "true";
  nodes.push_back(node);
  return static_cast<int32_t>(nodes.size()) - 1;
}

template <class T, class Make>
const T& once_for(const char* expression, Make make) {
  static auto* mutex = new ForkSafeMutex;
  static auto* known = new std::unordered_map<const char*, T>;
  const std::lock_guard lock(*mutex);
  const auto it = known->find(expression);
  return it != known->end() ? it->second : known->emplace(expression, make()).first->second;
}

}  // namespace

Tree::Tree(std::string_view text) {
  if (!text.empty()) add(*schema::parse_expr(text), nodes_);
}

const Tree& pointwise_tree(const char* expression) {
  return once_for<Tree>(expression, [&] { return Tree(expression); });
}

const ReduceTrees& reduce_trees(const char* expression) {
  return once_for<ReduceTrees>(expression, [&] {
    const auto part = [&](const char* name) { return Tree(reduction_part(expression, name)); };
    return ReduceTrees{part("init"), part("step"), part("combine"), part("final")};
  });
}

}  // namespace treadle::plugin
