// Generators: positions in a Philox stream, and the default generator of each device.
//
// SPDX-License-Identifier: Apache-2.0

#include "core/device/generator.h"

#include <map>
#include <mutex>
#include <utility>

namespace treadle {

void GeneratorImpl::seed(uint64_t seed) { set_position({seed, 0}); }

GeneratorImpl::Position GeneratorImpl::reserve(uint64_t blocks) {
  if (source_) return source_->reserve(blocks);
  const std::lock_guard lock(mutex_);
  const Position at{seed_, offset_};
  offset_ += blocks;
  return at;
}

GeneratorImpl::Position GeneratorImpl::position() const {
  if (source_) return source_->position();
  const std::lock_guard lock(mutex_);
  return {seed_, offset_};
}

void GeneratorImpl::set_position(Position p) {
  if (source_) return source_->set_position(p);
  const std::lock_guard lock(mutex_);
  seed_ = p.seed;
  offset_ = p.offset;
}

Generator make_generator(Device device) { return make_intrusive<GeneratorImpl>(device); }
Generator make_generator(Device device, Generator source) {
  return make_intrusive<GeneratorImpl>(device, std::move(source));
}

Generator default_generator(Device device) {
  // The CPU's generator is used often, so the look-up takes no lock.
  static auto* cpu = new Generator(make_generator(kCPU));
  if (device.is_cpu()) return *cpu;
  static auto* mutex = new ForkSafeMutex;
  static auto* others = new std::map<std::pair<DeviceType, int8_t>, Generator>;
  const std::lock_guard lock(*mutex);
  Generator& generator = (*others)[{device.type, device.index}];
  if (!generator) generator = make_generator(device);
  return generator;
}

}  // namespace treadle
