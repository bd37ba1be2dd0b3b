// The registry of backends, the current devices and streams of a thread, and the counts of answers.

#include "core/backend.h"

#include <array>
#include <atomic>
#include <cstring>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "core/address_map.h"
#include "core/backend_memory.h"
#include "core/dispatcher.h"
#include "core/error.h"
#include "core/fork_safe_mutex.h"
#include "core/tensor.h"

namespace treadle {
namespace {

size_t slot(DeviceType type) { return static_cast<size_t>(type); }

// What is kept for a device type. Never destroyed: tensors are freed while the program ends.
struct Entry {
  std::atomic<Backend*> backend{nullptr};
  std::atomic<bool> fallback{true};
  BackendMemory* memory = nullptr;
  BackendFinder finder;
};
struct Registry {
  ForkSafeMutex mutex;
  std::array<Entry, kMaxDeviceTypes> entries;
  // Never deleted: other threads may be in the one, tensors in the memory of the other.
  std::vector<std::pair<Backend*, BackendMemory*>> withdrawn;
  std::vector<DeviceType> order;
};
Registry& registry() {
  static auto* registry = new Registry;
  return *registry;
}

// The current devices and streams of a thread; a stream is kept for each device.
struct Current {
  std::array<int8_t, kMaxDeviceTypes> index{};
  std::map<std::pair<DeviceType, int>, uint64_t> streams;
};
Current& current() {
  thread_local Current current;
  return current;
}

// An index that the device type has; RuntimeError otherwise.
void require_index(DeviceType type, int index) {
  const int count = require_backend(type).device_count();
  check<ErrorKind::Runtime>(index >= 0 && index < count, "expected a device of ", name_of(type),
                            " that exists, of ", count, count == 1 ? " device" : " devices",
                            ", got ", name_of(type), ":", index);
}

constexpr size_t kNumAnswers = static_cast<size_t>(Answer::Fallback) + 1;
struct Counts {
  AddressMap<std::array<std::atomic<int64_t>, kNumAnswers>> calls;  // by the operator
  ForkSafeMutex mutex;
  std::vector<std::pair<const Operator*, NativeCalls*>> native;
};
Counts& counts(DeviceType type) {
  static auto* all = new std::array<Counts, kMaxDeviceTypes>;
  return (*all)[slot(type)];
}

}  // namespace

std::atomic<bool> detail::any_backend{false};

DeviceType register_backend(std::unique_ptr<Backend> backend) {
  Registry& r = registry();
  const std::lock_guard lock(r.mutex);
  // The name "cuda" is known before there is a backend for it.
  const bool known = backend->facts().name == name_of(DeviceType::CUDA) &&
                     !r.entries[slot(DeviceType::CUDA)].backend.load();
  const DeviceType type = known ? DeviceType::CUDA : register_device_type(backend->facts().name);
  Entry& entry = r.entries[slot(type)];
  entry.memory = new BackendMemory(*backend, type);
  register_allocator(type, entry.memory);
  entry.fallback = true;
  entry.backend.store(backend.release(), std::memory_order_release);
  r.order.push_back(type);
  detail::any_backend = true;
  return type;
}

void withdraw_backend(DeviceType type) {
  Registry& r = registry();
  BackendMemory* memory;
  {
    const std::lock_guard lock(r.mutex);
    Entry& entry = r.entries[slot(type)];
    Backend* backend = entry.backend.exchange(nullptr, std::memory_order_acq_rel);
    if (!backend) return;
    memory = entry.memory;
    r.withdrawn.emplace_back(backend, memory);
    std::erase(r.order, type);
    if (type != DeviceType::CUDA) withdraw_device_type(type);
  }
  memory->empty_caches();
}

Backend* backend_of(DeviceType type) noexcept {
  return registry().entries[slot(type)].backend.load(std::memory_order_acquire);
}

Backend& require_backend(DeviceType type) {
  if (Backend* backend = backend_of(type)) return *backend;
  fail<ErrorKind::Runtime>("expected a device with a backend, got ", name_of(type),
                           ", for which none is loaded");
}

std::vector<DeviceType> backends() {
  Registry& r = registry();
  const std::lock_guard lock(r.mutex);
  return r.order;
}

// ---- current devices and streams ----

int current_device(DeviceType type) noexcept { return current().index[slot(type)]; }

void set_current_device(DeviceType type, int index) {
  require_index(type, index);
  if (current().index[slot(type)] == index) return;
  require_backend(type).set_device(index);
  current().index[slot(type)] = static_cast<int8_t>(index);
}

uint64_t current_stream(Device device) noexcept {
  const auto& streams = current().streams;
  const int index = device.index < 0 ? current_device(device.type) : device.index;
  const auto it = streams.find({device.type, index});
  return it == streams.end() ? 0 : it->second;
}

void set_current_stream(Device device, uint64_t stream) {
  const Device exact = with_index(device);
  require_backend(device.type).set_stream(exact.index, stream);
  current().streams[{exact.type, exact.index}] = stream;
}

void set_backend_finder(DeviceType type, BackendFinder finder) {
  Registry& r = registry();
  const std::lock_guard lock(r.mutex);
  r.entries[slot(type)].finder = std::move(finder);
}

namespace {
[[gnu::cold]] void find_backend(DeviceType type) {
  BackendFinder finder;
  {
    Registry& r = registry();
    const std::lock_guard lock(r.mutex);
    finder = r.entries[slot(type)].finder;
  }
  if (!finder) return;
  const std::string reason = finder();
  check<ErrorKind::Runtime>(reason.empty(), "expected a device that has memory, got ",
                            name_of(type), ", for which no backend is loaded: ", reason);
}
}  // namespace

Device with_index(Device device) {
  if (device.is_cpu() || device.is_meta()) return device;
  if (!backend_of(device.type)) find_backend(device.type);
  if (device.index < 0) device.index = static_cast<int8_t>(current_device(device.type));
  // A device type without a backend has no allocator either, which says so better.
  if (backend_of(device.type)) require_index(device.type, device.index);
  return device;
}

// ---- memory ----

void move_bytes(MemoryPlace to, MemoryPlace from, size_t nbytes, bool non_blocking) {
  if (nbytes == 0) return;
  const bool to_cpu = to.device.is_cpu(), from_cpu = from.device.is_cpu();
  if (to_cpu && from_cpu) {
    std::memmove(static_cast<char*>(to.storage) + to.offset,
                 static_cast<char*>(from.storage) + from.offset, nbytes);
    return;
  }
  const DeviceType type = to_cpu ? from.device.type : to.device.type;
  const bool one_backend = to_cpu || from_cpu || to.device.type == from.device.type;
  if (one_backend && require_backend(type).copy(to, from, nbytes, non_blocking)) return;
  check<ErrorKind::Runtime>(!to_cpu && !from_cpu,
                            "expected a device that copies from and to the cpu, got ",
                            name_of(type), ", which declined");
  const std::unique_ptr<char[]> bytes(new char[nbytes]);
  move_bytes({bytes.get(), 0, kCPU}, from, nbytes, false);
  move_bytes(to, {bytes.get(), 0, kCPU}, nbytes, false);
}

namespace {
BackendMemory& memory_of_type(DeviceType type) {
  require_backend(type);
  return *registry().entries[slot(type)].memory;
}
}  // namespace

CachingAllocator& memory_of(Device device) {
  return memory_of_type(device.type).of(with_index(device).index);
}

DeviceMemory device_memory(Device device) {
  const MemoryStatistics s = memory_of(device).statistics();
  const Statistic &held = s.allocated_bytes.all, &allocation = s.allocation.all;
  return {held.current,         held.peak,          s.reserved_bytes.all.current - held.current,
          allocation.allocated, s.num_device_alloc, allocation.freed};
}
void reset_peak(Device device) { memory_of(device).reset_peaks(); }
void release_kept_memory(DeviceType type) { memory_of_type(type).empty_caches(); }

void destroy_stream(Device device, uint64_t stream) {
  const Device exact = with_index(device);
  Backend& backend = require_backend(device.type);
  if (stream != 0 && backend.facts().keeps_memory) {
    // A stream that comes later may have the same number, and what was kept for this one.
    backend.synchronize_stream(exact.index, stream);
    memory_of(exact).forget_stream(stream);
  }
  backend.destroy_stream(exact.index, stream);
}

// ---- answers ----

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

bool fallback_allowed(DeviceType type) noexcept {
  return registry().entries[slot(type)].fallback.load(std::memory_order_relaxed);
}
void allow_fallback(DeviceType type, bool allowed) noexcept {
  registry().entries[slot(type)].fallback.store(allowed, std::memory_order_relaxed);
}

}  // namespace treadle
