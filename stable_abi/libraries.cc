// The functions by which extensions define operators and register kernels.
//
// SPDX-License-Identifier: Apache-2.0
#include "stable_abi/libraries.h"

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "core/base/fork_safe_mutex.h"
#include "core/dispatch/dispatcher.h"
#include "stable_abi/kernels.h"
#include "stable_abi/tags.h"
#include "stable_abi/versions.h"

namespace treadle::stable_abi {
namespace {

enum class Kind : uint8_t { Def, Fragment, Impl };

struct Library {
  Kind kind;
  std::string ns, key, file;
  int line;
  bool refused = false;  // it registers nothing
  std::vector<std::function<void()>> undo = {};

  KernelOrigin place() const { return {KernelSource::DeviceLayout, file.c_str(), line, ""}; }
  void take_back() {
    while (!undo.empty()) {
      undo.back()();
      undo.pop_back();
    }
  }
};

// A kernel whose operator is defined later.
struct Waiting {
  Library* library;
  StableKernel kernel;
};
struct State {
  ForkSafeMutex mutex;
  std::multimap<std::string, Waiting> waiting;    // by the operator's full name
  std::map<std::string, const Library*> defined;  // namespaces, by their DEF
};
State& state() {
  static auto* const state = new State;
  return *state;
}

// A load that is going on on this thread. An extension may load another one.
struct Load {
  std::vector<Library*> libraries;
  std::vector<std::string> errors;
  std::string facts;
};
thread_local std::vector<Load> t_loads;
thread_local std::string t_result;

Load* current_load() { return t_loads.empty() ? nullptr : &t_loads.back(); }

// Runs a registration: within a load its error is kept for the end.
template <class Body>
AOTITorchError registering(Body&& body) noexcept {
  const AOTITorchError result = guarded(body);
  if (result == AOTI_TORCH_SUCCESS || t_loads.empty()) return result;
  t_loads.back().errors.emplace_back(torch_exception_get_what());
  return AOTI_TORCH_SUCCESS;
}

Library& library_of(TorchLibraryHandle handle) {
  return *reinterpret_cast<Library*>(given(handle, "a library"));
}

AOTITorchError make_library(Kind kind, const char* ns, const char* key, const char* file,
                            uint32_t line, TorchLibraryHandle* result) {
  *result = nullptr;
  return registering([&] {
    auto library = std::make_unique<Library>(Library{kind, given(ns, "a namespace"), key ? key : "",
                                                     file ? file : "", static_cast<int>(line)});
    Library* const made = library.release();
    *result = reinterpret_cast<TorchLibraryHandle>(made);
    if (Load* const load = current_load()) load->libraries.push_back(made);
    if (kind == Kind::Impl) {
      made->refused = true;
      read_key(made->key);
      made->refused = false;
    }
    if (kind != Kind::Def) return;
    State& s = state();
    const std::lock_guard lock(s.mutex);
    const auto [there, is_new] = s.defined.try_emplace(made->ns, made);
    made->refused = !is_new;
    check<ErrorKind::Runtime>(is_new, "expected one DEF of the namespace '", made->ns,
                              "', got a second at ", made->file, ":", made->line,
                              "\nit is defined already at ", there->second->file, ":",
                              there->second->line, "; FRAGMENT adds to it");
    made->undo.push_back([ns = made->ns] {
      State& again = state();
      const std::lock_guard guard(again.mutex);
      again.defined.erase(ns);
    });
  });
}

// "my_ns::name.overload" of a name or schema with or without the namespace.
std::string full_name(const Library& library, std::string name) {
  if (name.ends_with(".default")) name.resize(name.size() - 8);
  const size_t colons = name.find("::");
  if (colons == std::string::npos) return library.ns + "::" + name;
  check<ErrorKind::Runtime>(name.substr(0, colons) == library.ns || library.ns == "_",
                            "expected an operator of the namespace '", library.ns, "', got ", name);
  return name;
}

void refuse_second(const std::string& text, const Operator& there, const Library& library) {
  const EntryInfo& entry = there.entry();
  fail<ErrorKind::Runtime>(
      OpName(there.info().name), "expected one definition of an operator, got a second\n  ", text,
      "  at ", library.file, ":", library.line, "\nit is defined already as\n  ",
      there.info().schema, "  at ", entry.file, ":", entry.line());
}

void implement(Library& library, Operator& op, StableKernel kernel) {
  const Key key = read_key(library.key);
  if (key.kind == KeyKind::Elsewhere) return;
  library.undo.push_back(register_kernel(op, key, kernel, library.place()));
}

void define(Library& library, const char* schema, const int32_t* tags, int32_t tag_count) {
  if (library.refused) return;
  check<ErrorKind::Runtime>(library.kind != Kind::Impl,
                            "expected a library of kind DEF or FRAGMENT, got the IMPL library of '",
                            library.ns, "' for ", given(schema, "a schema"));
  const std::string written = given(schema, "a schema");
  const std::string name = full_name(library, written.substr(0, written.find('(')));
  const std::string text = name + written.substr(std::min(written.find('('), written.size()));
  if (const Operator* there = Dispatcher::instance().find(name))
    refuse_second(text, *there, library);
  DynamicOperator& op = DynamicOperator::define(text, library.place());
  library.undo.push_back([&op] { op.undefine(); });
  if (Load* const load = current_load()) {
    std::string fact = str("operator ", op.info().name);
    for (int32_t i = 0; i < tag_count; ++i) fact += str(" ", name_of_tag(tags[i]));
    load->facts += fact + "\n";
  }
  std::vector<Waiting> found;
  {
    State& s = state();
    const std::lock_guard lock(s.mutex);
    const auto [from, to] = s.waiting.equal_range(op.info().name);
    for (auto it = from; it != to; ++it) found.push_back(it->second);
    s.waiting.erase(from, to);
  }
  for (const Waiting& w : found) implement(*w.library, op, w.kernel);
}

void forget_waiting(const Library* library) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  std::erase_if(s.waiting, [&](const auto& entry) { return entry.second.library == library; });
}

AOTITorchError implement(TorchLibraryHandle handle, const char* name, StableKernel kernel,
                         uint64_t version) {
  return registering([&] {
    Library& library = library_of(handle);
    if (library.refused) return;
    check_version(version, given(name, "the name of an operator"));
    given(kernel, "a kernel");
    const std::string full = full_name(library, name);
    if (Operator* op = Dispatcher::instance().find(full)) {
      implement(library, *op, kernel);
      return;
    }
    State& s = state();
    const std::lock_guard lock(s.mutex);
    s.waiting.emplace(full, Waiting{&library, kernel});
  });
}

}  // namespace
}  // namespace treadle::stable_abi

using namespace treadle;              // NOLINT
using namespace treadle::stable_abi;  // NOLINT

AOTITorchError aoti_torch_library_init_impl(const char* ns, const char* key, const char* file,
                                            uint32_t line, TorchLibraryHandle* result) {
  return make_library(Kind::Impl, ns, key, file, line, result);
}
AOTITorchError aoti_torch_library_init_def(const char* ns, const char* file, uint32_t line,
                                           TorchLibraryHandle* result) {
  return make_library(Kind::Def, ns, nullptr, file, line, result);
}
AOTITorchError aoti_torch_library_init_fragment(const char* ns, const char* file, uint32_t line,
                                                TorchLibraryHandle* result) {
  return make_library(Kind::Fragment, ns, nullptr, file, line, result);
}
AOTITorchError aoti_torch_library_def(TorchLibraryHandle library, const char* schema) {
  return registering([&] { define(library_of(library), schema, nullptr, 0); });
}
AOTITorchError torch_library_def_with_tags(TorchLibraryHandle library, const char* schema,
                                           const int32_t* tags, int32_t num_tags) {
  return registering([&] {
    if (num_tags > 0) given(tags, "tags");
    define(library_of(library), schema, tags, num_tags);
  });
}
AOTITorchError aoti_torch_library_impl(TorchLibraryHandle library, const char* name,
                                       StableKernel kernel) {
  return implement(library, name, kernel, TORCH_ABI_VERSION);
}
AOTITorchError torch_library_impl(TorchLibraryHandle library, const char* name, StableKernel kernel,
                                  uint64_t version) {
  return implement(library, name, kernel, version);
}
AOTITorchError torch_library_set_python_module(TorchLibraryHandle library, const char* module,
                                               const char*) {
  return registering([&] {
    const Library& l = library_of(library);
    given(module, "a module");
    if (Load* const load = current_load()) load->facts += str("module ", l.ns, " ", module, "\n");
  });
}
AOTITorchError aoti_torch_delete_library_object(TorchLibraryHandle library) {
  return guarded([&] {
    if (!library) return;  // an error prevented it
    const std::unique_ptr<Library> owned(&library_of(library));
    for (Load& load : t_loads) std::erase(load.libraries, owned.get());
    forget_waiting(owned.get());
    owned->take_back();
  });
}

void treadle_stable_abi_begin_load() { t_loads.emplace_back(); }
const char* treadle_stable_abi_end_load() {
  if (t_loads.empty()) return "";
  Load load = std::move(t_loads.back());
  t_loads.pop_back();
  t_result = std::move(load.facts);
  if (!load.errors.empty()) {
    t_result = "error " + load.errors.front();
    if (load.errors.size() > 1)
      t_result += str("\nand ", load.errors.size() - 1, " more errors in registrations");
    for (auto it = load.libraries.rbegin(); it != load.libraries.rend(); ++it) {
      forget_waiting(*it);
      (*it)->take_back();
      (*it)->refused = true;
    }
  }
  return t_result.c_str();
}
