// Kernels of extensions as boxed kernels of the dispatcher.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "core/dispatch/dynamic_operator.h"
#include "stable_abi/boundary.h"
#include "stable_abi/keys.h"

namespace treadle::stable_abi {

using StableKernel = void (*)(StableIValue* stack, uint64_t inputs, uint64_t outputs);

// Makes the kernel one of the operator for what the key means, and gives the function that takes it
// back. RuntimeError where the operator has one, or cannot have one.
std::function<void()> register_kernel(Operator& op, const Key& key, StableKernel kernel,
                                      const KernelOrigin& place);

}  // namespace treadle::stable_abi
