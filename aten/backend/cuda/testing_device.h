// TestingDevice: CUDA devices simulated on the host, for tests of the backend's calls. Work that is
// queued in a stream runs when a call waits for it, in order, and not before.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "aten/backend/cuda/calls.h"

namespace treadle::cuda {

class TestingDevice {
 public:
  // Replaces the runtime by the simulation, with nothing queued.
  static TestingDevice& start() {
    TestingDevice& d = the();
    d = TestingDevice();
    calls() = simulated();
    return d;
  }
  static TestingDevice& the() {
    static TestingDevice device;
    return device;
  }

  int devices = 2, active = 0;
  size_t used = 0, limit = size_t{1} << 30;
  std::vector<std::string> log;  // calls that tests read
  cudaError_t next_error = cudaSuccess;
  struct Launch {
    dim3 blocks, threads;
    cudaStream_t stream;
  };
  std::vector<Launch> launches;
  std::function<void(void** arguments)> on_launch;
  int loaded = 0;  // programs

  using Work = std::function<bool()>;
  bool idle(cudaStream_t stream) { return queues_[stream].empty(); }
  void push(cudaStream_t stream, Work work) {
    const auto capture = captures_.find(capture_of(stream));
    (capture == captures_.end() ? queues_[stream] : capture->second).push_back(std::move(work));
  }
  cudaStreamCaptureMode capture_mode = cudaStreamCaptureModeGlobal;  // of the thread
  int graphs = 0;                                                    // that are there
  // Runs the queued work of a stream. It waits for events in other streams by running those
  // streams.
  void run(cudaStream_t stream) {
    std::deque<Work>& queue = queues_[stream];
    while (!queue.empty()) {
      if (!queue.front()()) {
        for (auto& [other, work] : queues_)
          if (other != stream && !work.empty() && work.front()()) work.pop_front();
        continue;
      }
      queue.pop_front();
    }
  }
  void run_all() {
    for (auto& [stream, queue] : queues_) run(stream);
  }

 private:
  struct Event {
    int recorded = 0, passed = 0;
    cudaStream_t captured = nullptr;  // the stream of the capture that it was recorded in
  };
  static Event& event(cudaEvent_t e) { return *reinterpret_cast<Event*>(e); }

  static Calls simulated() {
    Calls c;
    c.get_device_count = [](int* count) {
      *count = the().devices;
      return cudaSuccess;
    };
    c.set_device = [](int index) {
      the().active = index;
      return cudaSuccess;
    };
    c.get_device_properties = [](cudaDeviceProp* p, int index) {
      *p = cudaDeviceProp{};
      std::snprintf(p->name, sizeof p->name, "simulated %d", index);
      p->major = 9;
      p->multiProcessorCount = 100;
      return cudaSuccess;
    };
    c.device_synchronize = [] {
      the().run_all();
      return cudaSuccess;
    };
    c.device_can_access_peer = [](int* possible, int, int) {
      *possible = 1;
      return cudaSuccess;
    };
    c.device_enable_peer_access = [](int peer, unsigned) {
      the().log.push_back("enable " + std::to_string(the().active) + "->" + std::to_string(peer));
      return cudaSuccess;
    };
    c.mem_get_info = [](size_t* free, size_t* total) {
      *free = the().limit - the().used;
      *total = the().limit;
      return cudaSuccess;
    };
    c.malloc = [](void** data, size_t nbytes) {
      if (the().refused_by_captures()) return cudaErrorStreamCaptureUnsupported;
      if (the().used + nbytes > the().limit) return cudaErrorMemoryAllocation;
      the().used += nbytes;
      *data = std::malloc(nbytes);
      return cudaSuccess;
    };
    c.free = [](void* data) {
      if (the().refused_by_captures()) return cudaErrorStreamCaptureUnsupported;
      std::free(data);
      return cudaSuccess;
    };
    c.host_alloc = [](void** data, size_t nbytes, unsigned) {
      the().log.push_back("host_alloc " + std::to_string(nbytes));
      *data = std::malloc(nbytes);
      return cudaSuccess;
    };
    c.free_host = c.free;
    c.host_get_device_pointer = [](void** there, void* here, unsigned) {
      *there = here;
      return cudaSuccess;
    };
    c.memcpy_async = [](void* to, const void* from, size_t nbytes, cudaMemcpyKind,
                        cudaStream_t stream) {
      if (const cudaError_t error = std::exchange(the().next_error, cudaSuccess)) return error;
      the().push(stream, [=] {
        std::memcpy(to, from, nbytes);
        return true;
      });
      return cudaSuccess;
    };
    c.memcpy_peer_async = [](void* to, int target, const void* from, int source, size_t nbytes,
                             cudaStream_t stream) {
      the().log.push_back("peer " + std::to_string(source) + "->" + std::to_string(target));
      return calls().memcpy_async(to, from, nbytes, cudaMemcpyDefault, stream);
    };
    c.memset_async = [](void* to, int value, size_t nbytes, cudaStream_t stream) {
      the().push(stream, [=] {
        std::memset(to, value, nbytes);
        return true;
      });
      return cudaSuccess;
    };
    c.stream_create_with_priority = [](cudaStream_t* stream, unsigned, int) {
      *stream = reinterpret_cast<cudaStream_t>(std::malloc(1));
      the().log.push_back("stream on " + std::to_string(the().active));
      return cudaSuccess;
    };
    c.stream_query = [](cudaStream_t stream) {
      return the().idle(stream) ? cudaSuccess : cudaErrorNotReady;
    };
    c.stream_synchronize = [](cudaStream_t stream) {
      if (the().captures_.count(stream)) {
        the().next_error = cudaErrorStreamCaptureInvalidated;
        return cudaErrorStreamCaptureUnsupported;
      }
      the().run(stream);
      return cudaSuccess;
    };
    c.stream_wait_event = [](cudaStream_t stream, cudaEvent_t e, unsigned) {
      const int mark = event(e).recorded;
      // A stream that waits for captured work is captured from then on.
      if (event(e).captured && !the().captures_.count(stream))
        the().joined_[stream] = event(e).captured;
      the().push(stream, [=] { return event(e).passed >= mark; });
      return cudaSuccess;
    };
    c.event_create_with_flags = [](cudaEvent_t* e, unsigned) {
      *e = reinterpret_cast<cudaEvent_t>(new Event);
      return cudaSuccess;
    };
    c.event_destroy = [](cudaEvent_t) { return cudaSuccess; };  // kept: waits may be queued
    c.event_record = [](cudaEvent_t e, cudaStream_t stream) {
      const int mark = ++event(e).recorded;
      event(e).captured = the().capture_of(stream);
      the().push(stream, [=] {
        event(e).passed = mark;
        return true;
      });
      return cudaSuccess;
    };
    c.event_query = [](cudaEvent_t e) {
      return event(e).passed == event(e).recorded ? cudaSuccess : cudaErrorNotReady;
    };
    c.event_synchronize = [](cudaEvent_t e) {
      for (auto& [stream, queue] : the().queues_)
        if (event(e).passed != event(e).recorded) the().run(stream);
      return cudaSuccess;
    };
    c.event_elapsed_time = [](float* ms, cudaEvent_t, cudaEvent_t) {
      *ms = 2.5f;
      return cudaSuccess;
    };
    c.library_load_data = [](cudaLibrary_t* library, const void*, cudaJitOption*, void**, unsigned,
                             cudaLibraryOption*, void**, unsigned) {
      ++the().loaded;
      *library = reinterpret_cast<cudaLibrary_t>(std::malloc(1));
      return cudaSuccess;
    };
    c.library_get_kernel = [](cudaKernel_t* kernel, cudaLibrary_t library, const char*) {
      *kernel = reinterpret_cast<cudaKernel_t>(library);
      return cudaSuccess;
    };
    c.library_get_global = [](void**, size_t*, cudaLibrary_t, const char*) {
      return cudaErrorSymbolNotFound;
    };
    c.launch_kernel = [](const void*, dim3 blocks, dim3 threads, void** arguments, size_t,
                         cudaStream_t stream) {
      the().launches.push_back({blocks, threads, stream});
      if (the().on_launch) the().on_launch(arguments);
      return cudaSuccess;
    };
    c.stream_begin_capture = [](cudaStream_t stream, cudaStreamCaptureMode) {
      the().captures_[stream];
      the().capture_numbers_[stream] = ++the().last_capture_;
      return cudaSuccess;
    };
    c.stream_end_capture = [](cudaStream_t stream, cudaGraph_t* graph) {
      auto captured = the().captures_.extract(stream);
      std::erase_if(the().joined_, [=](const auto& join) { return join.second == stream; });
      *graph = nullptr;
      if (const cudaError_t error = std::exchange(the().next_error, cudaSuccess)) return error;
      ++the().graphs;
      *graph = reinterpret_cast<cudaGraph_t>(new std::deque<Work>(std::move(captured.mapped())));
      return cudaSuccess;
    };
    c.stream_get_capture_info = [](cudaStream_t stream, cudaStreamCaptureStatus* status,
                                   unsigned long long* number, cudaGraph_t*,
                                   const cudaGraphNode_t**, const cudaGraphEdgeData**, size_t*) {
      const cudaStream_t begun = the().capture_of(stream);
      *status = begun ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
      if (begun) *number = the().capture_numbers_[begun];
      return cudaSuccess;
    };
    c.thread_exchange_stream_capture_mode = [](cudaStreamCaptureMode* mode) {
      std::swap(*mode, the().capture_mode);
      return cudaSuccess;
    };
    c.graph_instantiate = [](cudaGraphExec_t* executable, cudaGraph_t graph, unsigned long long) {
      *executable = reinterpret_cast<cudaGraphExec_t>(graph);
      return cudaSuccess;
    };
    c.graph_launch = [](cudaGraphExec_t executable, cudaStream_t stream) {
      for (const Work& work : *reinterpret_cast<std::deque<Work>*>(executable))
        the().push(stream, work);
      return cudaSuccess;
    };
    c.graph_exec_destroy = [](cudaGraphExec_t) { return cudaSuccess; };
    c.graph_destroy = [](cudaGraph_t graph) {
      --the().graphs;
      delete reinterpret_cast<std::deque<Work>*>(graph);
      return cudaSuccess;
    };
    c.graph_debug_dot_print = [](cudaGraph_t, const char* path, unsigned) {
      the().log.push_back("dot " + std::string(path));
      return cudaSuccess;
    };
    c.get_last_error = [] { return cudaSuccess; };
    return c;
  }

  bool refused_by_captures() const {
    return !captures_.empty() && capture_mode != cudaStreamCaptureModeRelaxed;
  }

  // The stream of the capture that the stream takes part in; null for none.
  cudaStream_t capture_of(cudaStream_t stream) const {
    if (captures_.count(stream)) return stream;
    const auto joined = joined_.find(stream);
    return joined == joined_.end() ? nullptr : joined->second;
  }

  std::map<cudaStream_t, std::deque<Work>> queues_, captures_;
  std::map<cudaStream_t, cudaStream_t> joined_;  // to the stream of the capture
  std::map<cudaStream_t, unsigned long long> capture_numbers_;
  unsigned long long last_capture_ = 0;
};

}  // namespace treadle::cuda
