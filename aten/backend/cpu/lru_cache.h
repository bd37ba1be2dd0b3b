// LruCache: a map that holds the most recently used values. Beyond `capacity` it evicts the least
// recently used value.
//
//   LruCache<int, std::string> cache(2);
//   cache.put(1, "one");  cache.put(2, "two");  cache.find(1);
//   cache.put(3, "three");                        // cache.find(2) is null now
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <list>
#include <unordered_map>
#include <utility>

namespace treadle::cpu {

template <class Key, class Value, class Hash = std::hash<Key>>
class LruCache {
 public:
  explicit LruCache(size_t capacity) : capacity_(capacity) {}

  // Null if the key is missing. The pointer is valid until the next put().
  const Value* find(const Key& key) {
    const auto it = entries_.find(key);
    if (it == entries_.end()) return nullptr;
    items_.splice(items_.begin(), items_, it->second);
    return &it->second->second;
  }
  // The key must be new.
  const Value& put(const Key& key, Value value) {
    items_.emplace_front(key, std::move(value));
    try {
      entries_.emplace(key, items_.begin());
    } catch (...) {
      items_.pop_front();
      throw;
    }
    if (items_.size() > capacity_) {
      entries_.erase(items_.back().first);
      items_.pop_back();
    }
    return items_.front().second;
  }
  size_t size() const { return items_.size(); }

 private:
  using Items = std::list<std::pair<Key, Value>>;
  size_t capacity_;
  Items items_;  // the latest used first
  std::unordered_map<Key, typename Items::iterator, Hash> entries_;
};

}  // namespace treadle::cpu
