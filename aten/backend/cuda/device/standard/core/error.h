// Errors on a device. The failing thread leaves a record for the host and ends; the other threads
// continue.
#pragma once

#include "aten/backend/cuda/device/instructions.h"
#include "aten/backend/cuda/fault_record.h"

namespace treadle {

// The host writes it into the program when it has loaded it; without a claim nothing is left.
__device__ cuda::FaultPlace fault_place;

enum class ErrorKind { Runtime };

// The shared headers fail for one reason: an integer is divided by zero.
template <ErrorKind, class... Parts>
[[noreturn]] inline void fail(const char* who, const Parts&...) {
  cuda::record_fault(fault_place, cuda::kZeroDivisor, who);
  cuda::end_thread();
}

}  // namespace treadle
