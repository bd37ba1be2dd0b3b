// Calls are counted at the operator's address, without a lock. The counts of an entry's forms are
// added up when they are read.
//
// SPDX-License-Identifier: Apache-2.0
#include "core/dispatch/call_counts.h"

#include <array>
#include <map>
#include <mutex>
#include <utility>

#include "core/base/address_map.h"
#include "core/base/fork_safe_mutex.h"
#include "core/device/backend.h"
#include "core/dispatch/dispatcher.h"

namespace treadle {
namespace {

constexpr size_t kNumRoutes = static_cast<size_t>(CallRoute::Fallback) + 1;
struct Counts {
  AddressMap<std::array<std::atomic<int64_t>, kNumRoutes>> calls;  // by the operator
  ForkSafeMutex mutex;
  std::vector<std::pair<const Operator*, NativeCalls*>> native;
};
Counts& counts(DeviceType type) {
  static auto* all = new std::array<Counts, kMaxDeviceTypes>;
  return (*all)[static_cast<size_t>(type)];
}

}  // namespace

std::string_view name_of(CallRoute route) {
  switch (route) {
    case CallRoute::Native:
      return "native";
    case CallRoute::Generated:
      return "generated";
    case CallRoute::Decomposed:
      return "decomposed";
    case CallRoute::Fallback:
      return "fallback";
  }
  return "unknown";
}

void count_call(DeviceType type, const Operator& op, CallRoute route) {
  auto& calls =
      counts(type).calls.ensure(&op, [] { return std::array<std::atomic<int64_t>, kNumRoutes>{}; });
  calls[static_cast<size_t>(route)].fetch_add(1, std::memory_order_relaxed);
}

NativeCalls::NativeCalls(DeviceType type, const Operator& op) {
  Counts& c = counts(type);
  const std::lock_guard lock(c.mutex);
  c.native.emplace_back(&op, this);
}

void count_decomposed(const Operator& op, std::initializer_list<const Tensor*> tensors) {
  for (const Tensor* t : tensors) {
    if (!t->defined() || !backend_of(t->device().type)) continue;
    count_call(t->device().type, op, CallRoute::Decomposed);
    return;
  }
}

std::vector<CallCount> call_counts(DeviceType type) {
  Counts& c = counts(type);
  // The forms of an entry count as one.
  std::map<std::pair<std::string_view, CallRoute>, CallCount> by_entry;
  const auto add = [&](const Operator* op, CallRoute route, int64_t calls) {
    const Operator* const first = op->entry().op;
    // A name that was taken back belongs to no operator any more, or to another one.
    if (calls == 0 || Dispatcher::instance().find(first->info().name) != first) return;
    by_entry.try_emplace({first->info().name, route}, CallCount{first, route, 0})
        .first->second.calls += calls;
  };
  c.calls.for_each([&](const void* op, const auto& calls) {
    for (size_t r = 0; r < kNumRoutes; ++r)
      add(static_cast<const Operator*>(op), static_cast<CallRoute>(r),
          calls[r].load(std::memory_order_relaxed));
  });
  {
    const std::lock_guard lock(c.mutex);
    for (const auto& [op, native] : c.native)
      add(op, CallRoute::Native, native->calls.load(std::memory_order_relaxed));
  }
  std::vector<CallCount> all;
  for (const auto& [key, count] : by_entry) all.push_back(count);
  return all;
}

void reset_call_counts(DeviceType type) {
  Counts& c = counts(type);
  const std::lock_guard lock(c.mutex);
  c.calls.for_each([](const void*, auto& calls) {
    for (auto& n : calls) n.store(0, std::memory_order_relaxed);
  });
  for (const auto& [op, native] : c.native) native->calls.store(0, std::memory_order_relaxed);
}

}  // namespace treadle
