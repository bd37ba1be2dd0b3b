// SPDX-License-Identifier: Apache-2.0
#include "distributed/gloo/connection.h"

#include <gloo/common/error.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/store.h>
#include <gloo/transport/tcp/device.h>

#include <algorithm>
#include <map>
#include <thread>
#include <utility>

namespace treadle::distributed {
namespace {

class Store : public gloo::rendezvous::Store {
 public:
  explicit Store(RendezvousStore& store) : store_(store) {}
  void set(const std::string& key, const std::vector<char>& data) override {
    store_.set(key, data);
  }
  std::vector<char> get(const std::string& key) override { return store_.get(key); }
  void wait(const std::vector<std::string>& keys) override {
    for (const std::string& key : keys) store_.get(key);
  }
  void wait(const std::vector<std::string>& keys, const milliseconds&) override { wait(keys); }

 private:
  RendezvousStore& store_;
};

// One thread of Gloo serves all groups on an interface.
std::shared_ptr<gloo::transport::Device> device_of(const Interface& interface) {
  static std::mutex mutex;
  static std::map<std::pair<std::string, std::string>, std::weak_ptr<gloo::transport::Device>>
      devices;
  const std::lock_guard lock(mutex);
  std::weak_ptr<gloo::transport::Device>& known = devices[{interface.host, interface.name}];
  std::shared_ptr<gloo::transport::Device> device = known.lock();
  if (!device) {
    gloo::transport::tcp::attr attributes;
    attributes.hostname = interface.host;
    attributes.iface = interface.name;
    known = device = gloo::transport::tcp::CreateDevice(attributes);
  }
  return device;
}

// Gloo's text without the place in its source.
std::string reason_of(const std::exception& error) {
  std::string text = error.what();
  if (text.starts_with('[')) {
    const size_t end = text.find("] ");
    if (end != std::string::npos) text = text.substr(end + 2);
  }
  while (!text.empty() && (text.back() == '.' || text.back() == '\n')) text.pop_back();
  return text;
}

}  // namespace

Transfer::Transfer(Connection& connection, Direction direction, void* data, size_t bytes)
    : direction(direction),
      connection_(connection),
      buffer_(connection.context_->createUnboundBuffer(data, bytes)),
      bytes_(bytes) {}

Transfer::~Transfer() {
  if (is_done_ || connection_.is_closed()) return;
  const std::lock_guard lock(connection_.mutex_);
  connection_.cancelled_.push_back(std::move(buffer_));
}

void Transfer::start(int peer, uint64_t key) {
  peer_ = peer;
  const uint64_t slot = mixed(key, bytes_);
  try {
    if (direction == Direction::Send)
      buffer_->send(peer, slot);
    else
      buffer_->recv(peer, slot);
  } catch (const std::exception& error) {
    throw Failure(Failure::Kind::Network, reason_of(error), peer, direction == Direction::Send);
  }
}

void Transfer::start_from_any(uint64_t key) {
  std::vector<int> others;
  for (int other = 0; other < connection_.size; ++other)
    if (other != connection_.rank) others.push_back(other);
  try {
    buffer_->recv(others, mixed(key, bytes_));
  } catch (const std::exception& error) {
    throw Failure(Failure::Kind::Network, reason_of(error));
  }
}

int Transfer::wait(milliseconds timeout) {
  int found = peer_;
  {
    const std::lock_guard lock(connection_.mutex_);
    if (connection_.is_closed_)
      throw Failure(connection_.failure_.empty() ? Failure::Kind::Aborted : Failure::Kind::Network,
                    connection_.failure_);
    connection_.waiting_.insert(this);
  }
  bool is_there = false;
  std::string error;
  const auto start = std::chrono::steady_clock::now();
  try {
    is_there = direction == Direction::Send ? buffer_->waitSend(&found, timeout)
                                            : buffer_->waitRecv(&found, timeout);
  } catch (const std::exception& failure) {
    error = reason_of(failure);
  }
  {
    const std::lock_guard lock(connection_.mutex_);
    connection_.waiting_.erase(this);
    if (!is_there && error.empty()) {
      if (!is_cancelled_ && !connection_.failure_.empty())
        throw Failure(Failure::Kind::Network, connection_.failure_);
      throw Failure(Failure::Kind::Aborted, "aborted");
    }
  }
  if (!is_there) {
    const bool is_late = std::chrono::steady_clock::now() - start >= timeout;
    throw Failure(is_late ? Failure::Kind::Timeout : Failure::Kind::Network, error, peer_,
                  direction == Direction::Send);
  }
  is_done_ = true;
  return found;
}

void Transfer::interrupt() {
  if (direction == Direction::Send)
    buffer_->abortWaitSend();
  else
    buffer_->abortWaitRecv();
}

void Transfer::cancel() {
  // An interruption before the wait has begun has no effect: it is repeated.
  while (true) {
    {
      const std::lock_guard lock(connection_.mutex_);
      is_cancelled_ = true;
      if (!connection_.waiting_.contains(this)) return;
      interrupt();
    }
    std::this_thread::sleep_for(milliseconds(1));
  }
}

Connection::Connection(int rank, int size, RendezvousStore store, const Interface& interface,
                       milliseconds timeout)
    : rank(rank), size(size) {
  auto context = std::make_shared<gloo::rendezvous::Context>(rank, size);
  context->setTimeout(timeout);
  std::shared_ptr<gloo::transport::Device> device = device_of(interface);
  Store found(store);
  context->connectFullMesh(found, device);
  context_ = std::move(context);
}

Connection::~Connection() { close(); }

bool Connection::is_closed() {
  const std::lock_guard lock(mutex_);
  return is_closed_;
}

void Connection::fail(const std::string& why) {
  {
    const std::lock_guard lock(mutex_);
    if (failure_.empty()) failure_ = why;
  }
  close();
}

void Connection::close() {
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(is_closed_, true)) return;
  }
  while (true) {
    {
      const std::lock_guard lock(mutex_);
      if (waiting_.empty()) break;
      for (Transfer* transfer : waiting_) transfer->interrupt();
    }
    std::this_thread::sleep_for(milliseconds(1));
  }
  context_->closeConnections();
}

}  // namespace treadle::distributed
