// The extension module treadle.distributed._engine: groups of processes, over any engine.
//
// SPDX-License-Identifier: Apache-2.0
#include <pybind11/functional.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>

#include "distributed/group.h"
#include "distributed/mpi/library.h"
#include "distributed/reduction.h"
#include "distributed/spans.h"

namespace py = pybind11;

namespace treadle::distributed {
namespace {

milliseconds in_milliseconds(double seconds) {
  // Clocks overflow where programs say "for ever".
  constexpr double kLongest = 1e9;
  return milliseconds(static_cast<int64_t>(std::min(std::max(seconds, 1e-3), kLongest) * 1e3));
}

// The exception for a failure, made by treadle.distributed.errors.
py::object exception_of(const Failure& failure) {
  const py::module_ errors = py::module_::import("treadle.distributed.errors");
  return errors.attr("from_engine")(static_cast<int>(failure.kind), failure.what(), failure.peer);
}

void raise(const Failure& failure) {
  const py::object exception = exception_of(failure);
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(exception.ptr())), exception.ptr());
}

Call call_of(std::string name, int function, int dtype, int op, double factor, int root,
             const std::vector<Address>& inputs, const std::vector<Address>& outputs,
             double timeout) {
  Call call;
  call.name = std::move(name);
  call.function = static_cast<Function>(function);
  call.dtype = static_cast<ScalarType>(dtype);
  call.op = static_cast<ReduceOp>(op);
  call.factor = factor;
  call.root = root;
  call.inputs = spans(inputs);
  call.outputs = spans(outputs);
  call.timeout = in_milliseconds(timeout);
  return call;
}

// A thread that asks for the interpreter lock then would be ended in the middle.
bool is_finalizing() {
#if PY_VERSION_HEX >= 0x030d0000
  return Py_IsFinalizing();
#else
  return _Py_IsFinalizing();
#endif
}

// The callback is dropped under the interpreter lock, by the thread that ends the work.
void on_done(Work& work, py::function callback) {
  auto held = std::shared_ptr<py::function>(new py::function(std::move(callback)),
                                            [](py::function* function) {
                                              if (is_finalizing()) return;
                                              const py::gil_scoped_acquire lock;
                                              delete function;
                                            });
  const py::gil_scoped_release unlock;
  work.on_done([held = std::move(held)]() mutable {
    if (is_finalizing()) return;
    const py::gil_scoped_acquire lock;
    try {
      (*held)();
    } catch (py::error_already_set& error) {
      error.discard_as_unraisable("a callback of Work");
    }
    held.reset();
  });
}

const char* name_of(Entry::State state) {
  constexpr const char* names[] = {"scheduled", "started", "completed", "failed"};
  return names[static_cast<size_t>(state)];
}

py::dict as_dict(const Entry& entry) {
  py::dict found;
  found["number"] = entry.number;
  found["is_message"] = entry.is_message;
  found["name"] = entry.name;
  found["dtype"] = static_cast<int>(entry.dtype);
  found["shape"] = entry.shape;
  found["root"] = entry.root;
  found["state"] = name_of(entry.state);
  found["queued"] = entry.queued;
  found["started"] = entry.started;
  found["ended"] = entry.ended;
  return found;
}

}  // namespace
}  // namespace treadle::distributed

PYBIND11_MODULE(_engine, module) {
  using namespace treadle::distributed;
  using Unlocked = py::call_guard<py::gil_scoped_release>;

  py::register_exception_translator([](std::exception_ptr error) {
    try {
      if (error) std::rethrow_exception(error);
    } catch (const Failure& failure) {
      raise(failure);
    }
  });

  py::class_<Engine, std::shared_ptr<Engine>>(module, "Engine")
      .def_property_readonly("name", &Engine::name)
      .def_readonly("rank", &Engine::rank)
      .def_readonly("size", &Engine::size);

  py::class_<Work, std::shared_ptr<Work>>(module, "Work")
      .def("is_done", &Work::is_done, Unlocked())
      .def("has_ended", [](Work& work) { return work.Work::is_done(); })
      .def("peer", &Work::peer)
      .def("on_done", &on_done)
      .def("exception",
           [](Work& work) -> py::object {
             const auto failure = work.failure();
             return failure ? exception_of(*failure) : py::none();
           })
      .def("wait",
           [](Work& work, std::optional<double> seconds) {
             const py::gil_scoped_release unlock;
             return seconds ? work.wait(in_milliseconds(*seconds)) : work.wait({});
           })
      .def("cancel", [](Work& work) {
        const py::gil_scoped_release unlock;
        if (auto* message = dynamic_cast<MessageWork*>(&work)) message->cancel();
      });

  py::class_<Group, std::shared_ptr<Group>>(module, "Group")
      .def(py::init([](std::shared_ptr<Engine> engine, std::vector<int> members, std::string name) {
        return make_of_this_process<Group>(std::move(engine), std::move(members), std::move(name));
      }))
      .def_readonly("name", &Group::name)
      .def_property_readonly("engine", &Group::engine)
      .def("run",
           [](Group& group, std::string name, int function, int dtype, int op, double factor,
              int root, const std::vector<Address>& inputs, const std::vector<Address>& outputs,
              std::vector<int64_t> shape, double timeout, bool later) {
             Call call = call_of(std::move(name), function, dtype, op, factor, root, inputs,
                                 outputs, timeout);
             const py::gil_scoped_release unlock;
             return group.run(std::move(call), std::move(shape), later);
           })
      .def("post",
           [](Group& group, std::string name, int function, int dtype, int peer, int64_t tag,
              const Address& memory, std::vector<int64_t> shape, double timeout) {
             Call call =
                 call_of(std::move(name), function, dtype, 0, 1, peer, {memory}, {memory}, timeout);
             call.tag = tag;
             const py::gil_scoped_release unlock;
             return group.post(std::move(call), std::move(shape));
           })
      .def("record",
           [](Group& group) {
             py::list found;
             for (const Entry& entry : group.record()) found.append(as_dict(entry));
             return found;
           })
      .def("next_failure",
           [](Group& group, double timeout) -> py::object {
             std::optional<FailedCall> found;
             {
               const py::gil_scoped_release unlock;
               found = group.next_failure(in_milliseconds(timeout));
             }
             if (!found) return py::none();
             return py::make_tuple(found->number, found->name, exception_of(found->failure));
           })
      .def("abort", &Group::abort, Unlocked())
      .def("shut_down", [](Group& group, double timeout) {
        const py::gil_scoped_release unlock;
        group.shut_down(in_milliseconds(timeout));
      });

  module.def("mpi_is_there", &mpi_is_there);
  module.def("mpi_start", [] {
    const py::gil_scoped_release unlock;
    const MpiPlace place = mpi_start();
    return std::make_pair(place.rank, place.size);
  });
  module.def("mpi_finish", &mpi_finish, Unlocked());
  module.def("mpi_connect", [](const std::vector<int>& members, const std::string& name) {
    const py::gil_scoped_release unlock;
    return mpi_connect(members, name);
  });

  module.def("can_reduce", [](int op, int dtype) {
    return can_reduce(static_cast<ReduceOp>(op), static_cast<treadle::ScalarType>(dtype));
  });
}
