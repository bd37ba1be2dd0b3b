// SPDX-License-Identifier: Apache-2.0
#include "distributed/work.h"

#include <thread>
#include <utility>

namespace treadle::distributed {
namespace {

// How long a question whether a message is there waits for the thread that looks.
constexpr milliseconds kLook(1);

}  // namespace

void Waiters::start(std::function<void()> wait) {
  {
    const std::lock_guard lock(mutex_);
    ++count_;
  }
  std::thread([this, wait = std::move(wait)]() mutable {
    wait();
    wait = nullptr;
    const std::lock_guard lock(mutex_);
    --count_;
    changed_.notify_all();
  }).detach();
}

void Waiters::join() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return count_ == 0; });
}

bool Work::wait(std::optional<milliseconds> timeout) {
  std::unique_lock lock(mutex_);
  const auto has_ended = [this] { return is_done_; };
  if (timeout) return changed_.wait_for(lock, *timeout, has_ended);
  changed_.wait(lock, has_ended);
  return true;
}

bool Work::is_done() {
  const std::lock_guard lock(mutex_);
  return is_done_;
}

std::optional<Failure> Work::failure() {
  const std::lock_guard lock(mutex_);
  return failure_;
}

int Work::peer() {
  const std::lock_guard lock(mutex_);
  return peer_;
}

void Work::on_done(std::function<void()> callback) {
  {
    const std::lock_guard lock(mutex_);
    if (!is_done_) {
      callbacks_.push_back(std::move(callback));
      callback = nullptr;
    }
  }
  if (callback)
    callback();
  else
    watch();
}

void Work::end(std::optional<Failure> failure, int peer) {
  std::vector<std::function<void()>> callbacks;
  {
    const std::lock_guard lock(mutex_);
    is_done_ = true;
    failure_ = std::move(failure);
    peer_ = peer;
    callbacks.swap(callbacks_);
    changed_.notify_all();
  }
  for (const auto& callback : callbacks) callback();
}

MessageWork::MessageWork(std::unique_ptr<Message> message, milliseconds timeout, Run run,
                         std::shared_ptr<Waiters> waiters)
    : message_(std::move(message)),
      timeout_(timeout),
      run_(std::move(run)),
      waiters_(std::move(waiters)) {}

bool MessageWork::claim() {
  const std::lock_guard lock(mutex_);
  return !is_done_ && !std::exchange(is_claimed_, true);
}

void MessageWork::wait_in_engine() {
  try {
    const int peer = run_([this] { return message_->wait(timeout_); });
    end({}, peer);
  } catch (const Failure& failure) {
    end(failure);
  }
}

bool MessageWork::wait(std::optional<milliseconds> timeout) {
  if (timeout)
    watch();
  else if (claim())
    wait_in_engine();
  return Work::wait(timeout);
}

bool MessageWork::is_done() {
  watch();
  return Work::wait(kLook);
}

void MessageWork::watch() {
  if (!claim()) return;
  waiters_->start([self = shared_from_this(), this]() mutable { wait_in_engine(); });
}

void MessageWork::cancel() { message_->cancel(); }

}  // namespace treadle::distributed
