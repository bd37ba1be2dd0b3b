// An alias has the arguments of its operator, and few keys; the rest is copied.
//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/schemac/entries/alias.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "codegen/schemac/entries/tables.h"

namespace treadle::schemac {
namespace {

using schema::Argument;
using schema::Return;

using Rows = decltype(Operator::dtypes);

std::string name_in_file(const Operator& op) {
  schema::OperatorName name = op.schema.name;
  name.ns.clear();
  return print(name);
}

// Whether both are called alike, by position and by name. Defaults may differ.
bool alike(const schema::FunctionSchema& a, const schema::FunctionSchema& b) {
  return std::ranges::equal(a.arguments, b.arguments,
                            [](const Argument& x, const Argument& y) {
                              return x.name == y.name && print(x.type) == print(y.type);
                            }) &&
         std::ranges::equal(a.returns, b.returns, [](const Return& x, const Return& y) {
           return print(x.type) == print(y.type);
         });
}

// The operator that an alias names; nullptr if something is reported.
const Entry* operator_of(const Entry& alias, std::span<const Entry> entries,
                         Diagnostics& diagnostics) {
  const Word& word = *alias.alias_of;
  const std::string where = " in alias_of of " + alias.op.name();
  std::vector<std::string> names;
  for (const Entry& entry : entries) {
    names.push_back(name_in_file(entry.op));
    if (names.back() != word.text) continue;
    if (entry.alias_of) {
      diagnostics.add(word.error("'" + word.text + "'" + where + " is an alias, too",
                                 "name an operator that is not an alias"));
    } else if (!alike(alias.op.schema, entry.op.schema)) {
      diagnostics.add(word.error("'" + word.text + "'" + where + " has other arguments or results",
                                 "it is " + print(entry.op.schema)));
    } else {
      return &entry;
    }
    return nullptr;
  }
  diagnostics.add(word.error("unknown operator '" + word.text + "'" + where,
                             schema::did_you_mean(word.text, names)));
  return nullptr;
}

// The operator itself refuses what one of its devices does not take.
Rows of_all_devices(const Rows& rows) {
  std::set<std::string> members;
  for (const auto& [device, dtypes] : rows) members.insert(dtypes.begin(), dtypes.end());
  std::vector<std::string> ordered;
  for (const std::string& dtype : known_dtypes()) {
    if (members.count(dtype)) ordered.push_back(dtype);
  }
  return rows.empty() ? Rows{} : Rows{{"all", std::move(ordered)}};
}

}  // namespace

void complete_alias(Entry& entry, std::span<const Entry> entries, Diagnostics& diagnostics) {
  if (!entry.alias_of) return;
  Operator& op = entry.op;
  for (const char* key : {"pointwise", "reduce", "promote", "shape", "dispatch", "argument_dtypes",
                          "out_from", "moves", "foreach"}) {
    if (!entry.has(key)) continue;
    diagnostics.add(entry.keys.at(key).error(
        "'" + std::string(key) + "' of " + op.name() + ", which is an alias",
        "remove it: the operator that it calls has its own"));
  }
  const Entry* const of = operator_of(entry, entries, diagnostics);
  if (!of) return;
  entry.dispatch_words.clear();  // they are reported
  const std::string& base = of->op.schema.name.base;
  op.dispatch = {{"Alias", base, op.source.place(0).line}};
  const bool in_module = entry.has("python_module");
  if (!entry.has("variants") && !in_module) {
    op.variants = of->op.variants;
    entry.variant_words = of->variant_words;
  }
  if (!entry.has("forms")) {
    for (const RequestedForm& form : of->forms) {
      if (!in_module || form.word.text != "inplace") entry.forms.push_back({form.word, {}});
    }
  }
  if (!entry.has("check")) {
    op.checks = of->op.checks;
    op.unlimited = of->op.unlimited;
  }
  if (!entry.has("dtypes")) op.dtypes = of_all_devices(of->op.dtypes);
  if (!entry.has("dtype_of")) entry.dtype_of_word = of->dtype_of_word;
  if (!entry.has("doc")) op.doc = "As `" + base + "`.";
}

}  // namespace treadle::schemac
