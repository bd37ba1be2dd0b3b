// The functions that Treadle asks of the backend, by OpenCL's host functions.
//
// SPDX-License-Identifier: Apache-2.0
#include "backend.h"

#include "generated.h"

namespace treadle_opencl {

namespace plugin = treadle::plugin;
using plugin::ErrorKind;

namespace {

Device& device_at(int32_t index) { return Devices::instance().at(index); }

// A mark in a queue; empty until it is recorded.
struct Event {
  bool timing;
  cl_event marker = nullptr;
  std::mutex mutex;

  // A reference for the caller to release; null where it was not recorded.
  cl_event take() {
    const std::lock_guard lock(mutex);
    if (marker != nullptr) clRetainEvent(marker);
    return marker;
  }
};
struct EventReference {
  cl_event event;
  explicit EventReference(void* e) : event(static_cast<Event*>(e)->take()) {}
  EventReference(const EventReference&) = delete;
  ~EventReference() {
    if (event != nullptr) clReleaseEvent(event);
  }
};

}  // namespace

int32_t OpenClBackend::device_count() { return Devices::instance().count(); }

void* OpenClBackend::allocate(int32_t index, size_t nbytes) {
  cl_int code = CL_SUCCESS;
  const cl_mem memory =
      clCreateBuffer(device_at(index).context(), CL_MEM_READ_WRITE, nbytes, nullptr, &code);
  succeed(code, "clCreateBuffer");
  const std::lock_guard lock(memory_mutex_);
  used_[index] += nbytes;
  return memory;
}
void OpenClBackend::deallocate(int32_t index, void* storage, size_t nbytes) {
  // Commands that use it hold it until they are done.
  clReleaseMemObject(static_cast<cl_mem>(storage));
  const std::lock_guard lock(memory_mutex_);
  used_[index] -= nbytes;
}

bool OpenClBackend::copy(treadle_place to, treadle_place from, size_t nbytes, bool non_blocking) {
  const cl_bool blocking = non_blocking ? CL_FALSE : CL_TRUE;
  const auto to_offset = static_cast<size_t>(to.offset);
  const auto from_offset = static_cast<size_t>(from.offset);
  if (to.device.type == TREADLE_CPU) {
    succeed(clEnqueueReadBuffer(device_at(from.device.index).current_queue(),
                                static_cast<cl_mem>(from.storage), blocking, from_offset, nbytes,
                                static_cast<char*>(to.storage) + to_offset, 0, nullptr, nullptr),
            "clEnqueueReadBuffer");
    return true;
  }
  const cl_command_queue queue = device_at(to.device.index).current_queue();
  if (from.device.type == TREADLE_CPU) {
    succeed(clEnqueueWriteBuffer(queue, static_cast<cl_mem>(to.storage), blocking, to_offset,
                                 nbytes, static_cast<const char*>(from.storage) + from_offset, 0,
                                 nullptr, nullptr),
            "clEnqueueWriteBuffer");
    return true;
  }
  // Each device has a context of its own, and buffers cannot leave theirs.
  if (from.device.index != to.device.index) return false;
  succeed(
      clEnqueueCopyBuffer(queue, static_cast<cl_mem>(from.storage), static_cast<cl_mem>(to.storage),
                          from_offset, to_offset, nbytes, 0, nullptr, nullptr),
      "clEnqueueCopyBuffer");
  return true;
}

bool OpenClBackend::pointwise(const treadle_pointwise_call& call) {
  return run_pointwise(device_at(call.device.index), call);
}
bool OpenClBackend::reduce(const treadle_reduce_call& call) {
  return run_reduce(device_at(call.device.index), call);
}

void OpenClBackend::synchronize(int32_t index) {
  Device& device = device_at(index);
  for (const uint64_t stream : device.streams()) device.finish(stream);
}

uint64_t OpenClBackend::stream_create(int32_t index, int32_t) {
  return device_at(index).create_queue();
}
void OpenClBackend::stream_destroy(int32_t index, uint64_t stream) {
  device_at(index).destroy_queue(stream);
}
void OpenClBackend::stream_set(int32_t index, uint64_t stream) {
  device_at(index).set_current_stream(stream);
}
bool OpenClBackend::stream_query(int32_t index, uint64_t stream) {
  return device_at(index).is_idle(stream);
}
void OpenClBackend::stream_synchronize(int32_t index, uint64_t stream) {
  device_at(index).finish(stream);
}

void* OpenClBackend::event_create(int32_t, bool timing) { return new Event{timing, nullptr, {}}; }
void OpenClBackend::event_destroy(int32_t, void* event) {
  const auto* known = static_cast<Event*>(event);
  if (known->marker != nullptr) clReleaseEvent(known->marker);
  delete known;
}
void OpenClBackend::event_record(int32_t index, void* event, uint64_t stream) {
  cl_event marker = mark(device_at(index).queue(stream));
  auto* known = static_cast<Event*>(event);
  {
    const std::lock_guard lock(known->mutex);
    std::swap(marker, known->marker);
  }
  if (marker != nullptr) clReleaseEvent(marker);
}
void OpenClBackend::event_wait(int32_t index, void* event, uint64_t stream) {
  const EventReference reference(event);
  if (reference.event == nullptr) return;
  succeed(
      clEnqueueBarrierWithWaitList(device_at(index).queue(stream), 1, &reference.event, nullptr),
      "clEnqueueBarrierWithWaitList");
}
bool OpenClBackend::event_query(void* event) {
  const EventReference reference(event);
  return reference.event == nullptr || is_complete(reference.event);
}
void OpenClBackend::event_synchronize(void* event) {
  const EventReference reference(event);
  if (reference.event != nullptr) succeed(clWaitForEvents(1, &reference.event), "clWaitForEvents");
}
double OpenClBackend::event_elapsed(void* start, void* end) {
  cl_ulong times[2];
  for (int i = 0; i < 2; ++i) {
    void* const event = i == 0 ? start : end;
    const EventReference reference(event);
    plugin::check(static_cast<Event*>(event)->timing && reference.event != nullptr,
                  ErrorKind::Runtime,
                  "elapsed_time: expected two recorded events with enable_timing=True");
    succeed(clWaitForEvents(1, &reference.event), "clWaitForEvents");
    succeed(clGetEventProfilingInfo(reference.event, CL_PROFILING_COMMAND_END, sizeof times[i],
                                    &times[i], nullptr),
            "clGetEventProfilingInfo");
  }
  return (static_cast<double>(times[1]) - static_cast<double>(times[0])) * 1e-6;
}

void* OpenClBackend::pinned_allocate(size_t nbytes) {
  Device& device = device_at(0);
  cl_int code = CL_SUCCESS;
  const cl_mem memory = clCreateBuffer(device.context(), CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR,
                                       nbytes, nullptr, &code);
  succeed(code, "clCreateBuffer");
  void* const data =
      clEnqueueMapBuffer(device.queue(0), memory, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, 0, nbytes, 0,
                         nullptr, nullptr, &code);
  if (code != CL_SUCCESS) clReleaseMemObject(memory);
  succeed(code, "clEnqueueMapBuffer");
  const std::lock_guard lock(pinned_mutex_);
  pinned_[data] = memory;
  return data;
}
void OpenClBackend::pinned_deallocate(void* data, size_t) {
  cl_mem memory = nullptr;
  {
    const std::lock_guard lock(pinned_mutex_);
    const auto found = pinned_.find(data);
    if (found == pinned_.end()) return;
    memory = found->second;
    pinned_.erase(found);
  }
  clEnqueueUnmapMemObject(device_at(0).queue(0), memory, data, 0, nullptr, nullptr);
  clReleaseMemObject(memory);
}

std::string OpenClBackend::device_name(int32_t index) { return device_at(index).name(); }
plugin::Memory OpenClBackend::memory_info(int32_t index) {
  // OpenCL does not say what others use.
  const size_t total = device_at(index).memory();
  const std::lock_guard lock(memory_mutex_);
  const size_t used = used_[index];
  return {used < total ? total - used : 0, total};
}

}  // namespace treadle_opencl
