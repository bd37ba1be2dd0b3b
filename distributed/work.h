// Communication that goes on beside the program.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "distributed/engine.h"

namespace treadle::distributed {

// The threads that wait for messages beside the program; a group ends when they have ended.
class Waiters {
 public:
  void start(std::function<void()> wait);
  void join();

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int count_ = 0;
};

class Work : public std::enable_shared_from_this<Work> {
 public:
  virtual ~Work() = default;
  // Returns whether it has ended within the time; without a time it waits for its end. What went
  // wrong is in failure().
  virtual bool wait(std::optional<milliseconds> timeout);
  virtual bool is_done();
  std::optional<Failure> failure();
  // The rank that a message came from.
  int peer();
  // Calls it when the work has ended, or at once.
  void on_done(std::function<void()> callback);
  void end(std::optional<Failure> failure, int peer = kAnyRank);

 protected:
  // Begins to wait in a thread of its own, where nobody else waits.
  virtual void watch() {}

  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_done_ = false;

 private:
  std::optional<Failure> failure_;
  int peer_ = kAnyRank;
  std::vector<std::function<void()>> callbacks_;
};

// A message. The thread that waits for it waits in the engine itself.
class MessageWork final : public Work {
 public:
  using Run = std::function<int(const std::function<int()>&)>;
  // `run` calls a function that waits, writes it down, and names errors.
  MessageWork(std::unique_ptr<Message> message, milliseconds timeout, Run run,
              std::shared_ptr<Waiters> waiters);
  bool wait(std::optional<milliseconds> timeout) override;
  bool is_done() override;
  // It never comes: ends its wait.
  void cancel();

 protected:
  void watch() override;

 private:
  bool claim();
  void wait_in_engine();

  std::unique_ptr<Message> message_;
  milliseconds timeout_;
  Run run_;
  std::shared_ptr<Waiters> waiters_;
  bool is_claimed_ = false;
};

}  // namespace treadle::distributed
