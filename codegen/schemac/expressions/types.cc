// One walk from the leaves up.
//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/schemac/expressions/types.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "codegen/schemac/expressions/resolve.h"
#include "core/schema/dtypes.h"
#include "core/schema/methods.h"

namespace treadle::schemac {
namespace {

using schema::BaseType;
using schema::ExprKind;
using schema::ExprNode;
using schema::MethodOf;
using TypeKind = ExprType::Kind;

std::string count_of(std::size_t count) {
  return std::to_string(count) + (count == 1 ? " argument" : " arguments");
}

bool is_comparison(const std::string& op) {
  return op == "==" || op == "!=" || op[0] == '<' || op[0] == '>';
}
bool is_logic(const std::string& op) { return op == "&&" || op == "||" || op == "!"; }

ExprType truth() { return ExprType::of("bool"); }

class Walk {
 public:
  // Without `callables` only what is known without the elements of tensors may be used.
  Walk(Expression& expression, const Names& names, const Callables* callables, std::string where,
       Diagnostics& diagnostics)
      : expression_(expression),
        names_(names),
        callables_(callables),
        where_(std::move(where)),
        diagnostics_(diagnostics) {}

  ExprType type_of(const ExprNode& node) {
    ExprType type = find_type(node);
    expression_.typing[&node].type = type;
    return type;
  }

 private:
  ExprType find_type(const ExprNode& node) {
    switch (node.kind) {
      case ExprKind::Int:
        return ExprType::of("int");
      case ExprKind::Float:
        return ExprType::of("float");
      case ExprKind::Bool:
        return truth();
      case ExprKind::String:
        return ExprType::of("str");
      case ExprKind::None:
        return {TypeKind::None, {}};
      case ExprKind::Name:
        return name(node);
      case ExprKind::List:
        return list(node);
      case ExprKind::Unary:
      case ExprKind::Binary:
        return operation(node);
      case ExprKind::Select:
        return select(node);
      case ExprKind::Index:
        return index(node);
      case ExprKind::Method:
        return method(node);
      case ExprKind::Call:
        return call(node);
    }
    return {};
  }

  void report(std::size_t offset, const std::string& message, std::string hint) {
    diagnostics_.add(
        expression_.source.diagnostic(offset, message + " in " + where_, std::move(hint)));
  }

  void goes_to(const ExprNode& node, Callee callee) {
    expression_.typing[&node].callee = std::move(callee);
  }

  ExprType name(const ExprNode& node) {
    ExprType named = names_(node.text);
    if (!named.is_unknown()) return named;
    if (schema::is_number_constant(node.text)) return ExprType::of("float");
    return schema::find_dtype(node.text) ? ExprType::of("ScalarType") : named;
  }

  ExprType list(const ExprNode& node) {
    if (node.children.empty()) return {TypeKind::EmptyList, {}};
    ExprType item = type_of(*node.children[0]);
    bool unknown = item.is_unknown();
    for (std::size_t i = 1; i < node.children.size(); ++i) {
      const ExprType next = type_of(*node.children[i]);
      unknown = unknown || next.is_unknown();
      if (unknown) continue;
      const ExprType both = common(item, next);
      if (both.is_unknown()) {
        report(node.children[i]->offset,
               "a list of " + item.words() + " and " + next.words() + ", '" +
                   print(node.children[i]) + "',",
               "the items of a list are of one type");
        return {};
      }
      item = both;
    }
    if (unknown || item.kind != TypeKind::Value || item.is_list()) return {};
    schema::Type type = item.parts[0];
    type.list = true;
    type.element_optional = std::exchange(type.optional, false);
    if (type.base == BaseType::Bool) type.list_size = static_cast<int>(node.children.size());
    return ExprType::value(type);
  }

  ExprType index(const ExprNode& node) {
    const ExprType on = type_of(*node.children[0]);
    const ExprType at = type_of(*node.children[1]);
    if (!at.is_unknown() && !at.is(BaseType::Int) && !at.is(BaseType::SymInt)) {
      report(node.children[1]->offset,
             "index of " + at.words() + ", '" + print(node.children[1]) + "',",
             "lists are indexed by an int");
    }
    if (on.is_unknown()) return {};
    if (on.kind != TypeKind::Value || !on.is_list()) {
      report(node.offset, "index into " + on.words() + ", '" + print(node.children[0]) + "',",
             on.is_tensor() ? "only lists are indexed; call 'select(" + print(node.children[0]) +
                                  ", dim, index)'"
                            : "only lists are indexed");
      return {};
    }
    schema::Type type = on.parts[0];
    type.list = false;
    type.list_size.reset();
    type.optional = std::exchange(type.element_optional, false);
    return ExprType::value(type);
  }

  ExprType select(const ExprNode& node) {
    const ExprType condition = type_of(*node.children[0]);
    const ExprType first = type_of(*node.children[1]);
    const ExprType second = type_of(*node.children[2]);
    if (condition.is_tensor() || (!condition.is_unknown() && !condition.is_number())) {
      report(
          node.offset,
          "the condition of '?' is " + condition.words() + ", '" + print(node.children[0]) + "',",
          condition.is_tensor() && callables_ ? "call 'where(condition, a, b)'"
                                              : "compare it with something");
    }
    if (first.is_unknown() || second.is_unknown()) return {};
    ExprType both = common(first, second);
    if (both.is_unknown()) {
      report(node.children[1]->offset,
             "'?' chooses between " + first.words() + " and " + second.words(),
             "the two must be of one type");
    }
    return both;
  }

  // Why the operator cannot have this operand, as the hint; empty if it can.
  std::string problem_of(const ExprNode& node, const schema::Expr& child, const ExprType& type) {
    if (!callables_ && (type.is_tensor() || type.is_tensors())) {
      return "its elements are not known before the kernel runs; use what is, as in '" +
             (type.is_tensor() ? print(child) : print(child) + "[0]") + ".dim()'";
    }
    if (type.is_unknown()) return "";
    if (node.kind == ExprKind::Binary && is_comparison(node.text)) return "";
    if (callables_ && node.text == "%" && type.is_tensor()) return "call 'remainder(a, b)'";
    if (type.is_tensor()) return "";
    // A number that may be None is compared with something; nothing can be computed with it.
    if (type.is_number() && !(callables_ && type.is_optional())) return "";
    if (type.is_number()) return "it may be None; call a helper with it";
    return callables_ ? "it computes with tensors and numbers" : "it computes with numbers";
  }

  ExprType operation(const ExprNode& node) {
    std::vector<ExprType> types;
    for (const schema::Expr& child : node.children) types.push_back(type_of(*child));
    bool wrong = false, unknown = false;
    for (std::size_t i = 0; i < types.size(); ++i) {
      unknown = unknown || types[i].is_unknown();
      const std::string problem = problem_of(node, node.children[i], types[i]);
      if (problem.empty()) continue;
      wrong = true;
      report(node.children[i]->offset,
             "'" + node.text + "' of " + types[i].words() + ", '" + print(node.children[i]) + "',",
             problem);
    }
    if (wrong) return {};  // one error is enough for what is built of it
    if (std::any_of(types.begin(), types.end(), [](const auto& t) { return t.is_tensor(); }))
      return ExprType::of("Tensor");
    const bool compared = node.kind == ExprKind::Binary && is_comparison(node.text);
    if (compared && !unknown && !are_comparable(types[0], types[1])) {
      report(node.offset, "'" + node.text + "' of " + types[0].words() + " and " + types[1].words(),
             "the two must be of one type");
      return {};
    }
    if (compared || is_logic(node.text)) return truth();
    if (unknown) return {};
    ExprType type = types.size() == 1 ? types[0] : common(types[0], types[1]);
    // Arithmetic of truth values is that of integers.
    return type.is(BaseType::Bool) ? ExprType::of("int") : type;
  }

  // Numbers are compared with the items of lists, too.
  bool are_comparable(const ExprType& a, const ExprType& b) const {
    if (a.kind == TypeKind::None || b.kind == TypeKind::None)
      return a.is_optional() || b.is_optional();
    const auto numbers = [](const ExprType& type) {
      ExprType item = type;
      if (item.kind == TypeKind::Value) item.parts[0].list = false;
      return item.is_number();
    };
    if (numbers(a) && numbers(b) && (!callables_ || a.is_list() == b.is_list())) return true;
    return !common(a, b).is_unknown();
  }

  ExprType method(const ExprNode& node) {
    const ExprType on = type_of(*node.children[0]);
    std::vector<ExprType> arguments;
    for (std::size_t i = 1; i < node.children.size(); ++i)
      arguments.push_back(type_of(*node.children[i]));
    if (on.is_unknown()) return {};
    const bool tensor = on.is_tensor();
    const MethodOf object = tensor         ? MethodOf::Tensor
                            : on.is_list() ? MethodOf::List
                                           : MethodOf::Scalar;
    const schema::MethodInfo* known = schema::find_method(object, node.text);
    const bool numeric = on.is(BaseType::Scalar) || !callables_;
    if (object == MethodOf::Scalar && !(on.is_number() && numeric)) known = nullptr;
    if (known) return known_method(node, *known, arguments);
    if (tensor && callables_ && (!callables_->complete() || callables_->find(node.text))) {
      arguments.insert(arguments.begin(), on);
      return called(node, arguments);
    }
    report(node.name_offset, "unknown method '" + node.text + "' of " + on.words(),
           hint_for_method(node.text, object));
    return {};
  }

  static std::string hint_for_method(const std::string& name, MethodOf object) {
    if (object == MethodOf::Scalar) return "only tensors and lists have methods";
    const std::vector<std::string> names = schema::method_names(object);
    std::string hint;
    if (object == MethodOf::Tensor) hint = schema::did_you_mean(name, names);
    if (!hint.empty()) return hint;
    // As many as a list has are soon told.
    std::vector<std::string> told = names;
    if (object == MethodOf::List) std::reverse(told.begin(), told.end());
    for (const std::string& known : told) hint += (hint.empty() ? "" : ", ") + known;
    return "known are " + hint;
  }

  ExprType known_method(const ExprNode& node, const schema::MethodInfo& method,
                        const std::vector<ExprType>& arguments) {
    const std::vector<schema::Type>& parameters = method.parameters;
    if (arguments.size() != parameters.size()) {
      report(node.name_offset,
             "'" + node.text + "' takes " + count_of(parameters.size()) + ", got " +
                 std::to_string(arguments.size()),
             "");
    }
    for (std::size_t i = 0; i < std::min(arguments.size(), parameters.size()); ++i) {
      if (fits(arguments[i], parameters[i]) != Fit::Never) continue;
      const Told told = tell_apart(parameters[i], arguments[i]);
      report(node.children[i + 1]->offset,
             "the argument of '" + node.text + "' is " + told.wanted + ", got " + told.got + ", '" +
                 print(node.children[i + 1]) + "',",
             "");
    }
    Callee callee;
    callee.kind = Callee::Kind::Method;
    callee.function = method.cpp;
    goes_to(node, std::move(callee));
    return ExprType::value(method.result);
  }

  ExprType call(const ExprNode& node) {
    std::vector<ExprType> arguments;
    for (const schema::Expr& child : node.children) arguments.push_back(type_of(*child));
    if (callables_ && node.text != "not_implemented") return called(node, arguments);
    Callee callee;
    callee.kind = callables_ ? Callee::Kind::Word : Callee::Kind::Condition;
    callee.function = node.text;
    goes_to(node, std::move(callee));
    return callables_ ? ExprType{TypeKind::Never, {}} : truth();
  }

  // Suggestions: names with the same stem, or names of similar spelling.
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

  // How well the arguments fit: the first that does not, and how many are converted.
  struct Match {
    std::size_t misfit = 0;
    std::size_t converted = 0;
  };
  static Match match(const Callable& callable, const std::vector<ExprType>& arguments) {
    Match result{arguments.size(), 0};
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      const Fit fit = fits(arguments[i], callable.schema.arguments[i].type);
      if (fit == Fit::Never) {
        result.misfit = i;
        return result;
      }
      result.converted += fit == Fit::Converted;
    }
    return result;
  }

  static ExprType result_of(const Callable& callable) {
    std::vector<schema::Type> types;
    for (const schema::Return& result : callable.schema.returns) types.push_back(result.type);
    return ExprType::results(types);
  }

  // The children of `node` are the arguments. The overload is the one that takes them with the
  // fewest conversions; of several, the first in the file.
  ExprType called(const ExprNode& node, const std::vector<ExprType>& arguments) {
    const std::vector<Callable>* overloads = callables_->find(node.text);
    if (!overloads) {
      if (!callables_->complete()) return {};
      report(node.name_offset, "unknown function '" + node.text + "'", near(node.text));
      return {};
    }
    const Callable* best = nullptr;
    std::size_t conversions = 0;
    const Callable* nearest = nullptr;  // of those that take so many arguments
    std::size_t nearest_place = 0;
    for (const Callable& callable : *overloads) {
      if (arguments.size() < callable.least() ||
          arguments.size() > callable.schema.arguments.size())
        continue;
      const Match found = match(callable, arguments);
      if (found.misfit == arguments.size()) {
        if (best && found.converted >= conversions) continue;
        best = &callable;
        conversions = found.converted;
      } else if (!nearest || found.misfit > nearest_place) {
        nearest = &callable;
        nearest_place = found.misfit;
      }
    }
    if (best) {
      goes_to(node, best->callee);
      return result_of(*best);
    }
    if (nearest) {
      const schema::Expr& child = node.children[nearest_place];
      const schema::Argument& parameter = nearest->schema.arguments[nearest_place];
      const Told told = tell_apart(parameter.type, arguments[nearest_place]);
      report(child->offset,
             "argument '" + parameter.name + "' of '" + node.text + "' is " + told.wanted +
                 ", got " + told.got + ", '" + print(child) + "',",
             "it is " + nearest->text());
      return result_of(*nearest);
    }
    const Callable& only = overloads->front();
    std::size_t least = only.least(), most = 0;
    for (const Callable& callable : *overloads) {
      least = std::min(least, callable.least());
      most = std::max(most, callable.schema.arguments.size());
    }
    std::string takes = count_of(most);
    if (least != most) takes = std::to_string(least) + " to " + takes;
    report(node.name_offset,
           "'" + node.text + "' takes " + takes + ", got " + std::to_string(arguments.size()),
           "it is " + only.text());
    return result_of(only);
  }

  Expression& expression_;
  const Names& names_;
  const Callables* callables_;
  std::string where_;
  Diagnostics& diagnostics_;
};

// A comparison says something of an argument.
void check_comparisons(const Expression& expression, const Operator& op, const std::string& where,
                       Diagnostics& diagnostics) {
  visit(expression.tree, [&](const ExprNode& node) {
    if (node.kind != ExprKind::Binary || !is_comparison(node.text)) return;
    bool named = false;
    for (const schema::Expr& child : node.children) {
      visit(child, [&](const ExprNode& part) {
        named = named || (part.kind == ExprKind::Name &&
                          (op.schema.find_argument(part.text) || !schema::find_dtype(part.text)));
      });
    }
    if (named) return;
    diagnostics.add(expression.source.diagnostic(
        node.offset, "a comparison that names no argument in " + where, "remove it"));
  });
}

Names arguments_of(const Operator& op) {
  return [&op](const std::string& name) {
    const schema::Argument* argument = op.schema.find_argument(name);
    return argument ? ExprType::value(argument->type) : ExprType{};
  };
}

}  // namespace

ExprType type_formula(Expression& formula, const Names& names, const Callables& callables,
                      const std::string& where, Diagnostics& diagnostics) {
  return Walk(formula, names, &callables, where, diagnostics).type_of(*formula.tree);
}

ExprType type_condition(Expression& condition, const Operator& op, Diagnostics& diagnostics) {
  const std::string where = "check of " + op.name();
  const Names names = arguments_of(op);
  const ExprType type =
      Walk(condition, names, nullptr, where, diagnostics).type_of(*condition.tree);
  check_comparisons(condition, op, where, diagnostics);
  return type;
}

void type_shape(Expression& shape, const Operator& op, Diagnostics& diagnostics) {
  const std::string where = "shape of " + op.name();
  const ExprNode& root = *shape.tree;
  const Names names = arguments_of(op);
  Walk walk(shape, names, nullptr, where, diagnostics);
  for (const schema::Expr& child : root.children) walk.type_of(*child);
  Callee rule;
  rule.kind = Callee::Kind::Shape;
  rule.function = root.text;
  shape.typing[&root] = {{TypeKind::Shape, {}}, std::move(rule)};
  check_comparisons(shape, op, where, diagnostics);
}

}  // namespace treadle::schemac
