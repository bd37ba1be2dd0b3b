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
  std::map<std::pair<std::string_view, CallRoute>, int64_t> by_entry;
  c.calls.for_each([&](const void* op, const auto& calls) {
    for (size_t a = 0; a < kNumRoutes; ++a) {
      if (const int64_t n = calls[a].load(std::memory_order_relaxed))
        by_entry[{static_cast<const Operator*>(op)->info().entry, static_cast<CallRoute>(a)}] += n;
    }
  });
  std::vector<CallCount> all;
  for (const auto& [key, calls] : by_entry) {
    if (const Operator* op = Dispatcher::instance().find(key.first))
      all.push_back({op, key.second, calls});
  }
  const std::lock_guard lock(c.mutex);
  for (const auto& [op, native] : c.native) {
    const int64_t calls = native->calls.load(std::memory_order_relaxed);
    const Operator* const entry =
        calls > 0 ? Dispatcher::instance().find(op->info().entry) : nullptr;
    if (entry) all.push_back({entry, CallRoute::Native, calls});
  }
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
