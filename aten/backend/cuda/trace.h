// CudaTrace: kernels, copies and fills as CUPTI records them, with the call that queued each.
//
// CUPTI (the CUDA Profiling Tools Interface) is opened at the first recording. It uses the
// profiler's clock, so that both are on one timeline.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cupti.h>

#include <mutex>
#include <unordered_map>
#include <vector>

#include "core/device/device_trace.h"

namespace treadle::cuda {

// The functions of CUPTI in use, as a table, so that tests can substitute others.
struct Cupti {
  decltype(&cuptiActivityRegisterCallbacks) register_callbacks = nullptr;
  decltype(&cuptiActivityRegisterTimestampCallback) register_timestamp_callback = nullptr;
  decltype(&cuptiSetThreadIdType) set_thread_id_type = nullptr;
  decltype(&cuptiActivityEnable) enable = nullptr;
  decltype(&cuptiActivityDisable) disable = nullptr;
  decltype(&cuptiActivityEnableDriverApi) enable_driver_api = nullptr;
  decltype(&cuptiActivityFlushAll) flush_all = nullptr;
  decltype(&cuptiActivityGetNextRecord) get_next_record = nullptr;
  decltype(&cuptiGetResultString) get_result_string = nullptr;
};
// The library's functions after the first request for a recording, or those that a test has
// substituted.
Cupti& cupti();

class CudaTrace final : public DeviceTrace {
 public:
  static CudaTrace& the();  // CUPTI has one for the process
  void start() override;
  std::vector<DeviceEvent> stop() override;

 private:
  struct Launch {
    int64_t begin_ns;
    uint64_t thread;
  };
  static void give_buffer(uint8_t** buffer, size_t* size, size_t* most_records);
  static void take_buffer(CUcontext, uint32_t, uint8_t* buffer, size_t, size_t valid);
  void add(const CUpti_Activity& record);

  std::mutex mutex_;
  bool registered_ = false, running_ = false;
  std::vector<DeviceEvent> events_;
  std::unordered_map<uint64_t, Launch> launches_;  // by the call's number
};

}  // namespace treadle::cuda
