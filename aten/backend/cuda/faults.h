// Faults: the fault record of each device, and the errors made from it.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "aten/backend/cuda/fault_record.h"

namespace treadle::cuda {

class Faults {
 public:
  // The fault record for kernels on a device, made at the first call.
  FaultPlace place(int device);
  // Raises the error that a kernel on the device has recorded, once. Call it where the host has
  // waited.
  void raise(int device);
  void raise_any();

 private:
  struct Device {
    FaultPlace place{nullptr, nullptr};
    FaultRecord* seen = nullptr;  // the record at the host's own address
  };
  bool take(int device, FaultRecord& found);

  std::mutex mutex_;
  std::vector<Device> devices_;
};

Faults& faults();

}  // namespace treadle::cuda
