// Errors on a device. The failing thread leaves a record for the host and ends; the other threads
// continue.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "aten/backend/cuda/device/instructions.h"
#include "aten/backend/cuda/fault_record.h"

namespace treadle {

// The host writes it into the program after loading it. Without a claim no record is written.
__device__ cuda::FaultPlace fault_place;

enum class ErrorKind { Runtime };

struct OpName {
  const char* name;
  explicit constexpr OpName(const char* who) : name(who) {}
};

// The shared headers fail for only one reason: the division of an integer by zero.
template <ErrorKind, class... Parts>
[[noreturn]] inline void fail(OpName who, const Parts&...) {
  cuda::record_fault(fault_place, cuda::kZeroDivisor, who.name);
  cuda::end_thread();
}

}  // namespace treadle
