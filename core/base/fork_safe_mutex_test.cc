// A child of a fork finds no ForkSafeMutex locked, whatever the other threads did.
//
// SPDX-License-Identifier: Apache-2.0
#include "core/base/fork_safe_mutex.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

namespace treadle {
namespace {

// The result of `child` in a process of its own; -1 if it does not end within ten seconds.
template <class F>
int in_child(F&& child) {
  const pid_t pid = fork();
  if (pid == 0) {
    alarm(10);
    _exit(child());
  }
  int status = 0;
  waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(ForkSafeMutex, IsFreeInAChild) {
  ForkSafeMutex first, second;
  std::atomic<bool> done = false;
  // One thread takes the second inside the first, the other takes the first inside the second if it
  // can. A fork that waited for one while holding the other would wait forever.
  std::thread one([&] {
    while (!done) {
      const std::lock_guard outer(first);
      const std::lock_guard inner(second);
    }
  });
  std::thread other([&] {
    while (!done) {
      const std::lock_guard outer(second);
      if (first.try_lock()) first.unlock();
    }
  });
  for (int i = 0; i < 50; ++i) {
    EXPECT_EQ(in_child([&] {
                const std::lock_guard outer(first);
                const std::lock_guard inner(second);
                return 7;
              }),
              7);
  }
  done = true;
  one.join();
  other.join();
}

TEST(ForkSafeMutex, MayBeMadeAndGoneWhileOthersFork) {
  std::atomic<bool> done = false;
  std::thread maker([&] {
    std::vector<std::unique_ptr<ForkSafeMutex>> mutexes;
    for (size_t i = 0; !done; ++i) {
      mutexes.push_back(std::make_unique<ForkSafeMutex>());
      if (i % 3 == 2) mutexes.erase(mutexes.begin() + static_cast<int64_t>(i % mutexes.size()));
      if (mutexes.size() > 50) mutexes.clear();
    }
  });
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(in_child([] {
                ForkSafeMutex own;
                const std::lock_guard lock(own);
                return 7;
              }),
              7);
  }
  done = true;
  maker.join();
}

}  // namespace
}  // namespace treadle
