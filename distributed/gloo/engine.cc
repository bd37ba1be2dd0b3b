// SPDX-License-Identifier: Apache-2.0
#include "distributed/gloo/engine.h"

#include <algorithm>
#include <utility>

#include "distributed/gloo/collectives.h"

namespace treadle::distributed {
namespace {

// Sends of so many bytes return before the other process receives.
constexpr size_t kCopied = 16384;
// Of so many of them, before the next one waits for the first.
constexpr size_t kCopies = 64;
constexpr uint64_t kLastCall = UINT64_MAX;

}  // namespace

class GlooEngine::Posted final : public Message {
 public:
  Posted(Connection& connection, Transfer::Direction direction, Span span, std::string copy = {})
      : copy_(std::move(copy)),
        transfer_(connection, direction, copy_.empty() ? span.data : copy_.data(), span.bytes) {}
  int wait(milliseconds timeout) override { return transfer_.wait(timeout); }
  void cancel() override { transfer_.cancel(); }
  Transfer& transfer() { return transfer_; }

 private:
  std::string copy_;
  Transfer transfer_;
};

namespace {

// A message that needs no wait.
class Delivered final : public Message {
 public:
  explicit Delivered(int peer) : peer_(peer) {}
  int wait(milliseconds) override { return peer_; }
  void cancel() override {}

 private:
  int peer_;
};

}  // namespace

GlooEngine::GlooEngine(int rank, int size, RendezvousStore store, const Interface& interface,
                       milliseconds timeout)
    : Engine(rank, size),
      connection_(std::make_unique<Connection>(rank, size, std::move(store), interface, timeout)) {}

GlooEngine::~GlooEngine() {
  connection_->close();
  copies_.clear();
}

void GlooEngine::run(const Call& call) {
  if (!call.has_overlap(rank)) return run_collective(*connection_, call);
  std::vector<char> copies;
  run_collective(*connection_, call.with_copies(copies));
}

std::unique_ptr<Message> GlooEngine::send(const Call& call) {
  const Span span = call.inputs[0];
  const bool is_small = span.bytes > 0 && span.bytes <= kCopied;
  auto message =
      std::make_unique<Posted>(*connection_, Transfer::Direction::Send, span,
                               is_small ? std::string(span.data, span.bytes) : std::string());
  message->transfer().start(call.root, call.fingerprint());
  if (!is_small) return message;
  std::unique_ptr<Message> oldest;
  {
    const std::lock_guard lock(mutex_);
    copies_.push_back(std::move(message));
    if (copies_.size() > kCopies) {
      oldest = std::move(copies_.front());
      copies_.pop_front();
    }
  }
  if (oldest) oldest->wait(call.timeout);
  return std::make_unique<Delivered>(call.root);
}

std::unique_ptr<Message> GlooEngine::receive(const Call& call) {
  auto message =
      std::make_unique<Posted>(*connection_, Transfer::Direction::Receive, call.outputs[0]);
  if (call.root == kAnyRank)
    message->transfer().start_from_any(call.fingerprint());
  else
    message->transfer().start(call.root, call.fingerprint());
  return message;
}

bool GlooEngine::flush(milliseconds timeout) {
  const auto end = std::chrono::steady_clock::now() + timeout;
  const auto left = [end] {
    return std::chrono::duration_cast<milliseconds>(end - std::chrono::steady_clock::now());
  };
  std::list<std::unique_ptr<Message>> copies;
  {
    const std::lock_guard lock(mutex_);
    copies.swap(copies_);
  }
  try {
    for (const auto& copy : copies) copy->wait(std::max(left(), milliseconds(1)));
    // A rank that ends its connections while another has not yet looked at what came over them
    // would be an error there: all end together.
    Call last;
    last.number = kLastCall;
    last.timeout = std::max(left(), milliseconds(1));
    if (!connection_->is_closed()) run_collective(*connection_, last);
  } catch (const Failure&) {
    return false;
  }
  return true;
}

void GlooEngine::abort() { connection_->close(); }

}  // namespace treadle::distributed
