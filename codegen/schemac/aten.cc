// Parses the schema of each entry; the other keys only have to be ATen's or ours.
//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/schemac/aten.h"

#include "codegen/schemac/entries/tables.h"
#include "core/schema/function_schema.h"

namespace treadle::schemac {
namespace {

bool read_func(const YamlFile& file, const Field& field, Diagnostics& diagnostics) {
  try {
    const schema::SourceText text = file.text(field);
    const std::string printed = print(parse_schema(text));
    if (printed == text.text()) return true;
    diagnostics.add(text.diagnostic(0, "schema is printed back as '" + printed + "'"));
  } catch (const schema::SchemaError& problem) {
    diagnostics.add(problem.diagnostic());
  }
  return false;
}

bool read_entry(const YamlFile& file, const YAML::Node& node, Diagnostics& diagnostics) {
  bool has_func = false;
  bool same = false;
  for (const Field& field : file.fields(node, diagnostics)) {
    if (field.key.text == "func") {
      has_func = true;
      same = read_func(file, field, diagnostics);
    } else if (!contains(aten_keys(), field.key.text)) {
      diagnostics.add(field.key.error("unknown key '" + field.key.text + "'",
                                      schema::did_you_mean(field.key.text, aten_keys())));
    }
  }
  if (!has_func) diagnostics.add(file.error(node, "entry without 'func'"));
  return same;
}

}  // namespace

AtenCount read_aten(const YamlFile& file, Diagnostics& diagnostics) {
  AtenCount count;
  if (!file.root().IsSequence()) {
    diagnostics.add(
        file.error(file.root(), "expected a list of operators", "begin each with '- func: ...'"));
    return count;
  }
  for (const YAML::Node& node : file.root()) {
    ++count.entries;
    if (!node.IsMap()) {
      diagnostics.add(
          file.error(node, "expected an operator", "write '- func: name(Tensor self) -> Tensor'"));
      continue;
    }
    try {
      count.same += read_entry(file, node, diagnostics) ? 1 : 0;
    } catch (const schema::SchemaError& problem) {
      diagnostics.add(problem.diagnostic());
    }
  }
  return count;
}

}  // namespace treadle::schemac
