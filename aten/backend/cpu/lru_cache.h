// RecentlyUsed: values kept by key, the latest used of them. Beyond `most` the value that was not
// used for longest goes.
//
//   RecentlyUsed<int, std::string> kept(2);
//   kept.put(1, "one");  kept.put(2, "two");  kept.find(1);
//   kept.put(3, "three");                        // kept.find(2) is null now
#pragma once

#include <cstddef>
#include <functional>
#include <list>
#include <unordered_map>
#include <utility>

namespace treadle::cpu {

template <class Key, class Value, class Hash = std::hash<Key>>
class RecentlyUsed {
 public:
  explicit RecentlyUsed(size_t most) : most_(most) {}

  // Null where there is none. Stays until the next put().
  const Value* find(const Key& key) {
    const auto it = places_.find(key);
    if (it == places_.end()) return nullptr;
    items_.splice(items_.begin(), items_, it->second);
    return &it->second->second;
  }
  // Of a key that has none.
  const Value& put(const Key& key, Value value) {
    items_.emplace_front(key, std::move(value));
    try {
      places_.emplace(key, items_.begin());
    } catch (...) {
      items_.pop_front();
      throw;
    }
    if (items_.size() > most_) {
      places_.erase(items_.back().first);
      items_.pop_back();
    }
    return items_.front().second;
  }
  size_t size() const { return items_.size(); }

 private:
  using Items = std::list<std::pair<Key, Value>>;
  size_t most_;
  Items items_;  // the latest used first
  std::unordered_map<Key, typename Items::iterator, Hash> places_;
};

}  // namespace treadle::cpu
