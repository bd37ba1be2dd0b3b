// Counts of calls on the devices of backends, by operator and by route: the kind of kernel that
// served the call.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <initializer_list>
#include <string_view>
#include <vector>

#include "core/base/device.h"

namespace treadle {

class Operator;
class Tensor;

// How calls of operators with tensors of a backend were answered.
enum class CallRoute : uint8_t { Native, Generated, Decomposed, Fallback };
std::string_view name_of(CallRoute route);
void count_call(DeviceType type, const Operator& op, CallRoute route);
// The calls that a backend's own kernel of an operator answered. It adds them itself, so that
// counting costs an addition; call_counts() has them too. Never destroyed.
struct NativeCalls {
  NativeCalls(DeviceType type, const Operator& op);
  NativeCalls(const NativeCalls&) = delete;
  void add() { calls.fetch_add(1, std::memory_order_relaxed); }
  std::atomic<int64_t> calls{0};
};
// Counts a call made of other operators, where one of its tensors is a backend's.
void count_decomposed(const Operator& op, std::initializer_list<const Tensor*> tensors);
struct CallCount {
  const Operator* op;  // the entry's functional form
  CallRoute route;
  int64_t calls;
};
std::vector<CallCount> call_counts(DeviceType type);
void reset_call_counts(DeviceType type);
}  // namespace treadle
