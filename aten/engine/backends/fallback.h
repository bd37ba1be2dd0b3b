// The fallback of backends: an operator without a kernel on a device runs on the CPU.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/dispatch/operator.h"

namespace treadle {

// A boxed kernel for any operator. It copies the tensors to the CPU, calls the operator there, and
// copies the written tensors back. Random numbers come from the device's generator.
// NotImplementedError if the fallback is disabled for the device.
void cpu_fallback(const Operator& op, Stack& stack);
// The first device other than the CPU among the tensors of a stack; the CPU if there is none.
Device device_in(const Stack& stack);

}  // namespace treadle
