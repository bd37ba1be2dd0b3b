// Overloads are kept by the name of their C++ function.
//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/schemac/derivatives/callables.h"

#include <nlohmann/json.hpp>
#include <utility>

namespace treadle::schemac {
namespace {

std::string namespace_of(const schema::OperatorName& name) {
  return name.ns.empty() ? "aten" : name.ns;
}

}  // namespace

std::string Callable::text() const {
  schema::FunctionSchema shown = schema;
  shown.name.ns.clear();
  return print(shown);
}

std::size_t Callable::least() const {
  std::size_t count = schema.arguments.size();
  while (count && schema.arguments[count - 1].default_value) --count;
  return count;
}

void Callables::add(const schema::FunctionSchema& schema, const std::string& form,
                    const std::string& entry) {
  const std::string function = schema.name.base + (form == "out" ? "_out" : "");
  Callee callee{Callee::Kind::Operator, namespace_of(schema.name), function, {}, entry};
  schema::OperatorName name = schema.name;
  name.ns.clear();
  callee.schema_name = print(name);
  functions_[function].push_back({std::move(callee), schema, {}});
}

void Callables::add(const Helper& helper) {
  const std::string& function = helper.schema.name.base;
  Callee callee{Callee::Kind::Helper, helper.ns, function, print(helper.schema.name), ""};
  functions_[function].push_back({std::move(callee), helper.schema, helper.linear});
}

void Callables::add_model(const std::string& json) {
  complete_ = true;
  const nlohmann::json model = nlohmann::json::parse(json);
  for (const auto& op : model.at("operators")) {
    for (const auto& form : op.at("forms")) {
      add(schema::parse_schema(form.at("schema").get<std::string>()), form.at("form"),
          op.at("name"));
    }
  }
  for (const auto& helper : model.at("helpers")) {
    add(Helper{schema::parse_schema(helper.at("schema").get<std::string>()),
               helper.at("namespace"),
               helper.at("linear").get<LinearIn>(),
               {}});
  }
}

const std::vector<Callable>* Callables::find(const std::string& name) const {
  const auto found = functions_.find(name);
  return found == functions_.end() ? nullptr : &found->second;
}

const Callable* Callables::find(const Callee& callee) const {
  const std::vector<Callable>* overloads = find(callee.function);
  if (!overloads) return nullptr;
  for (const Callable& callable : *overloads) {
    if (callable.callee == callee) return &callable;
  }
  return nullptr;
}

std::vector<std::string> Callables::names() const {
  std::vector<std::string> names;
  for (const auto& [name, overloads] : functions_) names.push_back(name);
  return names;
}

}  // namespace treadle::schemac
