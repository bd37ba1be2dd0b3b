// SyncDebugMode: the reaction to a call that makes the host wait for a device without an explicit
// request, for example a call that reads a number of the device. Backends report such calls just
// before they wait.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

namespace treadle {

enum class SyncDebugMode : uint8_t { Default, Warn, Error };

// The mode of the process.
void set_sync_debug_mode(SyncDebugMode mode);
SyncDebugMode sync_debug_mode();

// Reports a call that is about to wait. Depending on the mode it does nothing, shows a warning, or
// raises RuntimeError: "cuda: expected a call that does not wait for the device, got one that
// does".
void report_synchronization(std::string_view device);

// Sets the function that shows the warnings; called once, by the bindings. The function may throw.
void set_sync_warning(void (*show)(const char* text));

}  // namespace treadle
