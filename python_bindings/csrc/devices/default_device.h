// The device of a new tensor where the call names none. Each thread has its own choice, made by
// set_default_device() and `with device("meta"):`. Only functions that Python calls use it. Tensors
// that operators make inside are on the device of their arguments.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "core/base/device.h"

namespace treadle::python {

// Nothing: the CPU.
std::optional<Device>& default_device();

}  // namespace treadle::python
