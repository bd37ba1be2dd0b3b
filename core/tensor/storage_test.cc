// Storages: resizing, holders that prevent it, and tensors whose bytes a resize cut off.
//
// SPDX-License-Identifier: Apache-2.0

#include "core/tensor/storage.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>
#include <vector>

#include "core/base/error.h"
#include "core/tensor/tensor.h"
#include "core/tensor/weak_tensor.h"

namespace treadle {
namespace {

std::string error_of(auto&& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}

TEST(Storage, KeepsWhatFitsWhenItIsResized) {
  const Storage storage = make_intrusive<StorageImpl>(size_t{8}, kCPU);
  char* bytes = static_cast<char*>(storage->data());
  for (int i = 0; i < 8; ++i) bytes[i] = static_cast<char>(i);
  storage->resize(16);
  EXPECT_FALSE(storage->needs_care());
  EXPECT_EQ(static_cast<char*>(storage->data())[7], 7);
  storage->resize(4);
  EXPECT_TRUE(storage->needs_care());
  EXPECT_EQ(static_cast<char*>(storage->data())[3], 3);
  storage->resize(0);
  EXPECT_EQ(storage->nbytes(), 0u);
}

TEST(Storage, IsNotResizedWhileSomebodyHasItsAddress) {
  const Storage storage = make_intrusive<StorageImpl>(size_t{8}, kCPU);
  const void* const data = storage->data();
  const auto refusal = [&] { return error_of([&] { storage->resize(16); }); };
  storage->hold(Holder::Buffer);
  EXPECT_EQ(refusal(),
            "expected a storage that can be resized, got one that 1 buffer (a NumPy array or "
            "memoryview) holds");
  storage->hold(Holder::Buffer);
  EXPECT_EQ(refusal(),
            "expected a storage that can be resized, got one that 2 buffers (NumPy arrays or "
            "memoryviews) hold");
  storage->hold(Holder::DLPack);
  EXPECT_EQ(refusal(),
            "expected a storage that can be resized, got one that 2 buffers (NumPy arrays or "
            "memoryviews) and 1 DLPack capsule hold");
  storage->let_go(Holder::Buffer);
  storage->let_go(Holder::Buffer);
  EXPECT_EQ(refusal(),
            "expected a storage that can be resized, got one that 1 DLPack capsule holds");
  EXPECT_EQ(error_of([&] { storage->resize(0); }), refusal());
  EXPECT_EQ(storage->data(), data);
  EXPECT_EQ(storage->nbytes(), 8u);
  EXPECT_EQ(error_of([&] { storage->resize(8); }), "no error");
  storage->let_go(Holder::DLPack);
  EXPECT_EQ(refusal(), "no error");
  EXPECT_EQ(storage->nbytes(), 16u);
}

TEST(Storage, OfAnotherOwnerIsNotResized) {
  char memory[8];
  const Storage storage = make_intrusive<StorageImpl>(memory, sizeof memory, kCPU, nullptr);
  EXPECT_EQ(error_of([&] { storage->resize(0); }),
            "expected a storage that can be resized, got one over memory of another owner");
}

TEST(Storage, IsHeldOrResizedNeverBoth) {
  // A loaded machine gives a thread its turn once in milliseconds.
  constexpr int kRounds = 20000;
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(5);
  const Storage storage = make_intrusive<StorageImpl>(size_t{64}, kCPU);
  std::atomic<bool> done{false};
  std::thread resizes([&] {
    for (size_t n = 0; !done; ++n) error_of([&] { storage->resize(64 + n % 8 * 64); });
  });
  int moved = 0;
  for (int round = 0; round < kRounds && std::chrono::steady_clock::now() < end; ++round) {
    storage->hold(Holder::Buffer);
    const void* const before = storage->data();
    static_cast<volatile char*>(storage->data())[0] = 1;
    std::this_thread::yield();
    moved += storage->data() != before;
    storage->let_go(Holder::Buffer);
  }
  done = true;
  resizes.join();
  EXPECT_EQ(moved, 0);
}

TEST(Storage, ATensorThatReachesPastItsStorageRaises) {
  const Tensor t = empty_cpu({10}, ScalarType::Float32);
  const Tensor front = alias_with_geometry(t, {2}, {1}, 0);
  const Tensor back = alias_with_geometry(t, {5}, {1}, 5);
  const Tensor none = alias_with_geometry(t, {0}, {1}, 5);
  t.storage()->resize(12);
  EXPECT_EQ(error_of([&] { front.data(); }), "no error");
  EXPECT_EQ(error_of([&] { none.data(); }), "no error");
  EXPECT_EQ(error_of([&] { back.data(); }),
            "expected a tensor whose elements are in its storage, got one of sizes = (5,), strides "
            "= (1,), offset = 5 over a storage that was made smaller, to 12 bytes");
  EXPECT_EQ(error_of([&] { t.data_as<float>(); }),
            "expected a tensor whose elements are in its storage, got one of sizes = (10,), "
            "strides = (1,), offset = 0 over a storage that was made smaller, to 12 bytes");
  EXPECT_NE(error_of([&] { alias_with_geometry(back, {5}, {1}, 5); }), "no error");
  EXPECT_NE(error_of([&] { alias_as(back, ScalarType::Int32, {5}, {1}, 5); }), "no error");
  EXPECT_FALSE(back.impl()->is_inside());
  t.storage()->resize(40);
  EXPECT_EQ(error_of([&] { back.data(); }), "no error");
}

// In the role of autograd: the metadata of a tensor that other code knows without owning it.
struct Known : AutogradMetaBase {
  bool requires_grad() const override { return false; }
};

TEST(Storage, WithoutMemoryHasASizeAlone) {
  const Storage storage = StorageImpl::without_memory(8, kCPU);
  EXPECT_EQ(storage->nbytes(), 8u);
  EXPECT_FALSE(storage->has_memory());
  const Tensor t(make_intrusive<TensorImpl>(storage, ScalarType::Float32, IntList{2}));
  EXPECT_EQ(error_of([&] { t.data(); }),
            "expected a tensor with elements in memory, got one of sizes = (2,) that stands for "
            "others and has none: its class answers operators by __torch_dispatch__");
  EXPECT_FALSE(t.impl()->is_inside());
  const Tensor view = alias_with_geometry(t, IntList{1}, IntList{1}, 1);
  EXPECT_EQ(view.storage().get(), storage.get());
  EXPECT_NE(error_of([&] { view.data(); }), "no error");
  EXPECT_EQ(error_of([&] { storage->resize(16); }),
            "expected a storage that can be resized, got one without memory, of a tensor that "
            "stands for others");
  // No byte of a tensor without elements is ever read.
  const Tensor empty(make_intrusive<TensorImpl>(storage, ScalarType::Float32, IntList{0}));
  EXPECT_EQ(empty.data(), nullptr);
  EXPECT_TRUE(make_intrusive<StorageImpl>(size_t{8}, kCPU)->has_memory());
}

TEST(WeakTensor, NeverFindsATensorThatIsBeingDestroyed) {
  for (int round = 0; round < 3000; ++round) {
    Tensor t = empty_cpu({4}, ScalarType::Int64);
    t.data_as<int64_t>()[0] = 7;
    auto meta = std::make_unique<Known>();
    meta->weak = std::make_shared<WeakTensor>(t.impl());
    const std::shared_ptr<WeakTensor> weak = meta->weak;
    t.impl()->set_autograd_meta(std::move(meta));
    std::atomic<bool> go{false};
    bool right = true;
    std::thread finder([&] {
      while (!go) {
      }
      for (;;) {
        const Tensor found = weak->lock();
        if (!found.defined()) return;
        right = right && found.data_as<int64_t>()[0] == 7;
      }
    });
    go = true;
    t.reset();
    finder.join();
    ASSERT_TRUE(right);
    ASSERT_FALSE(weak->lock().defined());
  }
}

// Values whose bytes are all seven.
class Sevens final : public PendingValues {
 public:
  void settle(StorageImpl& storage) override {
    ++settled;
    if (storage.pending() != nullptr) {
      if (fails) fail<ErrorKind::Runtime>("no sevens today");
      storage.allocate_pending();
      std::memset(storage.address(), 7, storage.nbytes());
      storage.arrive();
    }
    storage.set_read_by_pending(false);
  }
  bool forget(StorageImpl& storage) noexcept override {
    ++forgotten;
    storage.set_pending(nullptr);
    return true;
  }

  int settled = 0, forgotten = 0;
  bool fails = false;
};

TEST(Storage, ComputesItsBytesWhenSomebodyAsks) {
  static Sevens sevens;
  set_pending_values(&sevens);
  Storage storage = StorageImpl::awaiting(8, make_intrusive<PendingValue>());
  const Tensor t(make_intrusive<TensorImpl>(storage, ScalarType::UInt8, IntList{8}));
  EXPECT_TRUE(storage->owns_memory());
  EXPECT_EQ(storage->nbytes(), 8u);
  sevens.fails = true;
  for (int i = 0; i < 2; ++i) EXPECT_EQ(error_of([&] { t.data(); }), "no sevens today");
  sevens.fails = false;
  EXPECT_EQ(t.data_as<uint8_t>()[3], 7);
  EXPECT_EQ(sevens.settled, 3);
  EXPECT_FALSE(storage->needs_care());
  // Those who read it are asked once, by reading or by a change of its size.
  storage->set_read_by_pending(true);
  storage->data();
  storage->set_read_by_pending(true);
  storage->resize(16);
  EXPECT_EQ(sevens.settled, 5);
  EXPECT_EQ(static_cast<uint8_t*>(storage->data())[3], 7);
  { const Storage dropped = StorageImpl::awaiting(8, make_intrusive<PendingValue>()); }
  EXPECT_EQ(sevens.forgotten, 1);
  // Memory that is written in place stays where it is, and is freed once.
  void* const address = storage->data();
  for (const bool drops : {false, true}) {
    Storage lent = storage->lend(make_intrusive<PendingValue>());
    EXPECT_EQ(lent->address(), address);
    storage->allocate_pending();
    storage->deallocate_pending();
    EXPECT_EQ(storage->address(), address);
    if (drops) break;
    storage->take_back(*lent);
    storage->arrive();
    EXPECT_EQ(storage->data(), address);
  }
  const Storage other = std::exchange(storage, StorageImpl::awaiting(8, nullptr));
  storage->arrive();
  EXPECT_FALSE(storage->may_change_unseen());
  storage->set_told();
  EXPECT_TRUE(storage->may_change_unseen());
}

}  // namespace
}  // namespace treadle
