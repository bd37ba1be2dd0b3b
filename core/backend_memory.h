// BackendMemory: the allocator of a backend's devices. It counts, and, where the backend wishes,
// keeps freed blocks for later requests of about their size on the same device and stream: work
// that was queued on a stream before a block was freed comes before work that is queued after it
// is used again, so nothing has to be waited for.
#pragma once

#include <map>
#include <mutex>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "core/backend.h"

namespace treadle {

class BackendMemory final : public Allocator {
 public:
  BackendMemory(Backend& backend, DeviceType type) : backend_(backend), type_(type) {}

  void* allocate(size_t nbytes, Device device) override;
  void deallocate(void* data, size_t nbytes) noexcept override;

  DeviceMemory statistics(int index) const;
  void reset_peak(int index);
  void release_kept();

 private:
  struct Block {
    size_t size;
    int index;
    uint64_t stream;
  };
  using Place = std::tuple<int, uint64_t, size_t>;  // device, stream, size
  void* take_kept(const Block& block);
  void* allocate_raw(const Block& block);
  std::vector<std::pair<void*, Block>> all_kept();

  Backend& backend_;
  DeviceType type_;
  mutable std::mutex mutex_;
  std::unordered_map<void*, Block> used_;
  std::map<Place, std::vector<void*>> kept_;
  std::map<int, DeviceMemory> statistics_;
};

}  // namespace treadle
