// schemac: reads native_functions.yaml and derivatives.yaml, checks them, and writes opmodel.json.
//
//   schemac --functions native_functions.yaml --scalars aten/scalar/functions.yaml
//           --derivatives derivatives.yaml --formulas autograd/formulas.yaml --out opmodel.json
//   schemac --functions my_ops.yaml --library my_ops --base treadle/opmodel.json --out opmodel.json
//   schemac --aten FILE
//
// Exit status: 0 all is well; 1 the files are wrong, and nothing is written; 2 it was called
// wrongly, or a file cannot be read or written.
//
// SPDX-License-Identifier: Apache-2.0
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "codegen/schemac/aten.h"
#include "codegen/schemac/derivatives/callables.h"
#include "codegen/schemac/derivatives/derivation.h"
#include "codegen/schemac/derivatives/derivatives.h"
#include "codegen/schemac/derivatives/element_operators.h"
#include "codegen/schemac/derivatives/helpers.h"
#include "codegen/schemac/diagnostics.h"
#include "codegen/schemac/entries/completeness.h"
#include "codegen/schemac/entries/functions.h"
#include "codegen/schemac/json_writer.h"
#include "codegen/schemac/yaml_file.h"
#include "core/schema/lexer.h"

namespace treadle::schemac {
namespace {

constexpr const char* kUsage =
    "usage: schemac --functions FILE [--scalars FILE] [--derivatives FILE] [--formulas FILE]\n"
    "               [--library NAMESPACE] [--base MODEL] --out FILE\n"
    "       schemac --aten FILE\n";

// A call that cannot be served.
class UsageError : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

using Options = std::map<std::string, std::string>;

Options read_options(const std::vector<std::string>& words) {
  Options options;
  for (std::size_t i = 0; i < words.size(); i += 2) {
    const std::string& name = words[i];
    static const std::set<std::string> known = {"--functions", "--derivatives", "--library",
                                                "--out",       "--aten",        "--formulas",
                                                "--base",      "--scalars"};
    if (!known.count(name)) {
      throw UsageError("unknown option '" + name + "'");
    }
    if (i + 1 == words.size()) throw UsageError("option '" + name + "' has no value");
    if (!options.emplace(name, words[i + 1]).second)
      throw UsageError("option '" + name + "' is given twice");
  }
  if (options.count("--aten") ? options.size() != 1
                              : !options.count("--functions") || !options.count("--out")) {
    throw UsageError("needs --functions and --out, or --aten alone");
  }
  return options;
}

std::optional<std::string> contents_of(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  if (!stream) return std::nullopt;
  std::string text{std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
  if (stream.bad()) return std::nullopt;
  return text;
}

std::string required_contents(const std::string& path) {
  std::optional<std::string> text = contents_of(path);
  if (!text) throw UsageError("cannot read '" + path + "'");
  return std::move(*text);
}

// Reports a file that is no YAML.
std::optional<YamlFile> load(const std::string& path, Diagnostics& diagnostics) {
  try {
    return YamlFile(path, required_contents(path));
  } catch (const schema::SchemaError& problem) {
    diagnostics.add(problem.diagnostic());
    return std::nullopt;
  }
}

// Leaves a file that is right already alone, so that nothing is built again.
void write_if_changed(const std::string& path, const std::string& text) {
  if (contents_of(path) == text) return;
  std::ofstream stream(path, std::ios::binary | std::ios::trunc);
  stream << text;
  stream.close();
  if (!stream) throw UsageError("cannot write '" + path + "'");
}

bool report(const Diagnostics& diagnostics, const std::vector<std::string>& files) {
  for (const schema::Diagnostic& item : diagnostics.sorted(files))
    std::cerr << item.format() << "\n";
  return !diagnostics.empty();
}

int compile(const Options& options) {
  const std::string& functions_path = options.at("--functions");
  const auto given = [&](const char* option) {
    const auto found = options.find(option);
    return found == options.end() ? std::string() : found->second;
  };
  const std::string derivatives_path = given("--derivatives");
  const std::string library = given("--library");
  if (!library.empty() && !schema::is_identifier(library))
    throw UsageError("'" + library + "' is not the name of a library");

  const std::string formulas_path = given("--formulas");
  Callables callables;
  ScalarFunctions scalars;
  ElementOperators element_operators;
  if (!given("--base").empty()) {
    const std::string base = required_contents(given("--base"));
    callables.add_model(base);
    scalars.add_model(base);
    element_operators.add_model(base);
  }

  Diagnostics diagnostics;
  const std::string scalars_path = given("--scalars");
  if (!scalars_path.empty()) {
    if (const std::optional<YamlFile> file = load(scalars_path, diagnostics))
      scalars.read(*file, diagnostics);
  }
  Model model;
  std::vector<Helper> helpers;
  if (!formulas_path.empty()) {
    if (const std::optional<YamlFile> formulas = load(formulas_path, diagnostics))
      helpers = read_helpers(*formulas, library, diagnostics);
    for (const Helper& helper : helpers) callables.add(helper);
    callables.set_complete();
  }
  const std::optional<YamlFile> functions = load(functions_path, diagnostics);
  if (functions) model = read_functions(*functions, library, scalars, diagnostics);
  model.helpers = std::move(helpers);
  model.scalar_functions = scalars.own();
  for (const Operator& op : model.operators) {
    for (const Form& form : op.forms) callables.add(form.schema, form.form, op.schema.name.base);
    element_operators.add(op);
  }
  derive(model, scalars, callables, element_operators);
  if (!derivatives_path.empty()) {
    const std::optional<YamlFile> derivatives = load(derivatives_path, diagnostics);
    // Without the operators, all that could be said of their derivatives is that they are unknown.
    if (functions && derivatives)
      read_derivatives(*derivatives, functions_path, library, callables, model, diagnostics);
  }
  use_derivations(model);
  // The gaps of an entry are not known while it has errors.
  if (diagnostics.empty()) {
    for (const Operator& op : model.operators) check_completeness(op, diagnostics);
  }
  if (report(diagnostics, {scalars_path, functions_path, derivatives_path, formulas_path}))
    return 1;
  write_if_changed(options.at("--out"), to_json(model, functions_path, derivatives_path));
  return 0;
}

int check_aten(const std::string& path) {
  Diagnostics diagnostics;
  AtenCount count;
  if (const std::optional<YamlFile> file = load(path, diagnostics))
    count = read_aten(*file, diagnostics);
  const bool failed = report(diagnostics, {path});
  std::cout << count.same << " of " << count.entries
            << " entries parsed and printed back identically\n";
  return failed ? 1 : 0;
}

int run(const std::vector<std::string>& words) {
  try {
    const Options options = read_options(words);
    return options.count("--aten") ? check_aten(options.at("--aten")) : compile(options);
  } catch (const UsageError& problem) {
    std::cerr << "schemac: " << problem.what() << "\n" << kUsage;
    return 2;
  } catch (const std::exception& problem) {
    std::cerr << "schemac: " << problem.what() << "\n";
    return 2;
  }
}

}  // namespace
}  // namespace treadle::schemac

int main(int argc, char** argv) { return treadle::schemac::run({argv + 1, argv + argc}); }
