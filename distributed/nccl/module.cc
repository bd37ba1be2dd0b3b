// The extension module treadle.distributed._nccl: the engine "nccl". It loads NCCL when it is asked
// for it.
//
// SPDX-License-Identifier: Apache-2.0
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "distributed/nccl/engine.h"
#include "distributed/spans.h"

namespace py = pybind11;

namespace treadle::distributed {
namespace {

// The reason why there is no NCCL that can be used; empty: there is.
std::string missing() {
  try {
    nccl();
    return {};
  } catch (const Failure& failure) {
    return failure.what();
  }
}

}  // namespace
}  // namespace treadle::distributed

PYBIND11_MODULE(_nccl, module) {
  using namespace treadle::distributed;
  using Unlocked = py::call_guard<py::gil_scoped_release>;

  const py::module_ engines = py::module_::import("treadle.distributed._engine");
  module.def("missing", &missing);
  module.def("version", &nccl_version);
  module.def("can_reduce", [](int op, int dtype) {
    return nccl_can_reduce(static_cast<ReduceOp>(op), static_cast<treadle::ScalarType>(dtype));
  });
  py::class_<NcclEngine, Engine, std::shared_ptr<NcclEngine>>(module, "NcclEngine")
      .def(py::init([](std::shared_ptr<Engine> side) {
        return make_of_this_process<NcclEngine>(std::move(side));
      }))
      // Whether NCCL needs copies of the inputs.
      .def("has_overlap",
           [](const NcclEngine& engine, int function, const std::vector<Address>& inputs,
              const std::vector<Address>& outputs) {
             Call call;
             call.function = static_cast<Function>(function);
             call.inputs = spans(inputs);
             call.outputs = spans(outputs);
             return call.has_overlap(engine.rank);
           })
      .def("use_device", &NcclEngine::use_device)
      .def(
          "connect",
          [](NcclEngine& engine, double seconds) {
            engine.connect(milliseconds(static_cast<int64_t>(seconds * 1e3)));
          },
          Unlocked());
}
