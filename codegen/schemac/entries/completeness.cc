// Collects what each part of an entry limits, and reports the arguments that are left.
//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/schemac/entries/completeness.h"

#include <algorithm>
#include <set>
#include <string>

namespace treadle::schemac {
namespace {

using schema::Argument;
using schema::BaseType;
using schema::ExprKind;
using schema::ExprNode;

using Names = std::set<std::string>;

void add_names(const Expression& expression, Names& names) {
  visit(expression.tree, [&](const ExprNode& node) {
    if (node.kind == ExprKind::Name) names.insert(node.text);
  });
}

// Arguments named where their values are checked.
Names checked_names(const Operator& op) {
  Names names(op.unlimited.begin(), op.unlimited.end());
  for (const Expression& check : op.checks) add_names(check, names);
  return names;
}

// Arguments that need no word in `check`, by the operator's kind.
Names limited_names(const Operator& op) {
  Names names;
  const auto add_all = [&](auto&& chosen) {
    for (const Argument& argument : op.schema.arguments) {
      if (chosen(argument)) names.insert(argument.name);
    }
  };
  switch (op.kind) {
    case Kind::View:
    case Kind::Composite:
      add_all([](const Argument&) { return true; });
      break;
    case Kind::Pointwise:
      add_all([](const Argument& argument) { return argument.type.is_tensor(); });
      if (op.pointwise) add_names(*op.pointwise, names);
      break;
    case Kind::Reduce:
      names = {"self", "input", "dim", "keepdim", "dtype"};
      if (op.reduce) {
        for (const auto& [part, expression] : *op.reduce) add_names(expression, names);
      }
      break;
    case Kind::Mutating:
      // Its shape is that of the argument it writes.
      add_all([](const Argument& argument) { return argument.type.alias.has_value(); });
      break;
    case Kind::Kernel:
    case Kind::Returns:
      if (op.dtype_of) names.insert(*op.dtype_of);
      break;
  }
  if (op.shape) add_names(*op.shape, names);
  return names;
}

bool has_tensors(const schema::FunctionSchema& schema) {
  const auto is_tensor = [](const auto& value) { return value.type.is_tensor(); };
  return std::any_of(schema.arguments.begin(), schema.arguments.end(), is_tensor) ||
         std::any_of(schema.returns.begin(), schema.returns.end(), is_tensor);
}

bool limited_by_type(const schema::Type& type) {
  switch (type.base) {
    case BaseType::Tensor:
    case BaseType::Int:
    case BaseType::SymInt:
    case BaseType::Float:
    case BaseType::SymFloat:
    case BaseType::Scalar:
    case BaseType::Str:
      return false;
    default:
      return true;
  }
}

}  // namespace

void check_completeness(const Operator& op, Diagnostics& diagnostics) {
  const auto report = [&](const std::string& message, const std::string& hint) {
    diagnostics.add(op.source.diagnostic(0, op.name() + " " + message, hint));
  };
  if (op.doc.empty()) {
    report("has no 'doc'", "say in a sentence what it computes; its reference page begins with it");
  }
  if (op.dtypes.empty() && has_tensors(op.schema)) {
    report(
        "has no 'dtypes'",
        "write the row, as in 'dtypes: {all: [bool, real]}', or 'dtypes: {all: any}' where every "
        "dtype is fine");
  }
  const auto is_tagged = [&](const char* tag) {
    return std::find(op.tags.begin(), op.tags.end(), tag) != op.tags.end();
  };
  if (is_tagged("as_tensor") && op.name().find(".Scalar") == std::string::npos) {
    report("is tagged 'as_tensor' and is no overload for a number",
           "remove the tag: it is for overloads such as 'mul.Scalar'");
  }
  if (is_tagged("may_wait") && (op.kind != Kind::Kernel || op.schema.returns.size() != 1)) {
    report("is tagged 'may_wait' and has no kernel that fills one result",
           "remove the tag: it is for operators with a shape rule and a kernel");
  }
  if (op.kind != Kind::Composite && is_tagged("whole")) {
    report("is tagged 'whole' and is not made of other operators",
           "remove the tag: layers see the call of such an operator anyway");
  }
  const Names checked = checked_names(op);
  const Names limited = limited_names(op);
  for (const Argument& argument : op.schema.arguments) {
    if (limited_by_type(argument.type) || checked.count(argument.name)) continue;
    if (argument.type.base == BaseType::Str) {
      report("does not say what '" + argument.name + "' may be",
             "list the texts, as in check: ['one_of(" + argument.name +
                 ", \"mean\", \"sum\")'], or write 'check: [any(" + argument.name +
                 ")]' where every text is fine");
    } else if (!limited.count(argument.name)) {
      report("does not limit '" + argument.name + "'",
             "name it in 'shape' or 'check', or write 'check: [any(" + argument.name +
                 ")]' where every value is fine");
    }
  }
}

}  // namespace treadle::schemac
