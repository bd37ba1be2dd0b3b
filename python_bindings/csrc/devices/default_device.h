// The device of a new tensor where none is given: each thread's own choice, made by
// set_default_device() and `with device("meta"):`. Only functions that Python calls look at it;
// what operators make inside goes where their arguments are.
#pragma once

#include <optional>

#include "core/base/device.h"

namespace treadle::python {

// Nothing: the CPU.
std::optional<Device>& default_device();

}  // namespace treadle::python
