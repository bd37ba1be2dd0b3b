// The functions beneath the modules of outside devices: plug-ins, their devices, streams, events
// and counts. They are plain functions that take the device's name. treadle/backends gives them
// their public form.
//
// SPDX-License-Identifier: Apache-2.0
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <mutex>
#include <set>

#include "core/base/fork_safe_mutex.h"
#include "core/device/backend.h"
#include "core/dispatch/call_counts.h"
#include "core/dispatch/operator.h"
#include "plugin/host/library_file.h"
#include "plugin/host/loader.h"
#include "python_bindings/csrc/arguments/casters.h"
#include "python_bindings/csrc/arguments/convert.h"
#include "python_bindings/csrc/devices/backends.h"
#include "python_bindings/csrc/module.h"

namespace py = pybind11;

namespace treadle::python {
namespace {

DeviceType type_named(const std::string& name) { return device_from_string(name).type; }
Backend& backend_named(const std::string& name) { return require_backend(type_named(name)); }

py::tuple shown(const plugin::LoadedPlugin& p) {
  return py::make_tuple(p.name, p.version, p.path, p.interface_version);
}

py::list dtypes_in(uint32_t mask) {
  py::list all;
  for (int t = 0; t < kNumScalarTypes; ++t)
    if (mask >> t & 1) all.append(static_cast<ScalarType>(t));
  return all;
}

py::dict facts_of(const std::string& name) {
  const Backend::Facts& f = backend_named(name).facts();
  py::dict d;
  d["name"] = f.name;
  d["storage_tag"] = f.storage_tag;
  d["plugin"] = f.plugin;
  d["plugin_version"] = f.plugin_version;
  d["autocast_dtype"] = f.autocast_dtype;
  d["autocast_dtypes"] = dtypes_in(f.autocast_dtypes);
  d["dtypes"] = dtypes_in(f.dtypes);
  d["keeps_memory"] = f.keeps_memory;
  d["addressable"] = f.addressable;
  d["host_visible"] = f.host_visible;
  d["generates"] = f.generates;
  return d;
}

py::list counts_of(const std::string& name) {
  py::list all;
  for (const CallCount& c : call_counts(type_named(name)))
    all.append(py::make_tuple(c.op->info().name, std::string(name_of(c.route)), c.calls));
  return all;
}

// ---- pinned memory ----

struct Pinned {
  ForkSafeMutex mutex;
  std::set<const void*> blocks;
};
Pinned& pinned() {
  static auto* pinned = new Pinned;
  return *pinned;
}

// An uninitialised contiguous tensor of the CPU in memory that the backend pins; None where it has
// none.
py::object empty_pinned(const std::string& name, const std::vector<int64_t>& sizes,
                        ScalarType dtype) {
  Backend& backend = backend_named(name);
  const size_t nbytes =
      static_cast<size_t>(checked_numel(sizes, item_size(dtype)) * item_size(dtype));
  void* data = nbytes ? without_gil([&] { return backend.allocate_pinned(nbytes); }) : nullptr;
  if (!data) return py::none();
  {
    const std::lock_guard lock(pinned().mutex);
    pinned().blocks.insert(data);
  }
  const auto release = [&backend, data, nbytes] {
    {
      const std::lock_guard lock(pinned().mutex);
      pinned().blocks.erase(data);
    }
    backend.deallocate_pinned(data, nbytes);
  };
  return py::cast(Tensor(make_intrusive<TensorImpl>(
      make_intrusive<StorageImpl>(data, nbytes, kCPU, release), dtype, IntList(sizes))));
}

bool is_pinned(const Tensor& t) {
  const std::lock_guard lock(pinned().mutex);
  return t.is_cpu() && pinned().blocks.count(t.storage()->data()) > 0;
}

void define_plugins(py::module_& m) {
  m.def(
      "_load_plugin",
      [](const std::string& path) {
        plugin::LoadedPlugin loaded;
        {
          const ReleaseGil unlocked;
          loaded = plugin::load_plugin(path);
        }
        return shown(loaded);
      },
      "Load a plug-in: (name, version, path, version of the interface).");
  m.def("_require_whole_library", &plugin::require_whole_library,
        "Raise RuntimeError for a shared library's file that was cut short.");
  m.def("_loaded_plugins", [] {
    py::list all;
    // Loading one blocks the threads that look for one.
    for (const plugin::LoadedPlugin& p : without_gil([] { return plugin::loaded_plugins(); }))
      all.append(shown(p));
    return all;
  });
  m.def(
      "_set_backend_finder",
      [](const std::string& name, py::function finder) {
        // Never freed, because a device may be requested while the interpreter ends.
        auto* const kept = new py::function(std::move(finder));
        set_backend_finder(type_named(name), [kept] {
          const AcquireGil locked;
          return (*kept)().cast<std::string>();
        });
      },
      "Let a function be called when a device without a backend is asked for: it loads one and "
      "returns '', or says why there is none.");
  m.def("_backends", [] {
    py::list names;
    for (const DeviceType type : backends()) names.append(std::string(name_of(type)));
    return names;
  });
  m.def("_backend_facts", &facts_of);
  m.def("_backend_counts", &counts_of, "(operator, how it was answered, calls) of a device.");
  m.def("_backend_reset_counts",
        [](const std::string& name) { reset_call_counts(type_named(name)); });
  m.def("_backend_allow_fallback", [](const std::string& name, bool allowed) {
    backend_named(name);
    allow_fallback(type_named(name), allowed);
  });
  m.def("_backend_fallback_allowed",
        [](const std::string& name) { return fallback_allowed(type_named(name)); });
}

void define_devices(py::module_& m) {
  m.def(
      "_backend_device_count",
      [](const std::string& name) { return backend_named(name).device_count(); },
      py::call_guard<ReleaseGil>());
  m.def("_backend_current_device",
        [](const std::string& name) { return current_device(type_named(name)); });
  m.def(
      "_backend_set_device",
      [](const std::string& name, int index) { set_current_device(type_named(name), index); },
      py::call_guard<ReleaseGil>());
  m.def(
      "_backend_device_name",
      [](const std::string& name, int index) {
        return backend_named(name).device_name(device_at(name, index).index);
      },
      py::call_guard<ReleaseGil>());
  m.def(
      "_backend_properties",
      [](const std::string& name, int index) {
        return backend_named(name).properties(device_at(name, index).index);
      },
      "Facts about a device, by name.", py::call_guard<ReleaseGil>());
  m.def(
      "_backend_synchronize",
      [](const std::string& name, int index) {
        const Device device = device_at(name, index);
        require_backend(device.type).synchronize(device.index);
      },
      py::call_guard<ReleaseGil>());
  m.def(
      "_default_generator",
      [](const py::object& device) {
        const Device exact = with_index(to_device(device.ptr()));
        return py::reinterpret_steal<py::object>(wrap(default_generator(exact)));
      },
      "The generator used on a device where a call names none.");
  m.def("_backend_empty_pinned", &empty_pinned);
  m.def("_backend_is_pinned", &is_pinned);
}

// Streams are numbers, events addresses; the Python objects own them.
void define_streams(py::module_& m) {
  m.def("_backend_current_stream",
        [](const std::string& name, int index) { return current_stream(device_at(name, index)); });
  m.def(
      "_backend_set_stream",
      [](const std::string& name, int index, uint64_t stream) {
        set_current_stream(device_at(name, index), stream);
      },
      py::call_guard<ReleaseGil>());
  m.def(
      "_backend_create_stream",
      [](const std::string& name, int index, int priority) {
        return backend_named(name).create_stream(device_at(name, index).index, priority);
      },
      py::call_guard<ReleaseGil>());
  m.def(
      "_backend_destroy_stream",
      [](const std::string& name, int index, uint64_t stream) {
        const Device device{type_named(name), static_cast<int8_t>(index)};
        destroy_stream(device, stream);
      },
      py::call_guard<ReleaseGil>());
  m.def(
      "_backend_stream_idle",
      [](const std::string& name, int index, uint64_t stream) {
        return backend_named(name).stream_idle(index, stream);
      },
      py::call_guard<ReleaseGil>());
  m.def(
      "_backend_synchronize_stream",
      [](const std::string& name, int index, uint64_t stream) {
        backend_named(name).synchronize_stream(index, stream);
      },
      py::call_guard<ReleaseGil>());
  const auto pointer = [](uintptr_t event) { return reinterpret_cast<void*>(event); };
  m.def(
      "_backend_create_event",
      [](const std::string& name, int index, bool timing) {
        return reinterpret_cast<uintptr_t>(
            backend_named(name).create_event(device_at(name, index).index, timing));
      },
      py::call_guard<ReleaseGil>());
  m.def(
      "_backend_destroy_event",
      [pointer](const std::string& name, int index, uintptr_t event) {
        backend_named(name).destroy_event(index, pointer(event));
      },
      py::call_guard<ReleaseGil>());
  m.def(
      "_backend_record_event",
      [pointer](const std::string& name, int index, uintptr_t event, uint64_t stream) {
        backend_named(name).record_event(index, pointer(event), stream);
      },
      py::call_guard<ReleaseGil>());
  m.def(
      "_backend_wait_event",
      [pointer](const std::string& name, int index, uintptr_t event, uint64_t stream) {
        backend_named(name).wait_event(index, pointer(event), stream);
      },
      py::call_guard<ReleaseGil>());
  m.def(
      "_backend_event_complete",
      [pointer](const std::string& name, uintptr_t event) {
        return backend_named(name).event_complete(pointer(event));
      },
      py::call_guard<ReleaseGil>());
  m.def(
      "_backend_synchronize_event",
      [pointer](const std::string& name, uintptr_t event) {
        Backend& backend = backend_named(name);
        backend.synchronize_event(pointer(event));
      },
      py::call_guard<ReleaseGil>());
  m.def(
      "_backend_elapsed",
      [pointer](const std::string& name, uintptr_t start, uintptr_t end) {
        return backend_named(name).elapsed_milliseconds(pointer(start), pointer(end));
      },
      "Milliseconds between two events.", py::call_guard<ReleaseGil>());
}

}  // namespace

Device device_at(const std::string& name, int index) {
  return with_index({type_named(name), static_cast<int8_t>(index)});
}

void init_backends(PyObject* module) {
  auto m = py::reinterpret_borrow<py::module_>(module);
  define_plugins(m);
  define_devices(m);
  define_streams(m);
}

}  // namespace treadle::python
