// Each function is one rule or one default.
//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/schemac/entries/rules.h"

#include <algorithm>
#include <utility>

#include "codegen/schemac/entries/forms.h"
#include "codegen/schemac/entries/tables.h"
#include "codegen/schemac/expressions/elements.h"
#include "core/schema/dtypes.h"

namespace treadle::schemac {
namespace {

using schema::Argument;
using schema::BaseType;
using schema::Return;

bool has_key(const Operator& op, std::string_view key) {
  return std::any_of(op.dispatch.begin(), op.dispatch.end(),
                     [&](const DispatchEntry& entry) { return entry.key == key; });
}

bool has_backend(const Operator& op) {
  return std::any_of(op.dispatch.begin(), op.dispatch.end(), [](const DispatchEntry& entry) {
    return entry.key != "Composite" && entry.key != "View" && entry.key != "Alias";
  });
}

bool has_own_kernels(const Operator& op) {
  return op.kind == Kind::Kernel || op.kind == Kind::Returns || op.kind == Kind::Mutating;
}

// Arguments may be called as one likes. One called as a keyword has another name in C++, which must
// be free.
void check_argument_names(const Operator& op, Diagnostics& diagnostics) {
  for (const Argument& argument : op.schema.arguments) {
    const std::string name = cpp_name(argument.name);
    if (name == argument.name || !op.schema.find_argument(name)) continue;
    diagnostics.add(op.source.diagnostic(
        op.schema.find_argument(name)->offset,
        "argument '" + name + "' of " + op.name() + " has the C++ name of '" + argument.name + "'",
        "rename it, since '" + argument.name + "' is a keyword of C++"));
  }
}

// Each operator is a function in C++.
void check_cpp_names(const Operator& op, Diagnostics& diagnostics) {
  const std::string& base = op.schema.name.base;
  const bool keyword = contains(cpp_keywords(), base);
  if (keyword || contains(taken_cpp_names(), base)) {
    diagnostics.add(
        op.source.diagnostic(0,
                             "operator named '" + base + "', which is " +
                                 (keyword ? "a keyword of C++" : "a name of the generated code"),
                             "rename it, as in '" + base + "_of'"));
  }
}

// Integers are taken only where the entry says so, and `promote: float` is about integers.
void check_promote(const Entry& entry, Diagnostics& diagnostics) {
  const Operator& op = entry.op;
  if (op.kind != Kind::Pointwise || op.promote != "float") return;
  for (const auto& [device, dtypes] : op.dtypes) {
    const bool integers = std::any_of(dtypes.begin(), dtypes.end(), [](const std::string& dtype) {
      const schema::DtypeKind kind = schema::find_dtype(dtype)->kind;
      return kind == schema::DtypeKind::Bool || is_integral(kind);
    });
    if (integers || dtypes.empty()) continue;
    diagnostics.add(entry.keys.at("promote").error(
        "'promote: float' of " + op.name() + ", which takes no integers",
        "write them, as in 'dtypes: {" + device + ": [bool, real]}', or remove 'promote'"));
    return;
  }
}

void check_dispatch(Entry& entry, Diagnostics& diagnostics) {
  const Operator& op = entry.op;
  for (const char* alone : {"Composite", "View"}) {
    if (!has_key(op, alone)) continue;
    for (const auto& [key, word] : entry.dispatch_words) {
      if (key == alone) continue;
      diagnostics.add(
          word.error("dispatch of " + op.name() + " has both " + alone + " and " + key,
                     std::string(alone) + " serves every device; remove one of the two"));
      entry.dispatch_is_sound = false;
      return;
    }
    for (const char* computed : {"pointwise", "reduce"}) {
      if (!entry.has(computed)) continue;
      diagnostics.add(entry.dispatch_words.at(alone).error(
          op.name() + " has both '" + computed + "' and a " + alone + " kernel",
          "remove one of the two"));
    }
  }
  if (entry.has("pointwise") && entry.has("reduce")) {
    diagnostics.add(entry.keys.at("reduce").error(op.name() + " has both 'pointwise' and 'reduce'",
                                                  "make it two operators"));
  }
}

Kind kind_of(const Entry& entry) {
  const Operator& op = entry.op;
  const bool writes = writes_argument(op.schema);
  if (entry.has("pointwise")) return Kind::Pointwise;
  if (entry.has("reduce")) return Kind::Reduce;
  if (has_key(op, "View")) return Kind::View;
  if (!has_backend(op)) return Kind::Composite;
  if (writes) return Kind::Mutating;
  const bool aliases =
      std::any_of(op.schema.returns.begin(), op.schema.returns.end(),
                  [](const Return& result) { return result.type.alias.has_value(); });
  if (aliases) return Kind::View;
  return op.data_dependent ? Kind::Returns : Kind::Kernel;
}

void check_pointwise(const Entry& entry, Diagnostics& diagnostics) {
  const Operator& op = entry.op;
  const Word& key = entry.keys.at("pointwise");
  if (writes_argument(op.schema)) {
    diagnostics.add(key.error("pointwise with a schema that writes its argument",
                              "write the functional schema, and 'inplace' under 'forms'"));
    return;
  }
  const bool tensors =
      std::all_of(op.schema.returns.begin(), op.schema.returns.end(), [](const Return& result) {
        return result.type.is_tensor() && !result.type.list && !result.type.optional;
      });
  if (op.schema.returns.empty() || !tensors) {
    diagnostics.add(
        key.error("pointwise of " + op.name() + ", which returns something else than tensors",
                  "a pointwise operator returns one tensor for each value"));
    return;
  }
  const bool list = op.pointwise && op.pointwise->tree->kind == schema::ExprKind::List;
  const std::size_t values = list ? op.pointwise->tree->children.size() : 1;
  if (op.pointwise && values != op.schema.returns.size()) {
    diagnostics.add(key.error("pointwise of " + op.name() + " has " + std::to_string(values) +
                                  (values == 1 ? " value" : " values") + ", but the schema has " +
                                  std::to_string(op.schema.returns.size()) + " results",
                              "write '{a, b}', one value for each result"));
  }
}

void check_shape(const Entry& entry, Diagnostics& diagnostics) {
  const Operator& op = entry.op;
  if (op.kind == Kind::Kernel && !entry.has("shape")) {
    diagnostics.add(op.source.diagnostic(
        0, op.name() + " has a kernel but no 'shape'",
        "add 'shape: RULE(...)', or 'shape: data_dependent' if the shape of its "
        "result depends on values"));
    return;
  }
  if (op.kind == Kind::Kernel) {
    for (const Return& result : op.schema.returns) {
      if (result.type.is_tensor()) continue;
      diagnostics.add(entry.keys.at("shape").error(
          "shape of " + op.name() + ", which returns '" + print(result.type) + "'",
          "only tensors have a shape; write 'shape: data_dependent'"));
      return;
    }
  }
  // A composite operator has the shapes of its parts, a pointwise one broadcasts.
  const bool computed = op.kind == Kind::Composite || op.kind == Kind::Pointwise;
  if (computed && entry.has("shape")) {
    diagnostics.add(entry.keys.at("shape").error("shape of " + op.name() + ", which is " +
                                                     std::string(name_of(op.kind)) +
                                                     " and finds its shape itself",
                                                 "remove it"));
  }
}

void complete_variants(Entry& entry, Diagnostics& diagnostics) {
  Operator& op = entry.op;
  if (op.variants.empty()) op.variants = {"function"};
  const Argument* self = op.schema.find_argument("self");
  const auto method = entry.variant_words.find("method");
  if (method != entry.variant_words.end() &&
      !(self && self->type.is_tensor() && !self->type.list)) {
    diagnostics.add(
        method->second.error(op.name() + " cannot be a method: it has no argument 'Tensor self'",
                             "remove 'method', or name the tensor 'self'"));
  }
}

void add_form(const RequestedForm& request, Operator& op, Diagnostics& diagnostics) {
  const std::string& form = request.word.text;
  if (form == form_as_written(op.schema)) {
    if (request.name) {
      diagnostics.add(
          request.name->error("the " + form + " form is named by 'func'", "remove the name here"));
    }
    return;
  }
  if (writes_argument(op.schema)) {
    diagnostics.add(
        request.word.error(op.name() + " has no " + form + " form: its schema writes an argument",
                           "write the functional schema under 'func', and list its forms"));
    return;
  }
  const auto problem = form == "inplace" ? inplace_problem(op.schema) : out_problem(op.schema);
  if (problem) {
    diagnostics.add(request.word.error(op.name() + " " + problem->message, problem->hint));
    return;
  }
  schema::FunctionSchema derived =
      form == "inplace" ? inplace_form(op.schema) : out_form(op.schema);
  if (request.name) {
    const schema::OperatorName name = parse_operator_name(request.name->source);
    derived.name.base = name.base;
    derived.name.overload = name.overload;
  }
  op.forms.push_back({form, std::move(derived)});
}

void complete_forms(Entry& entry, Diagnostics& diagnostics) {
  Operator& op = entry.op;
  op.forms.push_back({form_as_written(op.schema), op.schema});
  if (entry.has("forms") && !writes_argument(op.schema)) {
    const bool functional =
        std::any_of(entry.forms.begin(), entry.forms.end(),
                    [](const RequestedForm& form) { return form.word.text == "functional"; });
    if (!functional && !entry.forms.empty()) {
      diagnostics.add(entry.forms[0].word.error(
          "forms of " + op.name() + " leave out 'functional', which 'func' is",
          "write 'functional, " + entry.forms[0].word.text + "'"));
    }
  }
  for (const RequestedForm& request : entry.forms) add_form(request, op, diagnostics);
}

void check_dtypes(const Entry& entry, Diagnostics& diagnostics) {
  const Operator& op = entry.op;
  for (const auto& [device, word] : entry.dtype_words) {
    if (device == "all") continue;
    if (device != "CPU" && device != "CUDA") {
      diagnostics.add(word.error("unknown device '" + device + "' in dtypes of " + op.name(),
                                 "write 'all', CPU or CUDA; another backend says its dtypes where "
                                 "it registers kernels"));
    } else if (has_own_kernels(op) && !has_key(op, device)) {
      diagnostics.add(
          word.error("dtypes of " + op.name() + " names " + device + ", for which it has no kernel",
                     "add it under 'dispatch', or remove it here"));
    }
  }
}

// The dtype that selects the kernel is that of the first tensor, or the one asked for.
void complete_dtype_of(Entry& entry, Diagnostics& diagnostics) {
  Operator& op = entry.op;
  if (entry.dtype_of_word) {
    const Argument& argument = *op.schema.find_argument(entry.dtype_of_word->text);
    if (!argument.type.is_tensor() && argument.type.base != BaseType::ScalarType) {
      diagnostics.add(entry.dtype_of_word->error(
          "dtype_of names '" + argument.name + "' of type '" + print(argument.type) + "'",
          "only tensors and arguments of type ScalarType have a dtype"));
      return;
    }
    op.dtype_of = argument.name;
    return;
  }
  for (const Argument& argument : op.schema.arguments) {
    if (argument.type.is_tensor() && !argument.type.optional && !argument.type.element_optional) {
      op.dtype_of = argument.name;
      return;
    }
  }
  if (op.schema.find_argument("dtype")) op.dtype_of = "dtype";
}

// A kernel is selected by one dtype and reads all its tensors as the schema's author thought of
// them, so the dtype of each is known before it runs: that of the argument that selects the kernel
// where the entry says nothing.
void complete_argument_dtypes(Entry& entry, Diagnostics& diagnostics) {
  Operator& op = entry.op;
  if (!has_own_kernels(op)) {
    if (!entry.has("argument_dtypes")) return;
    diagnostics.add(
        entry.keys.at("argument_dtypes")
            .error("argument_dtypes of " + op.name() + ", which has no kernel of its own",
                   op.kind == Kind::Pointwise
                       ? "remove it: its operands are promoted, see 'promote'"
                       : "remove it: its parts check what they are given"));
    return;
  }
  for (const auto& [word, dtypes] : entry.argument_dtypes) {
    const Argument& argument = *op.schema.find_argument(dtypes.argument);
    if (!argument.type.is_tensor()) {
      diagnostics.add(word.error(
          "argument_dtypes names '" + argument.name + "' of type '" + print(argument.type) + "'",
          "only tensors have a dtype; remove it"));
    } else if (argument.name == op.dtype_of && !argument.type.list) {
      diagnostics.add(word.error(
          "argument_dtypes names '" + argument.name + "', whose dtype selects the kernel",
          "write its dtypes under 'dtypes', or name another argument under 'dtype_of'"));
    }
  }
  for (const Argument& argument : op.schema.arguments) {
    if (!argument.type.is_tensor() || (argument.name == op.dtype_of && !argument.type.list))
      continue;
    const auto given =
        std::find_if(entry.argument_dtypes.begin(), entry.argument_dtypes.end(),
                     [&](const auto& row) { return row.second.argument == argument.name; });
    ArgumentDtypes dtypes{argument.name, {}, true, false};
    if (given != entry.argument_dtypes.end()) dtypes = given->second;
    if ((dtypes.same || dtypes.sums) && !op.dtype_of) {
      diagnostics.add(op.source.diagnostic(
          argument.offset,
          "the dtype of '" + argument.name + "' of " + op.name() + " is that of no other argument",
          "write it, as in 'argument_dtypes: {" + argument.name +
              ": float32}', or name the argument that selects the kernel under 'dtype_of'"));
      continue;
    }
    op.argument_dtypes.push_back(std::move(dtypes));
  }
}

void complete_out_from(Entry& entry, Diagnostics& diagnostics) {
  Operator& op = entry.op;
  if (!entry.out_from_word) return;
  const Argument& argument = *op.schema.find_argument(entry.out_from_word->text);
  if (!argument.type.is_tensor() || argument.type.list || argument.type.optional) {
    diagnostics.add(entry.out_from_word->error(
        "out_from names '" + argument.name + "' of type '" + print(argument.type) + "'",
        "it must be a Tensor"));
  } else if (op.kind != Kind::Kernel) {
    diagnostics.add(
        entry.keys.at("out_from")
            .error("out_from of " + op.name() + ", which is " + std::string(name_of(op.kind)),
                   "only an operator with a shape and kernels that fill its output starts from a "
                   "copy"));
  } else {
    op.out_from = argument.name;
  }
}

// Operators made of others move nothing themselves.
void check_moves(const Entry& entry, Diagnostics& diagnostics) {
  const Operator& op = entry.op;
  if (op.moves.empty() || (op.kind != Kind::Composite && op.kind != Kind::View)) return;
  diagnostics.add(entry.keys.at("moves").error(
      "moves of " + op.name() + ", which is " + std::string(name_of(op.kind)),
      "only an operator with kernels of its own moves elements"));
}

// Autocast gives an operator other tensors than it was called with; only the functional form can
// take them, since the others write where the caller says.
void check_autocast(const Entry& entry, Diagnostics& diagnostics) {
  const Operator& op = entry.op;
  if (!entry.has("autocast")) return;
  const Word& key = entry.keys.at("autocast");
  const auto is_tensor = [](const Argument& argument) { return argument.type.is_tensor(); };
  if (writes_argument(op.schema)) {
    diagnostics.add(key.error("autocast of " + op.name() + ", which writes its argument",
                              "remove it: what is written keeps its dtype"));
  } else if (std::none_of(op.schema.arguments.begin(), op.schema.arguments.end(), is_tensor)) {
    diagnostics.add(key.error("autocast of " + op.name() + ", which takes no tensor", "remove it"));
  }
}

}  // namespace

void apply_rules(Entry& entry, const ScalarFunctions& functions, Diagnostics& diagnostics) {
  Operator& op = entry.op;
  check_argument_names(op, diagnostics);
  check_cpp_names(op, diagnostics);
  check_dispatch(entry, diagnostics);
  op.kind = kind_of(entry);
  if (op.kind == Kind::Composite && op.dispatch.empty()) {
    op.dispatch.push_back({"Composite", op.schema.name.base, op.source.place(0).line});
  }
  if (op.kind == Kind::Pointwise) {
    check_pointwise(entry, diagnostics);
    if (!op.promote) op.promote = "common";
  }
  // Without a sound dispatch the kind is a guess, and so is what depends on it.
  if (entry.dispatch_is_sound) check_shape(entry, diagnostics);
  complete_variants(entry, diagnostics);
  complete_forms(entry, diagnostics);
  complete_dtype_of(entry, diagnostics);
  check_autocast(entry, diagnostics);
  if (!entry.dispatch_is_sound) return;
  check_dtypes(entry, diagnostics);
  check_promote(entry, diagnostics);
  complete_out_from(entry, diagnostics);
  check_moves(entry, diagnostics);
  complete_argument_dtypes(entry, diagnostics);
  // The dtypes that an expression computes in depend on it.
  if (entry.promote_is_sound) complete_elements(op, functions, diagnostics);
}

}  // namespace treadle::schemac
