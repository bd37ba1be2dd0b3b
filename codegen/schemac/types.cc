// One walk from the leaves up.
#include "codegen/schemac/types.h"

#include <algorithm>
#include <map>
#include <utility>

namespace treadle::schemac {
namespace {

using schema::ExprKind;
using schema::ExprNode;

// Methods of a tensor that say what is known without its elements.
struct Metadata {
  ValueKind kind;
  std::size_t arguments = 0;
};
const std::map<std::string, Metadata>& metadata() {
  static const std::map<std::string, Metadata> table = {
      {"sizes", {ValueKind::Numbers}},  {"strides", {ValueKind::Numbers}},
      {"size", {ValueKind::Number, 1}}, {"stride", {ValueKind::Number, 1}},
      {"dim", {ValueKind::Number}},     {"numel", {ValueKind::Number}},
      {"defined", {ValueKind::Number}}, {"is_complex", {ValueKind::Number}},
      {"dtype", {ValueKind::Dtype}},    {"scalar_type", {ValueKind::Dtype}},
      {"device", {ValueKind::Device}},  {"is_floating_point", {ValueKind::Number}}};
  return table;
}

std::string list_of_metadata() {
  std::string text;
  for (const auto& [name, what] : metadata()) text += (text.empty() ? "" : ", ") + name;
  return text;
}

std::string count_of(std::size_t count) {
  return std::to_string(count) + (count == 1 ? " argument" : " arguments");
}

bool is_comparison(const std::string& op) {
  return op == "==" || op == "!=" || op[0] == '<' || op[0] == '>';
}

bool is_dtype(const std::string& name) {
  static const std::vector<std::string> names = {
      "bool",  "uint8",   "uint16",   "uint32",  "uint64",  "int8",      "int16",     "int32",
      "int64", "float16", "bfloat16", "float32", "float64", "complex64", "complex128"};
  return std::find(names.begin(), names.end(), name) != names.end();
}

class Walk {
 public:
  Walk(const Expression& expression, Names names, const Callables* callables, std::string where,
       Diagnostics& diagnostics)
      : expression_(expression),
        names_(std::move(names)),
        callables_(callables),
        where_(std::move(where)),
        diagnostics_(diagnostics) {}

  Value value_of(const ExprNode& node) {
    switch (node.kind) {
      case ExprKind::Int:
      case ExprKind::Float:
      case ExprKind::Bool:
        return {ValueKind::Number};
      case ExprKind::String:
        return {ValueKind::Text};
      case ExprKind::None:
        return {ValueKind::None};
      case ExprKind::Name:
        if (node.text == "inf" || node.text == "nan" || node.text == "pi")
          return {ValueKind::Number};
        if (is_dtype(node.text)) return {ValueKind::Dtype};
        return names_(node.text);
      case ExprKind::List:
        return list(node);
      case ExprKind::Unary:
        return operation(node);
      case ExprKind::Binary:
        return operation(node);
      case ExprKind::Select: {
        value_of(*node.children[0]);
        const Value first = value_of(*node.children[1]);
        const Value second = value_of(*node.children[2]);
        return first.kind == second.kind ? first : Value{};
      }
      case ExprKind::Index: {
        const Value on = value_of(*node.children[0]);
        value_of(*node.children[1]);
        if (on.kind == ValueKind::Tensors) return {ValueKind::Tensor};
        if (on.kind == ValueKind::Numbers) return {ValueKind::Number};
        return {};
      }
      case ExprKind::Method:
        return method(node);
      case ExprKind::Call:
        return call(node);
    }
    return {};
  }

 private:
  void report(std::size_t offset, const std::string& message, std::string hint) {
    diagnostics_.add(
        expression_.source.diagnostic(offset, message + " in " + where_, std::move(hint)));
  }

  Value list(const ExprNode& node) {
    ValueKind kind = ValueKind::Unknown;
    for (std::size_t i = 0; i < node.children.size(); ++i) {
      const ValueKind item = value_of(*node.children[i]).kind;
      kind = i == 0 || item == kind ? item : ValueKind::Unknown;
    }
    if (kind == ValueKind::Tensor) return {ValueKind::Tensors};
    if (kind == ValueKind::Number) return {ValueKind::Numbers};
    return {};
  }

  Value operation(const ExprNode& node) {
    bool tensor = false, unknown = false, wrong = false;
    for (const schema::Expr& child : node.children) {
      const ValueKind kind = value_of(*child).kind;
      tensor = tensor || kind == ValueKind::Tensor;
      unknown = unknown || kind == ValueKind::Unknown;
      const bool alike = node.kind == ExprKind::Binary && is_comparison(node.text);
      const bool computable = kind == ValueKind::Tensor || kind == ValueKind::Number ||
                              kind == ValueKind::Unknown || alike || !callables_;
      if (!computable) {
        wrong = true;
        report(
            child->offset,
            "'" + node.text + "' of " + std::string(words_for(kind)) + ", '" + print(child) + "',",
            "it computes with tensors and numbers");
      }
      if (!callables_ && (kind == ValueKind::Tensor || kind == ValueKind::Tensors)) {
        wrong = true;
        report(
            child->offset,
            "'" + node.text + "' of " + std::string(words_for(kind)) + ", '" + print(child) + "',",
            "its elements are not known before the kernel runs; use what is, as in '" +
                (kind == ValueKind::Tensor ? print(child) : print(child) + "[0]") + ".dim()'");
      }
    }
    if (wrong) return {};  // one error is enough for what is built of it
    if (tensor) return {ValueKind::Tensor};
    return unknown ? Value{} : Value{ValueKind::Number};
  }

  Value method(const ExprNode& node) {
    const Value on = value_of(*node.children[0]);
    std::vector<Value> arguments;
    for (std::size_t i = 1; i < node.children.size(); ++i)
      arguments.push_back(value_of(*node.children[i]));
    if (on.kind == ValueKind::Unknown) return {};
    if (on.kind == ValueKind::Numbers || on.kind == ValueKind::Tensors) {
      if (node.text == "size" || node.text == "empty") return {ValueKind::Number};
      report(node.name_offset,
             "unknown method '" + node.text + "' of " + std::string(words_for(on.kind)),
             "known are size, empty");
      return {};
    }
    // Of numbers given to a call; those of formulas are C++ by then.
    if (on.kind == ValueKind::Number && node.text == "is_integral" && arguments.empty())
      return {ValueKind::Number};
    if (on.kind != ValueKind::Tensor) {
      report(node.name_offset,
             "unknown method '" + node.text + "' of " + std::string(words_for(on.kind)),
             "only tensors and lists have methods");
      return {};
    }
    const auto found = metadata().find(node.text);
    if (found != metadata().end()) {
      if (arguments.size() != found->second.arguments) {
        report(node.name_offset,
               "'" + node.text + "' takes " + count_of(found->second.arguments) + ", got " +
                   std::to_string(arguments.size()),
               "");
      }
      return {found->second.kind};
    }
    if (!callables_ || (callables_->complete() && !callables_->find(node.text))) {
      std::vector<std::string> known;
      for (const auto& [name, what] : metadata()) known.push_back(name);
      std::string hint = schema::did_you_mean(node.text, known);
      if (hint.empty()) hint = "known are " + list_of_metadata();
      report(node.name_offset, "unknown method '" + node.text + "' of a tensor", hint);
      return {};
    }
    arguments.insert(arguments.begin(), on);
    return called(node, arguments);
  }

  Value call(const ExprNode& node) {
    std::vector<Value> arguments;
    for (const schema::Expr& child : node.children) arguments.push_back(value_of(*child));
    if (!callables_ || node.text == "not_implemented") return {};
    return called(node, arguments);
  }

  // What may have been meant: names with the same stem, or those that look alike.
  std::string near(const std::string& name) const {
    const std::string stem = name.substr(0, name.find("_backward"));
    std::string found;
    for (const std::string& known : callables_->names()) {
      const bool form = known.ends_with("_") || known.ends_with("_out");
      if (stem.size() > 3 && !form && known.find(stem) != std::string::npos)
        found += (found.empty() ? "'" : ", '") + known + "'";
    }
    if (!found.empty() && found.size() < 120) return "with such a name there are " + found;
    return schema::did_you_mean(name, callables_->names());
  }

  // The children of `node` are the arguments.
  Value called(const ExprNode& node, const std::vector<Value>& arguments) {
    const std::vector<Callable>* overloads = callables_->find(node.text);
    if (!overloads) {
      if (!callables_->complete()) return {};
      report(node.name_offset, "unknown function '" + node.text + "'", near(node.text));
      return {};
    }
    const Callable* nearest = nullptr;  // of those that take so many arguments
    std::size_t nearest_place = 0;
    for (const Callable& callable : *overloads) {
      if (arguments.size() < callable.least() || arguments.size() > callable.parameters.size())
        continue;
      const std::size_t wrong = first_misfit(callable, arguments);
      if (wrong == arguments.size()) return {callable.result, callable.results};
      if (!nearest || wrong > nearest_place) {
        nearest = &callable;
        nearest_place = wrong;
      }
    }
    if (nearest) {
      const schema::Expr& child = node.children[nearest_place];
      const Parameter& parameter = nearest->parameters[nearest_place];
      report(child->offset,
             "argument '" + parameter.name + "' of '" + node.text + "' is " +
                 std::string(words_for(parameter.kind)) + ", got " +
                 std::string(words_for(arguments[nearest_place].kind)) + ", '" + print(child) +
                 "',",
             "it is " + nearest->text);
      return {nearest->result, nearest->results};
    }
    const Callable& only = overloads->front();
    std::size_t least = only.least(), most = 0;
    for (const Callable& callable : *overloads) {
      least = std::min(least, callable.least());
      most = std::max(most, callable.parameters.size());
    }
    std::string takes = count_of(most);
    if (least != most) takes = std::to_string(least) + " to " + takes;
    report(node.name_offset,
           "'" + node.text + "' takes " + takes + ", got " + std::to_string(arguments.size()),
           "it is " + only.text);
    return {only.result, only.results};
  }

  static std::size_t first_misfit(const Callable& callable, const std::vector<Value>& arguments) {
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      const Parameter& parameter = callable.parameters[i];
      const ValueKind got = arguments[i].kind;
      const bool fits = got == parameter.kind || got == ValueKind::Unknown ||
                        parameter.kind == ValueKind::Unknown ||
                        (got == ValueKind::None && parameter.optional);
      if (!fits) return i;
    }
    return arguments.size();
  }

  const Expression& expression_;
  Names names_;
  const Callables* callables_;  // null where only metadata may be used
  std::string where_;
  Diagnostics& diagnostics_;
};

}  // namespace

Value check_formula(const Expression& formula, const Names& names, const Callables& callables,
                    const std::string& where, Diagnostics& diagnostics) {
  return Walk(formula, names, &callables, where, diagnostics).value_of(*formula.tree);
}

void check_metadata(const Expression& expression, const Operator& op, const std::string& where,
                    Diagnostics& diagnostics) {
  const auto kind_of_name = [&](const std::string& name) -> Value {
    const schema::Argument* argument = op.schema.find_argument(name);
    return argument ? Value{kind_of(argument->type)} : Value{};
  };
  Walk walk(expression, kind_of_name, nullptr, where, diagnostics);
  const ExprNode& root = *expression.tree;
  // The rule itself, and the functions of conditions, are looked at elsewhere.
  if (root.kind == ExprKind::Call) {
    for (const schema::Expr& child : root.children) walk.value_of(*child);
  } else {
    walk.value_of(root);
  }
  visit(expression.tree, [&](const ExprNode& node) {
    if (node.kind != ExprKind::Binary || !is_comparison(node.text)) return;
    bool named = false;
    for (const schema::Expr& child : node.children) {
      visit(child, [&](const ExprNode& part) {
        named = named || (part.kind == ExprKind::Name && op.schema.find_argument(part.text)) ||
                (part.kind == ExprKind::Name && !is_dtype(part.text));
      });
    }
    if (named) return;
    diagnostics.add(expression.source.diagnostic(
        node.offset, "a comparison that names no argument in " + where, "remove it"));
  });
}

}  // namespace treadle::schemac
