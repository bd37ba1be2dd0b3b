// One function per key; what a key says is looked at when it is read.
//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/schemac/expressions/scalar_functions.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>

#include "codegen/schemac/entries/tables.h"
#include "core/schema/dtypes.h"
#include "core/schema/lexer.h"

namespace treadle::schemac {
namespace {

using schema::ExprKind;
using schema::SchemaError;
using schema::SourceText;
using schema::TokenCursor;
using schema::TokenKind;

// "softplus(x, beta=1, threshold=20)"
void parse_function(const SourceText& source, ScalarFunction& function) {
  TokenCursor cursor(source);
  function.name = cursor.expect_name("the name of a function").text;
  cursor.expect("(", "after the function's name");
  do {
    ScalarFunction::Argument argument;
    const schema::Token name = cursor.expect_name("the name of an argument");
    argument.name = name.text;
    if (cursor.accept("=")) {
      const schema::Token value = cursor.next();
      if (value.kind != TokenKind::integer && value.kind != TokenKind::floating) {
        cursor.fail(value.offset, "expected a number, got " + schema::describe(value),
                    "the default of an argument is one");
      }
      argument.default_value = std::string(value.text);
    } else if (!function.arguments.empty() && function.arguments.back().default_value) {
      cursor.fail(name.offset, "argument '" + argument.name + "' without a default after one with",
                  "give it one, or put it first");
    }
    for (const ScalarFunction::Argument& other : function.arguments) {
      if (other.name == argument.name)
        cursor.fail(name.offset, "argument '" + argument.name + "' appears twice", "rename one");
    }
    function.arguments.push_back(std::move(argument));
  } while (cursor.accept(","));
  cursor.expect(")", "after the arguments");
  if (!cursor.at_end()) cursor.fail_expected("the end of the function");
}

// "a % b" or "-a"
void parse_operator(const SourceText& source, ScalarFunction& function) {
  const schema::Expr tree = schema::parse_expr(source);
  const bool plain = (tree->kind == ExprKind::Binary || tree->kind == ExprKind::Unary) &&
                     std::all_of(tree->children.begin(), tree->children.end(),
                                 [](const auto& c) { return c->kind == ExprKind::Name; });
  if (!plain) {
    throw SchemaError(source.diagnostic(tree->offset, "'" + print(tree) + "' is not an operator",
                                        "write it with the names of its operands, as in 'a + b'"));
  }
  function.is_operator = true;
  function.name = tree->text;
  for (const schema::Expr& child : tree->children) function.arguments.push_back({child->text, {}});
}

double number_in(const SourceText& text) {
  TokenCursor cursor(text);
  const bool negative = cursor.accept("-");
  const schema::Token token = cursor.next();
  if ((token.kind != TokenKind::integer && token.kind != TokenKind::floating) || !cursor.at_end())
    throw SchemaError(text.diagnostic(0, "expected a number, got '" + text.text() + "'"));
  const double value = std::stod(std::string(token.text));
  return negative ? -value : value;
}

class Reader {
 public:
  // Functions that operators name are added to `named`.
  Reader(const YamlFile& file, Diagnostics& diagnostics, std::vector<Word>& named)
      : file_(file), diagnostics_(diagnostics), named_(named) {}

  std::optional<ScalarFunction> read(const YAML::Node& node) {
    const std::vector<Field> fields = file_.fields(node, diagnostics_);
    const auto first = std::find_if(fields.begin(), fields.end(), [](const Field& field) {
      return field.key.text == "function" || field.key.text == "operator";
    });
    const auto op = std::find_if(fields.begin(), fields.end(),
                                 [](const Field& field) { return field.key.text == "operator"; });
    if (first == fields.end()) {
      diagnostics_.add(file_.error(node, "entry without 'function'",
                                   "begin it with '- function: name(x)', or '- operator: a + b'"));
      return std::nullopt;
    }
    try {
      if (op != fields.end()) {
        parse_operator(file_.text(*op), function_);
      } else {
        parse_function(file_.text(*first), function_);
      }
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
    check(op != fields.end() ? *op : *first, fields);
    return std::move(function_);
  }

 private:
  using Read = void (Reader::*)(const Field&);

  void read_field(const Field& field) {
    static const std::map<std::string, Read> readers = {
        {"operator", &Reader::skip},
        {"function", &Reader::read_function},
        {"doc", &Reader::read_doc},
        {"of", &Reader::read_of},
        {"gives", &Reader::read_gives},
        {"throws", &Reader::read_throws},
        {"throws_if_zero", &Reader::read_throws_if_zero},
        {"keeps_low_bits", &Reader::read_keeps_low_bits},
        {"reference", &Reader::read_reference},
        {"samples", &Reader::read_samples},
        {"ulp", &Reader::read_ulp},
        {"ulp_of", &Reader::read_ulp_of},
        {"complex_ulp_of", &Reader::read_complex_ulp_of},
        {"range", &Reader::read_range},
        {"above", &Reader::read_above},
        {"derivative", &Reader::read_derivative},
        {"holomorphic", &Reader::read_holomorphic}};
    const auto reader = readers.find(field.key.text);
    if (reader != readers.end()) {
      (this->*reader->second)(field);
      return;
    }
    std::vector<std::string> known;
    for (const auto& [key, read] : readers) known.push_back(key);
    std::string hint = schema::did_you_mean(field.key.text, known);
    if (hint.empty()) {
      hint = "known are ";
      for (const std::string& key : known) hint += (key == known[0] ? "" : ", ") + key;
    }
    diagnostics_.add(
        field.key.error("unknown key '" + field.key.text + "' of " + function_.name, hint));
  }

  void skip(const Field&) {}
  void read_function(const Field& field) {
    if (!function_.is_operator) return;
    const SourceText text = file_.text(field);
    function_.function = text.text();
    named_.push_back({text.text(), text, 0});
  }
  void read_doc(const Field& field) { function_.doc = file_.text(field).text(); }
  void read_of(const Field& field) { function_.dtypes = dtypes(field); }
  void read_throws(const Field& field) { function_.throws = dtypes(field); }
  void read_throws_if_zero(const Field& field) {
    const SourceText text = file_.text(field);
    const std::vector<std::string> known = argument_names();
    if (!contains(known, text.text()))
      throw SchemaError(text.diagnostic(0,
                                        "'throws_if_zero' names '" + text.text() +
                                            "', which is no argument of " + function_.text(),
                                        schema::did_you_mean(text.text(), known)));
    function_.throws_if_zero = text.text();
  }
  std::vector<std::string> argument_names() const {
    std::vector<std::string> names;
    for (const ScalarFunction::Argument& argument : function_.arguments)
      names.push_back(argument.name);
    return names;
  }
  void read_gives(const Field& field) {
    const SourceText text = file_.text(field);
    if (text.text() != "truth" && text.text() != "element")
      throw SchemaError(text.diagnostic(0,
                                        "unknown result '" + text.text() + "' of " + function_.name,
                                        "known are truth, element"));
    function_.gives_truth = text.text() == "truth";
  }
  bool flag(const Field& field) const {
    const SourceText text = file_.text(field);
    if (text.text() != "true" && text.text() != "false")
      throw SchemaError(text.diagnostic(0, "expected true or false, got '" + text.text() + "'"));
    return text.text() == "true";
  }
  void read_keeps_low_bits(const Field& field) { function_.keeps_low_bits = flag(field); }
  void read_holomorphic(const Field& field) { function_.holomorphic = flag(field); }
  // `cos(x)` for a function of one argument, `{a: b, b: a}` for one of several.
  void read_derivative(const Field& field) {
    if (!field.value.IsMap()) {
      if (function_.most() != 1)
        throw SchemaError(field.key.error(
            "'derivative' of " + function_.text() + " does not say by which argument",
            "give one for each, as in '{a: b, b: a}'"));
      add_derivative(function_.arguments[0].name, field);
      return;
    }
    for (const Field& row : file_.fields(field.value, diagnostics_)) {
      const std::string& name = row.key.text;
      const std::vector<std::string> known = argument_names();
      if (contains(known, name)) {
        add_derivative(name, row);
      } else {
        diagnostics_.add(row.key.error(
            "derivative by '" + name + "', which is no argument of " + function_.text(),
            schema::did_you_mean(name, known)));
      }
    }
    for (const ScalarFunction::Argument& argument : function_.arguments) {
      if (function_.derivative_by(argument.name)) continue;
      diagnostics_.add(
          field.key.error("no derivative by '" + argument.name + "' of " + function_.text(),
                          "a function has all or none; write 'not_implemented(\"why\")' for one "
                          "that is not known"));
      break;
    }
  }
  void add_derivative(const std::string& argument, const Field& field) {
    const SourceText text = file_.text(field);
    function_.derivative.push_back({argument, text, schema::parse_expr(text)});
  }
  void read_reference(const Field& field) {
    const SourceText text = file_.text(field);
    const std::string& name = text.text();
    if (!name.starts_with("numpy.") && !name.starts_with("scipy.special."))
      throw SchemaError(text.diagnostic(0, "reference '" + name + "' of " + function_.name,
                                        "name a function of numpy or scipy.special, or leave the "
                                        "key out and write one in the tests"));
    function_.reference = name;
  }
  void read_samples(const Field& field) {
    if (!field.value.IsSequence() || field.value.size() != 2)
      throw SchemaError(field.key.error("'samples' of " + function_.name + " are not two numbers",
                                        "write the ends of a range, as in [0.1, 3]"));
    const double low = number_in(file_.scalar(field.value[0]));
    const double high = number_in(file_.scalar(field.value[1]));
    if (low >= high)
      throw SchemaError(field.key.error("'samples' of " + function_.name + " is an empty range",
                                        "write the lower end first"));
    function_.samples = {low, high};
  }
  void read_ulp(const Field& field) {
    if (field.value.IsScalar() && file_.text(field).text() == "rounded") {
      function_.error.rounded = true;
      return;
    }
    if (!field.value.IsMap())
      throw SchemaError(field.key.error("'ulp' of " + function_.name + " is not a mapping",
                                        "give each dtype its bound, as in {float32: 2}, or write "
                                        "'ulp: rounded' where results are "
                                        "the nearest numbers to the exact ones"));
    for (const Field& row : file_.fields(field.value, diagnostics_)) {
      const std::string& dtype = row.key.text;
      if (!contains(known_dtypes(), dtype)) {
        diagnostics_.add(row.key.error("unknown dtype '" + dtype + "'",
                                       schema::did_you_mean(dtype, known_dtypes())));
        continue;
      }
      const double bound = number_in(file_.text(row));
      if (bound <= 0)
        diagnostics_.add(row.key.error("ulp of " + function_.name + " is not above 0",
                                       "a correctly rounded result is within 0.5"));
      function_.error.ulp.emplace_back(dtype, bound);
      ulp_words_.push_back(row.key);
    }
  }
  void read_ulp_of(const Field& field) { function_.error.of = file_.text(field).text(); }
  void read_complex_ulp_of(const Field& field) {
    function_.error.of_complex = file_.text(field).text();
  }
  void read_range(const Field& field) { function_.error.range = file_.text(field).text(); }
  void read_above(const Field& field) { function_.error.above = number_in(file_.text(field)); }

  // In the usual order.
  std::vector<std::string> dtypes(const Field& field) {
    std::vector<std::string> members;
    for (const Word& word : file_.words(field, diagnostics_)) {
      const std::vector<std::string> expanded = expand_dtype(word.text);
      if (expanded.empty()) {
        diagnostics_.add(word.error("unknown dtype '" + word.text + "'",
                                    schema::did_you_mean(word.text, known_dtype_words())));
      }
      members.insert(members.end(), expanded.begin(), expanded.end());
    }
    std::vector<std::string> ordered;
    for (const std::string& dtype : known_dtypes()) {
      if (contains(members, dtype)) ordered.push_back(dtype);
    }
    return ordered;
  }

  // Reports keys that contradict each other.
  void check(const Field& head, const std::vector<Field>& fields) {
    const auto has = [&](std::string_view key) {
      return std::any_of(fields.begin(), fields.end(),
                         [&](const Field& field) { return field.key.text == key; });
    };
    if (!has("of")) {
      diagnostics_.add(head.key.error("'" + function_.text() + "' without 'of'",
                                      "name its dtypes, as in 'of: [floating, complex]'"));
      return;
    }
    if (!function_.is_operator && !has("ulp") && contains(function_.dtypes, "float32")) {
      diagnostics_.add(
          head.key.error("'" + function_.text() + "' without 'ulp'",
                         "say how far results may be from the exact ones, as in 'ulp: {float32: 2, "
                         "float64: 2}', or "
                         "write 'ulp: rounded' where they are the nearest numbers to these"));
    }
    if (function_.gives_truth && !function_.derivative.empty())
      diagnostics_.add(head.key.error("derivative of '" + function_.text() + "', a truth value",
                                      "it has none; remove it"));
    for (const std::string& dtype : function_.throws) {
      if (contains(function_.dtypes, dtype)) continue;
      diagnostics_.add(
          head.key.error("'" + function_.text() + "' throws of " + dtype + ", of which it is not",
                         "leave it out under 'throws', or name it under 'of'"));
      break;
    }
    if (!function_.throws_if_zero.empty() && function_.throws.empty())
      diagnostics_.add(head.key.error("'" + function_.text() + "' has 'throws_if_zero' alone",
                                      "name the dtypes in which it throws under 'throws'"));
    for (const Word& word : ulp_words_) {
      if (contains(function_.dtypes, word.text)) continue;
      diagnostics_.add(
          word.error("ulp of " + function_.name + " for " + word.text + ", of which it is not",
                     "remove it, or name the dtype under 'of'"));
    }
  }

  const YamlFile& file_;
  Diagnostics& diagnostics_;
  std::vector<Word>& named_;
  ScalarFunction function_;
  std::vector<Word> ulp_words_;
};

}  // namespace

schema::Expr ScalarFunction::derivative_by(std::string_view argument) const {
  const auto found = std::find_if(derivative.begin(), derivative.end(),
                                  [&](const Slope& slope) { return slope.argument == argument; });
  return found == derivative.end() ? nullptr : found->tree;
}

std::size_t ScalarFunction::least() const {
  return static_cast<std::size_t>(
      std::count_if(arguments.begin(), arguments.end(),
                    [](const Argument& argument) { return !argument.default_value; }));
}

std::string ScalarFunction::text() const {
  if (is_operator) {
    return arguments.size() == 1 ? name + arguments[0].name
                                 : arguments[0].name + " " + name + " " + arguments[1].name;
  }
  std::string all;
  for (const Argument& argument : arguments) {
    all += (all.empty() ? "" : ", ") + argument.name;
    if (argument.default_value) all += "=" + *argument.default_value;
  }
  return name + "(" + all + ")";
}

std::string ScalarFunction::takes() const {
  std::string count = std::to_string(most()) + (most() == 1 ? " argument" : " arguments");
  if (least() != most()) count = std::to_string(least()) + " to " + count;
  return "'" + name + "' takes " + count;
}

void ScalarFunctions::read(const YamlFile& file, Diagnostics& diagnostics) {
  if (file.root().IsNull() || !file.root().IsDefined()) return;
  if (!file.root().IsSequence()) {
    diagnostics.add(file.error(file.root(), "expected a list of functions",
                               "begin each with '- function: name(x)'"));
    return;
  }
  std::vector<Word> named;  // by operators
  for (const YAML::Node& node : file.root()) {
    if (!node.IsMap()) {
      diagnostics.add(file.error(node, "expected a function", "write '- function: name(x)'"));
      continue;
    }
    std::optional<ScalarFunction> function = Reader(file, diagnostics, named).read(node);
    if (!function) continue;
    function->section = file.section(node);
    if (find(function->name, function->is_operator, function->most())) {
      diagnostics.add(file.error(node, "'" + function->text() + "' is there already",
                                 "a function has one entry; give other numbers of arguments as "
                                 "defaults"));
      continue;
    }
    functions_.push_back(std::move(*function));
  }
  for (const Word& word : named) {
    if (find(word.text)) continue;
    diagnostics.add(word.error("unknown function '" + word.text + "' of an operator",
                               schema::did_you_mean(word.text, names())));
  }
  for (const ScalarFunction& function : functions_) check_derivatives(function, diagnostics);
}

// Reports what is no expression of elements over the function's arguments and `result`.
void ScalarFunctions::check_derivatives(const ScalarFunction& function,
                                        Diagnostics& diagnostics) const {
  std::vector<std::string> known = {"result"};
  for (const ScalarFunction::Argument& argument : function.arguments)
    known.push_back(argument.name);
  for (const ScalarFunction::Slope& slope : function.derivative) {
    const auto report = [&](std::size_t offset, const std::string& message, std::string hint) {
      diagnostics.add(slope.source.diagnostic(
          offset, message + " in the derivative of " + function.text(), std::move(hint)));
    };
    const schema::ExprNode& root = *slope.tree;
    if (root.kind == ExprKind::Call && root.text == "not_implemented") {
      if (root.children.size() != 1 || root.children[0]->kind != ExprKind::String)
        report(0, "not_implemented without a reason", "write 'not_implemented(\"why\")'");
      continue;
    }
    visit(slope.tree, [&](const schema::ExprNode& node) {
      const std::size_t count = node.children.size();
      if (node.kind == ExprKind::Int || node.kind == ExprKind::Float) return;
      if (node.kind == ExprKind::Name) {
        if (!contains(known, node.text) && !schema::is_number_constant(node.text))
          report(node.offset, "unknown name '" + node.text + "'",
                 schema::did_you_mean(node.text, known));
        return;
      }
      const ScalarFunction* called = of(node);
      if (!called) {
        report(node.offset, "no function of elements computes '" + print(node) + "'",
               node.kind == ExprKind::Call ? schema::did_you_mean(node.text, names()) : "");
      } else if (count < called->least() || count > called->most()) {
        report(node.offset, called->takes() + ", got " + std::to_string(count), "");
      }
    });
  }
}

void ScalarFunctions::add_model(const std::string& json) {
  const nlohmann::json model = nlohmann::json::parse(json);
  for (const auto& entry : model.at("scalar_functions")) {
    ScalarFunction function;
    function.name = entry.at("name");
    function.is_operator = entry.at("is_operator");
    for (const auto& argument : entry.at("args")) {
      const auto& value = argument.at("default");
      function.arguments.push_back(
          {argument.at("name"),
           value.is_null() ? std::nullopt : std::optional(value.get<std::string>())});
    }
    if (!entry.at("function").is_null()) function.function = entry.at("function");
    function.dtypes = entry.at("dtypes").get<std::vector<std::string>>();
    function.throws = entry.at("throws").get<std::vector<std::string>>();
    if (!entry.at("throws_if_zero").is_null()) function.throws_if_zero = entry.at("throws_if_zero");
    function.gives_truth = entry.at("gives") == "truth";
    function.keeps_low_bits = entry.at("keeps_low_bits");
    function.holomorphic = entry.at("holomorphic");
    for (const auto& [name, text] : entry.at("derivative").items()) {
      const SourceText source(text.get<std::string>());
      function.derivative.push_back({name, source, schema::parse_expr(source)});
    }
    functions_.push_back(std::move(function));
  }
  from_model_ = functions_.size();
}

const ScalarFunction* ScalarFunctions::find(std::string_view name, bool is_operator,
                                            std::size_t count) const {
  const auto found =
      std::find_if(functions_.begin(), functions_.end(), [&](const ScalarFunction& function) {
        return function.name == name && function.is_operator == is_operator &&
               (!is_operator || function.most() == count);
      });
  return found == functions_.end() ? nullptr : &*found;
}

const ScalarFunction* ScalarFunctions::find(std::string_view function) const {
  return find(function, false, 0);
}

const ScalarFunction* ScalarFunctions::of(const schema::ExprNode& node) const {
  switch (node.kind) {
    case ExprKind::Call:
      return find(node.text);
    case ExprKind::Select:
      return find("where");
    case ExprKind::Binary:
    case ExprKind::Unary:
      return find(node.text, true, node.children.size());
    default:
      return nullptr;
  }
}

std::vector<std::string> ScalarFunctions::names() const {
  std::vector<std::string> names;
  for (const ScalarFunction& function : functions_) {
    if (!function.is_operator) names.push_back(function.name);
  }
  return names;
}

std::vector<ScalarFunction> ScalarFunctions::own() const {
  return {functions_.begin() + static_cast<std::ptrdiff_t>(from_model_), functions_.end()};
}

}  // namespace treadle::schemac
