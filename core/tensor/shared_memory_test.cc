// Shared storages: one process reads the writes of another, pointers stay valid, and no file
// remains.
//
// SPDX-License-Identifier: Apache-2.0
#include "core/tensor/shared_memory.h"

#include <dirent.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <thread>
#include <vector>

#include "core/base/error.h"

namespace treadle {
namespace {

size_t open_descriptors() {
  size_t count = 0;
  DIR* folder = opendir("/proc/self/fd");
  while (readdir(folder)) ++count;
  closedir(folder);
  return count;
}

char* bytes(const Storage& storage) { return static_cast<char*>(storage->data()); }

// Runs `body` in a child and returns its exit status.
template <class Body>
int in_child(Body&& body) {
  const pid_t child = fork();
  if (child == 0) _exit(body());
  int status = -1;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

class SharedMemory : public testing::TestWithParam<size_t> {};

TEST_P(SharedMemory, KeepsTheBytesAndTheAddresses) {
  const size_t nbytes = GetParam();
  const size_t before = open_descriptors();
  const int64_t held = cpu_memory_stats().current_bytes;
  {
    const Storage storage = make_intrusive<StorageImpl>(nbytes, kCPU);
    for (size_t i = 0; i < nbytes; ++i) bytes(storage)[i] = static_cast<char>(i % 127);
    char* const old = bytes(storage);
    EXPECT_FALSE(is_shared(storage));
    share_memory(storage);
    share_memory(storage);
    EXPECT_TRUE(is_shared(storage));
    EXPECT_FALSE(storage->owns_memory());
    for (size_t i = 0; i < nbytes; ++i) {
      ASSERT_EQ(bytes(storage)[i], static_cast<char>(i % 127));
      ASSERT_EQ(old[i], static_cast<char>(i % 127));  // kept until the storage dies
    }
    EXPECT_EQ(open_descriptors(), before + 1);
  }
  EXPECT_EQ(open_descriptors(), before);
  EXPECT_EQ(cpu_memory_stats().current_bytes, held);
}

TEST_P(SharedMemory, IsSeenFromBothSides) {
  const size_t nbytes = GetParam();
  const Storage storage = new_shared(nbytes);
  if (nbytes) bytes(storage)[nbytes - 1] = 1;
  EXPECT_EQ(in_child([&] {
              if (nbytes && bytes(storage)[nbytes - 1] != 1) return 1;
              if (nbytes) bytes(storage)[0] = 2;
              return 0;
            }),
            0);
  if (nbytes) {
    EXPECT_EQ(bytes(storage)[0], 2);
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, SharedMemory,
                         testing::Values(0, 1, 100, 5000, size_t{1} << 17, (size_t{1} << 17) + 5,
                                         (size_t{5} << 20) + 1));

TEST(SharedMemory, OneStorageForOneFile) {
  const size_t before = open_descriptors();
  Storage storage = new_shared(64);
  const Storage again = open_shared(dup(shared_descriptor(storage)), 64);
  EXPECT_EQ(storage.get(), again.get());
  EXPECT_EQ(open_descriptors(), before + 1);
}

TEST(SharedMemory, OutlivesTheStorageThatMadeIt) {
  Storage storage = new_shared(64);
  std::strcpy(bytes(storage), "still here");
  const int fd = dup(shared_descriptor(storage));
  storage.reset();
  const Storage other = open_shared(fd, 64);
  EXPECT_STREQ(bytes(other), "still here");
  EXPECT_TRUE(is_shared(other));
}

TEST(SharedMemory, OfAnotherOwnerKeepsThatOwner) {
  int released = 0;
  char memory[16] = "of another";
  {
    const Storage storage = make_intrusive<StorageImpl>(memory, sizeof memory, kCPU,
                                                        std::function<void()>([&] { ++released; }));
    share_memory(storage);
    EXPECT_NE(storage->data(), memory);
    EXPECT_STREQ(bytes(storage), "of another");
    EXPECT_EQ(released, 0);
  }
  EXPECT_EQ(released, 1);
}

TEST(SharedMemory, RefusesWhatItCannotShare) {
  const size_t before = open_descriptors();
  EXPECT_THROW(share_memory(make_intrusive<StorageImpl>(8, Device{DeviceType::Meta})), Error);
  EXPECT_THROW(shared_descriptor(make_intrusive<StorageImpl>(8, kCPU)), Error);
  EXPECT_THROW(open_shared(-1, 8), Error);
  {
    const Storage small = new_shared(8);
    EXPECT_THROW(open_shared(dup(shared_descriptor(small)), 9), Error);
  }
  EXPECT_THROW(new_shared(size_t{1} << 60), Error);
  EXPECT_EQ(open_descriptors(), before);
}

TEST(SharedMemory, FromManyThreads) {
  const size_t before = open_descriptors();
  std::vector<std::thread> threads;
  const Storage shared = new_shared(256);
  const Storage moved = make_intrusive<StorageImpl>(256, kCPU);
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int k = 0; k < 500; ++k) {
        const Storage own = new_shared(64);
        const Storage one = open_shared(dup(shared_descriptor(shared)), 256);
        EXPECT_EQ(one.get(), shared.get());
        share_memory(moved);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(open_descriptors(), before + 2);
}

// The last owner on one thread, and a thread that finds the storage by its file.
TEST(SharedMemory, IsNeverFoundWhenItIsGone) {
  const size_t before = open_descriptors();
  int fd = -1;
  {
    const Storage storage = new_shared(64);
    std::strcpy(bytes(storage), "still here");
    fd = dup(shared_descriptor(storage));
  }
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int k = 0; k < 5000; ++k) {
        const Storage one = open_shared(dup(fd), 64);
        ASSERT_TRUE(is_shared(one));
        ASSERT_STREQ(bytes(one), "still here");
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  close(fd);
  EXPECT_EQ(open_descriptors(), before);
}

}  // namespace
}  // namespace treadle
