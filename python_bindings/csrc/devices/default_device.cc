// See default_device.h.
#include "python_bindings/csrc/devices/default_device.h"

namespace treadle::python {

std::optional<Device>& default_device() {
  thread_local std::optional<Device> device;
  return device;
}

}  // namespace treadle::python
