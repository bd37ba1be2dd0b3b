// Common parts of the bindings of outside devices.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "core/base/device.h"

namespace treadle::python {

// The device of a backend by the name of its type and its index. A negative index means the current
// device. RuntimeError if there is no such device.
Device device_at(const std::string& name, int index);

}  // namespace treadle::python
