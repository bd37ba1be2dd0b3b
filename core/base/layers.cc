// This thread's layer state and autograd modes.
//
// SPDX-License-Identifier: Apache-2.0

#include "core/base/layers.h"

namespace treadle {
namespace detail {
thread_local constinit LayerState layer_state __attribute__((tls_model("initial-exec")));
thread_local constinit AutogradMode autograd_mode __attribute__((tls_model("initial-exec")));
}  // namespace detail

std::string_view name_of(Layer layer) {
  switch (layer) {
    case Layer::PythonHook:
      return "python_hook";
    case Layer::Profiler:
      return "profiler";
    case Layer::Autocast:
      return "autocast";
    case Layer::Functional:
      return "functional";
    case Layer::Layout:
      return "layout";
    case Layer::Autograd:
      return "autograd";
    case Layer::Dispatch:
      return "dispatch";
    case Layer::Resolve:
      return "resolve";
  }
  return "unknown layer";
}

}  // namespace treadle
