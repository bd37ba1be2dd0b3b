// Caches blocks of powers of two, by size. A block is never returned, because a program's largest
// batches soon determine all of them.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/backend/cuda/pinned_memory.h"

#include <bit>

#include "aten/backend/cuda/device_guard.h"
#include "aten/backend/cuda/outside_capture.h"

namespace treadle::cuda {

size_t PinnedMemory::rounded(size_t nbytes) { return std::bit_ceil(nbytes < 512 ? 512 : nbytes); }

void* PinnedMemory::allocate(size_t nbytes) {
  const size_t size = rounded(nbytes);
  {
    const std::lock_guard lock(mutex_);
    collect();
    const auto it = free_.find(size);
    if (it != free_.end()) {
      void* const data = it->second;
      free_.erase(it);
      used_[data] = {size, {}};
      return data;
    }
  }
  const OutsideCapture outside;
  void* data = nullptr;
  succeed(calls().host_alloc(&data, size, cudaHostAllocPortable), "allocating pinned memory");
  const std::lock_guard lock(mutex_);
  used_[data] = {size, {}};
  return data;
}

// The freed blocks whose events have all passed become free.
void PinnedMemory::collect() {
  std::erase_if(waiting_, [this](Freed& freed) {
    std::erase_if(freed.events, [](cudaEvent_t event) {
      const cudaError_t code = calls().event_query(event);
      if (code == cudaErrorNotReady) return false;
      // A captured event never passes. The code that replays the copy keeps the memory that it
      // reads.
      if (code != cudaSuccess) calls().get_last_error();
      calls().event_destroy(event);
      return true;
    });
    if (freed.events.empty()) free_.emplace(freed.size, freed.data);
    return freed.events.empty();
  });
}

void PinnedMemory::deallocate(void* data) noexcept {
  const std::lock_guard lock(mutex_);
  const auto it = used_.find(data);
  if (it == used_.end()) return;
  Freed freed{data, it->second.size, {}};
  for (const Use& use : it->second.uses) {
    cudaEvent_t event = nullptr;
    bool marked = false;
    try {
      const DeviceGuard guard(use.device);
      marked = calls().event_create_with_flags(&event, cudaEventDisableTiming) == cudaSuccess &&
               calls().event_record(event, use.stream) == cudaSuccess;
    } catch (const std::exception&) {
    }
    if (marked)
      freed.events.push_back(event);
    else
      calls().stream_synchronize(use.stream);
  }
  used_.erase(it);
  waiting_.push_back(std::move(freed));
}

std::map<const void*, PinnedMemory::Block>::iterator PinnedMemory::find(const void* address) {
  auto it = used_.upper_bound(address);
  if (it == used_.begin()) return used_.end();
  --it;
  const auto* start = static_cast<const char*>(it->first);
  return static_cast<const char*>(address) < start + it->second.size ? it : used_.end();
}

bool PinnedMemory::contains(const void* address) {
  const std::lock_guard lock(mutex_);
  return find(address) != used_.end();
}

void PinnedMemory::note_use(const void* address, int device, cudaStream_t stream) {
  const std::lock_guard lock(mutex_);
  const auto it = find(address);
  if (it != used_.end()) it->second.uses.insert({device, stream});
}

}  // namespace treadle::cuda
