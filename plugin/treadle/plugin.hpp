// The plug-in interface for C++17: plugin.h with types, exceptions and counted handles. Headers
// only: a plug-in links to nothing of Treadle.
//
//   #include "treadle/plugin.hpp"
//   namespace {
//   using namespace treadle::plugin;
//   Tensor doubled(const Tensor& x) { return call("aten::mul.Scalar", x, 2); }
//   void start() { define_operator("demo::doubled(Tensor x) -> Tensor", &doubled); }
//   }  // namespace
//   TREADLE_PLUGIN("demo", "1.0", start)
//
// Built by `c++ -std=c++17 -shared -fPIC -fvisibility=hidden -I INCLUDE demo.cc -o demo.so`, where
// INCLUDE is printed by `python -c "import treadle.utils.cpp_extension as e;
// print(e.include_paths()[0])"`, and loaded by treadle.load_backend("demo.so").
#pragma once

#include "treadle/plugin/backend.hpp"
#include "treadle/plugin/elements.hpp"

#pragma GCC visibility push(hidden)
namespace treadle::plugin::detail {
inline treadle_status start(const treadle_api* host, void (*function)()) {
  started = host;
  return guarded(function);
}
}  // namespace treadle::plugin::detail
#pragma GCC visibility pop

// Defines the symbols that Treadle looks for in the library: the plug-in's name, its version, and
// the function `void start()` that makes its registrations. Use it once in a library, outside
// namespaces.
#define TREADLE_PLUGIN(plugin_name, plugin_version, start_function)                   \
  extern "C" TREADLE_PLUGIN_EXPORT const treadle_plugin* treadle_plugin_entry(void) { \
    static const treadle_plugin plugin = {                                            \
        sizeof(treadle_plugin), TREADLE_PLUGIN_VERSION, plugin_name, plugin_version,  \
        [](const treadle_api* host) -> treadle_status {                               \
          return ::treadle::plugin::detail::start(host, [] { start_function(); });    \
        }};                                                                           \
    return &plugin;                                                                   \
  }
