// AddressMap: a map from the address of an object that is never freed to a value. A look-up takes
// no lock, so that calls can use it. A value never moves.
//
//   static auto* parsed = new AddressMap<FunctionSchema>;
//   return parsed->ensure(&op, [&] { return parse_schema(op.info().schema); });
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <bit>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "core/base/fork_safe_mutex.h"

namespace treadle {

template <class T>
class AddressMap {
 public:
  AddressMap() = default;
  AddressMap(const AddressMap&) = delete;
  AddressMap& operator=(const AddressMap&) = delete;

  // Null for an unknown key.
  T* find(const void* key) const {
    const Table* const table = table_.load(std::memory_order_acquire);
    if (!table) return nullptr;
    for (size_t i = hash(key);; ++i) {
      Entry* const entry = table->slots[i & table->mask].load(std::memory_order_acquire);
      if (!entry) return nullptr;
      if (entry->key == key) return &entry->value;
    }
  }

  // The value. `make` makes it at the first request. Threads may call this at the same time; one
  // value is made. `make` must not use the map.
  template <class Make>
  T& ensure(const void* key, Make&& make) {
    if (T* const found = find(key)) return *found;
    const std::lock_guard lock(mutex_);
    if (T* const found = find(key)) return *found;
    entries_.push_back(std::unique_ptr<Entry>(new Entry{key, make()}));
    // Readers see a table with at least half of its slots free, so a search ends.
    if (tables_.empty() || 2 * entries_.size() > tables_.back()->mask) {
      auto larger = std::make_unique<Table>(std::bit_ceil(4 * entries_.size() + 16));
      for (const auto& entry : entries_) put(*larger, *entry);
      table_.store(larger.get(), std::memory_order_release);
      tables_.push_back(std::move(larger));  // old tables stay: a reader may use them
    } else {
      put(*tables_.back(), *entries_.back());
    }
    return entries_.back()->value;
  }

  // Calls `function(key, value)` for each entry, in the order in which they were made.
  template <class Function>
  void for_each(Function&& function) const {
    const std::lock_guard lock(mutex_);
    for (const auto& entry : entries_) function(entry->key, entry->value);
  }

 private:
  struct Entry {
    const void* key;
    T value;
  };
  struct Table {
    explicit Table(size_t size)
        : mask(size - 1), slots(std::make_unique<std::atomic<Entry*>[]>(size)) {}
    size_t mask;
    std::unique_ptr<std::atomic<Entry*>[]> slots;
  };

  // Objects of one kind lie at multiples of their size, so the upper bits of the product are mixed.
  static size_t hash(const void* key) {
    return static_cast<size_t>(reinterpret_cast<uintptr_t>(key) * 0x9e3779b97f4a7c15u >> 32);
  }
  static void put(Table& table, Entry& entry) {
    for (size_t i = hash(entry.key);; ++i) {
      std::atomic<Entry*>& slot = table.slots[i & table.mask];
      if (slot.load(std::memory_order_relaxed)) continue;
      slot.store(&entry, std::memory_order_release);
      return;
    }
  }

  std::atomic<Table*> table_{nullptr};  // the last of tables_
  mutable ForkSafeMutex mutex_;
  std::vector<std::unique_ptr<Table>> tables_;
  std::vector<std::unique_ptr<Entry>> entries_;
};

}  // namespace treadle
