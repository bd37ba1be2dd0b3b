// Calls are counted at the operator's address, without a lock; entries are joined when somebody
// asks.
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

constexpr size_t kNumAnswers = static_cast<size_t>(Answer::Fallback) + 1;
struct Counts {
  AddressMap<std::array<std::atomic<int64_t>, kNumAnswers>> calls;  // by the operator
  ForkSafeMutex mutex;
  std::vector<std::pair<const Operator*, NativeCalls*>> native;
};
Counts& counts(DeviceType type) {
  static auto* all = new std::array<Counts, kMaxDeviceTypes>;
  return (*all)[static_cast<size_t>(type)];
}

}  // namespace

std::string_view name_of(Answer answer) {
  switch (answer) {
    case Answer::Native:
      return "native";
    case Answer::Generated:
      return "generated";
    case Answer::Decomposed:
      return "decomposed";
    case Answer::Fallback:
      return "fallback";
  }
  return "unknown";
}

void count_answer(DeviceType type, const Operator& op, Answer answer) {
  auto& calls = counts(type).calls.ensure(
      &op, [] { return std::array<std::atomic<int64_t>, kNumAnswers>{}; });
  calls[static_cast<size_t>(answer)].fetch_add(1, std::memory_order_relaxed);
}

NativeCalls::NativeCalls(DeviceType type, const Operator& op) {
  Counts& c = counts(type);
  const std::lock_guard lock(c.mutex);
  c.native.emplace_back(&op, this);
}

void count_decomposed(const Operator& op, std::initializer_list<const Tensor*> tensors) {
  for (const Tensor* t : tensors) {
    if (!t->defined() || !backend_of(t->device().type)) continue;
    count_answer(t->device().type, op, Answer::Decomposed);
    return;
  }
}

std::vector<AnswerCount> answer_counts(DeviceType type) {
  Counts& c = counts(type);
  // The forms of an entry count as one.
  std::map<std::pair<std::string_view, Answer>, int64_t> by_entry;
  c.calls.for_each([&](const void* op, const auto& calls) {
    for (size_t a = 0; a < kNumAnswers; ++a) {
      if (const int64_t n = calls[a].load(std::memory_order_relaxed))
        by_entry[{static_cast<const Operator*>(op)->info().entry, static_cast<Answer>(a)}] += n;
    }
  });
  std::vector<AnswerCount> all;
  for (const auto& [key, calls] : by_entry) {
    if (const Operator* op = Dispatcher::instance().find(key.first))
      all.push_back({op, key.second, calls});
  }
  const std::lock_guard lock(c.mutex);
  for (const auto& [op, native] : c.native) {
    const int64_t calls = native->calls.load(std::memory_order_relaxed);
    const Operator* const entry =
        calls > 0 ? Dispatcher::instance().find(op->info().entry) : nullptr;
    if (entry) all.push_back({entry, Answer::Native, calls});
  }
  return all;
}

void reset_answer_counts(DeviceType type) {
  Counts& c = counts(type);
  const std::lock_guard lock(c.mutex);
  c.calls.for_each([](const void*, auto& calls) {
    for (auto& n : calls) n.store(0, std::memory_order_relaxed);
  });
  for (const auto& [op, native] : c.native) native->calls.store(0, std::memory_order_relaxed);
}

}  // namespace treadle
