// SPDX-License-Identifier: Apache-2.0
#include "distributed/gloo/connection.h"

#include <gloo/common/error.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/store.h>
#include <gloo/transport/tcp/device.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>
#include <random>
#include <stdexcept>
#include <thread>
#include <utility>

namespace treadle::distributed {
namespace {

class Store : public gloo::rendezvous::Store {
 public:
  Store(RendezvousStore& store, std::string prefix) : store_(store), prefix_(std::move(prefix)) {}
  void set(const std::string& key, const std::vector<char>& data) override {
    store_.set(prefix_ + key, data);
  }
  std::vector<char> get(const std::string& key) override { return store_.get(prefix_ + key); }
  void wait(const std::vector<std::string>& keys) override {
    for (const std::string& key : keys) get(key);
  }
  void wait(const std::vector<std::string>& keys, const milliseconds&) override { wait(keys); }

 private:
  RendezvousStore& store_;
  std::string prefix_;
};

// The devices of a process. A child of a fork has not got the threads that serve its parent's.
struct Devices {
  const pid_t process = ::getpid();
  std::mutex mutex;
  std::map<std::pair<std::string, std::string>, std::weak_ptr<gloo::transport::Device>> known;

  static Devices& of_this_process() {
    static std::atomic<Devices*> made{nullptr};  // never destroyed
    Devices* found = made.load();
    if (found != nullptr && found->process == ::getpid()) return *found;
    auto fresh = std::make_unique<Devices>();
    if (made.compare_exchange_strong(found, fresh.get())) return *fresh.release();
    return *found;  // another thread was first
  }
};

// One thread of Gloo serves all groups on an interface.
std::shared_ptr<gloo::transport::Device> device_of(const Interface& interface) {
  Devices& devices = Devices::of_this_process();
  const std::lock_guard lock(devices.mutex);
  std::weak_ptr<gloo::transport::Device>& known = devices.known[{interface.host, interface.name}];
  std::shared_ptr<gloo::transport::Device> device = known.lock();
  if (!device) {
    gloo::transport::tcp::attr attributes;
    attributes.hostname = interface.host;
    attributes.iface = interface.name;
    known = device = gloo::transport::tcp::CreateDevice(attributes);
  }
  return device;
}

// A number that only those know who can read the store.
uint64_t shared_key(RendezvousStore& store, int rank) {
  std::vector<char> bytes(sizeof(uint64_t));
  if (rank == 0) {
    std::random_device random;
    for (char& each : bytes) each = static_cast<char>(random());
    store.set("key", bytes);
  } else {
    bytes = store.get("key");
  }
  uint64_t key = 0;
  std::memcpy(&key, bytes.data(), std::min(bytes.size(), sizeof(key)));
  return key;
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
    throw Failure(Failure::Kind::Network, Connection::reason_of(error), peer,
                  direction == Direction::Send);
  }
}

void Transfer::start_from_any(uint64_t key) {
  std::vector<int> others;
  for (int other = 0; other < connection_.size; ++other)
    if (other != connection_.rank) others.push_back(other);
  try {
    buffer_->recv(others, mixed(key, bytes_));
  } catch (const std::exception& error) {
    throw Failure(Failure::Kind::Network, Connection::reason_of(error));
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
    error = Connection::reason_of(failure);
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

Mailbox::Mailbox(gloo::transport::Pair& pair, size_t largest)
    : sends_{2 * whole(largest)},
      takes_(sends_),
      sent_(greeting() + sizeof(uint64_t)),
      received_(sent_.size()) {
  constexpr int kMessages = 1, kFree = 2;  // numbers of Gloo's buffers
  from_ = pair.createRecvBuffer(kMessages, received_.data(), received_.size());
  free_there_ = pair.createRecvBuffer(kFree, &signs_[0], 1);
  to_ = pair.createSendBuffer(kMessages, sent_.data(), sent_.size());
  free_here_ = pair.createSendBuffer(kFree, &signs_[1], 1);
}

// Gloo fits the connection's buffer in the system to the first message: this one is large.
void Mailbox::greet(uint64_t key) {
  std::memcpy(sent_.data() + greeting(), &key, sizeof(key));
  to_->send(0, sent_.size(), 0);
}

bool Mailbox::is_greeted(uint64_t key) {
  from_->waitRecv();
  return std::memcmp(received_.data() + greeting(), &key, sizeof(key)) == 0;
}

bool Mailbox::Ring::next(size_t bytes) {
  const bool is_full = end + bytes > (number % 2 + 1) * half;
  if (is_full) end = ++number % 2 * half;
  begin = end;
  end += bytes;
  return is_full;
}

void Mailbox::send(uint64_t key, const void* data, size_t bytes) {
  if (sends_.next(whole(bytes)) && sends_.number > 1) free_there_->waitRecv();
  char* to = sent_.data() + sends_.begin;
  const Head head{key, bytes};
  std::memcpy(to, &head, sizeof(head));
  std::memcpy(to + sizeof(head), data, bytes);
  std::memcpy(to + sizeof(head) + bytes, &key, sizeof(key));
  to_->send(sends_.begin, whole(bytes), sends_.begin);
}

void Mailbox::take() {
  const Expected expected = expected_.front();
  if (takes_.next(whole(expected.bytes))) {
    try {
      free_here_->send();
    } catch (const std::exception&) {
      // Nobody is there who would send more.
    }
  }
  const char* from = received_.data() + takes_.begin;
  const auto is_there = [&] {
    Head head;
    uint64_t end = 0;
    std::memcpy(&head, from, sizeof(head));
    std::memcpy(&end, from + sizeof(head) + expected.bytes, sizeof(end));
    return head.key == expected.key && head.bytes == expected.bytes && end == expected.key;
  };
  try {
    from_->waitRecv();
    if (!is_there()) throw Failure(Failure::Kind::Mismatch, "");
  } catch (const Failure&) {
    throw;
  } catch (const std::exception&) {
    // The other rank may have ended the connection after it sent the message.
    if (!is_there()) throw;
  }
  expected_.pop_front();
  std::memcpy(expected.data, from + sizeof(Head), expected.bytes);
}

Alarm::~Alarm() {
  {
    const std::lock_guard lock(mutex_);
    is_ending_ = true;
  }
  changed_.notify_all();
  if (thread_) thread_->join();
}

void Alarm::set(std::chrono::steady_clock::time_point time) {
  const std::lock_guard lock(mutex_);
  time_ = time;
  // It mostly looks early enough: times of calls follow each other.
  if (time_ >= looks_at_) return;
  if (!thread_) thread_ = std::make_unique<std::thread>([this] { watch(); });
  changed_.notify_all();
}

void Alarm::clear() {
  const std::lock_guard lock(mutex_);
  time_ = kNever;
}

bool Alarm::has_rung() {
  const std::lock_guard lock(mutex_);
  return has_rung_;
}

void Alarm::watch() {
  std::unique_lock lock(mutex_);
  while (!is_ending_) {
    const auto now = std::chrono::steady_clock::now();
    if (time_ <= now) {
      has_rung_ = true;
      lock.unlock();
      ring_();
      return;
    }
    // Not for ever, as clocks overflow.
    looks_at_ = std::min(time_, now + std::chrono::hours(1));
    changed_.wait_until(lock, looks_at_);
  }
}

std::string Connection::reason_of(const std::exception& error) {
  std::string text = error.what();
  if (text.starts_with('[')) {
    const size_t end = text.find("] ");
    if (end != std::string::npos) text = text.substr(end + 2);
  }
  while (!text.empty() && (text.back() == '.' || text.back() == '\n')) text.pop_back();
  return text;
}

Connection::Connection(int rank, int size, RendezvousStore store, const Interface& interface,
                       milliseconds timeout)
    : rank(rank), size(size) {
  std::shared_ptr<gloo::transport::Device> device = device_of(interface);
  const auto connected = [&](const char* kind) {
    auto context = std::make_shared<gloo::rendezvous::Context>(rank, size);
    context->setTimeout(timeout);
    Store found(store, kind);
    context->connectFullMesh(found, device);
    return context;
  };
  context_ = connected("large/");
  small_context_ = connected("small/");
  for (int peer = 0; peer < size; ++peer)
    mailboxes_.push_back(
        peer == rank ? nullptr
                     : std::make_unique<Mailbox>(*small_context_->getPair(peer), largest_small()));
  greet(shared_key(store, rank));
  alarm_ = std::make_unique<Alarm>([this] { break_off(); });
}

Connection::~Connection() {
  alarm_.reset();
  close();
}

void Connection::greet(uint64_t key) {
  constexpr uint64_t kSlot = 0x6772656574;
  const auto refuse = [](int peer) {
    throw std::runtime_error("somebody else came in place of rank " + std::to_string(peer));
  };
  std::vector<uint64_t> keys(static_cast<size_t>(size));
  std::vector<std::unique_ptr<gloo::transport::UnboundBuffer>> sends, receives;
  for (int peer = 0; peer < size; ++peer) {
    uint64_t* place = &keys[static_cast<size_t>(peer)];
    sends.push_back(context_->createUnboundBuffer(&key, sizeof(key)));
    receives.push_back(context_->createUnboundBuffer(place, sizeof(key)));
    if (peer == rank) continue;
    receives.back()->recv(peer, kSlot);
    sends.back()->send(peer, kSlot);
    mailbox(peer).greet(key);
  }
  for (int peer = 0; peer < size; ++peer) {
    if (peer == rank) continue;
    const auto at = static_cast<size_t>(peer);
    receives[at]->waitRecv();
    sends[at]->waitSend();
    if (keys[at] != key || !mailbox(peer).is_greeted(key)) refuse(peer);
  }
}

// Gloo does this where a wait ends by its timeout: here one for what never comes.
void Connection::break_off() {
  constexpr uint64_t kNeverSent = 0x7e7e7e7e;
  for (gloo::Context* context : {small_context_.get(), context_.get()}) {
    for (int peer = 0; peer < size; ++peer) {
      if (peer == rank) continue;
      try {
        char nothing;
        const auto buffer = context->createUnboundBuffer(&nothing, 1);
        buffer->recv(peer, kNeverSent);
        buffer->waitRecv(milliseconds(1));
      } catch (const std::exception&) {
        // Also where the connection to this rank is gone; then the next one.
      }
    }
  }
}

char* Connection::scratch(size_t bytes) {
  if (bytes > scratch_bytes_) {
    scratch_.reset();
    scratch_bytes_ = 0;
    scratch_.reset(new char[bytes]);
    scratch_bytes_ = bytes;
  }
  return scratch_.get();
}

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
  break_off();
  context_->closeConnections();
  small_context_->closeConnections();
}

}  // namespace treadle::distributed
