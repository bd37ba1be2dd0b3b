// Reads one entry of native_functions.yaml: each key by itself. The rules between keys are in
// rules.h.
//
//   - func: add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor
//     variants: function, method
//     forms: functional, inplace, out
//     pointwise: self + alpha * other
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "codegen/schemac/diagnostics.h"
#include "codegen/schemac/expressions/scalar_functions.h"
#include "codegen/schemac/model.h"
#include "codegen/schemac/yaml_file.h"

namespace treadle::schemac {

// A form asked for by an entry, and the name it shall have where that is not ATen's.
struct RequestedForm {
  Word word;
  std::optional<Word> name;
};

// An operator on lists asked for by an entry, and its arguments where they are not the entry's.
struct RequestedForeach {
  Word name;
  std::vector<Word> arguments;
};

// An entry as written: the operator as far as single keys give it, and what the rules between keys
// need besides.
struct Entry {
  Operator op;
  std::map<std::string, Word> keys;  // the keys it has, with their places
  std::map<std::string, Word> variant_words;
  std::optional<Word> alias_of;
  std::vector<RequestedForm> forms;
  std::vector<RequestedForeach> foreach;
  std::map<std::string, Word> dispatch_words;
  bool dispatch_is_sound = true;            // nothing was reported about it
  bool promote_is_sound = true;             // likewise
  std::map<std::string, Word> dtype_words;  // keyed by device
  std::optional<Word> dtype_of_word;
  std::optional<Word> out_from_word;
  std::vector<std::pair<Word, ArgumentDtypes>> argument_dtypes;  // as written

  bool has(const std::string& key) const { return keys.count(key) > 0; }
};

// Nothing, with something reported, if the entry has no schema that can be read. `library` is the
// namespace of its operators; empty for Treadle's own. `functions` are those that expressions of
// elements may call.
std::optional<Entry> read_entry(const YamlFile& file, const YAML::Node& node,
                                const std::string& library, const ScalarFunctions& functions,
                                Diagnostics& diagnostics);

// Parses the schema of an operator of `library`, whose names need not say its namespace. One of
// another namespace is a SchemaError.
schema::FunctionSchema parse_schema_in(const schema::SourceText& source,
                                       const std::string& library);
// The schema's usual spelling, with the library's namespace where `text` has it.
std::string print_as_in(const std::string& text, const schema::FunctionSchema& schema,
                        const std::string& library);

}  // namespace treadle::schemac
