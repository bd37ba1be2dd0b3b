// The functions beneath the memory functions of outside devices (treadle/_device/memory.py):
// numbers, snapshots, limits, and the streams that use a tensor.
//
// SPDX-License-Identifier: Apache-2.0
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "core/device/backend.h"
#include "core/memory/caching_allocator.h"
#include "python_bindings/csrc/arguments/casters.h"
#include "python_bindings/csrc/devices/backends.h"
#include "python_bindings/csrc/module.h"

namespace py = pybind11;

namespace treadle::python {
namespace {

CachingAllocator& memory_at(const std::string& name, int index) {
  return memory_of(device_at(name, index));
}

py::dict shown(const Statistic& s) {
  py::dict d;
  d["current"] = s.current;
  d["peak"] = s.peak;
  d["allocated"] = s.allocated;
  d["freed"] = s.freed;
  return d;
}

py::dict statistics_of(const std::string& name, int index) {
  const MemoryStatistics s = memory_at(name, index).statistics();
  py::dict all;
  for (const auto& [quantity, member] : kPooledStatistics) {
    py::dict d;
    d["all"] = shown((s.*member).all);
    d["small_pool"] = shown((s.*member).small_pool);
    d["large_pool"] = shown((s.*member).large_pool);
    all[quantity] = d;
  }
  for (const auto& [count, member] : kMemoryCounts) all[count] = s.*member;
  return all;
}

const char* name_of(BlockState state) {
  switch (state) {
    case BlockState::Inactive:
      return "inactive";
    case BlockState::Allocated:
      return "active_allocated";
    case BlockState::Pending:
      return "active_pending_free";
  }
  return "unknown";
}

py::list snapshot_of(const std::string& name, int index) {
  const Device device = device_at(name, index);
  py::list segments;
  for (const SegmentSnapshot& s : memory_of(device).snapshot()) {
    py::list blocks;
    size_t allocated = 0, active = 0, requested = 0;
    for (const BlockSnapshot& b : s.blocks) {
      py::dict block;
      block["address"] = reinterpret_cast<uintptr_t>(b.address);
      block["size"] = b.size;
      block["requested_size"] = b.requested;
      block["state"] = name_of(b.state);
      block["frames"] = py::list();
      blocks.append(block);
      if (b.state == BlockState::Allocated) allocated += b.size;
      if (b.state != BlockState::Inactive) active += b.size;
      requested += b.requested;
    }
    py::dict segment;
    segment["device"] = device.index;
    segment["address"] = reinterpret_cast<uintptr_t>(s.address);
    segment["total_size"] = s.size;
    segment["allocated_size"] = allocated;
    segment["active_size"] = active;
    segment["requested_size"] = requested;
    segment["stream"] = s.stream;
    segment["segment_type"] = s.large ? "large" : "small";
    segment["segment_pool_id"] = py::make_tuple(0, s.pool);
    segment["is_expandable"] = false;
    segment["frames"] = py::list();
    segment["blocks"] = blocks;
    segments.append(segment);
  }
  return segments;
}

}  // namespace

void init_device_memory(PyObject* module) {
  auto m = py::reinterpret_borrow<py::module_>(module);
  m.def(
      "_backend_memory_info",
      [](const std::string& name, int index) {
        const Device device = device_at(name, index);
        const Backend::Memory memory =
            without_gil([&] { return require_backend(device.type).memory(device.index); });
        return py::make_tuple(memory.free, memory.total);
      },
      "(free bytes, all bytes) of a device; 0: unknown.");
  m.def("_backend_memory_statistics", &statistics_of);
  m.def("_backend_memory_snapshot", &snapshot_of);
  m.def("_backend_reset_peaks",
        [](const std::string& name, int index) { memory_at(name, index).reset_peaks(); });
  m.def("_backend_reset_accumulated",
        [](const std::string& name, int index) { memory_at(name, index).reset_accumulated(); });
  m.def(
      "_backend_release_kept",
      [](const std::string& name) {
        const DeviceType type = device_from_string(name).type;
        empty_cache(type);
      },
      py::call_guard<ReleaseGil>());
  m.def("_backend_set_memory_fraction", [](const std::string& name, int index, double fraction) {
    memory_at(name, index).set_fraction(fraction);
  });
  m.def("_backend_memory_fraction",
        [](const std::string& name, int index) { return memory_at(name, index).fraction(); });
  m.def(
      "_backend_record_stream",
      [](const Tensor& t, uint64_t stream) {
        memory_of(t.device()).record_stream(t.storage()->data(), stream);
      },
      py::call_guard<ReleaseGil>());
}

}  // namespace treadle::python
