// The CPU allocator: alignment, reuse, statistics, and refusal.
//
// SPDX-License-Identifier: Apache-2.0

#include "core/memory/allocator.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

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

#if !defined(__SANITIZE_ADDRESS__)
// The bytes of [begin, begin + size) that the system has pages for.
size_t resident(char* begin, size_t size) {
  std::vector<unsigned char> pages(size / 4096);
  size_t count = 0;
  // Where nothing is mapped, the call fails as a whole.
  for (size_t i = 0; i < pages.size(); ++i)
    count += mincore(begin + i * 4096, 4096, &pages[i]) == 0 && (pages[i] & 1);
  return count * 4096;
}

TEST(Allocator, FreedPagesServeSmallerAndLargerRequests) {
  constexpr size_t kMiB = size_t{1} << 20;
  Allocator& a = cpu_allocator();
  const auto get = [&](size_t n) {
    auto* const p = static_cast<char*>(a.allocate(n, kCPU));
    std::memset(p, 1, n);
    return p;
  };
  char* const whole = get(64 * kMiB);
  a.deallocate(whole, 64 * kMiB, kCPU);
  // Parts of it, until nothing is left.
  std::vector<char*> parts;
  for (int i = 0; i < 8; ++i) parts.push_back(get(8 * kMiB));
  for (char* part : parts) {
    EXPECT_GE(part, whole);
    EXPECT_LE(part + 8 * kMiB, whole + 64 * kMiB);
  }
  // Freed in any order, they are one range again.
  for (int i : {3, 0, 7, 4, 1, 6, 2, 5})
    a.deallocate(parts[static_cast<size_t>(i)], 8 * kMiB, kCPU);
  EXPECT_EQ(get(64 * kMiB), whole);
  a.deallocate(whole, 64 * kMiB, kCPU);
}

TEST(Allocator, KeptPagesHardlyRaiseThePeak) {
  constexpr size_t kMiB = size_t{1} << 20;
  Allocator& a = cpu_allocator();
  EXPECT_THROW(a.allocate(size_t{1} << 61, kCPU), Error);  // raises no bound
  // More than any other test had in use, so that no other pages would do.
  auto* const first = static_cast<char*>(a.allocate(96 * kMiB, kCPU));
  std::memset(first, 1, 96 * kMiB);
  a.deallocate(first, 96 * kMiB, kCPU);
  EXPECT_EQ(resident(first, 96 * kMiB), 96 * kMiB);
  auto* const second = static_cast<char*>(a.allocate(112 * kMiB, kCPU));
  std::memset(second, 1, 112 * kMiB);
  // Unless the second lies there, the first went back to the system.
  if (second + 112 * kMiB <= first || first + 96 * kMiB <= second) {
    EXPECT_EQ(resident(first, 96 * kMiB), 0u);
  }
  a.deallocate(second, 112 * kMiB, kCPU);
}

TEST(Allocator, StepsThatAreAlikeTakeNoNewPages) {
  constexpr size_t kMiB = size_t{1} << 20;
  Allocator& a = cpu_allocator();
  // More than any other test had in use.
  void* const held = a.allocate(160 * kMiB, kCPU);
  for (int step = 0; step < 4; ++step) {
    const auto get = [&](size_t n) {
      auto* const p = static_cast<char*>(a.allocate(n, kCPU));
      if (step > 1) {
        EXPECT_EQ(resident(p, n), n);
      }
      std::memset(p, 1, n);
      return p;
    };
    // Small blocks keep the pages of the first and those of the second apart, each of which is too
    // narrow for the third.
    char* const first = get(8 * kMiB);
    char* const small = get(kMiB);
    char* const second = get(8 * kMiB);
    char* const other_small = get(kMiB);
    a.deallocate(first, 8 * kMiB, kCPU);
    char* const third = get(10 * kMiB);
    a.deallocate(second, 8 * kMiB, kCPU);
    a.deallocate(small, kMiB, kCPU);
    a.deallocate(third, 10 * kMiB, kCPU);
    a.deallocate(other_small, kMiB, kCPU);
  }
  a.deallocate(held, 160 * kMiB, kCPU);
}
#endif

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
