// The functions of the CUDA runtime that the backend calls, by their names, for emulated devices.
//
// SPDX-License-Identifier: Apache-2.0
#include "tests/cuda_emulator/device.h"

#include <sys/mman.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <exception>
#include <map>
#include <mutex>
#include <utility>

#include "core/base/layers.h"
#include "tests/cuda_emulator/threads.h"

namespace treadle::cuda::emulator {
namespace {

constexpr size_t kPage = 4096;
constexpr size_t kMemory = size_t{4} << 30;  // of a device

// TREADLE_EMULATOR_FENCES=1: an allocation ends where a page does, and the next page is nobody's.
bool fenced() {
  static const bool fenced = std::getenv("TREADLE_EMULATOR_FENCES") != nullptr;
  return fenced;
}

struct Allocation {
  char* pages;
  size_t page_bytes, bytes;
  int device;
};

using Work = std::function<bool()>;  // false: has to wait for another stream

struct Event {
  int recorded = 0, passed = 0;
  std::chrono::steady_clock::time_point at{};
  const void* captured = nullptr;  // the capture that it was recorded in
};
struct Graph {
  std::deque<Work> work;
};
struct Capture {
  Graph graph;
  unsigned long long number;
};

struct Devices {
  std::recursive_mutex gate;
  std::map<char*, Allocation> allocations;  // by address
  size_t used[kDevices] = {};
  int open = 0;  // how many need the memory open
  std::map<std::pair<int, cudaStream_t>, std::deque<Work>> queues;
  std::map<cudaStream_t, Capture> captures;
  std::map<cudaStream_t, cudaStream_t> joined;  // to the stream of the capture
  std::map<cudaStream_t, int> streams;          // that were made, with their device
  unsigned long long last_capture = 0;
  cudaError_t kept = cudaSuccess;  // of work that was queued
};
Devices& the() {
  static auto* devices = new Devices;
  return *devices;
}
using Lock = std::lock_guard<std::recursive_mutex>;

thread_local int active = 0;
thread_local cudaError_t last_error = cudaSuccess;
thread_local cudaStreamCaptureMode capture_mode = cudaStreamCaptureModeGlobal;

cudaError_t result(cudaError_t code) {
  if (code != cudaSuccess) last_error = code;
  return code;
}

// While devices work. The work that operators of the CPU do for them is not the program's.
class Open {
 public:
  Open() : excluded_(std::exchange(layer_state().excluded, static_cast<LayerMask>(~0u))) {
    if (the().open++ == 0) protect(PROT_READ | PROT_WRITE);
  }
  ~Open() {
    if (--the().open == 0) protect(PROT_NONE);
    layer_state().excluded = excluded_;
  }
  Open(const Open&) = delete;

 private:
  const LayerMask excluded_;
  static void protect(int how) {
    for (auto& [address, a] : the().allocations) mprotect(a.pages, a.page_bytes, how);
  }
};

std::pair<int, cudaStream_t> queue_of(cudaStream_t stream) {
  const auto made = the().streams.find(stream);
  return {made == the().streams.end() ? active : made->second, stream};
}

cudaStream_t capture_of(cudaStream_t stream) {
  if (the().captures.count(stream)) return stream;
  const auto joined = the().joined.find(stream);
  return joined == the().joined.end() ? nullptr : joined->second;
}

void push(cudaStream_t stream, Work work) {
  const auto capture = the().captures.find(capture_of(stream));
  (capture == the().captures.end() ? the().queues[queue_of(stream)] : capture->second.graph.work)
      .push_back(std::move(work));
}

bool step(std::deque<Work>& queue) {
  bool done = true;
  try {
    done = queue.front()();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "emulator: %s\n", error.what());
    the().kept = cudaErrorLaunchFailure;
  }
  if (done) queue.pop_front();
  return done;
}

// Does what is queued, in other streams what it waits for.
void run(std::deque<Work>& queue) {
  const Open open;
  while (!queue.empty()) {
    if (step(queue)) continue;
    for (auto& [key, other] : the().queues)
      if (&other != &queue && !other.empty()) step(other);
  }
}
cudaError_t waited() { return result(std::exchange(the().kept, cudaSuccess)); }
void run_all() {
  for (auto& [key, queue] : the().queues) run(queue);
}

bool refused_by_captures() {
  return !the().captures.empty() && capture_mode != cudaStreamCaptureModeRelaxed;
}

bool on_a_device(const void* address) {
  auto it = the().allocations.upper_bound(static_cast<char*>(const_cast<void*>(address)));
  if (it == the().allocations.begin()) return false;
  --it;
  return address < it->first + it->second.bytes;
}
Activity copying(const void* to, const void* from, size_t bytes) {
  const Lock lock(the().gate);
  Activity a;
  a.kind = CUPTI_ACTIVITY_KIND_MEMCPY;
  a.bytes = bytes;
  a.copy = !on_a_device(from) ? CUPTI_ACTIVITY_MEMCPY_KIND_HTOD
           : on_a_device(to)  ? CUPTI_ACTIVITY_MEMCPY_KIND_DTOD
                              : CUPTI_ACTIVITY_MEMCPY_KIND_DTOH;
  return a;
}

Event& event(cudaEvent_t e) { return *reinterpret_cast<Event*>(e); }

}  // namespace

void queue(cudaStream_t stream, std::function<void()> work, const Activity& activity) {
  const Lock lock(the().gate);
  push(stream, [work = recorded(activity, queue_of(stream).first, stream, std::move(work))] {
    work();
    return true;
  });
}

void at_once(cudaStream_t stream, const std::function<void()>& work) {
  const Lock lock(the().gate);
  run(the().queues[queue_of(stream)]);
  const Open open;
  recorded({}, queue_of(stream).first, stream, work)();
}

void queue_kernel(const char* name, dim3 blocks, dim3 threads, size_t shared, cudaStream_t stream,
                  std::function<void()> thread) {
  Activity activity;
  activity.name = name;
  queue(
      stream, [=] { run_grid(blocks, threads, shared, thread); }, activity);
}

}  // namespace treadle::cuda::emulator

namespace e = treadle::cuda::emulator;
using e::the;

extern "C" {

cudaError_t cudaGetDeviceCount(int* count) {
  *count = e::kDevices;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int index) {
  if (index < 0 || index >= e::kDevices) return e::result(cudaErrorInvalidDevice);
  e::active = index;
  return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* p, int index) {
  *p = cudaDeviceProp{};
  std::snprintf(p->name, sizeof p->name, "Emulated device %d", index);
  p->totalGlobalMem = e::kMemory;
  p->major = 9;
  p->multiProcessorCount = 4;
  p->maxThreadsPerMultiProcessor = 2048;
  p->maxThreadsPerBlock = 1024;
  p->regsPerMultiprocessor = 65536;
  p->sharedMemPerBlock = e::kMaxShared;
  p->sharedMemPerBlockOptin = 227 << 10;
  p->sharedMemPerMultiprocessor = 228 << 10;
  p->warpSize = 32;
  p->l2CacheSize = 50 << 20;
  return cudaSuccess;
}
cudaError_t cudaDeviceSynchronize() {
  const e::Lock lock(the().gate);
  e::run_all();
  return e::waited();
}
cudaError_t cudaDeviceCanAccessPeer(int* possible, int, int) {
  *possible = 1;
  return cudaSuccess;
}
cudaError_t cudaDeviceEnablePeerAccess(int, unsigned) { return cudaSuccess; }
cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  const e::Lock lock(the().gate);
  *free = e::kMemory - the().used[e::active];
  *total = e::kMemory;
  return cudaSuccess;
}
cudaError_t cudaMalloc(void** data, size_t nbytes) {
  const e::Lock lock(the().gate);
  *data = nullptr;
  if (e::refused_by_captures()) return e::result(cudaErrorStreamCaptureUnsupported);
  if (nbytes > e::kMemory - the().used[e::active]) return e::result(cudaErrorMemoryAllocation);
  const size_t pages = (nbytes + e::kPage - 1) / e::kPage * e::kPage;
  void* const made = mmap(nullptr, pages + e::kPage, PROT_NONE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (made == MAP_FAILED) return e::result(cudaErrorMemoryAllocation);
  char* const first = static_cast<char*>(made);
  mprotect(first, pages, PROT_READ | PROT_WRITE);
  if (nbytes <= size_t{64} << 20) std::memset(first, e::kFresh, pages);
  if (!the().open) mprotect(first, pages, PROT_NONE);
  char* const address = e::fenced() ? first + (pages - (nbytes + 15) / 16 * 16) : first;
  the().allocations[address] = {first, pages, nbytes, e::active};
  the().used[e::active] += nbytes;
  *data = address;
  return cudaSuccess;
}
cudaError_t cudaFree(void* data) {
  const e::Lock lock(the().gate);
  if (e::refused_by_captures()) return e::result(cudaErrorStreamCaptureUnsupported);
  const auto it = the().allocations.find(static_cast<char*>(data));
  if (it == the().allocations.end()) return data ? e::result(cudaErrorInvalidValue) : cudaSuccess;
  e::run_all();  // it may still be used
  the().used[it->second.device] -= it->second.bytes;
  munmap(it->second.pages, it->second.page_bytes + e::kPage);
  the().allocations.erase(it);
  return cudaSuccess;
}
cudaError_t cudaHostAlloc(void** data, size_t nbytes, unsigned) {
  *data = std::malloc(nbytes ? nbytes : 1);
  return *data ? cudaSuccess : e::result(cudaErrorMemoryAllocation);
}
cudaError_t cudaFreeHost(void* data) {
  const e::Lock lock(the().gate);
  e::run_all();
  std::free(data);
  return cudaSuccess;
}
cudaError_t cudaHostGetDevicePointer(void** there, void* here, unsigned) {
  *there = here;
  return cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t nbytes, cudaMemcpyKind,
                            cudaStream_t stream) {
  e::queue(
      stream, [=] { std::memmove(to, from, nbytes); }, e::copying(to, from, nbytes));
  return cudaSuccess;
}
cudaError_t cudaMemcpy2DAsync(void* to, size_t to_pitch, const void* from, size_t from_pitch,
                              size_t width, size_t height, cudaMemcpyKind, cudaStream_t stream) {
  if (width > to_pitch || width > from_pitch) return e::result(cudaErrorInvalidValue);
  e::queue(
      stream,
      [=] {
        for (size_t row = 0; row < height; ++row)
          std::memcpy(static_cast<char*>(to) + row * to_pitch,
                      static_cast<const char*>(from) + row * from_pitch, width);
      },
      e::copying(to, from, width * height));
  return cudaSuccess;
}
cudaError_t cudaMemcpyPeerAsync(void* to, int, const void* from, int, size_t nbytes,
                                cudaStream_t stream) {
  e::Activity activity = e::copying(to, from, nbytes);
  activity.kind = CUPTI_ACTIVITY_KIND_MEMCPY2;
  activity.copy = CUPTI_ACTIVITY_MEMCPY_KIND_PTOP;
  e::queue(
      stream, [=] { std::memmove(to, from, nbytes); }, activity);
  return cudaSuccess;
}
cudaError_t cudaMemsetAsync(void* to, int value, size_t nbytes, cudaStream_t stream) {
  e::Activity activity;
  activity.kind = CUPTI_ACTIVITY_KIND_MEMSET;
  activity.bytes = nbytes;
  e::queue(
      stream, [=] { std::memset(to, value, nbytes); }, activity);
  return cudaSuccess;
}
cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned, int) {
  const e::Lock lock(the().gate);
  *stream = reinterpret_cast<cudaStream_t>(std::malloc(1));
  the().streams[*stream] = e::active;
  return cudaSuccess;
}
cudaError_t cudaStreamQuery(cudaStream_t stream) {
  const e::Lock lock(the().gate);
  return the().queues[e::queue_of(stream)].empty() ? cudaSuccess : cudaErrorNotReady;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  const e::Lock lock(the().gate);
  if (e::capture_of(stream)) return e::result(cudaErrorStreamCaptureUnsupported);
  e::run(the().queues[e::queue_of(stream)]);
  return e::waited();
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t handle, unsigned) {
  const e::Lock lock(the().gate);
  e::Event& event = e::event(handle);
  const int mark = event.recorded;
  // A stream that waits for something captured is captured from then on.
  if (event.captured && !the().captures.count(stream))
    the().joined[stream] = static_cast<cudaStream_t>(const_cast<void*>(event.captured));
  e::push(stream, [&event, mark] { return event.passed >= mark; });
  return cudaSuccess;
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* handle, unsigned) {
  *handle = reinterpret_cast<cudaEvent_t>(new e::Event);
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t) { return cudaSuccess; }  // kept: waits may be queued
cudaError_t cudaEventRecord(cudaEvent_t handle, cudaStream_t stream) {
  const e::Lock lock(the().gate);
  e::Event& event = e::event(handle);
  const int mark = ++event.recorded;
  event.captured = e::capture_of(stream);
  e::push(stream, [&event, mark] {
    event.passed = mark;
    event.at = std::chrono::steady_clock::now();
    return true;
  });
  return cudaSuccess;
}
cudaError_t cudaEventQuery(cudaEvent_t handle) {
  const e::Lock lock(the().gate);
  const e::Event& event = e::event(handle);
  return event.passed == event.recorded ? cudaSuccess : cudaErrorNotReady;
}
cudaError_t cudaEventSynchronize(cudaEvent_t handle) {
  const e::Lock lock(the().gate);
  const e::Event& event = e::event(handle);
  for (auto& [key, queue] : the().queues)
    if (event.passed != event.recorded) e::run(queue);
  return e::waited();
}
cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t from, cudaEvent_t to) {
  const std::chrono::duration<float, std::milli> passed = e::event(to).at - e::event(from).at;
  *ms = passed.count();
  return cudaSuccess;
}
cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
  const e::Lock lock(the().gate);
  the().captures[stream].number = ++the().last_capture;
  return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  const e::Lock lock(the().gate);
  auto captured = the().captures.extract(stream);
  std::erase_if(the().joined, [=](const auto& join) { return join.second == stream; });
  *graph = reinterpret_cast<cudaGraph_t>(new e::Graph(std::move(captured.mapped().graph)));
  return cudaSuccess;
}
cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  const e::Lock lock(the().gate);
  *status = e::capture_of(stream) ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
  return cudaSuccess;
}
cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, cudaStreamCaptureStatus* status,
                                     unsigned long long* number, cudaGraph_t*,
                                     const cudaGraphNode_t**, const cudaGraphEdgeData**, size_t*) {
  const e::Lock lock(the().gate);
  const cudaStream_t begun = e::capture_of(stream);
  *status = begun ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
  if (begun) *number = the().captures[begun].number;
  return cudaSuccess;
}
cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  std::swap(*mode, e::capture_mode);
  return cudaSuccess;
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph,
                                 unsigned long long) {
  *executable =
      reinterpret_cast<cudaGraphExec_t>(new e::Graph(*reinterpret_cast<const e::Graph*>(graph)));
  return cudaSuccess;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream) {
  const e::Lock lock(the().gate);
  for (const e::Work& work : reinterpret_cast<const e::Graph*>(executable)->work)
    e::push(stream, work);
  return cudaSuccess;
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
  const e::Lock lock(the().gate);
  delete reinterpret_cast<e::Graph*>(executable);
  return cudaSuccess;
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete reinterpret_cast<e::Graph*>(graph);
  return cudaSuccess;
}
cudaError_t cudaGraphDebugDotPrint(cudaGraph_t graph, const char* path, unsigned) {
  std::FILE* const file = std::fopen(path, "w");
  if (!file) return e::result(cudaErrorOperatingSystem);
  std::fprintf(file, "digraph { // %zu nodes\n}\n",
               reinterpret_cast<const e::Graph*>(graph)->work.size());
  std::fclose(file);
  return cudaSuccess;
}
cudaError_t cudaGetSymbolAddress(void** address, const void* symbol) {
  *address = const_cast<void*>(symbol);
  return cudaSuccess;
}
cudaError_t cudaGetLastError() { return std::exchange(e::last_error, cudaSuccess); }
const char* cudaGetErrorName(cudaError_t code) {
  switch (code) {
    case cudaErrorMemoryAllocation:
      return "cudaErrorMemoryAllocation";
    case cudaErrorInvalidValue:
      return "cudaErrorInvalidValue";
    case cudaErrorInvalidDevice:
      return "cudaErrorInvalidDevice";
    case cudaErrorLaunchFailure:
      return "cudaErrorLaunchFailure";
    case cudaErrorStreamCaptureUnsupported:
      return "cudaErrorStreamCaptureUnsupported";
    default:
      return "cudaError";
  }
}
const char* cudaGetErrorString(cudaError_t code) { return cudaGetErrorName(code); }

}  // extern "C"
