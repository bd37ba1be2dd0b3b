// Objects that belong to one thread at a time: handles of libraries and their plans. They are slow
// to make, and two threads cannot use one at once. A thread that ends leaves its object to the next
// new thread.
//
//   struct Handles : std::map<int, cudnnHandle_t> {};
//   cudnnHandle_t& handle = kept_by_thread<Handles>()[device];
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mutex>
#include <vector>

namespace treadle::cuda {

// The T of this thread; one for each type. None is ever destroyed, because the device may be
// destroyed first.
template <class T>
T& kept_by_thread() {
  struct Left {
    std::mutex mutex;
    std::vector<T*> all;
  };
  static auto* left = new Left;
  struct Lease {
    T* mine = nullptr;
    Lease() {
      const std::lock_guard lock(left->mutex);
      if (left->all.empty()) {
        mine = new T;
      } else {
        mine = left->all.back();
        left->all.pop_back();
      }
    }
    ~Lease() {
      const std::lock_guard lock(left->mutex);
      left->all.push_back(mine);
    }
  };
  thread_local Lease lease;
  return *lease.mine;
}

}  // namespace treadle::cuda
