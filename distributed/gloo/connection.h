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
#include <gloo/transport/unbound_buffer.h>

#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <set>
#include <string>
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

class Connection {
 public:
  Connection(int rank, int size, RendezvousStore store, const Interface& interface,
             milliseconds timeout);
  ~Connection();

  // Ends the waits of all transfers, and closes the connections.
  void close();
  bool is_closed();
  // The transfers of a failed call do not come: the reason, for later calls.
  void fail(const std::string& why);

  const int rank, size;

 private:
  friend class Transfer;
  std::shared_ptr<gloo::Context> context_;
  std::mutex mutex_;
  std::set<Transfer*> waiting_;
  bool is_closed_ = false;
  std::string failure_;
  // Memory of transfers that were cancelled: Gloo may still look at them.
  std::list<std::shared_ptr<gloo::transport::UnboundBuffer>> cancelled_;
};

}  // namespace treadle::distributed
