// ForkSafeMutex: a mutex that is never locked at the start of a child process.
//
// A child has one thread, the one that forked. A lock that another thread held at the fork would
// stay locked in the child forever. So a fork waits until it holds every ForkSafeMutex, and
// releases them in the parent and in the child. The forking thread may hold none.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mutex>

namespace treadle {

class ForkSafeMutex {
 public:
  ForkSafeMutex();
  ~ForkSafeMutex();
  ForkSafeMutex(const ForkSafeMutex&) = delete;
  ForkSafeMutex& operator=(const ForkSafeMutex&) = delete;

  void lock() { mutex_.lock(); }
  bool try_lock() { return mutex_.try_lock(); }
  void unlock() { mutex_.unlock(); }

 private:
  friend struct AllForkSafe;
  std::mutex mutex_;  // a fork holds it
  // The neighbours in the list of all mutexes.
  ForkSafeMutex* before_ = nullptr;
  ForkSafeMutex* after_ = nullptr;
};

}  // namespace treadle
