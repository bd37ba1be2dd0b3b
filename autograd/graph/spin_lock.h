// SpinLock: a lock of one byte for critical sections of a few instructions: copying a pointer and
// counting the reference, or swapping a pointer. No object is destroyed, allocated or called under
// it.
//
//   const std::lock_guard lock(meta.lock);
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <mutex>

namespace treadle::autograd {

class SpinLock {
 public:
  SpinLock() = default;
  // An object with a lock may be moved while no other thread knows it. The lock is not moved.
  SpinLock(SpinLock&&) noexcept {}
  SpinLock& operator=(SpinLock&&) noexcept { return *this; }

  void lock() noexcept {
    if (taken_.exchange(true, std::memory_order_acquire)) [[unlikely]]
      wait();
  }
  void unlock() noexcept { taken_.store(false, std::memory_order_release); }

 private:
  void wait() noexcept;

  std::atomic<bool> taken_{false};
};

// A T that is made at its first use, by the first thread, and then stays.
template <class T>
class MadeOnce {
 public:
  MadeOnce() = default;
  MadeOnce(const MadeOnce&) = delete;
  MadeOnce& operator=(const MadeOnce&) = delete;
  ~MadeOnce() { delete made_.load(std::memory_order_relaxed); }

  // It is null before it is made.
  T* get() const { return made_.load(std::memory_order_acquire); }
  T& ensure() {
    if (T* made = get()) return *made;
    auto* const made = new T();
    T* first = nullptr;
    if (made_.compare_exchange_strong(first, made, std::memory_order_acq_rel)) return *made;
    delete made;
    return *first;
  }

 private:
  std::atomic<T*> made_{nullptr};
};

}  // namespace treadle::autograd
