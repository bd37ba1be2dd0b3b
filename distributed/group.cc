// SPDX-License-Identifier: Apache-2.0
#include "distributed/group.h"

#include <algorithm>
#include <sstream>
#include <utility>

namespace treadle::distributed {
namespace {

constexpr size_t kRecorded = 1024;  // calls
constexpr size_t kFailures = 64;    // that nobody asked for

double now() {
  const auto since = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration<double>(since).count();
}

}  // namespace

Group::Group(std::shared_ptr<Engine> engine, std::vector<int> members, std::string name)
    : name(std::move(name)), engine_(std::move(engine)), members_(std::move(members)) {}

Group::~Group() {
  abort();
  shut_down(milliseconds(0));
}

std::shared_ptr<Entry> Group::enter(const Call& call, std::vector<int64_t> shape) {
  auto entry = std::make_shared<Entry>();
  entry->is_message = call.function >= Function::Send;
  entry->number = call.number;
  entry->name = call.name;
  entry->dtype = call.dtype;
  entry->shape = std::move(shape);
  entry->root = call.root;
  entry->queued = now();
  if (entries_.size() == kRecorded) entries_.pop_front();
  entries_.push_back(entry);
  return entry;
}

void Group::mark(Entry& entry, Entry::State state) {
  const std::lock_guard lock(mutex_);
  entry.state = state;
  (state == Entry::State::Running ? entry.started : entry.ended) = now();
}

Failure Group::noted(const Call& call, const Failure& failure) {
  std::ostringstream text;
  text << call.name << ": expected ";
  const std::string who =
      failure.peer < 0 ? "the other ranks"
                       : "rank " + std::to_string(members_[static_cast<size_t>(failure.peer)]);
  const char* what = failure.is_send ? " to take data" : "";
  switch (failure.kind) {
    case Failure::Kind::Timeout:
      text << (failure.is_send ? "" : "data from ") << who << what << " within "
           << static_cast<double>(call.timeout.count()) / 1e3 << " s, got none";
      break;
    case Failure::Kind::Network:
      if (failure.peer < 0)
        text << "a group without a failed call, got an earlier error (" << failure.what() << ")";
      else
        text << (failure.is_send ? "" : "data from ") << who << what << ", but it is gone ("
             << failure.what() << ")";
      break;
    case Failure::Kind::Aborted:
      text << "a group that is connected, but it was aborted";
      break;
    case Failure::Kind::Mismatch:
      text << who
           << " to make the same call, got another function, shape, dtype, operation or root";
      break;
    case Failure::Kind::Backend:
      text.str(call.name + ": " + failure.what());
      break;
  }
  Failure named(failure.kind, text.str(), failure.peer, failure.is_send);
  const std::lock_guard lock(mutex_);
  if (failures_.size() == kFailures) failures_.pop_front();
  failures_.push_back({call.number, call.name, named});
  changed_.notify_all();
  return named;
}

template <class F>
int Group::recorded(const Call& call, Entry& entry, F&& wait) {
  mark(entry, Entry::State::Running);
  try {
    const int peer = wait();
    mark(entry, Entry::State::Done);
    return peer;
  } catch (const Failure& failure) {
    mark(entry, Entry::State::Failed);
    throw noted(call, failure);
  } catch (const std::exception& error) {
    mark(entry, Entry::State::Failed);
    throw noted(call, Failure(Failure::Kind::Backend, error.what()));
  }
}

std::shared_ptr<Work> Group::run(Call call, std::vector<int64_t> shape, bool later) {
  std::shared_ptr<Entry> entry;
  std::shared_ptr<Work> work;
  call.after = engine_->queued_work();
  {
    const std::lock_guard lock(mutex_);
    call.number = ++calls_;
    entry = enter(call, std::move(shape));
    if (!later && !is_busy_ && tasks_.empty()) {
      is_busy_ = true;
    } else {
      work = make_of_this_process<Work>();
      tasks_.push_back({std::move(call), entry, work});
      if (!worker_) worker_ = std::make_unique<std::thread>([this] { this->work(); });
      changed_.notify_all();
    }
  }
  if (work) {
    if (later) return work;
    work->wait({});
    if (auto failure = work->failure()) throw *failure;
    return nullptr;
  }
  const auto leave = [this] {
    const std::lock_guard lock(mutex_);
    is_busy_ = false;
    if (!tasks_.empty() || is_ending_) changed_.notify_all();
  };
  try {
    recorded(call, *entry, [&] {
      engine_->run(call);
      return kAnyRank;
    });
  } catch (...) {
    leave();
    throw;
  }
  leave();
  return nullptr;
}

void Group::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return (!tasks_.empty() && !is_busy_) || is_ending_; });
    if (tasks_.empty() && is_ending_) return;
    if (is_busy_) {
      // The program's own thread ends its call first.
      changed_.wait(lock, [this] { return !is_busy_; });
    }
    Task task = std::move(tasks_.front());
    tasks_.pop_front();
    is_busy_ = true;
    lock.unlock();
    std::optional<Failure> failure;
    try {
      recorded(task.call, *task.entry, [&] {
        engine_->run(task.call);
        return kAnyRank;
      });
    } catch (const Failure& found) {
      failure = found;
    }
    lock.lock();
    is_busy_ = false;
    lock.unlock();
    changed_.notify_all();
    task.work->end(std::move(failure));
    task = {};
    lock.lock();
  }
}

std::shared_ptr<Work> Group::post(Call call, std::vector<int64_t> shape) {
  std::shared_ptr<Entry> entry;
  call.after = engine_->queued_work();
  {
    const std::lock_guard lock(mutex_);
    call.number = ++messages_;
    entry = enter(call, std::move(shape));
  }
  std::unique_ptr<Message> message;
  try {
    message = call.function == Function::Send ? engine_->send(call) : engine_->receive(call);
  } catch (const Failure& failure) {
    mark(*entry, Entry::State::Failed);
    throw noted(call, failure);
  }
  mark(*entry, Entry::State::Running);
  const milliseconds timeout = call.timeout;
  auto run = [this, entry, call = std::move(call)](const std::function<int()>& wait) {
    return recorded(call, *entry, wait);
  };
  return make_of_this_process<MessageWork>(std::move(message), timeout, std::move(run), waiters_);
}

std::vector<Entry> Group::record() {
  const std::lock_guard lock(mutex_);
  std::vector<Entry> found;
  for (const auto& entry : entries_) found.push_back(*entry);
  return found;
}

std::optional<FailedCall> Group::next_failure(milliseconds timeout) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, timeout, [this] { return !failures_.empty() || is_ending_; });
  if (failures_.empty()) return {};
  FailedCall found = failures_.front();
  failures_.pop_front();
  return found;
}

void Group::abort() { engine_->abort(); }

void Group::shut_down(milliseconds timeout) {
  const auto end = std::chrono::steady_clock::now() + timeout;
  bool in_time;
  {
    std::unique_lock lock(mutex_);
    in_time = changed_.wait_until(lock, end, [this] { return tasks_.empty() && !is_busy_; });
    is_ending_ = true;
  }
  changed_.notify_all();
  if (in_time) {
    const auto left =
        std::chrono::duration_cast<milliseconds>(end - std::chrono::steady_clock::now());
    engine_->flush(std::max(left, milliseconds(0)));
  }
  engine_->abort();
  if (worker_ && worker_->joinable()) worker_->join();
  waiters_->join();
}

}  // namespace treadle::distributed
