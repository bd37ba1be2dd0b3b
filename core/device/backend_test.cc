// Backends: registration, indices, memory cached by stream, copies between backends.
//
// SPDX-License-Identifier: Apache-2.0
#include "core/device/backend.h"

#include <gtest/gtest.h>

#include "core/device/testing_backend.h"
#include "core/memory/caching_allocator.h"
#include "core/tensor/storage.h"

namespace treadle {
namespace {

template <class F>
std::string error_of(F f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}

struct Registered {
  explicit Registered(const std::string& name, bool keeps_memory = false,
                      bool addressable = false) {
    auto made = std::make_unique<TestingBackend>(name, keeps_memory, addressable);
    backend = made.get();
    type = register_backend(std::move(made));
  }
  ~Registered() { unregister_backend(type); }
  Device at(int index) const { return {type, static_cast<int8_t>(index)}; }
  TestingBackend* backend;
  DeviceType type;
};

TEST(Backends, AreKnownByName) {
  const Registered one("one");
  EXPECT_EQ(name_of(one.type), "one");
  EXPECT_EQ(backend_of(one.type), one.backend);
  EXPECT_EQ(error_of([] { Registered again("one"); }),
            "expected a new device name, got 'one', which is taken");
  EXPECT_EQ(
      error_of([] { Registered bad("One"); }),
      "expected the name of a device to be at most 32 lower-case letters, digits and '_', a letter "
      "first, got 'One'");
}

TEST(Backends, CanBeUnregisteredAndComeBack) {
  DeviceType type;
  {
    const Registered first("fleeting");
    type = first.type;
  }
  EXPECT_EQ(backend_of(type), nullptr);
  EXPECT_EQ(error_of([&] { require_backend(type); }),
            "expected a device with a backend, got fleeting, for which none is loaded");
  const Registered second("fleeting");
  EXPECT_EQ(second.type, type);
}

TEST(Backends, SixteenAtOnce) {
  std::vector<std::unique_ptr<Registered>> all;
  for (int i = 0; i < 16; ++i) all.push_back(std::make_unique<Registered>(str("many_", i)));
  for (const auto& r : all) EXPECT_EQ(StorageImpl(64, r->at(0)).device(), r->at(0));
}

TEST(Backends, IndicesAreChecked) {
  const Registered r("indexed");
  EXPECT_EQ(with_index(r.at(-1)), r.at(0));
  set_current_device(r.type, 1);
  EXPECT_EQ(r.backend->current, 1);
  EXPECT_EQ(with_index(r.at(-1)), r.at(1));
  set_current_device(r.type, 0);
  EXPECT_EQ(error_of([&] { with_index(r.at(2)); }),
            "expected a device of indexed that exists, of 2 devices, got indexed:2");
}

TEST(BackendMemory, IsGivenBackAtOnceUnlessKept) {
  const Registered r("raw");
  { StorageImpl storage(1000, r.at(0)); }
  EXPECT_EQ(r.backend->used, 0u);
  EXPECT_EQ(device_memory(r.at(0)).allocations, 1);
  EXPECT_EQ(device_memory(r.at(0)).peak, 1000);
}

TEST(BackendMemory, IsKeptForTheSameStream) {
  const Registered r("kept", true);
  void* first;
  {
    StorageImpl storage(1000, r.at(0));
    first = storage.data();
  }
  EXPECT_EQ(device_memory(r.at(0)).reserved, 1024);
  const uint64_t other = r.backend->create_stream(0, 0);
  set_current_stream(r.at(0), other);
  StorageImpl elsewhere(1000, r.at(0));
  EXPECT_NE(elsewhere.data(), first);
  set_current_stream(r.at(0), 0);
  StorageImpl again(900, r.at(0));
  EXPECT_EQ(again.data(), first);
  EXPECT_EQ(r.backend->allocations, 2);
  StorageImpl other_device(1000, r.at(1));
  EXPECT_EQ(r.backend->allocations, 3);
}

TEST(BackendMemory, WhatIsKeptGoesBackWhenMemoryRunsOut) {
  const Registered r("small", true);
  r.backend->limit = 4096;
  { StorageImpl storage(3000, r.at(0)); }
  StorageImpl storage(4000, r.at(0));
  EXPECT_EQ(r.backend->synchronizations, 1);
  EXPECT_EQ(error_of([&] { StorageImpl(8192, r.at(0)); }),
            "expected to allocate 8.0 KiB on small:0, the device refused: expected 8192 bytes of "
            "small:0, got none\n"
            "tensors hold 4.0 KiB, the cache keeps 0 bytes of freed memory\n"
            "the device has 0 bytes free of 4.0 KiB");
}

TEST(BackendMemory, IsCutWhereStoragesAreAddresses) {
  const Registered r("cut", true, true);
  StorageImpl a(1000, r.at(0)), b(5000, r.at(0));
  EXPECT_EQ(r.backend->allocations, 1);
  EXPECT_EQ(static_cast<char*>(b.data()) - static_cast<char*>(a.data()), 1024);
  const char bytes[] = "warp", other[] = "weft";
  move_bytes({a.data(), 0, r.at(0)}, {const_cast<char*>(bytes), 0, kCPU}, 5, false);
  move_bytes({b.data(), 8, r.at(0)}, {const_cast<char*>(other), 0, kCPU}, 5, false);
  char back[5] = "";
  move_bytes({back, 0, kCPU}, {a.data(), 0, r.at(0)}, 5, false);
  EXPECT_STREQ(back, "warp");
  StorageImpl elsewhere(1000, r.at(1));
  EXPECT_EQ(memory_of(r.at(0)).statistics().allocation.all.current, 2);
  EXPECT_EQ(memory_of(r.at(1)).snapshot().at(0).blocks.at(0).requested, 1000u);
  EXPECT_EQ(device_memory(r.at(0)).reserved, (2 << 20) - 1024 - 5120);
  reset_peak(r.at(0));
  EXPECT_EQ(device_memory(r.at(0)).peak, 1024 + 5120);
}

TEST(BackendMemory, OfADestroyedStreamServesTheDefaultOne) {
  const Registered r("streamed", true);
  const uint64_t stream = r.backend->create_stream(0, 0);
  set_current_stream(r.at(0), stream);
  void* data;
  {
    StorageImpl storage(1000, r.at(0));
    data = storage.data();
  }
  set_current_stream(r.at(0), 0);
  destroy_stream(r.at(0), stream);
  EXPECT_EQ(r.backend->synchronizations, 1);
  EXPECT_EQ(r.backend->destroyed_stream, stream);
  EXPECT_EQ(StorageImpl(1000, r.at(0)).data(), data);
}

TEST(BackendMemory, StoragesGrow) {
  const Registered r("growing");
  const char bytes[] = "abcd";
  StorageImpl storage(4, r.at(0));
  move_bytes({storage.data(), 0, r.at(0)}, {const_cast<char*>(bytes), 0, kCPU}, 4, false);
  storage.resize(16);
  char back[5] = "";
  move_bytes({back, 0, kCPU}, {storage.data(), 0, r.at(0)}, 4, false);
  EXPECT_STREQ(back, "abcd");
}

TEST(Bytes, MoveBetweenBackends) {
  const Registered a("from_here"), b("to_there");
  const char bytes[] = "treadle";
  StorageImpl on_a(8, a.at(1)), on_b(16, b.at(0));
  move_bytes({on_a.data(), 0, a.at(1)}, {const_cast<char*>(bytes), 0, kCPU}, 8, false);
  move_bytes({on_b.data(), 8, b.at(0)}, {on_a.data(), 0, a.at(1)}, 8, false);
  char back[8] = "";
  move_bytes({back, 0, kCPU}, {on_b.data(), 8, b.at(0)}, 8, false);
  EXPECT_STREQ(back, "treadle");
}

}  // namespace
}  // namespace treadle
