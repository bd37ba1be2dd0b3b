// TestingBackend: a backend for tests, over CPU memory with disguised addresses. Code that mistakes
// a storage handle for an address is thereby found.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdlib>
#include <cstring>
#include <map>
#include <string>

#include "core/base/error.h"
#include "core/device/backend.h"

namespace treadle {

class TestingBackend : public Backend {
 public:
  explicit TestingBackend(const std::string& name, bool keeps_memory = false,
                          bool addressable = false, bool generates = false)
      : Backend(facts_for(name, keeps_memory, addressable, generates)) {}

  static void* disguised(void* p) {
    return reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(p) ^ (uintptr_t{0xA5} << 56));
  }
  static char* address(const MemoryPlace& p) {
    void* base = p.device.is_cpu() ? p.storage : disguised(p.storage);
    return static_cast<char*>(base) + p.offset;
  }

  int device_count() override { return 2; }
  void set_device(int index) override { current = index; }
  void* allocate(int index, size_t nbytes) override {
    check<ErrorKind::OutOfMemory>(used + nbytes <= limit, "expected ", nbytes, " bytes of ",
                                  facts().name, ":", index, ", got none");
    used += nbytes;
    ++allocations;
    return disguised(std::malloc(nbytes));
  }
  void deallocate(int, void* storage, size_t nbytes) noexcept override {
    used -= nbytes;
    std::free(disguised(storage));
  }
  bool copy(MemoryPlace to, MemoryPlace from, size_t nbytes, bool) override {
    ++copies;
    std::memmove(address(to), address(from), nbytes);
    return true;
  }
  bool pointwise(const GeneratedPointwise&) override { return false; }
  bool reduce(const GeneratedReduce&) override { return false; }
  void synchronize(int) override { ++synchronizations; }
  uint64_t create_stream(int, int) override { return ++streams; }
  void destroy_stream(int, uint64_t stream) noexcept override { destroyed_stream = stream; }
  void set_stream(int, uint64_t stream) override { stream_now = stream; }
  bool stream_idle(int, uint64_t) override { return true; }
  void synchronize_stream(int, uint64_t) override { ++synchronizations; }
  void* create_event(int, bool) override { return nullptr; }
  void destroy_event(int, void*) noexcept override {}
  void record_event(int, void*, uint64_t) override {}
  void wait_event(int, void*, uint64_t) override {}
  bool event_complete(void*) override { return true; }
  void synchronize_event(void*) override {}
  double elapsed_milliseconds(void*, void*) override { return 0; }
  void* allocate_pinned(size_t) override { return nullptr; }
  void deallocate_pinned(void*, size_t) noexcept override {}
  std::string device_name(int index) override { return str(facts().name, " of tests ", index); }
  Memory memory(int) override { return {limit - used, limit}; }

  int current = 0;
  size_t used = 0, limit = size_t{1} << 30;
  int allocations = 0, copies = 0, synchronizations = 0;
  uint64_t streams = 0, stream_now = 0, destroyed_stream = 0;

 private:
  static Facts facts_for(const std::string& name, bool keeps_memory, bool addressable,
                         bool generates) {
    Facts f;
    f.name = f.storage_tag = name;
    f.plugin = "tests";
    f.plugin_version = "1";
    f.autocast_dtype = ScalarType::BFloat16;
    f.autocast_dtypes = 1u << static_cast<unsigned>(ScalarType::BFloat16);
    f.dtypes = (1u << kNumScalarTypes) - 1;
    f.keeps_memory = keeps_memory;
    f.addressable = addressable;
    f.host_visible = false;
    f.generates = generates;
    return f;
  }
};

}  // namespace treadle
