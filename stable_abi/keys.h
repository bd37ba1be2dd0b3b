// The meaning of dispatch keys: the table that Python keeps, which is told to the library of the
// ABI before an extension is loaded.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "core/base/device.h"

namespace treadle::stable_abi {

enum class KeyKind : uint8_t {
  Device,     // the kernel for a device
  Composite,  // the kernel for all devices, made of operators with derivatives
  Default,    // the kernel for devices without one of their own
  Autograd,
  Autocast,
  Elsewhere,  // for tensors that there are none of
};
struct Key {
  KeyKind kind;
  DeviceType device;
  bool every_device;  // no device is named
};

// RuntimeError for an unknown key.
Key read_key(const std::string& name);

}  // namespace treadle::stable_abi

// Lines of "key kind device", with "*" for no device.
extern "C" __attribute__((visibility("default"))) void treadle_stable_abi_set_keys(
    const char* lines);
