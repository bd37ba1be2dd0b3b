// The fallback of backends: an operator without a kernel on a device runs on the CPU.
#pragma once

#include "core/dispatch/operator.h"

namespace treadle {

// A boxed kernel for any operator: copies its tensors to the CPU, calls the operator there, and
// copies what it wrote back. Random numbers come from the device's generator.
// NotImplementedError where the fallback is switched off for the device.
void cpu_fallback(const Operator& op, Stack& stack);
// The first device other than the CPU among the tensors of a stack; the CPU where there is none.
Device device_in(const Stack& stack);

}  // namespace treadle
