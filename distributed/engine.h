// The interface of an engine, which carries the data of a group's calls: Gloo, MPI, NCCL. A process
// has one engine for each group.
//
// The functions return when the memory of the call may be used again, and throw Failure. They are
// called by any thread; of collective functions one at a time.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unistd.h>

#include <memory>
#include <string>
#include <utility>

#include "distributed/call.h"

namespace treadle::distributed {

// A message on its way. Its memory is in use until wait() has returned, or the message is gone.
class Message {
 public:
  virtual ~Message() = default;
  // Returns the other rank.
  virtual int wait(milliseconds timeout) = 0;
  // Ends a wait() in another thread.
  virtual void cancel() = 0;
};

class Engine {
 public:
  Engine(int rank, int size) : rank(rank), size(size) {}
  virtual ~Engine() = default;
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  virtual std::string name() const = 0;
  // The work that this thread has queued on a device, which a call is to come after; null: none.
  virtual std::shared_ptr<void> queued_work() { return nullptr; }
  virtual void run(const Call& call) = 0;
  virtual std::unique_ptr<Message> send(const Call& call) = 0;
  virtual std::unique_ptr<Message> receive(const Call& call) = 0;
  // Waits until messages that nobody waits for are delivered, and until the other ranks end the
  // group, too; false if the time is up before.
  virtual bool flush(milliseconds timeout) = 0;
  // Ends all waiting calls with Failure::Aborted, and the connections to all other ranks.
  virtual void abort() = 0;

  const int rank, size;
};

// An object that a child of a fork does not destroy: its connections are the parent's, and threads
// that the child has not got hold its locks, or wait for it.
template <class T, class... Args>
std::shared_ptr<T> make_of_this_process(Args&&... args) {
  return {new T(std::forward<Args>(args)...), [process = ::getpid()](T* object) {
            if (process == ::getpid()) delete object;
          }};
}

}  // namespace treadle::distributed
