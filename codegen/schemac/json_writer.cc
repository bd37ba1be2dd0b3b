// One function per part of the model.
//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/schemac/json_writer.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "codegen/schemac/derivatives/saves.h"
#include "core/schema/dtypes.h"
#include "core/schema/methods.h"

namespace treadle::schemac {
namespace {

using Json = nlohmann::ordered_json;
using schema::ExprKind;
using schema::ExprNode;

template <class T>
Json optional(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

// Writes the tree of an expression, each node with what is known of it.
class TreeWriter {
 public:
  explicit TreeWriter(const Expression& expression) : expression_(expression) {}

  Json write(const ExprNode& node) const {
    Json json = shape_of(node);
    const auto found = expression_.typing.find(&node);
    if (found == expression_.typing.end()) return json;
    json["type"] = found->second.type.text();
    if (found->second.callee) json["callee"] = callee_of(*found->second.callee);
    return json;
  }

 private:
  Json shape_of(const ExprNode& node) const {
    const auto child = [&](std::size_t i) { return write(*node.children[i]); };
    switch (node.kind) {
      case ExprKind::Name:
        return {{"op", "name"}, {"name", node.text}};
      case ExprKind::Int:
        return {{"op", "int"}, {"value", node.text}};
      case ExprKind::Float:
        return {{"op", "float"}, {"value", node.text}};
      case ExprKind::Bool:
        return {{"op", "bool"}, {"value", node.text == "true"}};
      case ExprKind::String:
        return {{"op", "string"}, {"value", node.text}};
      case ExprKind::None:
        return {{"op", "none"}};
      case ExprKind::Call:
        return {{"op", "call"}, {"fn", node.text}, {"args", children(node, 0)}};
      case ExprKind::Method:
        return {
            {"op", "method"}, {"on", child(0)}, {"name", node.text}, {"args", children(node, 1)}};
      case ExprKind::Index:
        return {{"op", "index"}, {"on", child(0)}, {"index", child(1)}};
      case ExprKind::Binary:
        return {{"op", "binary"}, {"operator", node.text}, {"lhs", child(0)}, {"rhs", child(1)}};
      case ExprKind::Unary:
        return {{"op", "unary"}, {"operator", node.text}, {"of", child(0)}};
      case ExprKind::Select:
        return {{"op", "select"}, {"cond", child(0)}, {"then", child(1)}, {"else", child(2)}};
      case ExprKind::List:
        return {{"op", "list"}, {"items", children(node, 0)}};
    }
    return nullptr;
  }

  Json children(const ExprNode& node, std::size_t first) const {
    Json list = Json::array();
    for (std::size_t i = first; i < node.children.size(); ++i)
      list.push_back(write(*node.children[i]));
    return list;
  }

  static Json callee_of(const Callee& callee) {
    Json json = {{"kind", name_of(callee.kind)}};
    if (!callee.ns.empty()) json["namespace"] = callee.ns;
    json["function"] = callee.function;
    if (!callee.schema_name.empty()) json["name"] = callee.schema_name;
    if (!callee.entry.empty()) json["entry"] = callee.entry;
    return json;
  }

  const Expression& expression_;
};

Json expression(const Expression& value) {
  return {{"text", print(value.tree)}, {"tree", TreeWriter(value).write(*value.tree)}};
}

Json expression(const std::optional<Expression>& value) {
  return value ? expression(*value) : Json(nullptr);
}

Json type_of(const schema::Type& type) {
  Json alias = nullptr;
  if (type.alias) {
    alias = {
        {"before", type.alias->before}, {"write", type.alias->write}, {"after", type.alias->after}};
  }
  return {{"text", print(type)},
          {"base", name_of(type.base)},
          {"optional", type.optional},
          {"list", type.list},
          {"list_size", optional(type.list_size)},
          {"element_optional", type.element_optional},
          {"alias", std::move(alias)}};
}

Json value_of(const schema::Default& value) {
  if (value.kind == schema::DefaultKind::List) {
    Json items = Json::array();
    for (const schema::Default& item : value.items) items.push_back(value_of(item));
    return items;
  }
  return std::visit(
      [](const auto& held) -> Json {
        if constexpr (std::is_same_v<std::decay_t<decltype(held)>, std::monostate>) {
          return nullptr;
        } else {
          return held;
        }
      },
      value.value);
}

Json default_of(const schema::Argument& argument) {
  if (!argument.default_value) return nullptr;
  constexpr const char* kKinds[] = {"int", "float", "bool", "string", "none", "list", "name"};
  const schema::Default& value = *argument.default_value;
  return {{"kind", kKinds[static_cast<std::size_t>(value.kind)]},
          {"text", value.text},
          {"value", value_of(value)}};
}

Json arguments_of(const schema::FunctionSchema& schema) {
  Json list = Json::array();
  for (const schema::Argument& argument : schema.arguments) {
    list.push_back({{"name", argument.name},
                    {"type", type_of(argument.type)},
                    {"default", default_of(argument)},
                    {"kwarg_only", argument.kwarg_only}});
  }
  return list;
}

Json returns_of(const schema::FunctionSchema& schema) {
  Json list = Json::array();
  for (const schema::Return& result : schema.returns) {
    list.push_back({{"name", result.name.empty() ? Json(nullptr) : Json(result.name)},
                    {"type", type_of(result.type)}});
  }
  return list;
}

// The names of the results in formulas.
Json result_names_of(const schema::FunctionSchema& schema) {
  Json list = Json::array();
  for (std::size_t i = 0; i < schema.returns.size(); ++i)
    list.push_back(result_names(schema, i).front());
  return list;
}

Json forms_of(const Operator& op) {
  Json list = Json::array();
  for (const Form& form : op.forms) {
    list.push_back({{"form", form.form},
                    {"name", form.schema.name.base},
                    {"overload", form.schema.name.overload},
                    {"id", identifier_of(form.schema.name)},
                    {"schema", print(form.schema)},
                    {"args", arguments_of(form.schema)},
                    {"returns", returns_of(form.schema)}});
  }
  return list;
}

Json dispatch_of(const Operator& op) {
  Json list = Json::array();
  for (const DispatchEntry& entry : op.dispatch) {
    list.push_back({{"key", entry.key}, {"kernel", entry.kernel}, {"line", entry.line}});
  }
  return list;
}

Json shape_of(const Operator& op) {
  if (op.data_dependent) return {{"text", "data_dependent"}, {"tree", nullptr}};
  return expression(op.shape);
}

Json checks_of(const Operator& op) {
  Json list = Json::array();
  for (const Expression& check : op.checks) {
    Json item = expression(check);
    item["line"] = check.place().line;
    item["column"] = check.place().column;
    list.push_back(std::move(item));
  }
  return list;
}

Json reduce_of(const Operator& op) {
  if (!op.reduce) return nullptr;
  Json parts = Json::object();
  for (const auto& [part, value] : *op.reduce) parts[part] = expression(value);
  return parts;
}

Json dtypes_of(const Operator& op) {
  if (op.dtypes.empty()) return nullptr;
  Json rows = Json::object();
  for (const auto& [device, dtypes] : op.dtypes) rows[device] = dtypes;
  return rows;
}

Json argument_dtypes_of(const Operator& op) {
  Json rows = Json::object();
  for (const ArgumentDtypes& row : op.argument_dtypes)
    rows[row.argument] = {{"dtypes", row.dtypes}, {"same", row.same}, {"sums", row.sums}};
  return rows;
}

Json autocast_of(const Operator& op) {
  if (op.autocast.empty()) return nullptr;
  Json rows = Json::object();
  for (const auto& [device, policy] : op.autocast) rows[device] = policy;
  return rows;
}

Json foreach_of(const Operator& op) {
  if (!op.foreach_of) return nullptr;
  Json arguments = Json::object();
  for (const auto& [argument, name] : op.foreach_of->arguments) arguments[argument] = name;
  return {{"of", op.foreach_of->of},
          {"form", op.foreach_of->form},
          {"arguments", std::move(arguments)}};
}

Json location(const std::string& file, schema::SourceLocation place) {
  return {{"file", file}, {"line", place.line}, {"column", place.column}};
}

Json derivative_of(const Operator& op) {
  if (!op.derivative) return nullptr;
  const Derivative& derivative = *op.derivative;
  Json formulas = Json::array();
  for (const Formula& formula : derivative.formulas) {
    Json saves = Json::array();
    for (const Save& save : formula.saves) {
      saves.push_back({{"name", save.name},
                       {"what", save.what},
                       {"is_output", save.is_output},
                       {"index", save.index}});
    }
    Json item = {{"targets", formula.targets}, {"derived", formula.derived}};
    item.update(expression(formula.expression));
    item["saves"] = std::move(saves);
    item["gradients"] =
        gradients_of(formula.expression.tree, op.schema, derivative.output_differentiability);
    item["line"] = formula.expression.place().line;
    formulas.push_back(std::move(item));
  }
  return {{"location", location(derivative.file, derivative.place)},
          {"formulas", std::move(formulas)},
          {"non_differentiable", derivative.non_differentiable},
          {"output_differentiability", derivative.output_differentiability}};
}

Json derivation_of(const Operator& op) {
  if (!op.derivation) return nullptr;
  Json gradients = Json::object(), missing = Json::object();
  for (const auto& [argument, formula] : op.derivation->gradients)
    gradients[argument] = expression(formula);
  for (const auto& [argument, why] : op.derivation->missing) missing[argument] = why;
  return {{"gradients", std::move(gradients)},
          {"missing", std::move(missing)},
          {"tangent", expression(op.derivation->tangent)}};
}

Json operator_of(const Operator& op) {
  const schema::OperatorName& name = op.schema.name;
  return {{"namespace", name.ns.empty() ? "aten" : name.ns},
          {"name", name.base},
          {"overload", name.overload},
          {"id", identifier_of(name)},
          {"schema", print(op.schema)},
          {"location", location(op.source.file(), op.source.place(0))},
          {"doc", op.doc},
          {"variants", op.variants},
          {"python_module", optional(op.python_module)},
          {"tags", op.tags},
          {"moves", op.moves},
          {"kind", name_of(op.kind)},
          {"args", arguments_of(op.schema)},
          {"returns", returns_of(op.schema)},
          {"result_names", result_names_of(op.schema)},
          {"forms", forms_of(op)},
          {"dispatch", dispatch_of(op)},
          {"shape", shape_of(op)},
          {"check", checks_of(op)},
          {"unlimited", op.unlimited},
          {"pointwise", expression(op.pointwise)},
          {"reduce", reduce_of(op)},
          {"throws", op.throws},
          {"throws_if_zero", op.throws_if_zero},
          {"keeps_low_bits", op.keeps_low_bits},
          {"promote", optional(op.promote)},
          {"autocast", autocast_of(op)},
          {"dtypes", dtypes_of(op)},
          {"dtype_of", optional(op.dtype_of)},
          {"argument_dtypes", argument_dtypes_of(op)},
          {"out_from", optional(op.out_from)},
          {"foreach_of", foreach_of(op)},
          {"derivation", derivation_of(op)},
          {"derivative", derivative_of(op)}};
}

Json helpers_of(const Model& model) {
  Json list = Json::array();
  for (const Helper& helper : model.helpers) {
    list.push_back({{"namespace", helper.ns},
                    {"name", helper.schema.name.base},
                    {"schema", print(helper.schema)},
                    {"args", arguments_of(helper.schema)},
                    {"returns", returns_of(helper.schema)},
                    {"linear", helper.linear}});
  }
  return list;
}

Json scalar_functions_of(const Model& model) {
  Json list = Json::array();
  for (const ScalarFunction& function : model.scalar_functions) {
    Json arguments = Json::array(), ulp = Json::object(), derivative = Json::object();
    for (const ScalarFunction::Argument& argument : function.arguments)
      arguments.push_back({{"name", argument.name}, {"default", optional(argument.default_value)}});
    for (const auto& [dtype, bound] : function.error.ulp) ulp[dtype] = bound;
    for (const ScalarFunction::Slope& slope : function.derivative)
      derivative[slope.argument] = print(slope.tree);
    const auto text = [](const std::string& value) {
      return value.empty() ? Json(nullptr) : Json(value);
    };
    list.push_back(
        {{"name", function.name},
         {"is_operator", function.is_operator},
         {"text", function.text()},
         {"args", std::move(arguments)},
         {"function", text(function.function)},
         {"section", function.section},
         {"doc", function.doc},
         {"dtypes", function.dtypes},
         {"gives", function.gives_truth ? "truth" : "element"},
         {"throws", function.throws},
         {"throws_if_zero", text(function.throws_if_zero)},
         {"keeps_low_bits", function.keeps_low_bits},
         {"derivative", std::move(derivative)},
         {"holomorphic", function.holomorphic},
         {"reference", text(function.reference)},
         {"samples", function.samples ? Json({function.samples->first, function.samples->second})
                                      : Json(nullptr)},
         {"rounded", function.error.rounded},
         {"ulp", std::move(ulp)},
         {"ulp_of", text(function.error.of)},
         {"complex_ulp_of", text(function.error.of_complex)},
         {"range", text(function.error.range)},
         {"above", optional(function.error.above)}});
  }
  return list;
}

Json dtypes() {
  constexpr const char* kKinds[] = {"bool", "unsigned", "signed", "floating", "complex"};
  Json list = Json::array();
  for (const schema::Dtype& dtype : schema::kDtypes) {
    list.push_back({{"name", dtype.name},
                    {"enumerator", dtype.enumerator},
                    {"cpp", dtype.cpp},
                    {"kind", kKinds[static_cast<std::size_t>(dtype.kind)]},
                    {"index", list.size()},
                    {"alias", dtype.alias.empty() ? Json(nullptr) : Json(dtype.alias)}});
  }
  return list;
}

Json methods() {
  Json list = Json::array();
  for (const schema::MethodInfo& method : schema::methods()) {
    Json parameters = Json::array();
    for (const schema::Type& type : method.parameters) parameters.push_back(print(type));
    list.push_back({{"of", name_of(method.of)},
                    {"name", method.name},
                    {"parameters", std::move(parameters)},
                    {"returns", print(method.result)},
                    {"saves", method.saves.empty() ? Json(nullptr) : Json(method.saves)},
                    {"cpp", method.cpp}});
  }
  return list;
}

}  // namespace

std::string to_json(const Model& model, const std::string& functions,
                    const std::string& derivatives) {
  Json operators = Json::array();
  for (const Operator& op : model.operators) operators.push_back(operator_of(op));
  const Json document = {{"format", 1},
                         {"functions", functions},
                         {"derivatives", derivatives.empty() ? Json(nullptr) : Json(derivatives)},
                         {"dtypes", dtypes()},
                         {"methods", methods()},
                         {"scalar_functions", scalar_functions_of(model)},
                         {"helpers", helpers_of(model)},
                         {"operators", std::move(operators)}};
  return document.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace treadle::schemac
