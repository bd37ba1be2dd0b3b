// One function per key; a table says which.
//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/schemac/entries/entry.h"

#include <algorithm>
#include <set>
#include <utility>

#include "codegen/schemac/entries/tables.h"
#include "codegen/schemac/expressions/elements.h"
#include "codegen/schemac/expressions/resolve.h"
#include "codegen/schemac/expressions/types.h"
#include "core/schema/lexer.h"

namespace treadle::schemac {
namespace {

using schema::SchemaError;
using schema::SourceText;

class EntryReader {
 public:
  EntryReader(const YamlFile& file, const std::string& library, const ScalarFunctions& functions,
              Diagnostics& diagnostics)
      : file_(file), library_(library), functions_(functions), diagnostics_(diagnostics) {}

  std::optional<Entry> read(const YAML::Node& node) {
    const std::vector<Field> fields = file_.fields(node, diagnostics_);
    const bool has_schema = read_schema(node, fields);
    for (const Field& field : fields) {
      entry_.keys.emplace(field.key.text, field.key);
      if (field.key.text == "func") continue;
      try {
        read_field(field, has_schema);
      } catch (const SchemaError& problem) {
        diagnostics_.add(problem.diagnostic());
      }
    }
    if (!has_schema) return std::nullopt;
    return std::move(entry_);
  }

 private:
  using Reader = void (EntryReader::*)(const Field&);

  bool read_schema(const YAML::Node& node, const std::vector<Field>& fields) {
    const auto func = std::find_if(fields.begin(), fields.end(),
                                   [](const Field& field) { return field.key.text == "func"; });
    if (func == fields.end()) {
      diagnostics_.add(file_.error(node, "entry without 'func'",
                                   "begin it with '- func: name(Tensor self) -> Tensor'"));
      return false;
    }
    try {
      op().source = file_.text(*func);
      op().schema = parse_schema_in(op().source, library_);
    } catch (const SchemaError& problem) {
      diagnostics_.add(problem.diagnostic());
      return false;
    }
    const std::string& text = op().source.text();
    const std::string canonical = print_as_in(text, op().schema, library_);
    if (text != canonical) {
      const std::size_t offset = static_cast<std::size_t>(
          std::mismatch(text.begin(), text.end(), canonical.begin(), canonical.end()).first -
          text.begin());
      diagnostics_.add(op().source.diagnostic(offset, "schema is not in its usual spelling",
                                              "write '" + canonical + "'"));
    }
    return true;
  }

  void read_field(const Field& field, bool has_schema) {
    static const std::map<std::string, Reader> readers = {
        {"doc", &EntryReader::read_doc},
        {"variants", &EntryReader::read_variants},
        {"forms", &EntryReader::read_forms},
        {"alias_of", &EntryReader::read_alias_of},
        {"python_module", &EntryReader::read_python_module},
        {"tags", &EntryReader::read_tags},
        {"moves", &EntryReader::read_moves},
        {"dispatch", &EntryReader::read_dispatch},
        {"shape", &EntryReader::read_shape},
        {"check", &EntryReader::read_check},
        {"pointwise", &EntryReader::read_pointwise},
        {"reduce", &EntryReader::read_reduce},
        {"promote", &EntryReader::read_promote},
        {"autocast", &EntryReader::read_autocast},
        {"dtypes", &EntryReader::read_dtypes},
        {"dtype_of", &EntryReader::read_dtype_of},
        {"argument_dtypes", &EntryReader::read_argument_dtypes},
        {"out_from", &EntryReader::read_out_from},
        {"foreach", &EntryReader::read_foreach}};
    const auto reader = readers.find(field.key.text);
    if (reader == readers.end()) {
      std::string hint = aten_key_remedy(field.key.text);
      if (!hint.empty()) {
        diagnostics_.add(
            field.key.error("key '" + field.key.text + "' of ATen has no meaning here", hint));
        return;
      }
      hint = schema::did_you_mean(field.key.text, known_keys());
      if (hint.empty()) hint = "known are " + join(known_keys());
      diagnostics_.add(field.key.error("unknown key '" + field.key.text + "'", hint));
      return;
    }
    // Expressions cannot be checked without the arguments they are about.
    if (has_schema) (this->*reader->second)(field);
  }

  void read_doc(const Field& field) { op().doc = file_.text(field).text(); }

  void read_variants(const Field& field) {
    for (Word& word : known_words(field, "variant", known_variants())) {
      op().variants.push_back(word.text);
      entry_.variant_words.emplace(word.text, std::move(word));
    }
  }

  void read_forms(const Field& field) {
    if (!field.value.IsMap()) {
      for (Word& word : known_words(field, "form", known_forms()))
        entry_.forms.push_back({std::move(word), {}});
      return;
    }
    for (Field& form : file_.fields(field.value, diagnostics_)) {
      if (!check_known(form.key, "form", known_forms())) continue;
      RequestedForm request{form.key, std::nullopt};
      if (!form.value.IsNull()) {
        const SourceText name = file_.text(form);
        schema::parse_operator_name(name);
        request.name = Word{name.text(), name, 0};
      }
      entry_.forms.push_back(std::move(request));
    }
  }

  void read_alias_of(const Field& field) {
    const SourceText name = file_.text(field);
    entry_.alias_of = Word{name.text(), name, 0};
  }

  void read_foreach(const Field& field) {
    if (!field.value.IsMap()) {
      for (Word& name : file_.words(field, diagnostics_))
        entry_.foreach.push_back({std::move(name), {}});
      return;
    }
    for (Field& row : file_.fields(field.value, diagnostics_)) {
      std::vector<Word> arguments;
      if (!row.value.IsNull()) arguments = file_.words(row, diagnostics_);
      entry_.foreach.push_back({std::move(row.key), std::move(arguments)});
    }
  }

  void read_python_module(const Field& field) {
    const SourceText text = file_.text(field);
    if (!schema::is_identifier(text.text())) {
      throw SchemaError(text.diagnostic(0, "python_module '" + text.text() + "' is not a name",
                                        "write one such as nn"));
    }
    op().python_module = text.text();
  }

  void read_tags(const Field& field) {
    for (const Word& word : known_words(field, "tag", known_tags())) op().tags.push_back(word.text);
  }

  void read_dispatch(const Field& field) {
    if (!field.value.IsMap()) {
      for (const Word& word : file_.words(field, diagnostics_)) add_dispatch(word, std::nullopt);
      return;
    }
    for (const Field& item : file_.fields(field.value, diagnostics_)) {
      std::optional<SourceText> kernel;
      if (!item.value.IsNull()) kernel = file_.text(item);
      for (const Word& word : split_words(item.key.source)) add_dispatch(word, kernel);
    }
  }

  void reject_dispatch(schema::Diagnostic diagnostic) {
    diagnostics_.add(std::move(diagnostic));
    entry_.dispatch_is_sound = false;
  }

  // A backend of somebody else goes by the name of its device: `remote` of 'remote:0'.
  static bool is_dispatch_key(const std::string& key) {
    if (key == "CPU" || key == "CUDA" || key == "Composite" || key == "View") return true;
    const bool known = key == "cpu" || key == "cuda" || key == "composite" || key == "view";
    return !known && key != "meta" && !key.empty() && key[0] >= 'a' && key[0] <= 'z' &&
           std::all_of(key.begin(), key.end(), [](char c) {
             return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
           });
  }

  // A function of a library that is loaded with the entry's: 'tvm_ffi:libmine.so:relu_cpu'.
  static bool is_tvm_ffi(const std::string& kernel) {
    constexpr std::string_view kPrefix = "tvm_ffi:";
    const std::size_t last = kernel.rfind(':');
    return kernel.starts_with(kPrefix) && last > kPrefix.size() &&
           schema::is_identifier(kernel.substr(last + 1));
  }

  void add_dispatch(const Word& key, const std::optional<SourceText>& kernel) {
    const bool any_device = key.text == "Composite" || key.text == "View";
    if (!is_dispatch_key(key.text)) {
      std::string upper = key.text;
      std::transform(upper.begin(), upper.end(), upper.begin(), [](char c) {
        return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
      });
      static const std::vector<std::string> common = {"CPU", "CUDA", "Composite", "View"};
      std::string hint =
          schema::did_you_mean(contains(common, upper) ? upper + "_" : key.text, common);
      if (hint.empty()) {
        hint =
            "keys are CPU, CUDA, Composite, View and the name of another backend's device, in "
            "lower case";
      }
      reject_dispatch(key.error("'" + key.text + "' is no dispatch key", hint));
      return;
    }
    if (!entry_.dispatch_words.emplace(key.text, key).second) {
      reject_dispatch(
          key.error("dispatch key '" + key.text + "' appears twice", "remove one of the two"));
      return;
    }
    if (!kernel && !any_device) {
      reject_dispatch(key.error("no kernel is given for dispatch key '" + key.text + "'",
                                "write '" + key.text + ": NAME_OF_THE_KERNEL'"));
      return;
    }
    const std::string name = kernel ? kernel->text() : op().schema.name.base;
    const bool outside = !any_device && is_tvm_ffi(name);
    for (std::size_t begin = 0; !outside && begin <= name.size();) {
      const std::size_t end = std::min(name.find("::", begin), name.size());
      if (!schema::is_identifier(name.substr(begin, end - begin))) {
        reject_dispatch(
            kernel->diagnostic(0, "kernel '" + name + "' is not the name of a function",
                               "write one such as " + identifier_of(op().schema.name) + "_cpu"));
        return;
      }
      begin = end + 2;
    }
    op().dispatch.push_back({key.text, name, key.source.place(key.offset).line});
  }

  void read_shape(const Field& field) {
    Expression shape = expression(file_.text(field));
    if (shape.tree->kind == schema::ExprKind::Name && shape.tree->text == "data_dependent") {
      op().data_dependent = true;
      return;
    }
    if (shape.tree->kind != schema::ExprKind::Call) {
      static const std::vector<std::string> bare = {"data_dependent"};
      std::string hint = schema::did_you_mean(print(shape.tree), bare);
      if (hint.empty()) hint = "write one such as same_as(self), or data_dependent";
      throw SchemaError(shape.source.diagnostic(
          shape.tree->offset, "shape of " + op().name() + " is not the call of a shape rule",
          hint));
    }
    check_names(shape, scope("shape"), diagnostics_);
    type_shape(shape, op(), diagnostics_);
    op().shape = std::move(shape);
  }

  void read_check(const Field& field) {
    std::vector<SourceText> texts;
    if (field.value.IsSequence()) {
      for (const YAML::Node& item : field.value) {
        if (!item.IsScalar()) {
          diagnostics_.add(file_.error(item, "expected a condition in the list of 'check'",
                                       "quote a condition that holds ': ' or braces"));
          continue;
        }
        texts.push_back(file_.scalar(item));
      }
    } else {
      texts.push_back(file_.text(field));
    }
    for (const SourceText& text : texts) {
      try {
        Expression check = expression(text);
        const std::size_t before = diagnostics_.size();
        check_names(check, scope("check"), diagnostics_);
        check_condition(check, op(), diagnostics_);
        // A condition that is wrong is corrected first.
        if (diagnostics_.size() == before) check_words(check, op(), diagnostics_);
        if (check.tree->kind == schema::ExprKind::Call && check.tree->text == "any") {
          for (const schema::Expr& name : check.tree->children)
            op().unlimited.push_back(name->text);
        } else {
          op().checks.push_back(std::move(check));
        }
      } catch (const SchemaError& problem) {
        diagnostics_.add(problem.diagnostic());
      }
    }
  }

  void read_pointwise(const Field& field) {
    op().pointwise = expression(file_.text(field));
    check_names(*op().pointwise, scope("pointwise"), diagnostics_);
    check_elements(*op().pointwise, op(), functions_, "pointwise of " + op().name(), diagnostics_);
  }

  // init: the partial result of no element (absent if there is none, as for a maximum); step: one
  // more element; combine: two partial results; final: the result. Only combine is always needed.
  void read_reduce(const Field& field) {
    if (!field.value.IsMap()) {
      throw SchemaError(field.key.error("'reduce' is not a mapping",
                                        "give it the keys init, step, combine, final"));
    }
    static const std::vector<std::string> parts = {"init", "step", "combine", "final"};
    // The partial result, the next element and its number; two partial results; the number of
    // elements.
    static const std::vector<std::string> locals = {"acc", "x", "i", "a", "b", "n"};
    std::map<std::string, Expression> found;
    for (const Field& part : file_.fields(field.value, diagnostics_)) {
      if (!check_known(part.key, "part of reduce", parts)) continue;
      found.emplace(part.key.text, Expression{});
      Expression value = expression(file_.text(part));
      Scope names = scope("reduce." + part.key.text);
      names.names.insert(names.names.end(), locals.begin(), locals.end());
      names.noun = "name";
      check_names(value, names, diagnostics_);
      check_elements(value, op(), functions_, names.where, diagnostics_);
      found[part.key.text] = std::move(value);
    }
    if (!found.count("combine")) {
      throw SchemaError(
          field.key.error("reduce of " + op().name() + " has no 'combine'",
                          "say how two partial results become one, as in 'combine: a + b'"));
    }
    Reduction reduce;
    for (const std::string& part : parts) {
      const auto value = found.find(part);
      if (value != found.end()) reduce.emplace_back(part, std::move(value->second));
    }
    op().reduce = std::move(reduce);
  }

  void read_promote(const Field& field) {
    const SourceText text = file_.text(field);
    if (check_known({text.text(), text, 0}, "promotion", known_promotions()))
      op().promote = text.text();
    else
      entry_.promote_is_sound = false;
  }

  void read_autocast(const Field& field) {
    if (!field.value.IsMap()) {
      add_autocast("all", field);
      return;
    }
    for (const Field& row : file_.fields(field.value, diagnostics_)) {
      if (check_known(row.key, "device of autocast", known_autocast_devices()))
        add_autocast(row.key.text, row);
    }
  }

  void add_autocast(const std::string& device, const Field& field) {
    const SourceText text = file_.text(field);
    if (check_known({text.text(), text, 0}, "autocast policy", known_autocast_policies()))
      op().autocast.emplace_back(device, text.text());
  }

  void read_dtypes(const Field& field) {
    if (!field.value.IsMap()) {
      add_dtypes("all", file_.words(field, diagnostics_));
      return;
    }
    // In {all: number, bool} YAML takes bool for a key without a value; it continues the list
    // before it.
    std::string device;
    for (const Field& row : file_.fields(field.value, diagnostics_)) {
      if (row.value.IsNull() && !device.empty() && !expand_dtype(row.key.text).empty()) {
        add_dtypes(device, {row.key});
        continue;
      }
      device = row.key.text;
      entry_.dtype_words.emplace(device, row.key);
      add_dtypes(device, file_.words(row, diagnostics_));
    }
  }

  void add_dtypes(const std::string& device, const std::vector<Word>& words) {
    auto row = std::find_if(op().dtypes.begin(), op().dtypes.end(),
                            [&](const auto& candidate) { return candidate.first == device; });
    if (row == op().dtypes.end()) row = op().dtypes.insert(row, {device, {}});
    std::set<std::string> members(row->second.begin(), row->second.end());
    for (const Word& word : words) {
      const std::vector<std::string> expanded = expand_dtype(word.text);
      if (expanded.empty()) check_known(word, "dtype", known_dtype_words());
      members.insert(expanded.begin(), expanded.end());
    }
    row->second.clear();
    for (const std::string& dtype : known_dtypes()) {
      if (members.count(dtype)) row->second.push_back(dtype);
    }
  }

  void read_argument_dtypes(const Field& field) {
    if (!field.value.IsMap()) {
      throw SchemaError(field.key.error("'argument_dtypes' is not a mapping",
                                        "write {ARGUMENT: DTYPES}, as in {index: index}"));
    }
    for (const Field& row : file_.fields(field.value, diagnostics_)) {
      const std::vector<std::string> names = argument_names(op().schema);
      if (!contains(names, row.key.text)) {
        diagnostics_.add(row.key.error(
            "unknown argument '" + row.key.text + "' in argument_dtypes of " + op().name(),
            schema::did_you_mean(row.key.text, names)));
        continue;
      }
      ArgumentDtypes dtypes{row.key.text, {}, false, false};
      std::set<std::string> members;
      for (const Word& word : file_.words(row, diagnostics_)) {
        if (!check_known(word, "dtype", known_argument_dtype_words())) continue;
        dtypes.same = dtypes.same || word.text == "same";
        dtypes.sums = dtypes.sums || word.text == "sums";
        if (word.text == "index") members.insert({"int32", "int64"});
        const std::vector<std::string> expanded = expand_dtype(word.text);
        members.insert(expanded.begin(), expanded.end());
      }
      for (const std::string& dtype : known_dtypes()) {
        if (members.count(dtype)) dtypes.dtypes.push_back(dtype);
      }
      entry_.argument_dtypes.emplace_back(row.key, std::move(dtypes));
    }
  }

  void read_dtype_of(const Field& field) { entry_.dtype_of_word = argument(field); }
  void read_out_from(const Field& field) { entry_.out_from_word = argument(field); }

  void read_moves(const Field& field) {
    const std::vector<std::string> names = argument_names(op().schema);
    for (const Word& word : file_.words(field, diagnostics_)) {
      if (contains(names, word.text)) {
        op().moves.push_back(word.text);
        continue;
      }
      diagnostics_.add(word.error("unknown argument '" + word.text + "' in moves of " + op().name(),
                                  schema::did_you_mean(word.text, names)));
    }
  }

  // The value of a field that names an argument.
  std::optional<Word> argument(const Field& field) {
    const SourceText text = file_.text(field);
    const std::vector<std::string> names = argument_names(op().schema);
    const Word word{text.text(), text, 0};
    if (contains(names, word.text)) return word;
    diagnostics_.add(word.error(
        "unknown argument '" + word.text + "' in " + field.key.text + " of " + op().name(),
        schema::did_you_mean(word.text, names)));
    return std::nullopt;
  }

  std::vector<Word> known_words(const Field& field, const std::string& what,
                                std::span<const std::string> known) {
    std::vector<Word> result;
    std::set<std::string> seen;
    for (Word& word : file_.words(field, diagnostics_)) {
      if (!check_known(word, what, known)) continue;
      if (!seen.insert(word.text).second) {
        diagnostics_.add(
            word.error(what + " '" + word.text + "' appears twice", "remove one of the two"));
        continue;
      }
      result.push_back(std::move(word));
    }
    return result;
  }

  bool check_known(const Word& word, const std::string& what, std::span<const std::string> known) {
    if (contains(known, word.text)) return true;
    std::string hint = schema::did_you_mean(word.text, known);
    if (hint.empty()) hint = "known are " + join(known);
    diagnostics_.add(word.error("unknown " + what + " '" + word.text + "'", hint));
    return false;
  }

  static std::string join(std::span<const std::string> words) {
    std::string text;
    for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
    return text;
  }

  static Expression expression(const SourceText& text) { return {text, parse_expr(text), {}}; }

  Scope scope(const std::string& key) {
    return {argument_names(op().schema), key + " of " + op().name(), "argument"};
  }

  Operator& op() { return entry_.op; }

  const YamlFile& file_;
  const std::string& library_;
  const ScalarFunctions& functions_;
  Diagnostics& diagnostics_;
  Entry entry_;
};

}  // namespace

std::optional<Entry> read_entry(const YamlFile& file, const YAML::Node& node,
                                const std::string& library, const ScalarFunctions& functions,
                                Diagnostics& diagnostics) {
  return EntryReader(file, library, functions, diagnostics).read(node);
}

schema::FunctionSchema parse_schema_in(const SourceText& source, const std::string& library) {
  schema::FunctionSchema schema = parse_schema(source);
  if (library.empty()) return schema;
  if (!schema.name.ns.empty() && schema.name.ns != library) {
    throw SchemaError(source.diagnostic(
        0, print(schema.name) + " is not in the namespace of the library, " + library,
        "write '" + schema.name.base + "' or '" + library + "::" + schema.name.base + "'"));
  }
  schema.name.ns = library;
  return schema;
}

std::string print_as_in(const std::string& text, const schema::FunctionSchema& schema,
                        const std::string& library) {
  const bool named = library.empty() || text.starts_with(library + "::");
  return print(schema).substr(named ? 0 : library.size() + 2);
}

}  // namespace treadle::schemac
