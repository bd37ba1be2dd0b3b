// The cost of a device's memory on the host: a block is allocated and freed, alone, among many
// others, and with a second stream that uses it.
//
// SPDX-License-Identifier: Apache-2.0
#include "core/memory/caching_allocator.h"

#include <benchmark/benchmark.h>

#include <string>
#include <vector>

namespace treadle {
namespace {

// A device with addresses only, whose events have passed at once.
class Nothing final : public RawDevice {
 public:
  std::string name() override { return "nothing:0"; }
  void* allocate(size_t nbytes) override {
    next_ += nbytes;
    return reinterpret_cast<void*>(next_ - nbytes);
  }
  void deallocate(void*, size_t) noexcept override {}
  void synchronize() override {}
  void* create_event() override { return this; }
  void destroy_event(void*) noexcept override {}
  void record_event(void*, uint64_t) override {}
  bool event_complete(void*) override { return true; }
  Memory memory() override { return {0, 0}; }

 private:
  uintptr_t next_ = uintptr_t{1} << 40;
};

void reuse(benchmark::State& state) {
  Nothing device;
  CachingAllocator memory(device, Reuse::Split);
  const auto nbytes = static_cast<size_t>(state.range(0));
  for (auto _ : state) memory.deallocate(memory.allocate(nbytes, 0));
}
BENCHMARK(reuse)->Arg(1000)->Arg(5000000);

// So many blocks of random sizes in use: each turn frees one and allocates another.
void among_others(benchmark::State& state) {
  Nothing device;
  CachingAllocator memory(device, Reuse::Split);
  uint64_t random = 1;
  const auto next_size = [&] {
    random = random * 6364136223846793005u + 1442695040888963407u;
    return 1 + (random >> 33) % (size_t{1} << (4 + (random >> 20) % 20));
  };
  std::vector<void*> blocks;
  for (int64_t i = 0; i < state.range(0); ++i) blocks.push_back(memory.allocate(next_size(), 0));
  for (auto _ : state) {
    void*& block = blocks[(random >> 40) % blocks.size()];
    memory.deallocate(block);
    block = memory.allocate(next_size(), 0);
  }
}
BENCHMARK(among_others)->Arg(100)->Arg(10000);

void with_a_second_stream(benchmark::State& state) {
  Nothing device;
  CachingAllocator memory(device, Reuse::Split);
  for (auto _ : state) {
    void* data = memory.allocate(1000, 0);
    memory.record_stream(data, 1);
    memory.deallocate(data);
  }
}
BENCHMARK(with_a_second_stream);

}  // namespace
}  // namespace treadle
