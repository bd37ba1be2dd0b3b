// See default_device.h.
//
// SPDX-License-Identifier: Apache-2.0
#include "python_bindings/csrc/devices/default_device.h"

namespace treadle::python {

std::optional<Device>& default_device() {
  thread_local std::optional<Device> device;
  return device;
}

}  // namespace treadle::python
