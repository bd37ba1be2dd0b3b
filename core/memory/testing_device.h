// SimulatedDevice: a device for tests of the allocator. Its memory has addresses and a capacity,
// but no bytes. Its streams are queues of work that completes when the test says so.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/memory/caching_allocator.h"

namespace treadle {

class SimulatedDevice final : public RawDevice {
 public:
  explicit SimulatedDevice(size_t capacity = size_t{1} << 30, int index = 0)
      : capacity(capacity), index_(index), next_(uintptr_t(index + 1) << 44) {}

  // Queues a piece of work and returns the number of pieces that the stream has received.
  int64_t work(uint64_t stream) {
    const std::lock_guard lock(mutex_);
    return ++streams_[stream].queued;
  }
  // Runs at most that many pieces of a stream's work.
  void advance(uint64_t stream, int64_t pieces) {
    const std::lock_guard lock(mutex_);
    Stream& s = streams_[stream];
    s.done = std::min(s.queued, s.done + pieces);
  }
  int64_t done(uint64_t stream) const {
    const std::lock_guard lock(mutex_);
    const auto it = streams_.find(stream);
    return it == streams_.end() ? 0 : it->second.done;
  }
  int64_t queued(uint64_t stream) const {
    const std::lock_guard lock(mutex_);
    const auto it = streams_.find(stream);
    return it == streams_.end() ? 0 : it->second.queued;
  }

  // The address of the next allocation.
  uintptr_t next_address() const {
    const std::lock_guard lock(mutex_);
    return next_;
  }

  std::string name() override { return str("device:", index_); }
  uint64_t captured_with(uint64_t stream) override {
    const auto it = joined.find(stream);
    return it == joined.end() ? stream : it->second;
  }
  std::map<uint64_t, uint64_t> joined;  // streams, to those with which they are captured
  void* allocate(size_t nbytes) override {
    const std::lock_guard lock(mutex_);
    const bool refused = to_refuse > 0 && to_refuse-- > 0;
    check<ErrorKind::OutOfMemory>(!refused && used + nbytes <= capacity, "out of memory\ncode 2");
    check<ErrorKind::Runtime>(!broken, "the device is broken");
    void* data = reinterpret_cast<void*>(next_);
    next_ += (nbytes + kPage - 1) / kPage * kPage;
    segments_[data] = nbytes;
    used += nbytes;
    ++allocations;
    return data;
  }
  void deallocate(void* data, size_t nbytes) noexcept override {
    const std::lock_guard lock(mutex_);
    const auto it = segments_.find(data);
    if (it == segments_.end() || it->second != nbytes) {
      ++wrong_deallocations;
      return;
    }
    segments_.erase(it);
    used -= nbytes;
    ++deallocations;
    deallocated.push_back({data, nbytes});
  }
  void synchronize() override {
    const std::lock_guard lock(mutex_);
    ++synchronizations;
    for (auto& [number, s] : streams_) s.done = s.queued;
  }

  void* create_event() override {
    const std::lock_guard lock(mutex_);
    ++events;
    return new Event;
  }
  void destroy_event(void* event) noexcept override {
    const std::lock_guard lock(mutex_);
    --events;
    delete static_cast<Event*>(event);
  }
  void record_event(void* event, uint64_t stream) override {
    const std::lock_guard lock(mutex_);
    check<ErrorKind::Runtime>(!broken, "the device is broken");
    *static_cast<Event*>(event) = {stream, streams_[stream].queued};
  }
  bool event_complete(void* event) override {
    const std::lock_guard lock(mutex_);
    ++queries;
    check<ErrorKind::Runtime>(!broken, "the device is broken");
    const Event& e = *static_cast<Event*>(event);
    return streams_[e.stream].done >= e.mark;
  }
  Memory memory() override {
    const std::lock_guard lock(mutex_);
    return {capacity - used, knows_memory ? capacity : 0};
  }

  size_t capacity, used = 0;
  int to_refuse = 0;    // requests to come that are refused
  bool broken = false;  // requests and events throw RuntimeError
  bool knows_memory = true;
  int64_t allocations = 0, deallocations = 0, synchronizations = 0;
  int64_t wrong_deallocations = 0;                    // of what was not allocated so
  int64_t events = 0, queries = 0;                    // events: not destroyed
  std::vector<std::pair<void*, size_t>> deallocated;  // for the test to read and clear

 private:
  static constexpr size_t kPage = size_t{2} << 20;
  struct Stream {
    int64_t queued = 0, done = 0;
  };
  struct Event {
    uint64_t stream = 0;
    int64_t mark = 0;  // the number of pieces that the stream had received when it was recorded
  };

  mutable std::mutex mutex_;
  int index_;
  uintptr_t next_;  // addresses are not used twice
  std::map<void*, size_t> segments_;
  std::map<uint64_t, Stream> streams_;
};

}  // namespace treadle
