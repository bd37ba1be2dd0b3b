// A group of processes: its calls, in order, and a record of the last ones.
//
// Calls that the program waits for run in its own thread where no other call is under way; the
// others run in a thread of the group, one after the other.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "distributed/engine.h"
#include "distributed/work.h"

namespace treadle::distributed {

// A call in the record.
struct Entry {
  enum class State : uint8_t { Queued, Running, Done, Failed };
  uint64_t number = 0;
  bool is_message = false;  // messages are numbered apart
  std::string name;
  ScalarType dtype = ScalarType::UInt8;
  std::vector<int64_t> shape;
  int root = 0;
  State state = State::Queued;
  // Seconds since 1970; 0 where it has not come to that.
  double queued = 0, started = 0, ended = 0;
};

// A call that did not succeed.
struct FailedCall {
  uint64_t number;
  std::string name;
  Failure failure;
};

class Group {
 public:
  Group(std::shared_ptr<Engine> engine, std::vector<int> members, std::string name);
  ~Group();
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  // Runs a collective function, or with `later` queues it and returns a handle.
  std::shared_ptr<Work> run(Call call, std::vector<int64_t> shape, bool later);
  // Begins a message.
  std::shared_ptr<Work> post(Call call, std::vector<int64_t> shape);

  // The last calls, the oldest first.
  std::vector<Entry> record();
  // Waits for a failure that was not returned before; none if none comes in time, or the group
  // ends.
  std::optional<FailedCall> next_failure(milliseconds timeout);
  // Ends all calls under way with an error.
  void abort();
  // Waits for the calls under way, for at most so long, and ends the connections.
  void shut_down(milliseconds timeout);

  const std::string name;
  const std::shared_ptr<Engine>& engine() const { return engine_; }

 private:
  struct Task {
    Call call;
    std::shared_ptr<Entry> entry;
    std::shared_ptr<Work> work;
  };
  std::shared_ptr<Entry> enter(const Call& call, std::vector<int64_t> shape);
  void mark(Entry& entry, Entry::State state);
  // A failure as the program shall see it, noted for next_failure().
  Failure noted(const Call& call, const Failure& failure);
  template <class F>
  int recorded(const Call& call, Entry& entry, F&& wait);
  void work();

  std::shared_ptr<Engine> engine_;
  std::vector<int> members_;
  std::shared_ptr<Waiters> waiters_ = std::make_shared<Waiters>();
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Task> tasks_;
  std::unique_ptr<std::thread> worker_;
  bool is_busy_ = false, is_ending_ = false, is_aborted_ = false;
  uint64_t calls_ = 0, messages_ = 0;
  std::deque<std::shared_ptr<Entry>> entries_;
  std::deque<FailedCall> failures_;
};

}  // namespace treadle::distributed
