// SyncDebugMode: the reaction to a call that makes the host wait for a device without an explicit
// request, for example a call that reads a number of the device. Backends report such calls just
// before they wait.
#pragma once

#include <cstdint>
#include <string_view>

namespace treadle {

enum class SyncDebugMode : uint8_t { Default, Warn, Error };

// Of the process.
void set_sync_debug_mode(SyncDebugMode mode);
SyncDebugMode sync_debug_mode();

// Nothing, a warning, or RuntimeError: "cuda: expected a call that does not wait for the device,
// got one that does".
void report_synchronization(std::string_view device);

// What shows the warnings, set once, by the bindings. It may throw.
void set_sync_warning(void (*show)(const char* text));

}  // namespace treadle
