// Entries one by one, then the rule that spans them: every operator, and every form of it, has a
// name of its own.
//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/schemac/entries/functions.h"

#include <map>
#include <utility>
#include <vector>

#include "codegen/schemac/entries/alias.h"
#include "codegen/schemac/entries/entry.h"
#include "codegen/schemac/entries/foreach.h"
#include "codegen/schemac/entries/rules.h"

namespace treadle::schemac {
namespace {

class Names {
 public:
  // Reports a name or an identifier that another form has already.
  void add(const Operator& op, Diagnostics& diagnostics) {
    for (const Form& form : op.forms) {
      schema::OperatorName name = form.schema.name;
      const std::string text = print(name);
      const std::string what =
          form.form == op.forms[0].form
              ? "operator " + text
              : "operator " + text + ", the " + form.form + " form of " + op.name() + ",";
      const schema::SourceLocation place = op.source.place(0);
      const auto [first, is_new] = names_.emplace(text, place);
      if (!is_new) {
        diagnostics.add(
            op.source.diagnostic(0, what + " is defined twice",
                                 "the first is on line " + std::to_string(first->second.line)));
        continue;
      }
      name.ns.clear();
      const auto [same, is_free] =
          identifiers_.emplace(form.schema.name.ns + "::" + identifier_of(name), text);
      if (!is_free) {
        diagnostics.add(op.source.diagnostic(
            0, what + " has the same C++ name '" + identifier_of(name) + "' as " + same->second,
            "rename one of the two overloads"));
      }
    }
  }

 private:
  std::map<std::string, schema::SourceLocation> names_;
  std::map<std::string, std::string> identifiers_;
};

// The name of the operator of a schema that cannot be read.
std::string name_in(const YAML::Node& entry) {
  if (!entry.IsMap() || !entry["func"] || !entry["func"].IsScalar()) return "";
  const std::string& text = entry["func"].Scalar();
  return text.substr(0, text.find('('));
}

}  // namespace

Model read_functions(const YamlFile& file, const std::string& library,
                     const ScalarFunctions& functions, Diagnostics& diagnostics) {
  Model model;
  if (file.root().IsNull() || !file.root().IsDefined()) return model;
  if (!file.root().IsSequence()) {
    diagnostics.add(
        file.error(file.root(), "expected a list of operators", "begin each with '- func: ...'"));
    return model;
  }
  std::vector<Entry> entries;
  for (const YAML::Node& node : file.root()) {
    if (!node.IsMap()) {
      diagnostics.add(
          file.error(node, "expected an operator", "write '- func: name(Tensor self) -> Tensor'"));
      continue;
    }
    std::optional<Entry> entry = read_entry(file, node, library, functions, diagnostics);
    if (!entry) {
      model.refused.push_back(name_in(node));
      continue;
    }
    entries.push_back(std::move(*entry));
  }
  for (Entry& entry : entries) complete_alias(entry, entries, diagnostics);
  Names names;
  for (Entry& entry : entries) {
    const auto add = [&](Entry& whole) {
      apply_rules(whole, functions, diagnostics);
      names.add(whole.op, diagnostics);
    };
    add(entry);
    std::vector<Entry> on_lists = foreach_entries(entry, diagnostics);
    model.operators.push_back(std::move(entry.op));
    for (Entry& made : on_lists) {
      add(made);
      model.operators.push_back(std::move(made.op));
    }
  }
  return model;
}

}  // namespace treadle::schemac
