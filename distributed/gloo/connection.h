// The connections of a group through Gloo, and messages over them.
//
// A message is matched by the ranks, by its key and by its size; what is not matched waits. Note
// [Timeouts of Gloo]: where a wait of Gloo's ends by its timeout, Gloo closes all connections of
// the group. So do we, after any error in a collective function: the other processes, which wait
// for this one, then fail at once.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gloo/context.h>
#include <gloo/transport/buffer.h>
#include <gloo/transport/unbound_buffer.h>

#include <condition_variable>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "distributed/call.h"

namespace treadle::distributed {

// The store by which the processes of a group find each other.
struct RendezvousStore {
  std::function<void(const std::string& key, const std::vector<char>& value)> set;
  std::function<std::vector<char>(const std::string& key)> get;
};

// A host name or an address of this machine, or the name of a network interface.
struct Interface {
  std::string host, name;
};

class Connection;

// A piece of memory that is sent or received.
class Transfer {
 public:
  enum class Direction { Send, Receive };
  Transfer(Connection& connection, Direction direction, void* data, size_t bytes);
  ~Transfer();
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;

  void start(int peer, uint64_t key);
  // From any other rank.
  void start_from_any(uint64_t key);
  // Returns the other rank. Throws Failure, of the kind Aborted after cancel().
  int wait(milliseconds timeout);
  void cancel();
  void interrupt();

  bool is_done() const { return is_done_; }

  const Direction direction;

 private:
  Connection& connection_;
  std::shared_ptr<gloo::transport::UnboundBuffer> buffer_;
  size_t bytes_;
  int peer_ = kAnyRank;
  bool is_cancelled_ = false;
  bool is_done_ = false;
};

// Small messages to and from one rank. They go at once, without the question whether the other
// rank is ready, to a ring in its memory. Both ranks know from the size alone that a message is
// small, and where it lies.
//
// Messages arrive in the order in which they were sent. The rank that receives says so when half of
// the ring is free again; a message to a half that is not free waits for that.
class Mailbox {
 public:
  // Messages have at most `largest` bytes.
  Mailbox(gloo::transport::Pair& pair, size_t largest);
  Mailbox(const Mailbox&) = delete;
  Mailbox& operator=(const Mailbox&) = delete;

  // Both ranks have a mailbox for each other when they have both come here.
  void greet(uint64_t key);
  // Whether the other one has greeted with the key.
  bool is_greeted(uint64_t key);

  void send(uint64_t key, const void* data, size_t bytes);
  // Notes where the next message goes.
  void expect(uint64_t key, void* data, size_t bytes) { expected_.push_back({key, data, bytes}); }
  // Waits for the next message, and takes it. Throws Failure where it is not the expected one.
  void take();

 private:
  // A message in the ring: its key, its size, the data, the key again.
  struct Head {
    uint64_t key, bytes;
  };
  static constexpr size_t whole(size_t bytes) { return sizeof(Head) + bytes + sizeof(uint64_t); }
  // Where messages lie: one behind the other, and none in two halves of the ring. A half has room
  // for two of the largest, so that a rank which waits for it waits for an earlier call.
  struct Ring {
    size_t half;          // bytes
    uint64_t number = 0;  // of the half that the last message lies in
    size_t begin = 0, end = 0;
    // Goes on to the next message. Returns whether it is the first of a half.
    bool next(size_t bytes);
  };
  struct Expected {
    uint64_t key;
    void* data;
    size_t bytes;
  };
  // The greeting lies behind the ring, so that the first messages do not write over it.
  size_t greeting() const { return 2 * sends_.half; }

  Ring sends_, takes_;
  std::vector<char> sent_, received_;
  char signs_[2] = {};  // of free halves; their content does not matter
  std::unique_ptr<gloo::transport::Buffer> to_, from_, free_there_, free_here_;
  std::deque<Expected> expected_;
};

// Ends the waits for small messages at a time: Gloo's own timeout for them is that of the group.
class Alarm {
 public:
  explicit Alarm(std::function<void()> ring) : ring_(std::move(ring)) {}
  ~Alarm();
  void set(std::chrono::steady_clock::time_point time);
  void clear();
  bool has_rung();

 private:
  void watch();

  std::function<void()> ring_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::chrono::steady_clock::time_point time_ = kNever, looks_at_ = kNever;
  static constexpr auto kNever = std::chrono::steady_clock::time_point::max();
  bool is_ending_ = false, has_rung_ = false;
  std::unique_ptr<std::thread> thread_;
};

class Connection {
 public:
  Connection(int rank, int size, RendezvousStore store, const Interface& interface,
             milliseconds timeout);
  ~Connection();

  // Ends the waits of all transfers, and closes the connections.
  void close();
  bool is_closed();
  // Gloo's text without the place in its source.
  static std::string reason_of(const std::exception& error);
  // The transfers of a failed call do not come: the reason, for later calls.
  void fail(const std::string& why);

  // The one of a rank; for one thread at a time.
  Mailbox& mailbox(int peer) { return *mailboxes_[static_cast<size_t>(peer)]; }
  Alarm& alarm() { return *alarm_; }
  // The bytes of the largest message that goes through a mailbox: the same in all ranks. The
  // mailboxes of a rank take 4 MiB in a group of 8, 8 MiB in one of 64.
  size_t largest_small() const { return size <= 8 ? 65536 : size <= 64 ? 16384 : 2048; }
  // Memory for the one call that runs, which is there until the next one asks. It is kept, as the
  // first use of new memory takes as long as a copy of it.
  char* scratch(size_t bytes);

  const int rank, size;

 private:
  friend class Transfer;
  // Every connection leads to the rank that it should lead to. Throws where it does not.
  void greet(uint64_t key);
  // Gives all waits of Gloo an error, those for small messages too.
  void break_off();

  // Gloo gives connections that carry messages to known places small buffers in the system: they
  // are others than those of large transfers.
  std::shared_ptr<gloo::Context> context_, small_context_;
  std::mutex mutex_;
  std::set<Transfer*> waiting_;
  bool is_closed_ = false;
  std::string failure_;
  // Memory of transfers that were cancelled: Gloo may still look at them.
  std::list<std::shared_ptr<gloo::transport::UnboundBuffer>> cancelled_;
  std::vector<std::unique_ptr<Mailbox>> mailboxes_;
  std::unique_ptr<Alarm> alarm_;
  std::unique_ptr<char[]> scratch_;
  size_t scratch_bytes_ = 0;
};

}  // namespace treadle::distributed
