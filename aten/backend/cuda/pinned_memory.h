// PinnedMemory: host memory that devices copy from and to directly. A freed block is reused once
// the queued copies of it are done. An event marks each copy, so no thread waits.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <map>
#include <mutex>
#include <set>
#include <vector>

#include "aten/backend/cuda/calls.h"

namespace treadle::cuda {

class PinnedMemory {
 public:
  void* allocate(size_t nbytes);
  void deallocate(void* data) noexcept;
  // Whether the address is inside a block in use.
  bool contains(const void* address);
  // Records that a copy with this memory was queued on the stream of the device.
  void note_use(const void* address, int device, cudaStream_t stream);

 private:
  struct Use {
    int device;
    cudaStream_t stream;
    friend auto operator<=>(const Use&, const Use&) = default;
  };
  struct Block {
    size_t size;
    std::set<Use> uses;
  };
  struct Freed {
    void* data;
    size_t size;
    std::vector<cudaEvent_t> events;  // when all have passed, it is free
  };
  std::map<const void*, Block>::iterator find(const void* address);
  static size_t rounded(size_t nbytes);
  void collect();

  std::mutex mutex_;
  std::map<const void*, Block> used_;
  std::vector<Freed> waiting_;
  std::multimap<size_t, void*> free_;  // by size
};

}  // namespace treadle::cuda
