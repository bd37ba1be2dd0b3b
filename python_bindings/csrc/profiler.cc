// The functions beneath treadle.profiler: recordings, Python's own events, and Python's source
// locations.
//
// SPDX-License-Identifier: Apache-2.0
#include <pybind11/pybind11.h>

#include <map>
#include <vector>

#include "core/dispatch/profiler.h"
#include "python_bindings/csrc/arguments/casters.h"
#include "python_bindings/csrc/module.h"

namespace py = pybind11;

namespace treadle::python {
namespace {

// ---- stacks -------------------------------------------------------------------------------------

// Code objects (each owned) with lines, innermost first. Every stack is stored once. Used with the
// interpreter lock held.
using Frames = std::vector<std::pair<PyCodeObject*, int>>;

struct Stacks {
  std::map<Frames, uint32_t> numbers;
  std::vector<const Frames*> known;  // number 1 first
};
Stacks& stacks() {
  static auto* all = new Stacks;  // outlives the interpreter
  return *all;
}

void drop(const Frames& frames) {
  for (const auto& [code, line] : frames) Py_DECREF(reinterpret_cast<PyObject*>(code));
}

uint32_t current_stack() {
  if (!interpreter_alive()) return 0;
  const AcquireGil lock;
  Frames frames;
  PyFrameObject* frame = PyThreadState_GetFrame(PyThreadState_Get());
  while (frame) {
    frames.emplace_back(PyFrame_GetCode(frame), PyFrame_GetLineNumber(frame));
    PyFrameObject* outer = PyFrame_GetBack(frame);
    Py_DECREF(reinterpret_cast<PyObject*>(frame));
    frame = outer;
  }
  if (frames.empty()) return 0;
  const auto [place, added] = stacks().numbers.try_emplace(std::move(frames), 0);
  if (added) {
    stacks().known.push_back(&place->first);
    place->second = static_cast<uint32_t>(stacks().known.size());
  } else {
    drop(frames);
  }
  return place->second;
}

// The frames of each stack as "file(line): function", innermost first. The stacks are then dropped.
py::list take_stacks() {
  py::list all;
  for (const Frames* frames : stacks().known) {
    py::list lines;
    for (const auto& [code, line] : *frames) {
      const py::handle object(reinterpret_cast<PyObject*>(code));
      lines.append(
          py::str("{}({}): {}").format(object.attr("co_filename"), line, object.attr("co_name")));
    }
    all.append(lines);
    drop(*frames);
  }
  stacks() = {};
  return all;
}

// ---- recordings ---------------------------------------------------------------------------------

void start(bool record_shapes, bool with_stack) {
  profiler::set_stack_source(with_stack ? &current_stack : nullptr);
  profiler::start({.shapes = record_shapes, .stacks = with_stack});
}

py::tuple stop() {
  py::list events;
  for (const profiler::Event& e : profiler::stop()) {
    events.append(py::make_tuple(e.name, static_cast<int>(e.kind), e.thread, e.parent, e.begin_ns,
                                 e.end_ns, e.bytes, e.shapes, e.types, e.values, e.stack,
                                 e.allocations, e.traffic));
  }
  return py::make_tuple(events, take_stacks());
}

}  // namespace

void init_profiler(PyObject* module) {
  auto m = py::reinterpret_borrow<py::module_>(module);
  m.def("_profiler_start", &start, py::arg("record_shapes"), py::arg("with_stack"),
        "Begins to record the operators that this thread calls.");
  m.def("_profiler_stop", &stop, "Ends the recording: its events, and the stacks they name.");
  m.def("_profiler_running", &profiler::running, "Whether something is recorded.");
  m.def("_profiler_join", &profiler::join, "Records this thread too.");
  m.def(
      "_profiler_begin",
      [](std::string name) { return profiler::begin(std::move(name), profiler::EventKind::Range); },
      py::arg("name"), "An event of the program's own; returns what ends it.");
  m.def("_profiler_end", &profiler::end, py::arg("event"), "Ends it.");
}

}  // namespace treadle::python
