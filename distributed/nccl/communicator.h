// A communicator of NCCL with a stream of its own, for one thread at a time; any other thread may
// abort it. NCCL's functions do not block: what they began is asked about until it is done, or the
// time is up.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <mutex>

#include "core/device/backend.h"
#include "distributed/nccl/library.h"

namespace treadle::distributed {

using Deadline = std::chrono::steady_clock::time_point;

// The calls of a thread are for a device meanwhile.
class OnDevice {
 public:
  explicit OnDevice(int index) : before_(current_device(DeviceType::CUDA)) {
    set_current_device(DeviceType::CUDA, index);
  }
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;
  ~OnDevice() { set_current_device(DeviceType::CUDA, before_); }

 private:
  int before_;
};

// Marks the work that this thread has queued in a stream.
std::shared_ptr<void> event_in(int device, uint64_t stream);
// Waits for the work that an event marks, if it is one. `check` throws to end the wait.
void wait_for(const std::shared_ptr<void>& event, const std::function<void()>& check);

class Communicator {
 public:
  // All ranks come here with the id that one of them made.
  Communicator(int device, int rank, int size, const NcclId& id);
  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  // Returns when NCCL has connected the ranks. Not a part of the constructor, so that it can be
  // aborted.
  void connect(Deadline end);
  using Calls = std::function<void(NcclComm comm, void* stream)>;
  // Calls functions of NCCL as one group, behind the work that `after` marks, and waits until the
  // device has done them.
  void run(const std::shared_ptr<void>& after, Deadline end, const Calls& calls);
  // A sum of values times a factor, for calls of run(). The type is a floating one.
  NcclOp premultiplied_sum(double factor, NcclType type);
  void release(NcclOp op);
  void abort();

 private:
  // Calls `is_done` with NCCL's state until it says so. Throws Failure for an error of NCCL, after
  // an abort, and at the end.
  void ask(Deadline end, const std::function<bool(NcclResult)>& is_done);
  NcclComm open();

  const int device_, rank_, size_;
  const NcclId id_;
  std::mutex mutex_;
  NcclComm comm_ = nullptr;
  bool is_aborted_ = false;
  uint64_t stream_;
};

}  // namespace treadle::distributed
