// The messages from one rank to another.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <deque>
#include <optional>
#include <thread>

#include "distributed/nccl/engine.h"

namespace treadle::distributed {

// A message in the queue of a channel. Its memory belongs to the program until it has begun, and
// when it has ended.
struct Queued {
  enum class State { Waits, Runs, Ended };
  explicit Queued(Call call) : call(std::move(call)) {}
  void end(std::optional<Failure> with);
  // Whether it runs now: not where it was cancelled.
  bool begin();

  const Call call;
  std::mutex mutex;
  std::condition_variable changed;
  State state = State::Waits;
  bool is_cancelled = false;
  std::optional<Failure> failure;
};

class NcclEngine::Posted final : public Message {
 public:
  explicit Posted(std::shared_ptr<Queued> queued) : queued_(std::move(queued)) {}
  ~Posted() override;
  // The channel keeps the time: that of the call, from the end of the message before it.
  int wait(milliseconds) override;
  void cancel() override;

 private:
  std::shared_ptr<Queued> queued_;
};

class NcclEngine::Channel {
 public:
  Channel(NcclEngine& engine, int peer, bool is_send);
  ~Channel();
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  void push(std::shared_ptr<Queued> message);
  // Waits until there is no message; false if the time is up before.
  bool drain(Deadline end);

 private:
  // A description of a message, which both ranks exchange before it goes.
  struct Note {
    uint64_t key = 0, bytes = 0;
    NcclId id{};  // for the first one
  };
  void work();
  void exchange(const Call& call);
  void say(const Call& call, int64_t tag, const Note& note);
  Note hear(const Call& call, int64_t tag);

  NcclEngine& engine_;
  const int peer_;
  const bool is_send_;
  std::shared_ptr<Communicator> communicator_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::shared_ptr<Queued>> messages_;
  bool is_busy_ = false, is_ending_ = false;
  std::thread thread_;
};

}  // namespace treadle::distributed
