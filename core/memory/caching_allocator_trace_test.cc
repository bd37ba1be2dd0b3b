// The caching allocator over long random traces and in loops like those of training, on simulated
// devices. Each call is compared with a simple allocator under the same rules, and with a record of
// the addresses in use and the streams that may still use them.
//
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "core/base/error.h"
#include "core/memory/caching_allocator.h"
#include "core/memory/testing_device.h"
#include "core/memory/testing_reference_allocator.h"

namespace treadle {
namespace {

constexpr size_t kKiB = 1024, kMiB = 1024 * kKiB, kGiB = 1024 * kMiB;
constexpr uint64_t kStreams = 3;

uintptr_t number(const void* address) { return reinterpret_cast<uintptr_t>(address); }

// Random numbers, the same everywhere.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed * 0x9E3779B97F4A7C15u + 1) {}
  uint64_t below(uint64_t n) {
    state_ ^= state_ << 13, state_ ^= state_ >> 7, state_ ^= state_ << 17;
    return (state_ * 0x2545F4914F6CDD1Du >> 11) % n;
  }
  // Sizes as programs have them: of every order of magnitude.
  size_t size(int orders) {
    return 1 + below(size_t{1} << (1 + below(static_cast<uint64_t>(orders))));
  }

 private:
  uint64_t state_;
};

// The addresses in use, and the streams that may still use the freed ones.
class Addresses {
 public:
  explicit Addresses(const SimulatedDevice& device) : device_(device) {}

  void taken(uintptr_t start, size_t size, uint64_t stream) {
    const std::lock_guard lock(mutex_);
    const uintptr_t end = start + size;
    const auto after = used_.lower_bound(start);
    ASSERT_TRUE(after == used_.end() || after->first >= end) << "overlaps the block behind";
    ASSERT_TRUE(after == used_.begin() || std::prev(after)->second.end <= start)
        << "overlaps the block before";
    check_freed(start, end, stream);
    used_[start] = {end, stream, {}};
  }
  void used_by(uintptr_t start, uint64_t stream) {
    const std::lock_guard lock(mutex_);
    used_.at(start).waits[stream] = 0;
  }
  // Call it before the block is freed.
  void freed(uintptr_t start) {
    const std::lock_guard lock(mutex_);
    Range range = used_.at(start);
    used_.erase(start);
    for (auto& [stream, mark] : range.waits) mark = device_.queued(stream);
    freed_[start] = range;
  }
  void given_back(uintptr_t start, size_t size) {
    const std::lock_guard lock(mutex_);
    const auto next = used_.lower_bound(start);
    ASSERT_TRUE(next == used_.end() || next->first >= start + size) << "a tensor is there";
    check_freed(start, start + size, std::nullopt);
  }

 private:
  struct Range {
    uintptr_t end;
    uint64_t stream;
    std::map<uint64_t, int64_t> waits;
  };

  // Freed addresses in the range may be used, by the stream if one is given. It is forgotten.
  void check_freed(uintptr_t start, uintptr_t end, std::optional<uint64_t> stream) {
    auto it = freed_.lower_bound(start);
    if (it != freed_.begin() && std::prev(it)->second.end > start) --it;
    while (it != freed_.end() && it->first < end) {
      const uintptr_t from = it->first;
      const Range range = it->second;
      it = freed_.erase(it);
      if (stream) {
        ASSERT_EQ(range.stream, *stream) << "of another stream";
      }
      for (const auto& [other, mark] : range.waits)
        ASSERT_GE(device_.done(other), mark) << "stream " << other << " may still use it";
      if (from < start) freed_[from] = {start, range.stream, range.waits};
      if (range.end > end) freed_[end] = range;
    }
  }

  const SimulatedDevice& device_;
  std::mutex mutex_;
  std::map<uintptr_t, Range> used_, freed_;
};

struct Tensor {
  void* data;
  uint64_t stream;
};

// One device with all its state.
struct Device {
  Device(int index, size_t capacity)
      : raw(capacity, index), memory(raw, Reuse::Split), reference(raw), addresses(raw) {}

  void allocate(size_t nbytes, uint64_t stream) {
    const std::optional<uintptr_t> due = reference.allocate(nbytes, stream);
    try {
      void* data = memory.allocate(nbytes, stream);
      ASSERT_TRUE(due.has_value());
      ASSERT_EQ(number(data), *due);
      raw_returns();
      addresses.taken(number(data), nbytes, stream);
      tensors.push_back({data, stream});
    } catch (const Error& error) {
      ASSERT_EQ(error.kind(), ErrorKind::OutOfMemory);
      ASSERT_FALSE(due.has_value());
      raw_returns();
      for (size_t left = tensors.size() / 2; tensors.size() > left;) free(left / 2);
    }
  }
  void free(size_t i) {
    const Tensor tensor = tensors[i];
    tensors[i] = tensors.back();
    tensors.pop_back();
    addresses.freed(number(tensor.data));
    reference.deallocate(number(tensor.data));
    memory.deallocate(tensor.data);
  }
  void use(size_t i, uint64_t stream) {
    const Tensor& tensor = tensors[i];
    if (stream != tensor.stream) {
      reference.record_stream(number(tensor.data), stream);
      memory.record_stream(tensor.data, stream);
      addresses.used_by(number(tensor.data), stream);
    }
    raw.work(stream);
  }
  void empty_cache() {
    reference.empty_cache();
    memory.empty_cache();
    raw_returns();
  }
  void set_fraction(double fraction) {
    memory.set_fraction(fraction);
    reference.limit = static_cast<size_t>(fraction * static_cast<double>(raw.capacity));
  }
  void raw_returns() {
    for (const auto& [data, size] : raw.deallocated) addresses.given_back(number(data), size);
    raw.deallocated.clear();
  }

  void compare_snapshots() {
    const std::vector<SegmentSnapshot> shown = memory.snapshot();
    ASSERT_EQ(shown.size(), reference.segments.size());
    auto it = reference.segments.begin();
    for (const SegmentSnapshot& s : shown) {
      const auto& [address, segment] = *it++;
      ASSERT_EQ(number(s.address), address);
      ASSERT_EQ(s.size, segment.size);
      ASSERT_EQ(s.stream, segment.stream);
      ASSERT_EQ(s.large, segment.large);
      ASSERT_EQ(s.blocks.size(), segment.blocks.size());
      for (size_t i = 0; i < s.blocks.size(); ++i) {
        ASSERT_EQ(number(s.blocks[i].address), segment.blocks[i].address);
        ASSERT_EQ(s.blocks[i].size, segment.blocks[i].size);
        ASSERT_EQ(s.blocks[i].requested, segment.blocks[i].requested);
        ASSERT_EQ(s.blocks[i].state, segment.blocks[i].state);
      }
    }
  }

  SimulatedDevice raw;
  CachingAllocator memory;
  ReferenceAllocator reference;
  Addresses addresses;
  std::vector<Tensor> tensors;
};

TEST(Traces, AMillionCallsAreAsTheRulesSay) {
  std::vector<std::unique_ptr<Device>> devices;
  for (int i = 0; i < 2; ++i) devices.push_back(std::make_unique<Device>(i, kGiB));
  Random random(1);
  int64_t emptied[2] = {0, 0};
  for (int step = 0; step < 1000000; ++step) {
    const uint64_t which = random.below(2);
    Device& device = *devices[which];
    const size_t tensors = device.tensors.size();
    const uint64_t what = random.below(10000), stream = random.below(kStreams);
    if (what < 4200 || tensors == 0) {
      device.allocate(random.size(random.below(4) ? 19 : 25), stream);
    } else if (what < 8200) {
      device.free(random.below(tensors));
    } else if (what < 9200) {
      device.use(random.below(tensors), stream);
    } else if (what < 9995) {
      device.raw.advance(stream, static_cast<int64_t>(random.below(8)));
    } else if (what < 9998) {
      device.empty_cache();
      ++emptied[which];
    } else {
      device.set_fraction(0.5 + 0.1 * static_cast<double>(random.below(6)));
    }
    const MemoryStatistics now = device.memory.statistics();
    ASSERT_EQ(now, device.reference.statistics) << "after step " << step;
    ASSERT_EQ(now.num_device_alloc, device.raw.allocations);
    ASSERT_EQ(now.num_device_free, device.raw.deallocations);
    ASSERT_EQ(static_cast<size_t>(now.reserved_bytes.all.current), device.raw.used);
    if (step % 1000 < 2) device.compare_snapshots();
    if (HasFatalFailure()) FAIL() << "at step " << step;
  }
  for (int i = 0; i < 2; ++i) {
    Device& device = *devices[static_cast<size_t>(i)];
    const MemoryStatistics s = device.memory.statistics();
    // The trace contains all kinds of events that it should.
    EXPECT_GT(s.num_ooms, 10);
    EXPECT_GT(s.num_alloc_retries, 2 * s.num_ooms);
    EXPECT_GT(s.active.all.freed, 100000);
    // Between two times at which segments go back, their number only grows, to at most its peak.
    EXPECT_LE(s.num_device_alloc, (emptied[i] + s.num_alloc_retries + 1) * s.segment.all.peak);
    EXPECT_EQ(device.raw.wrong_deallocations, 0);
    // The count of events in use or cached, which is not one for each record_stream().
    EXPECT_LE(device.raw.events, s.allocation.all.peak * static_cast<int64_t>(kStreams));
    RecordProperty(str("ooms_", i), static_cast<int>(s.num_ooms));
    RecordProperty(str("retries_", i), static_cast<int>(s.num_alloc_retries));
    RecordProperty(str("allocations_", i), static_cast<int>(s.allocation.all.allocated));
    RecordProperty(str("raw_allocations_", i), static_cast<int>(s.num_device_alloc));
  }
}

// Blocks come and go at random while their number stays the same. By the fifty-percent rule (Knuth,
// The Art of Computer Programming, 2.5: there are half as many free blocks as used ones, or fewer),
// and because best fit leaves free blocks that are no larger on average than the used ones,
// reserved memory is at most 1.5 times the used memory, plus one started segment for each of the
// pools.
TEST(Traces, LittleIsLostBetweenBlocks) {
  for (const int orders : {16, 19, 24}) {
    Device device(0, size_t{1} << 40);
    Random random(static_cast<uint64_t>(orders));
    for (int step = 0; step < 60000; ++step) {
      if (device.tensors.size() >= 1500) device.free(random.below(device.tensors.size()));
      device.allocate(random.size(orders), random.below(kStreams));
      if (HasFatalFailure()) FAIL();
    }
    const MemoryStatistics s = device.memory.statistics();
    const int64_t begun = static_cast<int64_t>(kStreams * (2 + (orders > 19 ? 20 : 0)) * kMiB);
    EXPECT_LE(s.reserved_bytes.all.peak, s.active_bytes.all.peak * 3 / 2 + begun) << orders;
    // No memory was returned, so each segment was requested once.
    EXPECT_EQ(s.num_device_alloc, s.segment.all.peak);
    RecordProperty(str("reserved_percent_of_active_", orders),
                   static_cast<int>(s.reserved_bytes.all.peak * 100 / s.active_bytes.all.peak));
  }
}

// A step of training: activations are made and kept, workspaces come and go, gradients are made
// while activations are freed, and go to a second stream that adds them up over devices.
TEST(Traces, ALoopAsksTheDeviceForNothingAfterItsFirstTurn) {
  Device device(0, size_t{1} << 40);
  Random random(5);
  std::vector<size_t> layers;
  for (int i = 0; i < 40; ++i) layers.push_back(random.size(24));
  for (const size_t size : layers) device.allocate(size, 0), device.allocate(2 * size, 0);
  const auto free_last = [&] { device.free(device.tensors.size() - 1); };
  int64_t after_first = 0;
  for (int turn = 0; turn < 50; ++turn) {
    for (const size_t size : layers) {
      device.allocate(8 * size, 0);  // workspace
      free_last();
      device.allocate(3 * size, 0);
    }
    for (auto size = layers.rbegin(); size != layers.rend(); ++size) {
      device.allocate(*size, 0);
      device.use(device.tensors.size() - 1, 1);
      free_last();  // the gradient, which the other stream has
      free_last();  // the activation
    }
    device.raw.advance(1, INT32_MAX);
    ASSERT_FALSE(HasFatalFailure());
    if (turn == 0) after_first = device.raw.allocations;
    ASSERT_EQ(device.raw.allocations, after_first) << "turn " << turn;
  }
  EXPECT_EQ(device.memory.statistics(), device.reference.statistics);
  EXPECT_EQ(device.raw.deallocations, 0);
  EXPECT_EQ(device.raw.synchronizations, 0);
}

struct Threads : testing::TestWithParam<Reuse> {};

TEST_P(Threads, DoNotDisturbEachOther) {
  SimulatedDevice raw(kGiB);
  CachingAllocator memory(raw, GetParam());
  Addresses addresses(raw);
  std::atomic<int64_t> allocated{0}, failed{0};
  const auto run = [&](uint64_t seed) {
    Random random(seed);
    std::vector<Tensor> mine;
    const auto free = [&](size_t i) {
      addresses.freed(number(mine[i].data));
      memory.deallocate(mine[i].data);
      mine[i] = mine.back();
      mine.pop_back();
    };
    for (int step = 0; step < 50000; ++step) {
      const uint64_t what = random.below(1000), stream = random.below(kStreams);
      if (what < 420 || mine.empty()) {
        const size_t nbytes = random.size(random.below(4) ? 19 : 25);
        try {
          void* data = memory.allocate(nbytes, stream);
          addresses.taken(number(data), nbytes, stream);
          mine.push_back({data, stream});
          ++allocated;
        } catch (const Error& error) {
          EXPECT_EQ(error.kind(), ErrorKind::OutOfMemory);
          ++failed;
          while (mine.size() > 10) free(random.below(mine.size()));
        }
      } else if (what < 820) {
        free(random.below(mine.size()));
      } else if (what < 920) {
        const Tensor& tensor = mine[random.below(mine.size())];
        memory.record_stream(tensor.data, stream);
        if (stream != tensor.stream) addresses.used_by(number(tensor.data), stream);
        raw.work(stream);
      } else if (what < 998) {
        raw.advance(stream, static_cast<int64_t>(random.below(8)));
      } else if (what < 999) {
        memory.empty_cache();
      } else {
        EXPECT_LE(memory.statistics().active_bytes.all.current, static_cast<int64_t>(kGiB));
        EXPECT_LE(memory.snapshot().size(), kGiB / 512);
      }
    }
    while (!mine.empty()) free(0);
  };
  std::vector<std::thread> threads;
  for (uint64_t seed = 1; seed <= 4; ++seed) threads.emplace_back(run, seed);
  for (std::thread& thread : threads) thread.join();
  raw.synchronize();
  memory.empty_cache();
  const MemoryStatistics s = memory.statistics();
  EXPECT_EQ(s.allocation.all.allocated, allocated);
  EXPECT_EQ(s.num_ooms, failed);
  for (const auto& [name, member] : kPooledStatistics) {
    EXPECT_EQ((s.*member).all.current, 0) << name;
    EXPECT_EQ((s.*member).all.allocated, (s.*member).all.freed) << name;
    EXPECT_EQ((s.*member).small_pool.freed + (s.*member).large_pool.freed, (s.*member).all.freed);
  }
  EXPECT_EQ(raw.used, 0u);
  EXPECT_EQ(raw.wrong_deallocations, 0);
  EXPECT_TRUE(memory.snapshot().empty());
}
INSTANTIATE_TEST_SUITE_P(Reuses, Threads, testing::Values(Reuse::Split, Reuse::Whole),
                         [](const auto& info) {
                           return info.param == Reuse::Split ? "Split" : "Whole";
                         });

}  // namespace
}  // namespace treadle
