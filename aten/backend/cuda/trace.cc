// Records through CUPTI's activities.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/backend/cuda/trace.h"

#include <cxxabi.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <utility>

#include "aten/backend/cuda/backend.h"
#include "aten/backend/cuda/shared_library.h"
#include "core/base/error.h"
#include "core/memory/caching_allocator.h"

namespace treadle::cuda {
namespace {

constexpr CUpti_ActivityKind kKinds[] = {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
                                         CUPTI_ACTIVITY_KIND_MEMCPY, CUPTI_ACTIVITY_KIND_MEMCPY2,
                                         CUPTI_ACTIVITY_KIND_MEMSET, CUPTI_ACTIVITY_KIND_RUNTIME};
// The driver calls by which libraries queue kernels, besides those of the runtime.
constexpr CUpti_driver_api_trace_cbid kDriverCalls[] = {
    CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel, CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx,
    CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel};
constexpr size_t kBufferBytes = size_t{1} << 20;

void succeed(CUptiResult code, const char* doing) {
  if (code == CUPTI_SUCCESS) return;
  const char* name = nullptr;
  cupti().get_result_string(code, &name);
  fail<ErrorKind::Runtime>(OpName("cuda"), "expected ", doing, " to succeed, got ",
                           name ? name : "an error");
}

// The profiler's clock.
uint64_t now() {
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                   std::chrono::steady_clock::now().time_since_epoch())
                                   .count());
}

std::string readable(const char* name) {
  if (!name) return "kernel";
  int status = 0;
  char* const text = abi::__cxa_demangle(name, nullptr, nullptr, &status);
  std::string shown = status == 0 ? text : name;
  std::free(text);
  return shown;
}

const char* name_of_copy(uint8_t kind) {
  switch (kind) {
    case CUPTI_ACTIVITY_MEMCPY_KIND_HTOD:
      return "Memcpy HtoD";
    case CUPTI_ACTIVITY_MEMCPY_KIND_DTOH:
      return "Memcpy DtoH";
    case CUPTI_ACTIVITY_MEMCPY_KIND_DTOD:
      return "Memcpy DtoD";
    case CUPTI_ACTIVITY_MEMCPY_KIND_PTOP:
      return "Memcpy PtoP";
    default:
      return "Memcpy";
  }
}

template <class Record>
DeviceEvent made(const Record& r, DeviceEvent::Kind kind, std::string name) {
  DeviceEvent e;
  e.name = std::move(name);
  e.kind = kind;
  e.device = static_cast<int>(r.deviceId);
  e.stream = r.streamId;
  e.begin_ns = static_cast<int64_t>(r.start);
  e.end_ns = static_cast<int64_t>(r.end);
  e.call = r.correlationId;
  return e;
}

// Waits for the devices that anything was done on, which is where there is memory.
void wait_for_devices() {
  Backend* const backend = backend_of(DeviceType::CUDA);
  for (int i = 0; backend && i < backend->device_count(); ++i)
    if (memory_of({DeviceType::CUDA, static_cast<int8_t>(i)}).statistics().segment.all.current > 0)
      backend->synchronize(i);
}

void switch_off(Cupti& c) {
  for (const auto call : kDriverCalls) c.enable_driver_api(call, 0);
  for (const CUpti_ActivityKind kind : kKinds) c.disable(kind);
}

// RuntimeError where there is no library.
Cupti opened() {
  const SharedLibrary library("libcupti.so.13", "records kernels", "nvidia-cuda-cupti");
  Cupti c;
  const auto find = [&](auto& function, const char* name) {
    function = library.function<std::remove_pointer_t<std::decay_t<decltype(function)>>>(name);
  };
  find(c.register_callbacks, "cuptiActivityRegisterCallbacks");
  find(c.register_timestamp_callback, "cuptiActivityRegisterTimestampCallback");
  find(c.set_thread_id_type, "cuptiSetThreadIdType");
  find(c.enable, "cuptiActivityEnable");
  find(c.disable, "cuptiActivityDisable");
  find(c.enable_driver_api, "cuptiActivityEnableDriverApi");
  find(c.flush_all, "cuptiActivityFlushAll");
  find(c.get_next_record, "cuptiActivityGetNextRecord");
  find(c.get_result_string, "cuptiGetResultString");
  return c;
}

}  // namespace

Cupti& cupti() {
  static Cupti functions;
  return functions;
}

CudaTrace& CudaTrace::the() {
  static auto* trace = new CudaTrace;
  return *trace;
}

void CudaTrace::give_buffer(uint8_t** buffer, size_t* size, size_t* most_records) {
  *buffer = static_cast<uint8_t*>(std::malloc(kBufferBytes));  // null: records are dropped
  *size = *buffer ? kBufferBytes : 0;
  *most_records = 0;
}

void CudaTrace::take_buffer(CUcontext, uint32_t, uint8_t* buffer, size_t, size_t valid) {
  CUpti_Activity* record = nullptr;
  while (valid > 0 && cupti().get_next_record(buffer, valid, &record) == CUPTI_SUCCESS)
    the().add(*record);
  std::free(buffer);
}

void CudaTrace::add(const CUpti_Activity& record) {
  const std::lock_guard lock(mutex_);
  switch (record.kind) {
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL: {
      const auto& r = reinterpret_cast<const CUpti_ActivityKernel10&>(record);
      events_.push_back(made(r, DeviceEvent::Kind::Kernel, readable(r.name)));
      break;
    }
    case CUPTI_ACTIVITY_KIND_MEMCPY: {
      const auto& r = reinterpret_cast<const CUpti_ActivityMemcpy6&>(record);
      events_.push_back(made(r, DeviceEvent::Kind::Copy, name_of_copy(r.copyKind)));
      events_.back().bytes = static_cast<int64_t>(r.bytes);
      break;
    }
    case CUPTI_ACTIVITY_KIND_MEMCPY2: {
      const auto& r = reinterpret_cast<const CUpti_ActivityMemcpyPtoP4&>(record);
      events_.push_back(made(r, DeviceEvent::Kind::Copy, name_of_copy(r.copyKind)));
      events_.back().bytes = static_cast<int64_t>(r.bytes);
      break;
    }
    case CUPTI_ACTIVITY_KIND_MEMSET: {
      const auto& r = reinterpret_cast<const CUpti_ActivityMemset4&>(record);
      events_.push_back(made(r, DeviceEvent::Kind::Fill, "Memset"));
      events_.back().bytes = static_cast<int64_t>(r.bytes);
      break;
    }
    case CUPTI_ACTIVITY_KIND_RUNTIME:
    case CUPTI_ACTIVITY_KIND_DRIVER: {
      const auto& r = reinterpret_cast<const CUpti_ActivityAPI&>(record);
      launches_.try_emplace(r.correlationId, Launch{static_cast<int64_t>(r.start), r.threadId});
      break;
    }
    default:
      break;
  }
}

void CudaTrace::start() {
  Cupti& c = cupti();
  if (!c.enable) c = opened();
  {
    const std::lock_guard lock(mutex_);
    check<ErrorKind::Runtime>(!running_, OpName("cuda"),
                              "expected no recording of kernels, got one that runs");
    events_.clear();
    launches_.clear();
    running_ = true;
  }
  try {
    if (!registered_) {
      succeed(c.set_thread_id_type(CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM), "recording kernels");
      succeed(c.register_timestamp_callback(&now), "recording kernels");
      succeed(c.register_callbacks(&give_buffer, &take_buffer), "recording kernels");
      registered_ = true;
    }
    for (const CUpti_ActivityKind kind : kKinds) succeed(c.enable(kind), "recording kernels");
    for (const auto call : kDriverCalls) succeed(c.enable_driver_api(call, 1), "recording kernels");
  } catch (...) {
    switch_off(c);
    running_ = false;
    throw;
  }
}

std::vector<DeviceEvent> CudaTrace::stop() {
  Cupti& c = cupti();
  check<ErrorKind::Runtime>(running_, OpName("cuda"), "expected a recording of kernels, got none");
  // An error of the device is raised at the program's next wait. The recording ends all the same.
  std::exception_ptr wrong;
  try {
    wait_for_devices();
  } catch (const Error&) {
    wrong = std::current_exception();
  }
  switch_off(c);
  const CUptiResult flushed = c.flush_all(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
  std::vector<DeviceEvent> events;
  {
    const std::lock_guard lock(mutex_);
    running_ = false;
    for (DeviceEvent& e : events_) {
      const auto launch = launches_.find(e.call);
      if (launch == launches_.end()) continue;
      e.queued_ns = launch->second.begin_ns;
      e.thread = launch->second.thread;
    }
    events = std::exchange(events_, {});
    launches_.clear();
  }
  if (wrong) std::rethrow_exception(wrong);
  succeed(flushed, "reading what was recorded");
  std::stable_sort(events.begin(), events.end(), [](const DeviceEvent& a, const DeviceEvent& b) {
    return a.begin_ns < b.begin_ns;
  });
  return events;
}

}  // namespace treadle::cuda
