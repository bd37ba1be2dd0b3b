// A walk that looks at methods before the objects they are called on.
//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/schemac/derivatives/saves.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>
#include <utility>

#include "core/schema/methods.h"

namespace treadle::schemac {
namespace {

using schema::ExprKind;
using schema::ExprNode;

// The number that digits are; nothing where it is too large to be that of a result.
std::optional<int> index_of(std::string_view digits) {
  int index = 0;
  const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), index);
  return parsed.ec == std::errc() ? std::optional<int>(index) : std::nullopt;
}

class Collector {
 public:
  explicit Collector(const schema::FunctionSchema& schema) : schema_(schema) {}

  std::vector<Save> collect(const schema::Expr& tree) {
    walk(*tree);
    // Whoever has the values has the metadata.
    std::vector<Save> result;
    for (const Save& save : saves_) {
      const bool covered =
          save.what != "value" && std::any_of(saves_.begin(), saves_.end(), [&](const Save& other) {
            return other.what == "value" && other.name == save.name;
          });
      if (!covered) result.push_back(save);
    }
    return result;
  }

 private:
  void walk(const ExprNode& node) {
    if (node.kind == ExprKind::Name) {
      add(node.text, "value");
      return;
    }
    std::size_t first = 0;
    if (node.kind == ExprKind::Method && node.children[0]->kind == ExprKind::Name) {
      const schema::MethodInfo* method = find_method(schema::MethodOf::Tensor, node.text);
      if (method && !method->saves.empty() && is_single_tensor(node.children[0]->text)) {
        add(node.children[0]->text, method->saves);
        first = 1;
      }
    }
    for (std::size_t i = first; i < node.children.size(); ++i) walk(*node.children[i]);
  }

  std::optional<std::size_t> result_index(const std::string& name) const {
    for (std::size_t i = 0; i < schema_.returns.size(); ++i) {
      const auto names = result_names(schema_, i);
      if (std::find(names.begin(), names.end(), name) != names.end()) return i;
    }
    return std::nullopt;
  }

  bool is_single_tensor(const std::string& name) const {
    if (const schema::Argument* argument = schema_.find_argument(name)) {
      return argument->type.is_tensor() && !argument->type.list;
    }
    const auto index = result_index(name);
    return index && schema_.returns[*index].type.is_tensor() && !schema_.returns[*index].type.list;
  }

  void add(const std::string& name, std::string_view what) {
    Save save{name, std::string(what), false, 0};
    if (const schema::Argument* argument = schema_.find_argument(name)) {
      save.index = static_cast<int>(argument - schema_.arguments.data());
    } else if (const auto index = result_index(name)) {
      save.is_output = true;
      save.index = static_cast<int>(*index);
    } else {
      return;  // grad, a constant
    }
    const bool known = std::any_of(saves_.begin(), saves_.end(), [&](const Save& other) {
      return other.name == save.name && other.what == save.what;
    });
    if (!known) saves_.push_back(std::move(save));
  }

  const schema::FunctionSchema& schema_;
  std::vector<Save> saves_;
};

}  // namespace

std::vector<std::string> result_names(const schema::FunctionSchema& schema, std::size_t index) {
  std::vector<std::string> names;
  if (!schema.returns[index].name.empty()) names.push_back(schema.returns[index].name);
  names.push_back(schema.returns.size() == 1 ? "result" : "result" + std::to_string(index));
  return names;
}

std::vector<Save> saves_of(const schema::Expr& tree, const schema::FunctionSchema& schema) {
  return Collector(schema).collect(tree);
}

bool uses_gradient(const schema::Expr& tree, const schema::FunctionSchema& schema) {
  bool found = false;
  visit(tree, [&](const ExprNode& node) {
    const bool incoming = node.kind == ExprKind::Name &&
                          (node.text == "grad" || node.text == "grads") &&
                          !schema.find_argument(node.text);
    found = found || incoming;
  });
  return found;
}

std::vector<int> gradients_of(const schema::Expr& tree, const schema::FunctionSchema& schema,
                              const std::vector<bool>& differentiable) {
  const auto is_incoming = [&](const ExprNode& node, std::string_view name) {
    return node.kind == ExprKind::Name && node.text == name && !schema.find_argument(name);
  };
  const auto first = std::find(differentiable.begin(), differentiable.end(), true);
  std::set<int> found;
  visit(tree, [&](const ExprNode& node) {
    if (is_incoming(node, "grad") && first != differentiable.end())
      found.insert(static_cast<int>(first - differentiable.begin()));
    if (node.kind == ExprKind::Index && is_incoming(*node.children[0], "grads") &&
        node.children[1]->kind == ExprKind::Int) {
      if (const auto index = index_of(node.children[1]->text)) found.insert(*index);
    }
  });
  return {found.begin(), found.end()};
}

}  // namespace treadle::schemac
