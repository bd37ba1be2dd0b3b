// The backend "opencl": memory, copies, streams and events of OpenCL's devices.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "device.h"

namespace treadle_opencl {

class OpenClBackend final : public treadle::plugin::Backend {
 public:
  int32_t device_count() override;

  // A storage is a cl_mem.
  void* allocate(int32_t index, size_t nbytes) override;
  void deallocate(int32_t index, void* storage, size_t nbytes) override;
  bool copy(treadle_place to, treadle_place from, size_t nbytes, bool non_blocking) override;

  bool pointwise(const treadle_pointwise_call& call) override;
  bool reduce(const treadle_reduce_call& call) override;

  void synchronize(int32_t index) override;

  // A stream is a queue of its own.
  uint64_t stream_create(int32_t index, int32_t priority) override;
  void stream_destroy(int32_t index, uint64_t stream) override;
  void stream_set(int32_t index, uint64_t stream) override;
  bool stream_query(int32_t index, uint64_t stream) override;
  void stream_synchronize(int32_t index, uint64_t stream) override;

  // An event is a marker in a queue.
  void* event_create(int32_t index, bool timing) override;
  void event_destroy(int32_t index, void* event) override;
  void event_record(int32_t index, void* event, uint64_t stream) override;
  void event_wait(int32_t index, void* event, uint64_t stream) override;
  bool event_query(void* event) override;
  void event_synchronize(void* event) override;
  double event_elapsed(void* start, void* end) override;

  void* pinned_allocate(size_t nbytes) override;
  void pinned_deallocate(void* data, size_t nbytes) override;

  std::string device_name(int32_t index) override;
  treadle::plugin::Memory memory_info(int32_t index) override;

 private:
  std::mutex pinned_mutex_;
  std::map<void*, cl_mem> pinned_;
  std::mutex memory_mutex_;
  std::map<int32_t, size_t> used_;  // bytes of each device
};

}  // namespace treadle_opencl
