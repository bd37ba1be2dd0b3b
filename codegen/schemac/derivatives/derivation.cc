// A gradient is grad * conj(a) + conj(grad) * b, where the result changes by a * dx + b * conj(dx).
//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/schemac/derivatives/derivation.h"

#include <algorithm>
#include <map>
#include <utility>

#include "codegen/schemac/derivatives/algebra.h"
#include "codegen/schemac/derivatives/formula_writer.h"
#include "codegen/schemac/derivatives/saves.h"
#include "codegen/schemac/derivatives/slopes.h"
#include "codegen/schemac/entries/tables.h"
#include "codegen/schemac/expressions/types.h"

namespace treadle::schemac {
namespace {

using schema::Argument;
using schema::Expr;
using schema::ExprKind;
using schema::ExprNode;
using schema::SourceText;

bool gives_truth(const Operator& op) { return op.promote == "compare" || op.promote == "bool"; }

// Whether every use of a name is as a truth value: `condition ? a : b`.
bool is_truth(const std::string& name, const Expr& expression) {
  std::size_t uses = 0, truths = 0;
  const auto is_name = [&](const Expr& node) {
    return node->kind == ExprKind::Name && node->text == name;
  };
  visit(expression, [&](const ExprNode& node) {
    uses += node.kind == ExprKind::Name && node.text == name;
    const bool joins = node.text == "&&" || node.text == "||" || node.text == "!";
    if (node.kind == ExprKind::Select)
      truths += is_name(node.children[0]);
    else if ((node.kind == ExprKind::Binary || node.kind == ExprKind::Unary) && joins)
      truths += static_cast<std::size_t>(
          std::count_if(node.children.begin(), node.children.end(), is_name));
  });
  return uses > 0 && uses == truths;
}

// What flows through the derivative, times a slope. It goes into choices, so that nothing flows
// where a slope is 0, whatever the other branch is.
Expr times(const Expr& lead, const Expr& slope) {
  if (slope->kind == ExprKind::Select)
    return algebra::choice(slope->children[0], times(lead, slope->children[1]),
                           times(lead, slope->children[2]));
  return algebra::product(lead, slope);
}

class Deriver {
 public:
  Deriver(const Operator& op, const ScalarFunctions& functions, const Callables& callables,
          const ElementOperators& operators)
      : op_(op),
        callables_(callables),
        operators_(operators),
        tree_(op.pointwise->tree),
        rules_{functions, has_complex(inexact_dtypes(op)), !op.schema.find_argument("result")} {}

  Derivation derive() {
    Expr tangent;
    std::vector<std::string> changes;
    for (const Argument& argument : op_.schema.arguments) {
      if (!argument.type.is_tensor()) continue;
      if (is_truth(argument.name, tree_)) {
        result_.truths.push_back(argument.name);
        continue;
      }
      try {
        const Slopes slopes = rules_.by(argument.name, tree_);
        result_.gradients.push_back({argument.name, gradient(slopes)});
        changes.push_back(argument.name + "_t");
        const Expr change = algebra::name(changes.back());
        tangent = plus(tangent, slopes.plain, change);
        tangent = plus(tangent, slopes.conjugate, rules_.conjugate(change));
      } catch (const Underivable& problem) {
        result_.missing.emplace_back(argument.name, problem.what());
      }
    }
    if (!changes.empty() && result_.missing.empty()) add_tangent(tangent, changes);
    return std::move(result_);
  }

 private:
  static Expr plus(const Expr& sum, const Expr& slope, const Expr& change) {
    if (!slope) return sum;
    const Expr term = times(change, slope);
    return sum ? algebra::sum(sum, term) : term;
  }

  Expression gradient(const Slopes& slopes) {
    const std::string lead = op_.schema.find_argument("grad") ? kIndexedGradient : "grad";
    const Expr grad = algebra::name(lead);
    Expr whole;
    whole = plus(whole, slopes.plain ? rules_.conjugate(slopes.plain) : nullptr, grad);
    whole = plus(whole, slopes.conjugate, rules_.conjugate(grad));
    return formula(whole, {lead});
  }

  void add_tangent(const Expr& tangent, const std::vector<std::string>& changes) {
    try {
      result_.tangent = formula(tangent, changes);
    } catch (const Underivable&) {
      // It lacks an operator; the gradients are there without it.
    }
  }

  Expression formula(const Expr& of_elements, const std::vector<std::string>& leads) {
    const FormulaWriter writer(op_, leads, rules_, operators_, callables_);
    const Expr tree = writer.write(of_elements ? of_elements : algebra::number(0));
    const std::string text = print(tree);
    const schema::SourceLocation place = op_.pointwise->place();
    Expression made{SourceText(text, op_.pointwise->source.file(),
                               std::vector(text.size() + 1, place), nullptr),
                    tree,
                    {}};
    const auto type_of = [&](const std::string& name) {
      if (const Argument* argument = op_.schema.find_argument(name))
        return ExprType::value(argument->type);
      if (name == "grads") return ExprType::of("Tensor[]");
      const bool known = name == "result" || contains(leads, name);
      return known ? ExprType::of("Tensor") : ExprType{};
    };
    Diagnostics problems;
    const ExprType type =
        type_formula(made, type_of, callables_, "the derivative of " + op_.name(), problems);
    if (!problems.empty()) throw Underivable(problems.sorted({})[0].message);
    if (!type.is_tensor()) throw Underivable("'" + text + "' has no type");
    return made;
  }

  const Operator& op_;
  const Callables& callables_;
  const ElementOperators& operators_;
  const Expr tree_;
  const Differentiation rules_;
  Derivation result_;
};

// `not_implemented("why")`, which raises an error when the gradient is asked for.
Expression refusal(const Operator& op, const std::string& why) {
  const Expr reason = algebra::node(ExprKind::String, why);
  const Expr tree = algebra::call("not_implemented", {reason});
  const std::string text = print(tree);
  const schema::SourceLocation place = op.pointwise->place();
  Expression made{
      SourceText(text, op.pointwise->source.file(), std::vector(text.size() + 1, place), nullptr),
      tree,
      {}};
  made.typing[reason.get()].type = ExprType::of("str");
  Callee word;
  word.kind = Callee::Kind::Word;
  word.function = tree->text;
  made.typing[tree.get()] = {{ExprType::Kind::Never, {}}, std::move(word)};
  return made;
}

bool has_formula(const Derivative& derivative, const std::string& argument) {
  return contains(derivative.non_differentiable, argument) ||
         std::any_of(derivative.formulas.begin(), derivative.formulas.end(),
                     [&](const Formula& formula) { return contains(formula.targets, argument); });
}

// Without a formula for any argument an operator has no derivative, and says so when it is asked.
bool is_useful(const Derivation& derivation) {
  return !derivation.gradients.empty() || derivation.missing.empty();
}

void use(Operator& op) {
  const Derivation& derivation = *op.derivation;
  if (!op.derivative) {
    if (!is_useful(derivation) || contains(op.tags, "differentiable_none")) return;
    op.derivative = Derivative{op.pointwise->source.file(), op.pointwise->place(), {}, {}, {}};
    op.derivative->output_differentiability = {!derivation.gradients.empty()};
  }
  Derivative& derivative = *op.derivative;
  if (!derivative.output_differentiability[0] && !derivation.truths.empty() &&
      derivative.non_differentiable.empty())
    derivative.non_differentiable = derivation.truths;
  if (!derivative.output_differentiability[0]) return;
  const auto add = [&](const std::string& argument, const Expression& formula) {
    if (has_formula(derivative, argument)) return;
    derivative.formulas.push_back(
        {{argument}, formula, saves_of(formula.tree, op.schema), /*derived=*/true});
  };
  for (const std::string& argument : derivation.truths) {
    if (!has_formula(derivative, argument)) derivative.non_differentiable.push_back(argument);
  }
  for (const auto& [argument, formula] : derivation.gradients) add(argument, formula);
  for (const auto& [argument, why] : derivation.missing) add(argument, refusal(op, why));
  // In the order of the arguments, as a file has them.
  const auto place_of = [&](const Formula& formula) {
    return op.schema.find_argument(formula.targets[0]);
  };
  std::stable_sort(derivative.formulas.begin(), derivative.formulas.end(),
                   [&](const Formula& a, const Formula& b) { return place_of(a) < place_of(b); });
}

}  // namespace

void derive(Model& model, const ScalarFunctions& functions, const Callables& callables,
            const ElementOperators& operators) {
  for (Operator& op : model.operators) {
    if (!op.pointwise || op.schema.returns.size() != 1) continue;
    if (gives_truth(op)) {
      // Its arguments are what it compares; the result has no gradient.
      op.derivation = Derivation{};
      for (const Argument& argument : op.schema.arguments) {
        if (argument.type.is_tensor()) op.derivation->truths.push_back(argument.name);
      }
    } else if (!inexact_dtypes(op).empty()) {
      op.derivation = Deriver(op, functions, callables, operators).derive();
    }
  }
}

void use_derivations(Model& model) {
  for (Operator& op : model.operators) {
    if (op.derivation) use(op);
  }
}

}  // namespace treadle::schemac
