// An entry's keys are its operator's differentiable arguments, so each is looked up in the schema.
//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/schemac/derivatives/derivatives.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <utility>

#include "codegen/schemac/derivatives/saves.h"
#include "codegen/schemac/entries/entry.h"
#include "codegen/schemac/entries/tables.h"
#include "codegen/schemac/expressions/resolve.h"
#include "codegen/schemac/expressions/types.h"
#include "core/schema/methods.h"

namespace treadle::schemac {
namespace {

using schema::Argument;
using schema::Expr;
using schema::ExprKind;
using schema::ExprNode;
using schema::SchemaError;
using schema::SourceText;

class DerivativeReader {
 public:
  DerivativeReader(const YamlFile& file, Operator& op, const Callables& callables,
                   Diagnostics& diagnostics)
      : file_(file), op_(op), callables_(callables), diagnostics_(diagnostics) {}

  void read(const std::vector<Field>& fields, const Word& name) {
    derivative_.file = file_.path();
    derivative_.place = name.source.place(0);
    check_result_names(name);
    read_output_differentiability(fields);
    for (const Field& field : fields) {
      if (field.key.text == "name" || field.key.text == "output_differentiability") continue;
      try {
        if (field.key.text == "result" && !op_.schema.find_argument("result")) {
          diagnostics_.add(field.key.error(
              "formula for 'result' of " + op_.name(),
              "remove it: the forward mode follows from the formulas of the arguments"));
        } else if (field.key.text == "formulas" && field.value.IsMap()) {
          for (const Field& inner : file_.fields(field.value, diagnostics_)) read_formula(inner);
        } else {
          read_formula(field);
        }
      } catch (const SchemaError& problem) {
        diagnostics_.add(problem.diagnostic());
      }
    }
    // A misnamed argument is not missing too.
    if (!misnamed_) check_complete(name);
    op_.derivative = std::move(derivative_);
  }

 private:
  // A name in a formula is either.
  void check_result_names(const Word& name) {
    for (const schema::Return& result : op_.schema.returns) {
      const Argument* argument =
          result.name.empty() ? nullptr : op_.schema.find_argument(result.name);
      if (!argument || result.type.alias) continue;
      diagnostics_.add(name.source.diagnostic(
          argument->offset, "'" + result.name + "' is an argument and a result of " + op_.name(),
          "rename one of the two; formulas could not tell them apart"));
    }
  }

  void read_output_differentiability(const std::vector<Field>& fields) {
    for (const schema::Return& result : op_.schema.returns) {
      derivative_.output_differentiability.push_back(result.type.is_tensor());
    }
    const auto field = std::find_if(fields.begin(), fields.end(), [](const Field& candidate) {
      return candidate.key.text == "output_differentiability";
    });
    if (field == fields.end()) return;
    std::vector<bool> flags;
    for (const Word& word : file_.words(*field, diagnostics_)) {
      const bool yes = word.text == "True" || word.text == "true";
      if (!yes && word.text != "False" && word.text != "false") {
        diagnostics_.add(word.error("expected True or False in output_differentiability, got '" +
                                    word.text + "'"));
        return;
      }
      flags.push_back(yes);
    }
    if (flags.size() != op_.schema.returns.size()) {
      diagnostics_.add(
          field->key.error("output_differentiability has " + std::to_string(flags.size()) +
                               (flags.size() == 1 ? " value" : " values") + ", but " + op_.name() +
                               " has " + std::to_string(op_.schema.returns.size()) + " results",
                           "write one value for each result"));
      return;
    }
    for (std::size_t i = 0; i < flags.size(); ++i) {
      if (!flags[i] || op_.schema.returns[i].type.is_tensor()) continue;
      diagnostics_.add(field->key.error("result " + std::to_string(i) + " of " + op_.name() +
                                            " has type '" + print(op_.schema.returns[i].type) +
                                            "' and no derivative",
                                        "write False for it"));
    }
    derivative_.output_differentiability = std::move(flags);
  }

  void read_formula(const Field& field) {
    std::vector<Word> targets;
    for (Word& word : split_words(field.key.source)) {
      if (check_target(word)) targets.push_back(std::move(word));
    }
    if (targets.empty()) return;
    Expression formula = expression(field);
    const Expr& tree = formula.tree;
    if (tree->kind == ExprKind::Name && tree->text == "non_differentiable") {
      for (const Word& target : targets) derivative_.non_differentiable.push_back(target.text);
      return;
    }
    if (tree->kind == ExprKind::Call && tree->text == "not_implemented" &&
        (tree->children.size() != 1 || tree->children[0]->kind != ExprKind::String)) {
      throw SchemaError(formula.source.diagnostic(tree->offset,
                                                  "not_implemented takes one string, the reason",
                                                  "write 'not_implemented(\"...\")'"));
    }
    std::string quoted;
    for (const Word& target : targets) quoted += (quoted.empty() ? "'" : ", '") + target.text + "'";
    Scope scope = names_for("the formula for " + quoted + " of " + op_.name());
    scope.names.insert(scope.names.begin(), {"grad", "grads"});
    if (targets.size() > 1) scope.names.push_back("grad_input_mask");
    check_gradients(formula, scope.where);
    if (!misnames_result(formula, scope.where)) check_names(formula, scope, diagnostics_);
    if (knows_all(formula, scope)) check_uses_gradient(formula, scope.where);
    check_type(formula, targets, scope.where);
    check_linear(formula, scope.where);
    std::vector<std::string> names;
    for (const Word& target : targets) names.push_back(target.text);
    std::vector<Save> saves = saves_of(tree, op_.schema);
    derivative_.formulas.push_back({std::move(names), std::move(formula), std::move(saves)});
  }

  // True if `target` is an argument that may have a formula and has none yet.
  bool check_target(const Word& target) {
    const std::vector<std::string> names = argument_names(op_.schema);
    const Argument* argument = op_.schema.find_argument(target.text);
    if (!argument) {
      std::vector<std::string> known = names;
      known.insert(known.end(), {"output_differentiability", "formulas"});
      std::string hint = schema::did_you_mean(target.text, known);
      if (hint.empty())
        hint = "keys are name, output_differentiability, formulas and the operator's arguments";
      diagnostics_.add(target.error(
          "unknown argument '" + target.text + "' in the derivative of " + op_.name(), hint));
      misnamed_ = true;
      return false;
    }
    if (!argument->type.is_tensor()) {
      diagnostics_.add(target.error("formula for '" + target.text + "' of type '" +
                                        print(argument->type) + "' of " + op_.name(),
                                    "only tensors are differentiable; remove it"));
      return false;
    }
    const auto [first, is_new] =
        targets_.emplace(target.text, target.source.place(target.offset).line);
    if (!is_new) {
      diagnostics_.add(target.error("duplicate formula for '" + target.text + "' of " + op_.name(),
                                    "the first is on line " + std::to_string(first->second)));
    }
    return is_new;
  }

  // `grad` is the gradient of the only differentiable result; with several, they are grads[0],
  // grads[1], ...
  void check_gradients(const Expression& formula, const std::string& where) {
    const auto& flags = derivative_.output_differentiability;
    const auto count = static_cast<std::size_t>(std::count(flags.begin(), flags.end(), true));
    visit(formula.tree, [&](const ExprNode& node) {
      if (node.kind == ExprKind::Name && node.text == "grad" && count != 1 &&
          !op_.schema.find_argument("grad")) {
        diagnostics_.add(formula.source.diagnostic(
            node.offset,
            "'grad' in " + where + ", which has " + std::to_string(count) +
                " differentiable results",
            count == 0 ? "no formula is needed; remove it"
                       : "write 'grads[0]', 'grads[1]', or give output_differentiability"));
      }
      if (node.kind != ExprKind::Index || node.children[0]->kind != ExprKind::Name ||
          node.children[0]->text != "grads" || node.children[1]->kind != ExprKind::Int) {
        return;
      }
      const std::string& digits = node.children[1]->text;
      std::size_t index = 0;
      std::from_chars(digits.data(), digits.data() + digits.size(), index);
      if (index >= op_.schema.returns.size()) {
        diagnostics_.add(
            formula.source.diagnostic(node.offset,
                                      "grads[" + digits + "] in " + where + ", which has " +
                                          std::to_string(op_.schema.returns.size()) + " results",
                                      "the results count from 0"));
      } else if (!flags[index] && count > 0 && !op_.schema.find_argument("grads")) {
        diagnostics_.add(
            formula.source.diagnostic(node.offset,
                                      "grads[" + digits + "] in " + where + ", of which result " +
                                          digits + " is not differentiable",
                                      "write 'grads[" + std::to_string(first_differentiable()) +
                                          "]', or True for it in output_differentiability"));
      }
    });
  }

  std::size_t first_differentiable() const {
    const auto& flags = derivative_.output_differentiability;
    return static_cast<std::size_t>(std::find(flags.begin(), flags.end(), true) - flags.begin());
  }

  // Whether no name is misspelt, which may be `grad`.
  static bool knows_all(const Expression& formula, const Scope& scope) {
    bool known = true;
    visit(formula.tree, [&](const ExprNode& node) {
      known = known && (node.kind != ExprKind::Name || is_known(node.text, scope));
    });
    return known;
  }

  // A formula without the incoming gradient is a derivative, not a gradient.
  void check_uses_gradient(const Expression& formula, const std::string& where) {
    const Expr& tree = formula.tree;
    const bool says_so = tree->kind == ExprKind::Call &&
                         (tree->text == "not_implemented" || tree->text == "zeros_like");
    if (says_so || uses_gradient(tree, op_.schema)) return;
    const auto& flags = derivative_.output_differentiability;
    if (std::find(flags.begin(), flags.end(), true) == flags.end()) return;
    const std::string incoming = "grads[" + std::to_string(first_differentiable()) + "]";
    std::optional<std::size_t> misread;  // where an argument of that name is taken for it
    visit(tree, [&](const ExprNode& node) {
      if (node.kind == ExprKind::Name && node.text == "grad" && !misread) misread = node.offset;
    });
    diagnostics_.add(formula.source.diagnostic(
        misread.value_or(tree->offset), where + " does not use the incoming gradient",
        misread ? "'grad' is the argument of that name here; write '" + incoming +
                      "' for the incoming gradient"
                : "multiply by '" + (op_.schema.find_argument("grad") ? incoming : "grad") +
                      "'; where nothing flows back write 'non_differentiable', or a call of "
                      "zeros_like"));
  }

  // The meaning of a name in a formula.
  ExprType type_of_name(const std::string& name, std::size_t targets) const {
    if (const Argument* argument = op_.schema.find_argument(name))
      return ExprType::value(argument->type);
    const auto& returns = op_.schema.returns;
    if (name == "grad") {
      const std::size_t first = first_differentiable();
      return first < returns.size() ? ExprType::value(returns[first].type) : ExprType{};
    }
    if (name == "grads") return ExprType::of("Tensor[]");
    if (name == "grad_input_mask" && targets > 1)
      return ExprType::of("bool[" + std::to_string(targets) + "]");
    for (std::size_t i = 0; i < returns.size(); ++i) {
      for (const std::string& known : result_names(op_.schema, i)) {
        if (known == name) return ExprType::value(returns[i].type);
      }
    }
    return {};
  }

  void check_type(Expression& formula, const std::vector<Word>& targets, const std::string& where) {
    const ExprType type = type_formula(
        formula, [&](const std::string& name) { return type_of_name(name, targets.size()); },
        callables_, where, diagnostics_);
    using Kind = ExprType::Kind;
    if (type.is_unknown() || type.kind == Kind::Never) return;
    const auto report = [&](const std::string& got, const std::string& wanted, std::string hint) {
      diagnostics_.add(formula.source.diagnostic(
          formula.tree->offset, where + " gives " + got + ", expected " + wanted, std::move(hint)));
    };
    if (targets.size() > 1) {
      if (type.kind == Kind::Several && type.parts.size() == targets.size()) {
        for (std::size_t i = 0; i < targets.size(); ++i) {
          const schema::Type& wanted = op_.schema.find_argument(targets[i].text)->type;
          const ExprType part = ExprType::value(type.parts[i]);
          if (fits(part, wanted) == Fit::Never) {
            report(part.words() + " for '" + targets[i].text + "'", words_for(wanted), "");
          }
        }
        return;
      }
      report(results_in_words(type), std::to_string(targets.size()) + " results",
             "call a function that returns one gradient for each, or write a formula for each");
      return;
    }
    const schema::Type& wanted = op_.schema.find_argument(targets[0].text)->type;
    if (fits(type, wanted) != Fit::Never) return;
    report(results_in_words(type), words_for(wanted), type.is_number() ? "multiply by 'grad'" : "");
  }

  static std::string results_in_words(const ExprType& type) {
    const bool several = type.kind == ExprType::Kind::Several && !type.parts.empty();
    return several ? std::to_string(type.parts.size()) + " results" : type.words();
  }

  // Whether values of the incoming gradient reach a node, rather than its shape or dtype alone.
  bool carries_gradient(const ExprNode& node) const {
    if (node.kind == ExprKind::Name)
      return (node.text == "grad" || node.text == "grads") && !op_.schema.find_argument(node.text);
    const bool metadata =
        node.kind == ExprKind::Method && find_method(schema::MethodOf::Tensor, node.text);
    if (metadata) return false;
    return std::any_of(node.children.begin(), node.children.end(),
                       [&](const Expr& child) { return carries_gradient(*child); });
  }

  // A gradient is linear in the one that comes in, so each helper on the way must be.
  void check_linear(const Expression& formula, const std::string& where) {
    visit(formula.tree, [&](const ExprNode& node) {
      const auto typing = formula.typing.find(&node);
      if (typing == formula.typing.end() || !typing->second.callee ||
          typing->second.callee->kind != Callee::Kind::Helper)
        return;
      const Callable& helper = *callables_.find(*typing->second.callee);
      std::vector<std::string> given;
      for (std::size_t i = 0; i < node.children.size(); ++i) {
        if (carries_gradient(*node.children[i])) given.push_back(helper.schema.arguments[i].name);
      }
      if (given.empty() || is_linear(helper.linear, given)) return;
      std::string names;
      for (const std::string& name : given) names += (names.empty() ? "" : " + ") + name;
      diagnostics_.add(formula.source.diagnostic(
          node.name_offset,
          "the gradient as '" + names + "' of '" + node.text + "' in " + where +
              ", in which it is not declared to be linear",
          "where it is, write 'linear: " + names + "' for " + helper.text()));
    });
  }

  static bool is_linear(const LinearIn& groups, const std::vector<std::string>& given) {
    return std::any_of(groups.begin(), groups.end(), [&](const std::vector<std::string>& group) {
      return std::all_of(given.begin(), given.end(), [&](const std::string& name) {
        return std::find(group.begin(), group.end(), name) != group.end();
      });
    });
  }

  // Reports `result` where there are several results.
  bool misnames_result(const Expression& formula, const std::string& where) {
    if (op_.schema.returns.size() < 2 || op_.schema.find_argument("result")) return false;
    std::string known;
    for (std::size_t i = 0; i < op_.schema.returns.size(); ++i) {
      known += (i == 0 ? "'" : ", '") + result_names(op_.schema, i)[0] + "'";
      if (result_names(op_.schema, i)[0] == "result") return false;
    }
    bool found = false;
    visit(formula.tree, [&](const ExprNode& node) {
      if (node.kind != ExprKind::Name || node.text != "result") return;
      found = true;
      diagnostics_.add(formula.source.diagnostic(node.offset,
                                                 "'result' in " + where + ", which has " +
                                                     std::to_string(op_.schema.returns.size()) +
                                                     " results",
                                                 "name one of " + known));
    });
    return found;
  }

  // Whether the formula follows from the entry's expression.
  bool is_derived(const std::string& argument) const {
    if (!op_.derivation) return false;
    const auto& found = op_.derivation->gradients;
    return contains(op_.derivation->truths, argument) ||
           std::any_of(found.begin(), found.end(),
                       [&](const auto& gradient) { return gradient.argument == argument; });
  }

  // ", and none can be derived, ..."; empty for an operator without an expression.
  std::string why_underived(const std::string& argument) const {
    if (!op_.derivation) return "";
    for (const auto& [name, why] : op_.derivation->missing) {
      if (name == argument) return ", and none can be derived: " + why;
    }
    return "";
  }

  static bool is_key(const std::string& name) {
    return name == "name" || name == "output_differentiability" || name == "formulas";
  }

  void check_complete(const Word& name) {
    const std::vector<bool>& flags = derivative_.output_differentiability;
    const bool differentiable = std::find(flags.begin(), flags.end(), true) != flags.end();
    for (const Argument& argument : op_.schema.arguments) {
      if (!argument.type.is_tensor() || targets_.count(argument.name)) continue;
      // Where no result has a gradient there is nothing to say of the arguments.
      if (!differentiable) {
        derivative_.non_differentiable.push_back(argument.name);
        continue;
      }
      if (is_derived(argument.name)) continue;
      diagnostics_.add(name.source.diagnostic(
          argument.offset,
          "no formula for argument '" + argument.name + "' of " + op_.name() +
              why_underived(argument.name),
          is_key(argument.name) ? "add 'formulas: {" + argument.name + ": FORMULA}', since '" +
                                      argument.name + "' is a key of the entry"
                                : "add '" + argument.name + ": FORMULA' or '" + argument.name +
                                      ": non_differentiable'"));
    }
  }

  Scope names_for(std::string where) const {
    Scope scope{argument_names(op_.schema), std::move(where), "name"};
    for (std::size_t i = 0; i < op_.schema.returns.size(); ++i) {
      for (std::string& name : result_names(op_.schema, i)) scope.names.push_back(std::move(name));
    }
    return scope;
  }

  Expression expression(const Field& field) const {
    const SourceText text = file_.text(field);
    return {text, parse_expr(text), {}};
  }

  const YamlFile& file_;
  Operator& op_;
  const Callables& callables_;
  Diagnostics& diagnostics_;
  Derivative derivative_;
  bool misnamed_ = false;
  std::map<std::string, int> targets_;  // arguments dealt with, and the lines they are on
};

// Reports a name that no operator has.
void report_unknown(const Word& name, const std::string& operator_name, const Model& model,
                    Diagnostics& diagnostics) {
  std::vector<std::string> names;
  for (const Operator& op : model.operators) {
    for (const Form& form : op.forms) {
      if (print(form.schema.name) != operator_name) continue;
      diagnostics.add(name.error(
          "derivative for " + operator_name + ", the " + form.form + " form of " + op.name(),
          "it follows from the derivative of " + op.name() + "; remove it"));
      return;
    }
    names.push_back(op.name());
  }
  if (std::find(model.refused.begin(), model.refused.end(), operator_name) != model.refused.end())
    return;
  diagnostics.add(name.error("derivative for unknown operator " + operator_name,
                             schema::did_you_mean(operator_name, names)));
}

class FileReader {
 public:
  FileReader(const YamlFile& file, const std::string& functions, const std::string& library,
             const Callables& callables, Model& model, Diagnostics& diagnostics)
      : file_(file),
        functions_(functions),
        library_(library),
        callables_(callables),
        model_(model),
        diagnostics_(diagnostics) {}

  void read() {
    for (Operator& op : model_.operators) operators_.emplace(op.name(), &op);
    for (const YAML::Node& node : file_.root()) {
      if (!node.IsMap()) {
        diagnostics_.add(
            file_.error(node, "expected the derivative of an operator", "write '- name: SCHEMA'"));
        continue;
      }
      try {
        read_entry(node);
      } catch (const SchemaError& problem) {
        diagnostics_.add(problem.diagnostic());
      }
    }
  }

 private:
  void read_entry(const YAML::Node& node) {
    const std::vector<Field> fields = file_.fields(node, diagnostics_);
    const auto field = std::find_if(fields.begin(), fields.end(), [](const Field& candidate) {
      return candidate.key.text == "name";
    });
    if (field == fields.end()) {
      throw SchemaError(
          file_.error(node, "entry without 'name'", "begin it with '- name: SCHEMA'"));
    }
    const SourceText source = file_.text(*field);
    const Word name{source.text(), source, 0};
    const schema::FunctionSchema schema = parse_schema_in(source, library_);
    const std::string operator_name = print(schema.name);
    const auto found = operators_.find(operator_name);
    if (found == operators_.end()) {
      report_unknown(name, operator_name, model_, diagnostics_);
      return;
    }
    const auto [first, is_new] = lines_.emplace(operator_name, source.place(0).line);
    if (!is_new) {
      throw SchemaError(name.error("duplicate derivative of " + operator_name,
                                   "the first is on line " + std::to_string(first->second)));
    }
    Operator& op = *found->second;
    const std::string here = print_as_in(source.text(), schema, library_);
    const std::string there = print_as_in(source.text(), op.schema, library_);
    if (here != there) {
      const auto offset = static_cast<std::size_t>(
          std::mismatch(source.text().begin(), source.text().end(), there.begin(), there.end())
              .first -
          source.text().begin());
      throw SchemaError(source.diagnostic(offset,
                                          "schema '" + here + "' disagrees with '" + there +
                                              "' at " + functions_ + ":" +
                                              std::to_string(op.source.place(0).line),
                                          "make them the same"));
    }
    DerivativeReader(file_, op, callables_, diagnostics_).read(fields, name);
  }

  const YamlFile& file_;
  const std::string& functions_;
  const std::string& library_;
  const Callables& callables_;
  Model& model_;
  Diagnostics& diagnostics_;
  std::map<std::string, Operator*> operators_;
  std::map<std::string, int> lines_;
};

}  // namespace

void read_derivatives(const YamlFile& file, const std::string& functions,
                      const std::string& library, const Callables& callables, Model& model,
                      Diagnostics& diagnostics) {
  if (file.root().IsNull() || !file.root().IsDefined()) return;
  if (!file.root().IsSequence()) {
    diagnostics.add(file.error(file.root(), "expected a list of derivatives",
                               "begin each with '- name: SCHEMA'"));
    return;
  }
  FileReader(file, functions, library, callables, model, diagnostics).read();
}

}  // namespace treadle::schemac
