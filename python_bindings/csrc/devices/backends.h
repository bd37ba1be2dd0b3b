// Common parts of the bindings of outside devices.
#pragma once

#include <string>

#include "core/base/device.h"

namespace treadle::python {

// The device of a backend by the name of its kind and its number; a negative one: the current
// device. RuntimeError for one that is not there.
Device device_at(const std::string& name, int index);

}  // namespace treadle::python
