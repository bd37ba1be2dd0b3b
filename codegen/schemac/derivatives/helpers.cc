// Each helper by itself; then no two may be the same function of C++.
//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/schemac/derivatives/helpers.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "codegen/schemac/entries/entry.h"
#include "codegen/schemac/entries/tables.h"
#include "codegen/schemac/expressions/resolve.h"

namespace treadle::schemac {
namespace {

using schema::Expr;
using schema::ExprKind;
using schema::SchemaError;
using schema::SourceText;

const std::vector<std::string>& known_keys_of_helpers() {
  static const std::vector<std::string> keys = {"func", "linear", "doc"};
  return keys;
}

class HelperReader {
 public:
  HelperReader(const YamlFile& file, const std::string& library, Diagnostics& diagnostics)
      : file_(file), library_(library), diagnostics_(diagnostics) {}

  std::optional<Helper> read(const YAML::Node& node) {
    const std::vector<Field> fields = file_.fields(node, diagnostics_);
    const auto func = std::find_if(fields.begin(), fields.end(),
                                   [](const Field& field) { return field.key.text == "func"; });
    if (func == fields.end()) {
      diagnostics_.add(file_.error(node, "helper without 'func'",
                                   "begin it with '- func: name(Tensor grad) -> Tensor'"));
      return std::nullopt;
    }
    try {
      read_schema(*func);
    } catch (const SchemaError& problem) {
      diagnostics_.add(problem.diagnostic());
      return std::nullopt;
    }
    for (const Field& field : fields) {
      try {
        read_field(field);
      } catch (const SchemaError& problem) {
        diagnostics_.add(problem.diagnostic());
      }
    }
    return std::move(helper_);
  }

 private:
  void read_schema(const Field& field) {
    helper_.source = file_.text(field);
    helper_.schema = parse_schema_in(helper_.source, library_);
    helper_.ns = library_.empty() ? "autograd" : library_;
    const std::string& text = helper_.source.text();
    const std::string usual = print_as_in(text, helper_.schema, library_);
    if (text != usual) {
      const auto offset = static_cast<std::size_t>(
          std::mismatch(text.begin(), text.end(), usual.begin(), usual.end()).first - text.begin());
      throw SchemaError(helper_.source.diagnostic(offset, "schema is not in its usual spelling",
                                                  "write '" + usual + "'"));
    }
    for (const schema::Argument& argument : helper_.schema.arguments) {
      if (!argument.type.alias) continue;
      throw SchemaError(helper_.source.diagnostic(
          argument.offset,
          "'" + argument.name + "' of helper " + name() + " has an alias annotation",
          "remove it: helpers change nothing, so that they can be differentiated"));
    }
  }

  void read_field(const Field& field) {
    const std::string& key = field.key.text;
    if (key == "func") return;
    if (key == "linear") {
      read_linear(field);
    } else if (key != "doc") {
      std::string hint = schema::did_you_mean(key, known_keys_of_helpers());
      if (hint.empty()) hint = "known are func, linear, doc";
      diagnostics_.add(field.key.error("unknown key '" + key + "' of helper " + name(), hint));
    }
  }

  void read_linear(const Field& field) {
    std::vector<SourceText> texts;
    if (field.value.IsSequence()) {
      for (const YAML::Node& item : field.value) {
        if (!item.IsScalar())
          throw SchemaError(file_.error(item, "expected names of arguments in linear of " + name(),
                                        "write them as a sum, as in 'grad_a + grad_b'"));
        texts.push_back(file_.scalar(item));
      }
    } else {
      texts.push_back(file_.text(field));
    }
    for (const SourceText& text : texts) {
      std::vector<std::string> group;
      add_names(text, schema::parse_expr(text), group);
      helper_.linear.push_back(std::move(group));
    }
  }

  // The names of a sum.
  void add_names(const SourceText& text, const Expr& tree, std::vector<std::string>& group) {
    if (tree->kind == ExprKind::Binary && tree->text == "+") {
      for (const Expr& child : tree->children) add_names(text, child, group);
      return;
    }
    if (tree->kind != ExprKind::Name) {
      throw SchemaError(text.diagnostic(
          tree->offset, "'" + print(tree) + "' in linear of " + name(),
          "name arguments, as in 'linear: grad', or 'linear: grad_a + grad_b' for both together"));
    }
    const schema::Argument* argument = helper_.schema.find_argument(tree->text);
    if (!argument) {
      throw SchemaError(text.diagnostic(
          tree->offset, "unknown argument '" + tree->text + "' in linear of " + name(),
          schema::did_you_mean(tree->text, argument_names(helper_.schema))));
    }
    if (!argument->type.is_tensor()) {
      throw SchemaError(text.diagnostic(tree->offset,
                                        "linear of " + name() + " names '" + tree->text +
                                            "' of type '" + print(argument->type) + "'",
                                        "gradients are tensors; remove it"));
    }
    group.push_back(tree->text);
  }

  std::string name() const { return print(helper_.schema.name); }

  const YamlFile& file_;
  const std::string& library_;
  Diagnostics& diagnostics_;
  Helper helper_;
};

}  // namespace

std::vector<Helper> read_helpers(const YamlFile& file, const std::string& library,
                                 Diagnostics& diagnostics) {
  std::vector<Helper> helpers;
  if (file.root().IsNull() || !file.root().IsDefined()) return helpers;
  if (!file.root().IsSequence()) {
    diagnostics.add(
        file.error(file.root(), "expected a list of helpers", "begin each with '- func: ...'"));
    return helpers;
  }
  std::map<std::string, int> lines;
  for (const YAML::Node& node : file.root()) {
    if (!node.IsMap()) {
      diagnostics.add(
          file.error(node, "expected a helper", "write '- func: name(Tensor grad) -> Tensor'"));
      continue;
    }
    std::optional<Helper> helper = HelperReader(file, library, diagnostics).read(node);
    if (!helper) continue;
    const std::string name = print(helper->schema.name);
    const auto [first, is_new] = lines.emplace(name, helper->source.place(0).line);
    if (!is_new) {
      diagnostics.add(helper->source.diagnostic(
          0, "helper " + name + " is declared twice",
          "the first is on line " + std::to_string(first->second) +
              "; an overload has a name of its own, as in '" + name + ".dim'"));
      continue;
    }
    helpers.push_back(std::move(*helper));
  }
  return helpers;
}

}  // namespace treadle::schemac
