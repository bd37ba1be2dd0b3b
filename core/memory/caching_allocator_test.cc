// The caching allocator, rule by rule, on a simulated device.
//
// SPDX-License-Identifier: Apache-2.0
#include "core/memory/caching_allocator.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/memory/testing_device.h"

namespace treadle {
namespace {

constexpr size_t kKiB = 1024, kMiB = 1024 * kKiB;

template <class F>
std::string error_of(F f, ErrorKind kind) {
  try {
    f();
  } catch (const Error& e) {
    return e.kind() == kind ? e.what() : std::string("another kind of error: ") + e.what();
  }
  return "no error";
}

struct Caching : testing::Test {
  void start(Reuse reuse, size_t capacity = size_t{1} << 30) {
    memory.reset();
    device.emplace(capacity);
    memory.emplace(*device, reuse);
  }
  Caching() { start(Reuse::Split); }
  ~Caching() override {
    memory.reset();
    EXPECT_EQ(device->used, 0u);
    EXPECT_EQ(device->wrong_deallocations, 0);
    EXPECT_EQ(device->events, 0);
  }

  char* get(size_t nbytes, uint64_t stream = 0) {
    return static_cast<char*>(memory->allocate(nbytes, stream));
  }
  void put(void* data) { memory->deallocate(data); }
  MemoryStatistics now() const { return memory->statistics(); }
  size_t reserved() const { return static_cast<size_t>(now().reserved_bytes.all.current); }

  std::optional<SimulatedDevice> device;
  std::optional<CachingAllocator> memory;
};
using Whole = Caching;
using Uncached = Caching;
using Pools = Caching;

// ---- sizes and segments ----

TEST_F(Caching, NothingIsNull) {
  EXPECT_EQ(get(0), nullptr);
  put(nullptr);
  EXPECT_EQ(device->allocations, 0);
}

TEST_F(Caching, SizesAreRoundedTo512Bytes) {
  char* const first = get(1);
  EXPECT_EQ(get(512) - first, 512);
  EXPECT_EQ(get(513) - first, 1024);
  EXPECT_EQ(get(1) - first, 2048);
  EXPECT_EQ(now().allocated_bytes.all.current, 5 * 512);
  EXPECT_EQ(now().requested_bytes.all.current, 1 + 512 + 513 + 1);
}

TEST_F(Caching, SegmentsAreOf2And20MiBAndTheirOwnSize) {
  for (const auto& [nbytes, segment] : std::vector<std::pair<size_t, size_t>>{
           {1, 2 * kMiB},
           {kMiB, 2 * kMiB},
           {kMiB + 1, 20 * kMiB},
           {10 * kMiB - 512, 20 * kMiB},
           {10 * kMiB, 10 * kMiB},
           {10 * kMiB + 1, 12 * kMiB},
           {33 * kMiB, 34 * kMiB},
       }) {
    start(Reuse::Split);
    put(get(nbytes));
    EXPECT_EQ(reserved(), segment) << nbytes;
    EXPECT_EQ(now().reserved_bytes.large_pool.current, segment > 2 * kMiB ? segment : 0);
  }
}

TEST_F(Caching, WhatIsLeftOfABlockIsKeptWhereItIsOfUse) {
  // Small blocks: from 512 bytes on.
  get(kMiB), get(kMiB - 512);
  EXPECT_EQ(now().inactive_split_bytes.all.current, 512);
  get(512);
  EXPECT_EQ(now().inactive_split.all.current, 0);
  EXPECT_EQ(device->allocations, 1);
  // Large ones: above 1 MiB. A smaller rest stays with the block.
  start(Reuse::Split);
  char* const all = get(11 * kMiB);
  EXPECT_EQ(now().allocated_bytes.all.current, 12 * kMiB);
  put(all);
  EXPECT_EQ(get(11 * kMiB - 512), all);
  EXPECT_EQ(now().allocated_bytes.all.current, 11 * kMiB - 512);
  EXPECT_EQ(now().inactive_split_bytes.large_pool.current, kMiB + 512);
}

// ---- finding, cutting, joining ----

TEST_F(Caching, TheSmallestBlockThatIsLargeEnoughServes) {
  std::vector<char*> blocks;
  for (const size_t size : {8, 2, 4, 2, 2, 2, 4, 2}) blocks.push_back(get(size * kKiB));
  for (const size_t i : {0, 2, 4, 6}) put(blocks[i]);
  EXPECT_EQ(get(3 * kKiB), blocks[2]);  // of two equal ones the first
  EXPECT_EQ(get(3 * kKiB), blocks[6]);
  EXPECT_EQ(get(5 * kKiB), blocks[0]);
  EXPECT_EQ(get(2 * kKiB), blocks[4]);
  EXPECT_EQ(get(1 * kKiB), blocks[2] + 3 * kKiB);
  EXPECT_EQ(get(2 * kKiB), blocks[0] + 5 * kKiB);
}

TEST_F(Caching, FreeNeighboursAreJoined) {
  const auto free_blocks = [&] { return now().inactive_split.all.current; };
  // Freed in each order of three: before, after and between free neighbours.
  std::vector<int> order{0, 1, 2};
  do {
    start(Reuse::Split);
    std::vector<char*> blocks{get(kKiB), get(kKiB), get(kKiB)};
    char* const fence = get(kKiB);
    for (const int i : order) put(blocks[static_cast<size_t>(i)]);
    EXPECT_EQ(free_blocks(), 2) << "the three, and the end of the segment";
    EXPECT_EQ(get(3 * kKiB), blocks[0]);
    put(blocks[0]), put(fence);
    EXPECT_EQ(free_blocks(), 0);
    EXPECT_EQ(memory->snapshot().at(0).blocks.size(), 1u);
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST_F(Caching, SegmentsAreNotJoined) {
  device->capacity = 4 * kMiB;
  char* const one = get(kMiB);
  get(kMiB);
  char* const two = get(kMiB);
  EXPECT_EQ(two - one, 2 * kMiB) << "segments side by side";
  put(two);
  EXPECT_EQ(memory->snapshot().size(), 2u);
  EXPECT_EQ(now().inactive_split.all.current, 0);
}

TEST_F(Caching, SmallAndLargeBlocksAreApart) {
  put(get(5 * kMiB));
  get(kKiB);
  EXPECT_EQ(device->allocations, 2);
  const MemoryStatistics s = now();
  EXPECT_EQ(s.segment.small_pool.current, 1);
  EXPECT_EQ(s.segment.large_pool.current, 1);
  EXPECT_EQ(s.segment.all.current, 2);
  EXPECT_EQ(s.allocated_bytes.small_pool.allocated, 1024);
  EXPECT_EQ(s.allocated_bytes.large_pool.freed, 5 * kMiB);
}

TEST_F(Caching, AStreamHasItsOwnBlocks) {
  char* const first = get(kKiB, 1);
  put(first);
  EXPECT_NE(get(kKiB, 2), first);
  EXPECT_EQ(get(kKiB, 1), first);
  EXPECT_EQ(device->allocations, 2);
}

TEST_F(Caching, WhatIsNotAllocatedIsIgnored) {
  char* const block = get(kKiB);
  int elsewhere = 0;
  put(block + 512), put(&elsewhere);
  EXPECT_EQ(now().allocation.all.current, 1);
  put(block), put(block);
  EXPECT_EQ(now().allocation.all.freed, 1);
  memory->record_stream(block, 1);
  EXPECT_EQ(device->events, 0);
}

// ---- other streams ----

TEST_F(Caching, ABlockThatOthersUsedWaitsForThem) {
  char* const block = get(kKiB, 1);
  for (const uint64_t stream : {2, 3, 2, 1}) memory->record_stream(block, stream);
  EXPECT_EQ(device->events, 2) << "one for each other stream";
  device->work(2), device->work(2), device->work(3);
  put(block);
  device->work(3);
  EXPECT_EQ(now().allocated_bytes.all.current, 0);
  EXPECT_EQ(now().active_bytes.all.current, 1024);
  EXPECT_EQ(memory->snapshot().at(0).blocks.at(0).state, BlockState::Pending);
  EXPECT_NE(get(kKiB, 1), block);
  device->advance(2, 1), device->advance(3, 1);
  EXPECT_NE(get(kKiB, 1), block);
  device->advance(2, 1);
  EXPECT_EQ(get(kKiB, 1), block) << "what stream 3 was given later does not count";
  EXPECT_EQ(device->synchronizations, 0);
  // Events serve again.
  memory->record_stream(block, 3);
  EXPECT_EQ(device->events, 2);
}

TEST_F(Caching, EventsAreAskedForInTheOrderOfTheirStream) {
  std::vector<char*> blocks;
  for (int i = 0; i < 100; ++i) blocks.push_back(get(kKiB));
  for (char* block : blocks) {
    memory->record_stream(block, 1);
    device->work(1);
    put(block);
  }
  device->queries = 0;
  get(kKiB);
  EXPECT_EQ(device->queries, 1) << "those behind one to come are to come";
  device->advance(1, 60);
  get(kKiB);
  EXPECT_EQ(device->queries, 1 + 61);
  EXPECT_EQ(now().active.all.current, 40 + 2);
}

TEST_F(Caching, ABlockWhoseEventCannotBeRecordedIsNotUsedAgain) {
  char* const block = get(kKiB);
  memory->record_stream(block, 1);
  device->broken = true;
  put(block);
  device->broken = false;
  EXPECT_NE(get(kKiB), block);
  EXPECT_EQ(now().active.all.current, 2);
  EXPECT_EQ(now().allocation.all.current, 1);
}

TEST_F(Caching, ADestroyedStreamLeavesItsBlocksToTheDefaultOne) {
  char* const kept = get(kKiB, 7);
  char* const held = get(kKiB, 7);
  get(512, 7);  // so that nothing is joined with the rest of the segment
  char* const used = get(2 * kKiB, 0);
  char* const waiting = get(4 * kKiB, 0);
  get(512, 0);
  memory->record_stream(used, 7), memory->record_stream(waiting, 7);
  device->work(7);
  put(kept), put(waiting);
  device->advance(7, 1);
  memory->forget_stream(7);
  EXPECT_EQ(get(kKiB, 0), kept);
  EXPECT_EQ(get(4 * kKiB, 0), waiting);
  device->work(7);  // a new stream that has the number
  put(used), put(held);
  EXPECT_EQ(get(2 * kKiB, 0), used) << "nothing is recorded on a stream that is gone";
  EXPECT_EQ(get(kKiB, 0), held);
  get(kKiB, 7);
  EXPECT_EQ(device->allocations, 3);
}

// ---- when memory runs out ----

TEST_F(Caching, FreeSegmentsGoBackWhenMemoryRunsOut) {
  start(Reuse::Split, 64 * kMiB);
  char* const part = get(5 * kMiB);  // of a segment, of which the rest stays
  put(get(30 * kMiB)), put(get(kKiB, 3));
  EXPECT_EQ(reserved(), 52 * kMiB);
  get(40 * kMiB);
  EXPECT_EQ(reserved(), 60 * kMiB);
  EXPECT_EQ(now().num_alloc_retries, 1);
  EXPECT_EQ(now().num_ooms, 0);
  EXPECT_EQ(now().num_device_alloc, 4);
  EXPECT_EQ(now().num_device_free, 2);
  EXPECT_EQ(get(5 * kMiB), part + 5 * kMiB);
}

TEST_F(Caching, PendingEventsAreWaitedForWhenMemoryRunsOut) {
  start(Reuse::Split, 64 * kMiB);
  char* const block = get(40 * kMiB);
  memory->record_stream(block, 1);
  device->work(1);
  put(block);
  EXPECT_EQ(get(40 * kMiB), block) << "what was waited for serves at once";
  EXPECT_EQ(device->synchronizations, 1);
  EXPECT_EQ(now().num_sync_all_streams, 1);
  EXPECT_EQ(device->deallocations, 0);
  memory->record_stream(block, 1);
  device->work(1);
  put(block);
  get(50 * kMiB);
  EXPECT_EQ(device->deallocations, 1);
}

TEST_F(Caching, SaysWhatMemoryIsUsedFor) {
  start(Reuse::Split, 64 * kMiB);
  get(3 * kMiB);
  put(get(30 * kMiB));
  char* const lost = get(kMiB + 512);
  memory->record_stream(lost, 1);
  EXPECT_EQ(error_of([&] { get(50 * kMiB); }, ErrorKind::OutOfMemory),
            "expected to allocate 50.0 MiB on device:0, the device refused: out of memory\n"
            "tensors hold 4.0 MiB, the cache keeps 15.9 MiB of freed memory\n"
            "the device has 44.0 MiB free of 64.0 MiB");
  EXPECT_EQ(now().num_ooms, 1);
  // A wait that fails, because the device is broken.
  device->broken = true;
  put(lost);
  device->broken = false;
  device->knows_memory = false;
  EXPECT_EQ(error_of([&] { get(50 * kMiB); }, ErrorKind::OutOfMemory),
            "expected to allocate 50.0 MiB on device:0, the device refused: out of memory\n"
            "tensors hold 3.0 MiB, the cache keeps 17.0 MiB of freed memory, of which 1.0 MiB wait "
            "for other streams");
  EXPECT_EQ(error_of([&] { get(SIZE_MAX - 5); }, ErrorKind::OutOfMemory),
            "expected to allocate 16.0 EiB on device:0, no device has as much\n"
            "tensors hold 3.0 MiB, the cache keeps 17.0 MiB of freed memory, of which 1.0 MiB wait "
            "for other streams");
  EXPECT_EQ(now().num_ooms, 3);
  EXPECT_EQ(now().allocation.all.current, 1) << "as before";
}

TEST_F(Caching, OtherErrorsOfTheDevicePassThrough) {
  get(kKiB);
  const MemoryStatistics before = now();
  device->broken = true;
  EXPECT_EQ(error_of([&] { get(kMiB * 3); }, ErrorKind::Runtime), "the device is broken");
  EXPECT_EQ(now(), before);
  device->broken = false;
  get(kMiB * 3);
}

TEST_F(Caching, ARefusalNowAndThenIsMadeUpFor) {
  device->to_refuse = 1;
  get(kKiB);
  EXPECT_EQ(now().num_alloc_retries, 1);
  EXPECT_EQ(now().num_device_alloc, 1);
  EXPECT_EQ(now().num_ooms, 0);
}

// ---- the cache as a whole ----

TEST_F(Caching, EmptyCacheGivesFreeSegmentsBack) {
  char* const small = get(kKiB);
  put(get(5 * kMiB)), put(get(kKiB, 1));
  memory->empty_cache();
  EXPECT_EQ(reserved(), 2 * kMiB);
  EXPECT_EQ(device->used, 2 * kMiB);
  put(small);
  memory->empty_cache();
  EXPECT_EQ(reserved(), 0u);
  EXPECT_EQ(device->synchronizations, 0);
  EXPECT_EQ(now().segment.all.freed, 3);
}

TEST_F(Caching, AFractionOfTheMemoryIsALimit) {
  start(Reuse::Split, 64 * kMiB);
  EXPECT_EQ(memory->fraction(), 1);
  memory->set_fraction(0.5);
  EXPECT_EQ(memory->fraction(), 0.5);
  char* const block = get(20 * kMiB);
  EXPECT_EQ(error_of([&] { get(14 * kMiB); }, ErrorKind::OutOfMemory),
            "expected to allocate 14.0 MiB on device:0, the limit of 32.0 MiB refused, a fraction "
            "of 0.5 of its memory\n"
            "tensors hold 20.0 MiB, the cache keeps 0 bytes of freed memory\n"
            "the device has 44.0 MiB free of 64.0 MiB");
  put(block);
  get(30 * kMiB);
  EXPECT_EQ(reserved(), 30 * kMiB);
  memory->set_fraction(1);
  get(32 * kMiB);
  const auto refused = [&](double fraction) {
    return error_of([&] { memory->set_fraction(fraction); }, ErrorKind::Value);
  };
  EXPECT_EQ(refused(1.5), "expected a fraction of the memory between 0 and 1, got 1.5");
  EXPECT_EQ(refused(-1), "expected a fraction of the memory between 0 and 1, got -1.0");
  EXPECT_EQ(refused(0.0 / 0.0), "expected a fraction of the memory between 0 and 1, got nan");
  device->knows_memory = false;
  EXPECT_EQ(error_of([&] { memory->set_fraction(0.5); }, ErrorKind::Runtime),
            "expected a device that knows how much memory it has, got device:0");
}

TEST_F(Caching, PeaksAndSumsStartAgain) {
  char* const block = get(3 * kKiB);
  put(get(kKiB));
  MemoryStatistics s = now();
  EXPECT_EQ(s.allocated_bytes.all, (Statistic{3072, 4096, 4096, 1024}));
  EXPECT_EQ(s.allocation.small_pool, (Statistic{1, 2, 2, 1}));
  EXPECT_EQ(s.requested_bytes.large_pool, Statistic());
  memory->reset_peaks();
  EXPECT_EQ(now().allocated_bytes.all, (Statistic{3072, 3072, 4096, 1024}));
  device->to_refuse = 1;
  get(5 * kMiB);
  memory->reset_accumulated();
  s = now();
  EXPECT_EQ(s.allocated_bytes.small_pool, (Statistic{3072, 3072, 0, 0}));
  EXPECT_EQ(s.num_alloc_retries, 0);
  EXPECT_EQ(s.num_sync_all_streams, 0);
  EXPECT_EQ(s.num_device_alloc, 0);
  put(block);
}

TEST_F(Caching, ASnapshotShowsSegmentsAndBlocks) {
  char* const a = get(1000);
  char* const b = get(1500);
  char* const c = get(5 * kMiB, 4);
  put(a);
  const std::vector<SegmentSnapshot> segments = memory->snapshot();
  ASSERT_EQ(segments.size(), 2u);
  const SegmentSnapshot &small = segments[0], &large = segments[1];
  EXPECT_EQ(small.address, a);
  EXPECT_EQ(small.size, 2 * kMiB);
  EXPECT_EQ(small.stream, 0u);
  EXPECT_FALSE(small.large);
  EXPECT_EQ(large.stream, 4u);
  EXPECT_TRUE(large.large);
  ASSERT_EQ(small.blocks.size(), 3u);
  EXPECT_EQ(small.blocks[0].state, BlockState::Inactive);
  EXPECT_EQ(small.blocks[0].requested, 0u);
  EXPECT_EQ(small.blocks[1].address, b);
  EXPECT_EQ(small.blocks[1].size, 1536u);
  EXPECT_EQ(small.blocks[1].requested, 1500u);
  EXPECT_EQ(small.blocks[1].state, BlockState::Allocated);
  EXPECT_EQ(small.blocks[2].address, b + 1536);
  ASSERT_EQ(large.blocks.size(), 2u);
  EXPECT_EQ(large.blocks[0].address, c);
}

// ---- devices whose addresses are handles, or that keep nothing ----

TEST_F(Whole, ABlockServesARequestOfAboutItsSize) {
  start(Reuse::Whole);
  char* const small = get(1000);
  char* const large = get(1000000);
  put(small), put(large);
  EXPECT_EQ(reserved(), 1024 + 1048576u);
  EXPECT_NE(get(512), small) << "blocks are not cut";
  EXPECT_NE(get(600000), large);
  EXPECT_EQ(get(513), small);
  EXPECT_EQ(get(990000), large) << "an eighth of a power of two is nothing";
  EXPECT_EQ(device->allocations, 4);
  EXPECT_EQ(now().inactive_split.all.allocated, 0);
  EXPECT_EQ(now().requested_bytes.all.current, 512 + 600000 + 513 + 990000);
}

TEST_F(Whole, BlocksWaitAndGoBack) {
  start(Reuse::Whole, 4096);
  char* const block = get(3000);
  memory->record_stream(block, 1);
  device->work(1);
  put(block);
  EXPECT_NE(get(500), block);
  EXPECT_EQ(get(2900), block) << "after a wait, for want of memory";
  EXPECT_EQ(device->synchronizations, 1);
  put(block);
  get(3500);
  EXPECT_EQ(device->deallocations, 1);
}

TEST_F(Uncached, MemoryGoesBackAtOnce) {
  start(Reuse::None);
  char* const block = get(1000);
  EXPECT_EQ(device->used, 1000u);
  memory->record_stream(block, 1);
  put(block);
  EXPECT_EQ(device->used, 0u);
  EXPECT_EQ(device->events, 0);
  const MemoryStatistics s = now();
  EXPECT_EQ(s.allocated_bytes.all, (Statistic{0, 1000, 1000, 1000}));
  EXPECT_EQ(s.reserved_bytes.all, (Statistic{0, 1000, 1000, 1000}));
  EXPECT_EQ(s.active.all, (Statistic{0, 1, 1, 1}));
  EXPECT_EQ(s.num_device_free, 1);
}

// ---- private pools ----

TEST_F(Pools, ACaptureAllocatesFromItsOwnSegments) {
  char* const outside = get(kKiB, 1);
  put(outside);
  const uint64_t pool = memory->begin_pool(1);
  char* const inside = get(kKiB, 1);
  EXPECT_NE(inside, outside);
  put(inside);
  EXPECT_EQ(get(kKiB, 1), inside) << "it reuses what is its own";
  put(inside);
  get(kKiB, 2);  // not captured
  memory->end_pool(1);
  EXPECT_EQ(get(kKiB, 1), outside);
  put(outside);
  memory->empty_cache();
  EXPECT_EQ(reserved(), 4 * kMiB) << "the pool's, and that of stream 2";
  EXPECT_EQ(memory->snapshot().at(0).pool, pool);
  // A second capture continues it.
  EXPECT_EQ(memory->begin_pool(1, pool), pool);
  EXPECT_EQ(get(kKiB, 1), inside);
  put(inside);
  memory->end_pool(1);
  memory->release_pool(pool);
  memory->empty_cache();
  EXPECT_EQ(reserved(), 4 * kMiB) << "released once of two times";
  memory->release_pool(pool);
  memory->empty_cache();
  EXPECT_EQ(reserved(), 2 * kMiB);
  EXPECT_NE(memory->begin_pool(1), pool);
  memory->end_pool(1);
}

TEST_F(Pools, AStreamCapturedWithAnotherHasItsPool) {
  char* const outside = get(kKiB, 2);
  put(outside);
  const uint64_t pool = memory->begin_pool(1);
  char* const first = get(kKiB, 1);
  put(first);
  EXPECT_EQ(get(kKiB, 2), outside) << "not yet";
  put(outside);
  device->joined[2] = 1;
  char* const second = get(kKiB, 2);
  EXPECT_NE(second, outside);
  EXPECT_NE(second, first) << "it is the other stream's";
  put(second);
  EXPECT_EQ(get(kKiB, 2), second);
  put(second);
  device->joined.clear();
  memory->end_pool(1);
  EXPECT_EQ(get(kKiB, 2), outside);
  put(outside);
  memory->empty_cache();
  EXPECT_EQ(reserved(), 4 * kMiB) << "the pool's, of both streams";
  memory->release_pool(pool);
  memory->empty_cache();
  EXPECT_EQ(reserved(), 0u);
}

TEST_F(Pools, ABlockThatOutlivesItsPoolGoesBackLater) {
  const uint64_t pool = memory->begin_pool(1);
  char* const block = get(kKiB, 1);
  memory->end_pool(1);
  memory->release_pool(pool);
  memory->empty_cache();
  EXPECT_EQ(reserved(), 2 * kMiB);
  put(block);
  memory->empty_cache();
  EXPECT_EQ(reserved(), 0u);
}

TEST_F(Pools, EventsAreLeftAloneDuringACapture) {
  char* const before = get(kKiB, 2);
  memory->record_stream(before, 1);
  put(before);
  memory->begin_pool(1);
  char* const block = get(kKiB, 2);
  EXPECT_NE(block, before);
  memory->record_stream(block, 1);
  device->work(1);
  put(block);
  EXPECT_EQ(device->queries, 0);
  char* const second = get(kKiB, 2);
  device->to_refuse = 2;
  EXPECT_EQ(error_of([&] { get(3 * kMiB, 1); }, ErrorKind::OutOfMemory),
            "expected to allocate 3.0 MiB on device:0, the device refused: out of memory\n"
            "tensors hold 1.0 KiB, the cache keeps 1.9 MiB of freed memory, of which 2.0 KiB wait "
            "for other streams\n"
            "the device has 1022.0 MiB free of 1.0 GiB");
  EXPECT_EQ(device->synchronizations, 0);
  memory->end_pool(1);
  device->work(1);
  put(second);
  EXPECT_EQ(get(kKiB, 2), before);
  EXPECT_EQ(get(kKiB, 2), second);
  EXPECT_NE(get(kKiB, 2), block);
  device->advance(1, 1);
  EXPECT_EQ(get(kKiB, 2), block);
}

TEST_F(Pools, MistakesAreSaid) {
  const uint64_t pool = memory->begin_pool(3);
  const auto error = [](auto f) { return error_of(f, ErrorKind::Runtime); };
  EXPECT_EQ(error([&] { memory->begin_pool(3); }),
            "expected a stream without a pool of its own, got stream 3 of device:0, which has one");
  EXPECT_EQ(error([&] { memory->release_pool(pool); }),
            "expected a private pool of device:0 to which nothing is added, got 1, to which stream "
            "3 adds");
  memory->end_pool(3);
  EXPECT_EQ(error([&] { memory->end_pool(3); }),
            "expected a stream with a pool of its own, got stream 3 of device:0, which has none");
  EXPECT_EQ(error([&] { memory->begin_pool(3, 9); }), "expected a private pool of device:0, got 9");
  memory->release_pool(pool);
  EXPECT_EQ(error([&] { memory->release_pool(pool); }),
            "expected a private pool of device:0, got 1");
}

}  // namespace
}  // namespace treadle
