// The allocator of a backend's devices.

#include "core/backend_memory.h"

#include <algorithm>
#include <bit>

#include "core/error.h"

namespace treadle {
namespace {

// Rounded up to 512 bytes, and above 64 KiB to an eighth of the power of two below.
size_t rounded(size_t nbytes) {
  const size_t step = std::max<size_t>(512, nbytes > 65536 ? std::bit_floor(nbytes) / 8 : 0);
  return (nbytes + step - 1) / step * step;
}

}  // namespace

void* BackendMemory::allocate(size_t nbytes, Device device) {
  if (nbytes == 0) return nullptr;
  check<ErrorKind::OutOfMemory>(nbytes <= size_t{1} << 62, "expected memory on ", device,
                                ", got a request for ", nbytes, " bytes");
  const bool keeps = backend_.facts().keeps_memory;
  const Block block{keeps ? rounded(nbytes) : nbytes, device.index,
                    keeps ? current_stream(device) : 0};
  void* data = keeps ? take_kept(block) : nullptr;
  if (!data) data = allocate_raw(block);
  const std::lock_guard lock(mutex_);
  used_[data] = block;
  DeviceMemory& s = statistics_[block.index];
  ++s.allocations;
  s.current += static_cast<int64_t>(block.size);
  s.peak = std::max(s.peak, s.current);
  return data;
}

void BackendMemory::deallocate(void* data, size_t) noexcept {
  Block block;
  {
    const std::lock_guard lock(mutex_);
    const auto it = used_.find(data);
    if (it == used_.end()) return;
    block = it->second;
    used_.erase(it);
    DeviceMemory& s = statistics_[block.index];
    ++s.frees;
    s.current -= static_cast<int64_t>(block.size);
    if (backend_.facts().keeps_memory) {
      s.kept += static_cast<int64_t>(block.size);
      kept_[{block.index, block.stream, block.size}].push_back(data);
      return;
    }
  }
  backend_.deallocate(block.index, data, block.size);
}

void* BackendMemory::take_kept(const Block& block) {
  const std::lock_guard lock(mutex_);
  const auto it = kept_.find({block.index, block.stream, block.size});
  if (it == kept_.end() || it->second.empty()) return nullptr;
  void* data = it->second.back();
  it->second.pop_back();
  statistics_[block.index].kept -= static_cast<int64_t>(block.size);
  return data;
}

void* BackendMemory::allocate_raw(const Block& block) {
  const auto allocate = [&] {
    void* data = backend_.allocate(block.index, block.size);
    const std::lock_guard lock(mutex_);
    ++statistics_[block.index].raw_allocations;
    return data;
  };
  try {
    return allocate();
  } catch (const Error& error) {
    // What is kept may be what is missing.
    if (error.kind() != ErrorKind::OutOfMemory || statistics(block.index).kept == 0) throw;
  }
  backend_.synchronize(block.index);
  release_kept();
  return allocate();
}

std::vector<std::pair<void*, BackendMemory::Block>> BackendMemory::all_kept() {
  const std::lock_guard lock(mutex_);
  std::vector<std::pair<void*, Block>> all;
  for (const auto& [place, blocks] : kept_) {
    const auto& [index, stream, size] = place;
    for (void* data : blocks) all.push_back({data, {size, index, stream}});
  }
  kept_.clear();
  for (auto& [index, s] : statistics_) s.kept = 0;
  return all;
}

void BackendMemory::release_kept() {
  for (const auto& [data, block] : all_kept())
    backend_.deallocate(block.index, data, block.size);
}

DeviceMemory BackendMemory::statistics(int index) const {
  const std::lock_guard lock(mutex_);
  const auto it = statistics_.find(index);
  return it == statistics_.end() ? DeviceMemory() : it->second;
}

void BackendMemory::reset_peak(int index) {
  const std::lock_guard lock(mutex_);
  DeviceMemory& s = statistics_[index];
  s.peak = s.current;
}

}  // namespace treadle
