// Devices, memory, streams, events and copies.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/backend/cuda/backend.h"

#include <cstdlib>
#include <string_view>

#include "aten/backend/cuda/device_guard.h"
#include "aten/backend/cuda/faults.h"
#include "aten/backend/cuda/jit/generated.h"
#include "aten/backend/cuda/outside_capture.h"
#include "aten/backend/cuda/trace.h"
#include "core/base/error.h"
#include "core/device/sync_debug_mode.h"

namespace treadle::cuda {
namespace {

constexpr uint32_t bit(ScalarType t) { return 1u << static_cast<uint32_t>(t); }

// TREADLE_CUDA_KEEP_MEMORY=0: each tensor has its own allocation, which is returned to the device.
// Tools that check accesses, such as compute-sanitizer, then detect an access outside of a tensor.
bool memory_is_kept() {
  const char* const asked = std::getenv("TREADLE_CUDA_KEEP_MEMORY");
  return !asked || std::string_view(asked) != "0";
}

Backend::Facts facts_of_cuda() {
  Backend::Facts f;
  f.name = f.storage_tag = "cuda";
  f.plugin = "treadle-cuda";
  f.plugin_version = TREADLE_VERSION;
  f.autocast_dtype = ScalarType::Float16;
  f.autocast_dtypes = bit(ScalarType::Float16) | bit(ScalarType::BFloat16);
  f.dtypes = (1u << kNumScalarTypes) - 1;
  f.keeps_memory = memory_is_kept();
  f.addressable = true;
  f.host_visible = false;
  f.generates = true;
  return f;
}

void* address_of(const MemoryPlace& place) {
  return static_cast<char*>(place.storage) + place.offset;
}

cudaEvent_t event_of(void* event) { return static_cast<cudaEvent_t>(event); }

// An event for the time of one use.
class Mark {
 public:
  Mark(int device, cudaStream_t stream) {
    const DeviceGuard guard(device);
    succeed(calls().event_create_with_flags(&event_, cudaEventDisableTiming), "making an event");
    succeed(calls().event_record(event_, stream), "recording an event");
  }
  Mark(const Mark&) = delete;
  ~Mark() {
    if (event_) calls().event_destroy(event_);  // streams that wait for it still do
  }
  void wait_in(cudaStream_t stream) {
    succeed(calls().stream_wait_event(stream, event_, 0), "waiting for another stream");
  }

 private:
  cudaEvent_t event_ = nullptr;
};

// The devices whose memory this one can read by itself, a bit for each.
int64_t peers_of(int device) {
  int count = 0;
  succeed(calls().get_device_count(&count), "counting devices");
  int64_t all = 0;
  for (int other = 0; other < std::min(count, 63); ++other) {
    int can = 0;
    if (other != device)
      succeed(calls().device_can_access_peer(&can, device, other), "looking at a device");
    all |= int64_t{can != 0} << other;
  }
  return all;
}

}  // namespace

int count_devices() noexcept {
  int count = 0;
  if (calls().get_device_count(&count) != cudaSuccess) {
    calls().get_last_error();
    return 0;
  }
  return count > 127 ? 127 : count;
}

const DeviceFacts& device_facts(int device) {
  static auto* mutex = new std::mutex;
  static auto* known = new std::map<int, DeviceFacts>;
  const std::lock_guard lock(*mutex);
  const auto it = known->find(device);
  if (it != known->end()) return it->second;
  cudaDeviceProp p{};
  succeed(calls().get_device_properties(&p, device), "reading a device's properties");
  DeviceFacts facts{p.name, p.major * 10 + p.minor, p.multiProcessorCount, p.sharedMemPerBlock, {}};
  facts.properties = {
      {"total_memory", static_cast<int64_t>(p.totalGlobalMem)},
      {"major", p.major},
      {"minor", p.minor},
      {"multi_processor_count", p.multiProcessorCount},
      {"max_threads_per_multi_processor", p.maxThreadsPerMultiProcessor},
      {"max_threads_per_block", p.maxThreadsPerBlock},
      {"regs_per_multiprocessor", p.regsPerMultiprocessor},
      {"shared_memory_per_block", static_cast<int64_t>(p.sharedMemPerBlock)},
      {"shared_memory_per_block_optin", static_cast<int64_t>(p.sharedMemPerBlockOptin)},
      {"shared_memory_per_multiprocessor", static_cast<int64_t>(p.sharedMemPerMultiprocessor)},
      {"warp_size", p.warpSize},
      {"L2_cache_size", p.l2CacheSize},
      {"is_integrated", p.integrated},
      {"is_multi_gpu_board", p.isMultiGpuBoard},
      {"pci_bus_id", p.pciBusID},
      {"pci_device_id", p.pciDeviceID},
      {"pci_domain_id", p.pciDomainID},
      {"peers", peers_of(device)},
  };
  return known->emplace(device, std::move(facts)).first->second;
}

CudaBackend::CudaBackend() : Backend(facts_of_cuda()), count_(count_devices()) {}

void CudaBackend::set_device(int index) { activate(index); }

void* CudaBackend::allocate(int index, size_t nbytes) {
  const DeviceGuard guard(index);
  const OutsideCapture outside;
  void* data = nullptr;
  const cudaError_t code = calls().malloc(&data, nbytes);
  if (code == cudaErrorMemoryAllocation) {
    calls().get_last_error();
    const Memory m = memory(index);
    fail<ErrorKind::OutOfMemory>(OpName("cuda"), "expected ", nbytes, " bytes of cuda:", index,
                                 ", got none: ", m.free, " of its ", m.total, " bytes are free");
  }
  succeed(code, "allocating memory");
  return data;
}

void CudaBackend::deallocate(int index, void* storage, size_t) noexcept {
  try {
    const DeviceGuard guard(index);
    const OutsideCapture outside;
    calls().free(storage);
  } catch (const std::exception&) {
    // The device is lost, and its memory with it.
  }
}

bool CudaBackend::copy(MemoryPlace to, MemoryPlace from, size_t nbytes, bool non_blocking) {
  if (!to.device.is_cpu() && !from.device.is_cpu() && to.device != from.device) {
    copy_between(to, from, nbytes);
    return true;
  }
  const bool upwards = from.device.is_cpu(), downwards = to.device.is_cpu();
  const int device = downwards ? from.device.index : to.device.index;
  const void* const here = upwards || downwards ? address_of(upwards ? from : to) : nullptr;
  const bool queued = !here || (non_blocking && pinned_.contains(here));
  if (!queued) report_synchronization("cuda");
  const DeviceGuard guard(device);
  const cudaStream_t stream = stream_on(device);
  succeed(calls().memcpy_async(address_of(to), address_of(from), nbytes, cudaMemcpyDefault, stream),
          upwards     ? "copying to a device"
          : downwards ? "copying from a device"
                      : "copying on a device");
  if (!queued)
    synchronize_stream(device, current_stream({DeviceType::CUDA, static_cast<int8_t>(device)}));
  else if (here)
    pinned_.note_use(here, device, stream);
  return true;
}

// In the source's stream, after the work that was queued for the target and before later work.
void CudaBackend::copy_between(MemoryPlace to, MemoryPlace from, size_t nbytes) {
  const int source = from.device.index, target = to.device.index;
  {
    const std::lock_guard lock(mutex_);
    if (peers_.insert({source, target}).second) {
      int possible = 0;
      succeed(calls().device_can_access_peer(&possible, source, target),
              "asking for access between devices");
      if (possible) {
        const DeviceGuard guard(source);
        const cudaError_t code = calls().device_enable_peer_access(target, 0);
        if (code == cudaErrorPeerAccessAlreadyEnabled)
          calls().get_last_error();
        else
          succeed(code, "enabling access between devices");
      }
    }
  }
  const cudaStream_t here = stream_on(source), there = stream_on(target);
  Mark target_ready(target, there);
  {
    const DeviceGuard guard(source);
    target_ready.wait_in(here);
    succeed(
        calls().memcpy_peer_async(address_of(to), target, address_of(from), source, nbytes, here),
        "copying between devices");
  }
  Mark copied(source, here);
  const DeviceGuard guard(target);
  copied.wait_in(there);
}

bool CudaBackend::pointwise(const GeneratedPointwise& call) { return run_pointwise(call); }
bool CudaBackend::reduce(const GeneratedReduce& call) { return run_reduce(call); }

void CudaBackend::synchronize(int index) {
  const DeviceGuard guard(index);
  succeed(calls().device_synchronize(), "waiting for a device");
  faults().raise(index);
}

// ---- streams ----

uint64_t CudaBackend::create_stream(int index, int priority) {
  const DeviceGuard guard(index);
  const std::lock_guard lock(mutex_);
  for (auto& [number, stream] : streams_) {
    if (stream.in_use || stream.device != index || stream.priority != priority) continue;
    stream.in_use = true;
    return number;
  }
  cudaStream_t handle = nullptr;
  succeed(calls().stream_create_with_priority(&handle, cudaStreamNonBlocking, priority),
          "making a stream");
  const auto number = reinterpret_cast<uint64_t>(handle);
  streams_[number] = {index, priority, true};
  return number;
}

void CudaBackend::destroy_stream(int, uint64_t stream) noexcept {
  const std::lock_guard lock(mutex_);
  const auto it = streams_.find(stream);
  if (it != streams_.end()) it->second.in_use = false;
}

void CudaBackend::require_stream(int index, uint64_t stream) {
  if (stream == 0) return;
  const std::lock_guard lock(mutex_);
  const auto it = streams_.find(stream);
  check<ErrorKind::Value>(it != streams_.end() && it->second.device == index, OpName("cuda"),
                          "expected a stream of cuda:", index, ", got the number ", stream);
}

void CudaBackend::set_stream(int index, uint64_t stream) { require_stream(index, stream); }

bool CudaBackend::stream_idle(int index, uint64_t stream) {
  require_stream(index, stream);
  const DeviceGuard guard(index);
  const cudaError_t code = calls().stream_query(handle_of(stream));
  if (code == cudaErrorNotReady) return false;
  succeed(code, "asking a stream");
  return true;
}

void CudaBackend::synchronize_stream(int index, uint64_t stream) {
  require_stream(index, stream);
  const DeviceGuard guard(index);
  succeed(calls().stream_synchronize(handle_of(stream)), "waiting for a stream");
  faults().raise(index);
}

// ---- events ----

void* CudaBackend::create_event(int index, bool timing) {
  const DeviceGuard guard(index);
  cudaEvent_t event = nullptr;
  succeed(
      calls().event_create_with_flags(&event, timing ? cudaEventDefault : cudaEventDisableTiming),
      "making an event");
  return event;
}

void CudaBackend::destroy_event(int, void* event) noexcept {
  if (event) calls().event_destroy(event_of(event));
}

void CudaBackend::record_event(int index, void* event, uint64_t stream) {
  require_stream(index, stream);
  const DeviceGuard guard(index);
  succeed(calls().event_record(event_of(event), handle_of(stream)), "recording an event");
}

void CudaBackend::wait_event(int index, void* event, uint64_t stream) {
  require_stream(index, stream);
  const DeviceGuard guard(index);
  succeed(calls().stream_wait_event(handle_of(stream), event_of(event), 0), "waiting for an event");
}

bool CudaBackend::event_complete(void* event) {
  const cudaError_t code = calls().event_query(event_of(event));
  if (code == cudaErrorNotReady) return false;
  succeed(code, "asking an event");
  return true;
}

void CudaBackend::synchronize_event(void* event) {
  succeed(calls().event_synchronize(event_of(event)), "waiting for an event");
  faults().raise_any();
}

double CudaBackend::elapsed_milliseconds(void* start, void* end) {
  float milliseconds = 0;
  succeed(calls().event_elapsed_time(&milliseconds, event_of(start), event_of(end)),
          "measuring between events");
  return milliseconds;
}

Backend::Memory CudaBackend::memory(int index) {
  const DeviceGuard guard(index);
  Memory m{0, 0};
  succeed(calls().mem_get_info(&m.free, &m.total), "asking for free memory");
  return m;
}

DeviceTrace* CudaBackend::trace() { return &CudaTrace::the(); }

std::map<std::string, int64_t> CudaBackend::properties(int index) {
  return device_facts(index).properties;
}

}  // namespace treadle::cuda
