// A reader of declarations: enough of C++ for headers that declare functions and nothing else.
#include "codegen/schemac/callables.h"

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>
#include <utility>

namespace treadle::schemac {
namespace {

using schema::BaseType;

std::string without_comments(std::string_view text) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text.substr(i, 2) == "//") {
      i = std::min(text.find('\n', i), text.size());
      result += '\n';
    } else if (text[i] == '#' && (i == 0 || text[i - 1] == '\n')) {
      i = std::min(text.find('\n', i), text.size());
      result += '\n';
    } else {
      result += text[i];
    }
  }
  return result;
}

// One space between words, none at the ends.
std::string tidy(std::string_view text) {
  std::string result;
  for (const char c : text) {
    const bool space = std::isspace(static_cast<unsigned char>(c)) != 0;
    if (!space) {
      result += c;
    } else if (!result.empty() && result.back() != ' ') {
      result += ' ';
    }
  }
  if (!result.empty() && result.back() == ' ') result.pop_back();
  return result;
}

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

// The parts between commas that are in no brackets.
std::vector<std::string> parts_of(std::string_view text) {
  std::vector<std::string> parts;
  std::string part;
  int depth = 0;
  for (const char c : text) {
    if (c == '<' || c == '(' || c == '{') ++depth;
    if (c == '>' || c == ')' || c == '}') --depth;
    if (c == ',' && depth == 0) {
      parts.push_back(tidy(part));
      part.clear();
    } else {
      part += c;
    }
  }
  if (!tidy(part).empty()) parts.push_back(tidy(part));
  return parts;
}

// What is between the brackets of `std::tuple<...>`, if `type` is a `name<...>`.
bool inside(const std::string& type, std::string_view name, std::string& content) {
  if (!type.starts_with(name) || type.back() != '>' || type.size() <= name.size()) return false;
  if (type[name.size()] != '<') return false;
  content = type.substr(name.size() + 1, type.size() - name.size() - 2);
  return true;
}

ValueKind kind_of_cpp(std::string type, bool& optional, std::size_t& results) {
  if (type.starts_with("const ")) type.erase(0, 6);
  while (!type.empty() && (type.back() == '&' || type.back() == ' ')) type.pop_back();
  static const std::map<std::string, ValueKind> kinds = {
      {"Tensor", ValueKind::Tensor},         {"TensorList", ValueKind::Tensors},
      {"int64_t", ValueKind::Number},        {"double", ValueKind::Number},
      {"bool", ValueKind::Number},           {"Scalar", ValueKind::Number},
      {"IntList", ValueKind::Numbers},       {"OptionalIntList", ValueKind::Numbers},
      {"DimVector", ValueKind::Numbers},     {"DoubleList", ValueKind::Numbers},
      {"std::string_view", ValueKind::Text}, {"std::string", ValueKind::Text},
      {"ScalarType", ValueKind::Dtype},      {"Device", ValueKind::Device}};
  if (type == "OptionalIntList") optional = true;
  const auto found = kinds.find(type);
  if (found != kinds.end()) return found->second;
  std::string content;
  if (inside(type, "std::optional", content)) {
    optional = true;
    return kind_of_cpp(content, optional, results);
  }
  if (inside(type, "std::vector", content) || inside(type, "std::array", content)) {
    const std::vector<std::string> parts = parts_of(content);
    const bool tensors = !parts.empty() && parts[0] == "Tensor";
    if (tensors && parts.size() == 2) {
      results = std::strtoul(parts[1].c_str(), nullptr, 10);
      return ValueKind::Several;
    }
    return tensors ? ValueKind::Tensors : ValueKind::Numbers;
  }
  if (inside(type, "std::tuple", content) || inside(type, "std::pair", content)) {
    results = parts_of(content).size();
    return ValueKind::Several;
  }
  return ValueKind::Unknown;
}

}  // namespace

std::string_view words_for(ValueKind kind) {
  constexpr std::string_view kWords[] = {
      "a tensor", "a list of tensors", "a number", "a list of numbers", "a text", "a dtype",
      "a device", "several results",   "None",     "something else"};
  return kWords[static_cast<std::size_t>(kind)];
}

ValueKind kind_of(const schema::Type& type) {
  switch (type.base) {
    case BaseType::Tensor:
      return type.list ? ValueKind::Tensors : ValueKind::Tensor;
    case BaseType::Scalar:
    case BaseType::Int:
    case BaseType::SymInt:
    case BaseType::Float:
    case BaseType::SymFloat:
    case BaseType::Bool:
    case BaseType::SymBool:
      return type.list ? ValueKind::Numbers : ValueKind::Number;
    case BaseType::Str:
      return type.list ? ValueKind::Unknown : ValueKind::Text;
    case BaseType::ScalarType:
      return ValueKind::Dtype;
    case BaseType::Device:
      return ValueKind::Device;
    default:
      return ValueKind::Unknown;
  }
}

std::size_t Callable::least() const {
  std::size_t count = parameters.size();
  while (count && parameters[count - 1].has_default) --count;
  return count;
}

void Callables::add(const schema::FunctionSchema& schema, const std::string& form) {
  Callable callable;
  schema::FunctionSchema shown = schema;
  shown.name.ns.clear();
  callable.text = print(shown);
  for (const schema::Argument& argument : schema.arguments) {
    callable.parameters.push_back({argument.name, kind_of(argument.type),
                                   argument.default_value.has_value(), argument.type.optional});
  }
  callable.results = schema.returns.size();
  callable.result = callable.results == 1 ? kind_of(schema.returns[0].type) : ValueKind::Several;
  functions_[schema.name.base + (form == "out" ? "_out" : "")].push_back(std::move(callable));
}

void Callables::add_declaration(std::string text) {
  if (text.starts_with("inline ")) text.erase(0, 7);
  const std::size_t open = text.find('(');
  const std::size_t close = text.rfind(')');
  if (open == std::string::npos || close == std::string::npos || close < open) return;
  std::size_t begin = open;
  while (begin > 0 && is_word(text[begin - 1])) --begin;
  const std::string name = text.substr(begin, open - begin);
  const std::string result = tidy(text.substr(0, begin));
  if (name.empty() || result.empty()) return;
  Callable callable;
  callable.text = text;
  bool ignored = false;
  callable.result = kind_of_cpp(result, ignored, callable.results);
  for (const std::string& part : parts_of(text.substr(open + 1, close - open - 1))) {
    const std::size_t equals = part.find('=');
    const std::string declared = tidy(part.substr(0, equals));
    std::size_t end = declared.size();
    while (end > 0 && is_word(declared[end - 1])) --end;
    Parameter parameter;
    parameter.name = declared.substr(end);
    std::size_t count = 0;
    parameter.kind = kind_of_cpp(tidy(declared.substr(0, end)), parameter.optional, count);
    parameter.has_default = equals != std::string::npos;
    callable.parameters.push_back(std::move(parameter));
  }
  functions_[name].push_back(std::move(callable));
  declarations_.push_back(text);
}

void Callables::add_header(std::string_view text) {
  complete_ = true;
  const std::string code = without_comments(text);
  std::string statement;
  int depth = 0;  // of braces that are no namespace's: bodies of inline functions, classes
  int parentheses = 0;
  for (const char c : code) {
    parentheses += (c == '(') - (c == ')');
    if (parentheses > 0) {
      statement += c;
    } else if (c == '{') {
      const std::string begun = tidy(statement);
      if (depth > 0 || begun.find("namespace ") != 0) {
        if (depth++ == 0) add_declaration(begun);  // of a function that is defined here
      }
      statement.clear();
    } else if (c == '}') {
      depth = std::max(0, depth - 1);
      statement.clear();
    } else if (c == ';') {
      if (depth == 0) add_declaration(tidy(statement));
      statement.clear();
    } else {
      statement += c;
    }
  }
}

void Callables::add_model(const std::string& json) {
  complete_ = true;
  const nlohmann::json model = nlohmann::json::parse(json);
  for (const auto& op : model.at("operators")) {
    for (const auto& form : op.at("forms")) {
      add(schema::parse_schema(form.at("schema").get<std::string>()), form.at("form"));
    }
  }
  for (const auto& text : model.at("helpers")) add_declaration(text.get<std::string>());
}

const std::vector<Callable>* Callables::find(const std::string& name) const {
  const auto found = functions_.find(name);
  return found == functions_.end() ? nullptr : &found->second;
}

std::vector<std::string> Callables::names() const {
  std::vector<std::string> names;
  for (const auto& [name, overloads] : functions_) names.push_back(name);
  return names;
}

}  // namespace treadle::schemac
