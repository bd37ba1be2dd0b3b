// The extension module treadle.distributed._gloo: the engine "gloo". It alone needs libgloo.
//
// SPDX-License-Identifier: Apache-2.0
#include <pybind11/pybind11.h>

#include "distributed/gloo/engine.h"

namespace py = pybind11;

namespace treadle::distributed {
namespace {

// `set` takes a key and bytes; `get` waits for those of a key.
std::shared_ptr<Engine> connect(int rank, int size, py::function set, py::function get,
                                const std::string& host, const std::string& interface,
                                double seconds) {
  RendezvousStore store;
  store.set = [&set](const std::string& key, const std::vector<char>& value) {
    const py::gil_scoped_acquire lock;
    set(key, py::bytes(value.data(), value.size()));
  };
  store.get = [&get](const std::string& key) {
    const py::gil_scoped_acquire lock;
    const auto value = get(key).cast<std::string>();
    return std::vector<char>(value.begin(), value.end());
  };
  const py::gil_scoped_release unlock;
  return make_of_this_process<GlooEngine>(rank, size, std::move(store), Interface{host, interface},
                                          milliseconds(static_cast<int64_t>(seconds * 1e3)));
}

}  // namespace
}  // namespace treadle::distributed

PYBIND11_MODULE(_gloo, module) {
  py::module_::import("treadle.distributed._engine");
  module.def("connect", &treadle::distributed::connect);
}
