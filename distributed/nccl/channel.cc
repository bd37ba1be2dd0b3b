// SPDX-License-Identifier: Apache-2.0
#include "distributed/nccl/channel.h"

#include <algorithm>
#include <utility>

namespace treadle::distributed {
namespace {

// The tags of notes at the side: about a message, and the answer to it.
constexpr int64_t kAbout = 0, kAnswer = 1;

}  // namespace

void Queued::end(std::optional<Failure> with) {
  const std::lock_guard lock(mutex);
  state = State::Ended;
  failure = std::move(with);
  changed.notify_all();
}

bool Queued::begin() {
  const std::lock_guard lock(mutex);
  if (is_cancelled) return false;
  state = State::Runs;
  return true;
}

NcclEngine::Posted::~Posted() {
  std::unique_lock lock(queued_->mutex);
  queued_->is_cancelled = true;
  queued_->changed.wait(lock, [this] { return queued_->state != Queued::State::Runs; });
}

int NcclEngine::Posted::wait(milliseconds) {
  std::unique_lock lock(queued_->mutex);
  queued_->changed.wait(
      lock, [this] { return queued_->state == Queued::State::Ended || queued_->is_cancelled; });
  if (queued_->failure) throw *queued_->failure;
  if (queued_->state != Queued::State::Ended)
    throw Failure(Failure::Kind::Aborted, "cancelled", queued_->call.root);
  return queued_->call.root;
}

void NcclEngine::Posted::cancel() {
  const std::lock_guard lock(queued_->mutex);
  queued_->is_cancelled = true;
  queued_->changed.notify_all();
}

NcclEngine::Channel::Channel(NcclEngine& engine, int peer, bool is_send)
    : engine_(engine), peer_(peer), is_send_(is_send), thread_([this] { work(); }) {}

NcclEngine::Channel::~Channel() {
  {
    const std::lock_guard lock(mutex_);
    is_ending_ = true;
    changed_.notify_all();
  }
  thread_.join();
  for (const auto& each : messages_) each->end(Failure(Failure::Kind::Aborted, "aborted", peer_));
}

void NcclEngine::Channel::push(std::shared_ptr<Queued> message) {
  const std::lock_guard lock(mutex_);
  messages_.push_back(std::move(message));
  changed_.notify_all();
}

bool NcclEngine::Channel::drain(Deadline end) {
  std::unique_lock lock(mutex_);
  return changed_.wait_until(lock, end, [this] { return messages_.empty() && !is_busy_; });
}

void NcclEngine::Channel::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return !messages_.empty() || is_ending_; });
    if (is_ending_) return;
    const std::shared_ptr<Queued> message = std::move(messages_.front());
    messages_.pop_front();
    is_busy_ = true;
    lock.unlock();
    std::optional<Failure> failure;
    try {
      if (message->begin()) exchange(message->call);
    } catch (const Failure& found) {
      failure = Failure(found.kind, found.what(), peer_, is_send_);
    } catch (const std::exception& error) {
      failure = Failure(Failure::Kind::Backend, error.what(), peer_, is_send_);
    }
    // The others of the group find out at their next call.
    if (failure && failure->kind != Failure::Kind::Mismatch) engine_.has_failed_ = true;
    message->end(std::move(failure));
    lock.lock();
    is_busy_ = false;
    changed_.notify_all();
  }
}

void NcclEngine::Channel::exchange(const Call& call) {
  engine_.require_open();
  const Span span = is_send_ ? call.inputs[0] : call.outputs[0];
  Note mine{call.fingerprint(), span.bytes}, theirs;
  const bool is_first = communicator_ == nullptr;
  if (is_send_) {
    if (is_first) nccl_check(nccl().GetUniqueId(&mine.id), "ncclGetUniqueId");
    say(call, kAbout, mine);
    theirs = hear(call, kAnswer);
  } else {
    theirs = hear(call, kAbout);
    mine.id = theirs.id;
    say(call, kAnswer, mine);
  }
  if (theirs.key != mine.key || theirs.bytes != mine.bytes)
    throw Failure(Failure::Kind::Mismatch, "", peer_, is_send_);
  const Deadline end = std::chrono::steady_clock::now() + call.timeout;
  if (is_first) {
    communicator_ = engine_.made_communicator(is_send_ ? 0 : 1, 2, mine.id);
    communicator_->connect(end);
  }
  if (span.bytes == 0) return;
  communicator_->run(call.after, end, [&](NcclComm comm, void* stream) {
    if (is_send_)
      nccl_check(nccl().Send(span.data, span.bytes, NcclType::UInt8, 1, comm, stream), "ncclSend");
    else
      nccl_check(nccl().Recv(span.data, span.bytes, NcclType::UInt8, 0, comm, stream), "ncclRecv");
  });
}

void NcclEngine::Channel::say(const Call& call, int64_t tag, const Note& note) {
  Call side = at_the_side(call, Function::Send);
  side.root = peer_;
  side.tag = tag;
  auto* const data = reinterpret_cast<char*>(const_cast<Note*>(&note));
  side.inputs = {{data, sizeof note}};
  engine_.side_->send(side)->wait(call.timeout);
}

NcclEngine::Channel::Note NcclEngine::Channel::hear(const Call& call, int64_t tag) {
  Note note;
  Call side = at_the_side(call, Function::Receive);
  side.root = peer_;
  side.tag = tag;
  side.outputs = {{reinterpret_cast<char*>(&note), sizeof note}};
  engine_.side_->receive(side)->wait(call.timeout);
  return note;
}

}  // namespace treadle::distributed
