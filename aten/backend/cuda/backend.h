// CudaBackend: NVIDIA's devices as a backend of Treadle. It has memory, streams, events and copies
// over the CUDA runtime (calls.h), and kernels generated from operators' expressions.
//
// A stream's id is the address of its handle; 0 is the device's default stream. Storages are plain
// addresses.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <mutex>
#include <set>
#include <vector>

#include "aten/backend/cuda/calls.h"
#include "aten/backend/cuda/graphs.h"
#include "aten/backend/cuda/pinned_memory.h"
#include "core/device/backend.h"

namespace treadle::cuda {

inline cudaStream_t handle_of(uint64_t stream) { return reinterpret_cast<cudaStream_t>(stream); }
// This thread's stream on a device.
inline cudaStream_t stream_on(int device) {
  return handle_of(current_stream({DeviceType::CUDA, static_cast<int8_t>(device)}));
}

// The constant properties of a device.
struct DeviceFacts {
  std::string name;
  int architecture;     // 90: compute capability 9.0
  int processors;       // streaming multiprocessors
  size_t shared_bytes;  // that a block may have
  std::map<std::string, int64_t> properties;
};
const DeviceFacts& device_facts(int device);
// The number of devices: 0 without a driver, or with one that is too old.
int count_devices() noexcept;

class CudaBackend final : public Backend {
 public:
  CudaBackend();

  int device_count() override { return count_; }
  void set_device(int index) override;
  void* allocate(int index, size_t nbytes) override;
  void deallocate(int index, void* storage, size_t nbytes) noexcept override;
  bool copy(MemoryPlace to, MemoryPlace from, size_t nbytes, bool non_blocking) override;
  bool pointwise(const GeneratedPointwise& call) override;
  bool reduce(const GeneratedReduce& call) override;
  void synchronize(int index) override;

  uint64_t create_stream(int index, int priority) override;
  void destroy_stream(int index, uint64_t stream) noexcept override;
  void set_stream(int index, uint64_t stream) override;
  bool stream_idle(int index, uint64_t stream) override;
  void synchronize_stream(int index, uint64_t stream) override;
  void* create_event(int index, bool timing) override;
  void destroy_event(int index, void* event) noexcept override;
  void record_event(int index, void* event, uint64_t stream) override;
  void wait_event(int index, void* event, uint64_t stream) override;
  bool event_complete(void* event) override;
  void synchronize_event(void* event) override;
  double elapsed_milliseconds(void* start, void* end) override;

  void* allocate_pinned(size_t nbytes) override { return pinned_.allocate(nbytes); }
  void deallocate_pinned(void* data, size_t) noexcept override { pinned_.deallocate(data); }

  std::string device_name(int index) override { return device_facts(index).name; }
  Memory memory(int index) override;
  std::map<std::string, int64_t> properties(int index) override;
  CudaGraphs* graphs() override { return &graphs_; }
  DeviceTrace* trace() override;

 private:
  // A stream that a program has released is reused by the next request. Work queued in it before
  // comes first, so no wait is needed.
  struct Stream {
    int device, priority;
    bool in_use;
  };
  void require_stream(int index, uint64_t stream);
  void copy_between(MemoryPlace to, MemoryPlace from, size_t nbytes);

  const int count_;
  PinnedMemory pinned_;
  CudaGraphs graphs_{pinned_};
  std::mutex mutex_;
  std::map<uint64_t, Stream> streams_;
  std::set<std::pair<int, int>> peers_;  // (from, to): direct access was requested
};

}  // namespace treadle::cuda
