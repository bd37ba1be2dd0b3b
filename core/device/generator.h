// Generator: counter-based random numbers (Philox 4x32-10; Salmon et al., "Parallel random numbers:
// as easy as 1, 2, 3", SC'11). Element i of a call depends only on the seed, the call's offset and
// i, never on threads.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <utility>

#include "core/base/device.h"
#include "core/base/fork_safe_mutex.h"
#include "core/base/intrusive_ptr.h"

namespace treadle {

// Four 32-bit outputs for one 128-bit counter and a 64-bit key: ten rounds of two multiplications.
constexpr std::array<uint32_t, 4> philox4x32(uint64_t key, uint64_t counter_low,
                                             uint64_t counter_high) {
  uint32_t c0 = static_cast<uint32_t>(counter_low), c1 = static_cast<uint32_t>(counter_low >> 32);
  uint32_t c2 = static_cast<uint32_t>(counter_high), c3 = static_cast<uint32_t>(counter_high >> 32);
  uint32_t k0 = static_cast<uint32_t>(key), k1 = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = uint64_t{0xD2511F53u} * c0, p1 = uint64_t{0xCD9E8D57u} * c2;
    c0 = static_cast<uint32_t>(p1 >> 32) ^ c1 ^ k0;
    c1 = static_cast<uint32_t>(p1);
    c2 = static_cast<uint32_t>(p0 >> 32) ^ c3 ^ k1;
    c3 = static_cast<uint32_t>(p0);
    k0 += 0x9E3779B9u;  // Weyl sequence: the golden ratio
    k1 += 0xBB67AE85u;  // sqrt(3) - 1
  }
  return {c0, c1, c2, c3};
}

class GeneratorImpl final : public RefCounted {
 public:
  explicit GeneratorImpl(Device device, uint64_t seed = 67280421310721ull)
      : device_(device), seed_(seed) {}
  // Draws from the stream of `source`, which may be of another device.
  GeneratorImpl(Device device, IntrusivePtr<GeneratorImpl> source)
      : device_(device), source_(std::move(source)), seed_(0) {}
  Device device() const { return device_; }
  void seed(uint64_t seed);
  uint64_t initial_seed() const { return position().seed; }

  struct Position {
    uint64_t seed, offset;
  };
  // Reserves `blocks` counters (one block gives four 32-bit numbers) and returns the first one's
  // position. Thread-safe.
  Position reserve(uint64_t blocks);
  Position position() const;
  void set_position(Position p);

 private:
  Device device_;
  IntrusivePtr<GeneratorImpl> source_;  // null: a stream of its own
  mutable ForkSafeMutex mutex_;
  uint64_t seed_;
  uint64_t offset_ = 0;
};
using Generator = IntrusivePtr<GeneratorImpl>;

Generator make_generator(Device device);
// Lends the stream of `source` to another device. Each takes numbers that the other has not taken.
Generator make_generator(Device device, Generator source);
// The default generator of a device.
Generator default_generator(Device device);
inline Generator generator_or_default(const Generator& g, Device device = kCPU) {
  return g ? g : default_generator(device);
}

// [0, 1) with 24 bits.
inline float uniform_float(uint32_t bits) { return static_cast<float>(bits >> 8) * 0x1p-24f; }
// [0, 1) with 53 bits.
inline double uniform_double(uint32_t high, uint32_t low) {
  return static_cast<double>(((static_cast<uint64_t>(high) << 32) | low) >> 11) * 0x1p-53;
}

}  // namespace treadle
