// The library's operators have registered themselves by now, because the library is loaded.
//
// SPDX-License-Identifier: Apache-2.0
#include "python_bindings/csrc/library/extension_module.h"

#include <map>

#include "core/dispatch/dispatcher.h"

namespace treadle::python {
namespace {

// Python may import a module again that it could not import, without loading the file again.
const std::string& errors_of(const std::string& library) {
  static auto* known = new std::map<std::string, std::string>();
  std::string& text = (*known)[library];
  const std::vector<std::string> errors = Dispatcher::instance().take_registration_errors();
  if (!errors.empty()) text = errors.front();
  if (errors.size() > 1) text += str("\nand ", errors.size() - 1, " more errors in registrations");
  return text;
}

}  // namespace

PyObject* init_operator_library(const char* name, const char* doc,
                                const BindingShard* const* shards, size_t count) {
  return guarded([&] {
    if (const std::string& errors = errors_of(name); !errors.empty()) {
      PyErr_SetString(PyExc_ImportError, str(name, ": ", errors).c_str());
      throw PythonError{};
    }
    // Python keeps a pointer to it.
    auto* definition = new PyModuleDef{
        PyModuleDef_HEAD_INIT, name, doc, -1, nullptr, nullptr, nullptr, nullptr, nullptr};
    Object module(PyModule_Create(definition));
    for (size_t i = 0; i < count; ++i) add_library_functions(module.get(), *shards[i]);
    const std::string_view full = name;
    const std::string package(full.substr(0, full.find('.')));
    if (count > 0) NamedResult::add_types(module.get(), package + ".return_types");
    return module.release();
  });
}

}  // namespace treadle::python
