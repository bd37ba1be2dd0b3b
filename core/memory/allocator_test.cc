// The CPU allocator: alignment, reuse, statistics, and refusal.
//
// SPDX-License-Identifier: Apache-2.0

#include "core/memory/allocator.h"

#include <gtest/gtest.h>

#include <cstring>
#include <thread>
#include <vector>

#include "core/base/error.h"
#include "core/tensor/storage.h"

namespace treadle {
namespace {

TEST(Allocator, AlignsAndGivesWritableBytes) {
  Allocator& a = cpu_allocator();
  EXPECT_EQ(a.allocate(0, kCPU), nullptr);
  for (size_t n : {1, 16, 1000, 1024, 1025, 4096, 131071, 131072, 131073, 5000000, 40000000}) {
    void* p = a.allocate(n, kCPU);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(p) % (n > 1024 ? 64 : 16), 0u) << n;
    std::memset(p, 1, n);
    a.deallocate(p, n, kCPU);
  }
}

TEST(Allocator, BlocksInUseDoNotOverlap) {
  Allocator& a = cpu_allocator();
  std::vector<std::pair<unsigned char*, size_t>> blocks;
  for (int round = 0; round < 3; ++round) {
    for (size_t i = 0; i < 40; ++i) {
      const size_t n = 100000 + i * 30000;
      auto* p = static_cast<unsigned char*>(a.allocate(n, kCPU));
      std::memset(p, static_cast<int>(blocks.size()), n);
      blocks.emplace_back(p, n);
    }
    for (size_t i = 0; i < blocks.size(); ++i) {
      ASSERT_EQ(blocks[i].first[0], i & 255);
      ASSERT_EQ(blocks[i].first[blocks[i].second - 1], i & 255);
    }
    for (auto& [p, n] : blocks) a.deallocate(p, n, kCPU);
    blocks.clear();
  }
}

TEST(Allocator, SaysWhatWasRefused) {
  for (size_t n : {size_t{1} << 61, size_t{1} << 63, SIZE_MAX}) {
    try {
      cpu_allocator().allocate(n, kCPU);
      FAIL();
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::OutOfMemory);
      EXPECT_NE(std::string(e.what()).find("EiB on cpu, the system refused"), std::string::npos)
          << e.what();
    }
  }
}

TEST(Allocator, CountsExactlyOnOneThread) {
  const MemoryStats before = cpu_memory_stats();
  {
    const StorageImpl small(100, kCPU), large(1000000, kCPU);
    const MemoryStats during = cpu_memory_stats();
    EXPECT_EQ(during.current_bytes - before.current_bytes, 1000100);
    EXPECT_EQ(during.allocations - before.allocations, 2);
    EXPECT_GE(during.peak_bytes, during.current_bytes);
  }
  const MemoryStats after = cpu_memory_stats();
  EXPECT_EQ(after.current_bytes, before.current_bytes);
  EXPECT_EQ(after.frees - before.frees, 2);
}

TEST(Allocator, CountsWhatOtherThreadsDid) {
  const MemoryStats before = cpu_memory_stats();
  std::vector<Storage> kept(8);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < 8; ++i)
    threads.emplace_back([&, i] {
      for (int k = 0; k < 100; ++k) StorageImpl(64, kCPU);
      kept[i] = make_intrusive<StorageImpl>(size_t{10}, kCPU);
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(cpu_memory_stats().current_bytes - before.current_bytes, 80);
  kept.clear();  // freed on another thread than allocated
  EXPECT_EQ(cpu_memory_stats().current_bytes, before.current_bytes);
  EXPECT_EQ(cpu_memory_stats().allocations - before.allocations, 808);
}

TEST(Allocator, DevicesWithoutOneAreAnError) {
  EXPECT_THROW(allocator_for(DeviceType::CUDA), Error);
  EXPECT_THROW(StorageImpl(4, Device{DeviceType::CUDA, 0}), Error);
  EXPECT_THROW(register_allocator(DeviceType::CPU, nullptr), Error);
}

TEST(Storage, OwnsOrReleases) {
  int released = 0;
  float data[4] = {1, 2, 3, 4};
  {
    const Storage s = make_intrusive<StorageImpl>(data, sizeof(data), kCPU, [&] { ++released; });
    const Storage t = s;  // NOLINT: the second reference is the point
    EXPECT_FALSE(s->owns_memory());
    EXPECT_THROW(s->resize(64), Error);
  }
  EXPECT_EQ(released, 1);
  StorageImpl grown(8, kCPU);
  std::memcpy(grown.data(), "treadle", 8);
  grown.resize(1000000);
  EXPECT_STREQ(static_cast<char*>(grown.data()), "treadle");
  grown.resize(4);
  EXPECT_EQ(std::memcmp(grown.data(), "trea", 4), 0);
  StorageImpl meta(size_t{1} << 50, kMeta);
  EXPECT_EQ(meta.data(), nullptr);
  meta.resize(5);
  EXPECT_EQ(meta.nbytes(), 5u);
}

}  // namespace
}  // namespace treadle
