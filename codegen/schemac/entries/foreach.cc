// One request at a time: its arguments, then its schema, then the entry around that.
//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/schemac/entries/foreach.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "codegen/schemac/entries/forms.h"
#include "codegen/schemac/expressions/resolve.h"
#include "core/schema/dtypes.h"
#include "core/schema/lexer.h"

namespace treadle::schemac {
namespace {

using schema::Argument;
using schema::BaseType;
using schema::FunctionSchema;

// Whether a result can be written to a tensor of the dtype that the operand has.
bool can_write(const Operator& op, const std::string& dtype) {
  const schema::DtypeKind kind = schema::find_dtype(dtype)->kind;
  const bool complex = kind == schema::DtypeKind::Complex;
  if (op.promote == "real") return !complex;
  return op.promote != "float" || complex || kind == schema::DtypeKind::Floating;
}

// A plain tensor as an element of a list.
bool is_element(const schema::Type& type) { return type.is_tensor() && !type.list; }

class Request {
 public:
  Request(const Entry& entry, const RequestedForeach& request, Diagnostics& diagnostics)
      : op_(entry.op), request_(request), diagnostics_(diagnostics) {}

  std::vector<Entry> entries() {
    const bool writes = writes_argument(op_.schema);
    std::vector<Entry> found;
    if (!read_name(writes) || !read_arguments() || !make_lists()) return found;
    found.push_back(writes ? writing(name_) : functional());
    const bool in_place = std::any_of(op_.forms.begin(), op_.forms.end(),
                                      [](const Form& form) { return form.form == "inplace"; });
    if (in_place && !writes) {
      schema::OperatorName name = name_;
      name.base += '_';
      found.push_back(writing(std::move(name)));
    }
    return found;
  }

 private:
  bool report(const Word& word, const std::string& message, const std::string& hint) {
    diagnostics_.add(word.error(message, hint));
    return false;
  }

  bool read_name(bool writes) {
    const std::string& text = request_.name.text;
    const std::size_t dot = std::min(text.find('.'), text.size());
    name_ = {op_.schema.name.ns, text.substr(0, dot), text.substr(std::min(dot + 1, text.size()))};
    for (const std::string& part : {name_.base, name_.overload}) {
      const bool named = schema::is_identifier(part) || (part.empty() && dot == text.size());
      if (named) continue;
      return report(request_.name, "'" + text + "' is not the name of an operator",
                    "write one such as _foreach_" + op_.schema.name.base + ".List");
    }
    if (!writes && (op_.schema.returns.size() != 1 || !is_element(op_.schema.returns[0].type))) {
      return report(request_.name,
                    "foreach of " + op_.name() + ", which does not return one Tensor", "remove it");
    }
    // The build finds the names of operators by this beginning.
    if (!name_.base.starts_with("_foreach_")) {
      return report(request_.name, "'" + name_.base + "' in foreach of " + op_.name(),
                    "names of operators on lists begin with '_foreach_'");
    }
    if (writes != name_.base.ends_with('_')) {
      return report(request_.name, "'" + name_.base + "' in foreach of " + op_.name(),
                    writes ? "it writes its argument, so the name ends with '_'"
                           : "the in-place form has the same name with '_' behind it");
    }
    return true;
  }

  // Fills arguments_ (as the lists will have them) and foreach_.arguments (which of the entry's
  // each of them is).
  bool read_arguments() {
    if (request_.arguments.empty()) {
      for (const Argument& argument : op_.schema.arguments) add(argument, argument.name);
      return true;
    }
    std::vector<std::string> names = argument_names(op_.schema);
    for (const Word& word : request_.arguments) {
      const std::size_t equals = std::min(word.text.find('='), word.text.size());
      const std::string name = word.text.substr(0, equals);
      const Argument* argument = op_.schema.find_argument(name);
      if (!argument) {
        return report(word, "unknown argument '" + name + "' in foreach of " + op_.name(),
                      schema::did_you_mean(name, names));
      }
      const std::string given = equals < word.text.size() ? word.text.substr(equals + 1) : name;
      if (!schema::is_identifier(given))
        return report(word, "'" + given + "' is not a name", "write one such as scalar");
      Argument by_position = *argument;
      by_position.kwarg_only = false;
      add(by_position, given);
    }
    for (const Argument& argument : op_.schema.arguments) {
      const bool given = std::any_of(foreach_.arguments.begin(), foreach_.arguments.end(),
                                     [&](const auto& pair) { return pair.first == argument.name; });
      if (given || argument.default_value) continue;
      return report(
          request_.name,
          "foreach of " + op_.name() + " without '" + argument.name + "', which has no default",
          "write it among the arguments of " + request_.name.text);
    }
    return true;
  }

  void add(const Argument& argument, const std::string& name) {
    arguments_.push_back(argument);
    arguments_.back().name = name;
    foreach_.arguments.emplace_back(argument.name, name);
  }

  bool make_lists() {
    const auto last = std::find_if(arguments_.rbegin(), arguments_.rend(),
                                   [](const Argument& argument) { return !argument.kwarg_only; });
    Argument* one = nullptr;
    if (name_.overload == "Tensor" && last != arguments_.rend()) {
      one = &*last;
      if (one->type.base == BaseType::Scalar) {
        one->type = schema::Type{};
        one->default_value.reset();
      }
    } else if (name_.overload == "ScalarList" && last != arguments_.rend()) {
      if (last->type.base != BaseType::Scalar) {
        return report(request_.name,
                      "overload ScalarList in foreach of " + op_.name() + ", whose last argument " +
                          "by position is '" + print(last->type) + "'",
                      "that overload has a list of numbers; use another");
      }
      last->type.list = true;
      last->default_value.reset();
    }
    bool any = false;
    for (Argument& argument : arguments_) {
      if (&argument == one || !is_element(argument.type)) continue;
      argument.type.list = true;
      any = true;
    }
    if (any) return true;
    return report(request_.name, "foreach of " + op_.name() + ", which has no tensor to be a list",
                  "remove it");
  }

  Entry functional() {
    FunctionSchema schema{name_, arguments_, op_.schema.returns};
    for (schema::Return& result : schema.returns) {
      result.name.clear();
      result.type.list = true;
    }
    return entry(std::move(schema), "functional",
                 "`" + op_.schema.name.base + "` of each tensor of `" + lists() + "`.");
  }

  Entry writing(schema::OperatorName name) {
    FunctionSchema schema{std::move(name), arguments_, {}};
    schema.arguments[0].type.alias = schema::Alias{{"a"}, true, {"a"}};
    Entry made =
        entry(std::move(schema), "inplace",
              "`" + op_.schema.name.base + (op_.schema.name.base.ends_with('_') ? "" : "_") +
                  "` of each tensor of `" + lists() + "`, in place.");
    for (auto& [device, dtypes] : made.op.dtypes)
      std::erase_if(dtypes, [&](const std::string& dtype) { return !can_write(op_, dtype); });
    return made;
  }

  std::string lists() const {
    std::string text;
    for (const Argument& argument : arguments_) {
      if (argument.type.list) text += (text.empty() ? "" : "` and `") + argument.name;
    }
    return text;
  }

  Entry entry(FunctionSchema schema, const std::string& form, const std::string& doc) {
    Entry made;
    made.op.source = op_.source;
    made.op.schema = std::move(schema);
    made.op.doc = doc;
    made.op.dtypes = op_.dtypes;
    made.op.tags = op_.tags;
    made.op.foreach_of = foreach_;
    made.op.foreach_of->form = form;
    schema::OperatorName of = op_.schema.name;
    of.ns.clear();
    made.op.foreach_of->of = print(of);
    return made;
  }

  const Operator& op_;
  const RequestedForeach& request_;
  Diagnostics& diagnostics_;
  schema::OperatorName name_;
  std::vector<Argument> arguments_;
  ForeachOf foreach_;
};

}  // namespace

std::vector<Entry> foreach_entries(const Entry& entry, Diagnostics& diagnostics) {
  std::vector<Entry> all;
  for (const RequestedForeach& request : entry.foreach) {
    for (Entry& made : Request(entry, request, diagnostics).entries())
      all.push_back(std::move(made));
  }
  return all;
}

}  // namespace treadle::schemac
