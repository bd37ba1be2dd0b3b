// The mode of the process, and where its warnings go.
#include "core/device/sync_debug_mode.h"

#include <atomic>

#include "core/base/error.h"

namespace treadle {
namespace {

constinit std::atomic<Waits> mode{Waits::Silent};
constinit std::atomic<void (*)(const char*)> warning{nullptr};

}  // namespace

void set_waits(Waits wanted) { mode = wanted; }
Waits waits() { return mode; }
void set_wait_warning(void (*show)(const char*)) { warning = show; }

void about_to_wait(std::string_view device) {
  const Waits now = mode.load(std::memory_order_relaxed);
  if (now == Waits::Silent) [[likely]]
    return;
  check<ErrorKind::Runtime>(now != Waits::Refused, device,
                            ": expected a call that does not wait for the device, got one that "
                            "does");
  if (const auto show = warning.load()) show("called an operation that waits for the device");
}

}  // namespace treadle
