// Holds every ForkSafeMutex during a fork.
//
// SPDX-License-Identifier: Apache-2.0
#include "core/base/fork_safe_mutex.h"

#include <pthread.h>
#include <sched.h>

namespace treadle {

// The list of all. The objects below have no destructor, because mutexes are destroyed while the
// program ends.
struct AllForkSafe {
  static constinit std::mutex mutex;  // a fork holds it
  static constinit ForkSafeMutex* first;
  static constinit bool guarded;

  static void unlock_until(const ForkSafeMutex* end) {
    for (ForkSafeMutex* m = first; m != end; m = m->after_) m->unlock();
  }
  // Never waits for one while it holds another: the thread that has it may wait for the other.
  static void lock_all() {
    for (;;) {
      mutex.lock();
      ForkSafeMutex* m = first;
      while (m && m->try_lock()) m = m->after_;
      if (!m) return;
      unlock_until(m);
      mutex.unlock();
      sched_yield();
    }
  }
  static void unlock_all() {
    unlock_until(nullptr);
    mutex.unlock();
  }

  static void add(ForkSafeMutex& m) {
    const std::lock_guard lock(mutex);
    if (!guarded) pthread_atfork(&lock_all, &unlock_all, &unlock_all);
    guarded = true;
    m.after_ = first;
    if (first) first->before_ = &m;
    first = &m;
  }
  static void remove(ForkSafeMutex& m) {
    const std::lock_guard lock(mutex);
    if (m.after_) m.after_->before_ = m.before_;
    (m.before_ ? m.before_->after_ : first) = m.after_;
  }
};

constinit std::mutex AllForkSafe::mutex;  // a fork holds it
constinit ForkSafeMutex* AllForkSafe::first = nullptr;
constinit bool AllForkSafe::guarded = false;

ForkSafeMutex::ForkSafeMutex() { AllForkSafe::add(*this); }
ForkSafeMutex::~ForkSafeMutex() { AllForkSafe::remove(*this); }

}  // namespace treadle
