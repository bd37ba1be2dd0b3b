// The sync debug mode of the process, and the function that shows its warnings.
//
// SPDX-License-Identifier: Apache-2.0
#include "core/device/sync_debug_mode.h"

#include <atomic>

#include "core/base/error.h"

namespace treadle {
namespace {

constinit std::atomic<SyncDebugMode> mode{SyncDebugMode::Default};
constinit std::atomic<void (*)(const char*)> warning{nullptr};

}  // namespace

void set_sync_debug_mode(SyncDebugMode wanted) { mode = wanted; }
SyncDebugMode sync_debug_mode() { return mode; }
void set_sync_warning(void (*show)(const char*)) { warning = show; }

void report_synchronization(std::string_view device) {
  const SyncDebugMode now = mode.load(std::memory_order_relaxed);
  if (now == SyncDebugMode::Default) [[likely]]
    return;
  check<ErrorKind::Runtime>(now != SyncDebugMode::Error, OpName(device),
                            "expected a call that does not wait for the device, got one that "
                            "does");
  if (const auto show = warning.load()) show("called an operation that waits for the device");
}

}  // namespace treadle
