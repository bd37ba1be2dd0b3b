// Storage: a reference-counted block of bytes on one device, shared by the tensors that view it.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>

#include "core/base/intrusive_ptr.h"
#include "core/memory/allocator.h"

namespace treadle {

// The kinds of holders of a storage's address: buffers of Python (NumPy arrays, memoryviews) and
// tensors of other libraries.
enum class Holder : uint8_t { Buffer, DLPack };

class StorageImpl final : public RefCounted {
 public:
  // Allocates memory. A meta storage has a size and no bytes.
  StorageImpl(size_t nbytes, Device device);
  // Wraps memory owned by other code. `release` runs once when the storage dies (from any thread).
  StorageImpl(void* data, size_t nbytes, Device device, std::function<void()> release,
              bool writable = true);
  ~StorageImpl() override;
  // A size and no bytes, on any device, for a tensor that stands for others. A caller of data()
  // must check has_memory() first, as TensorImpl::data() does.
  static IntrusivePtr<StorageImpl> without_memory(size_t nbytes, Device device);

  void* data() const noexcept { return data_; }
  size_t nbytes() const noexcept { return nbytes_; }
  Device device() const noexcept { return device_; }
  bool owns_memory() const noexcept { return allocator_ != nullptr; }
  bool writable() const noexcept { return writable_; }
  // Grows (keeping contents, without zero-filling) or shrinks the size. RuntimeError if
  // what_holds_it() returns a text.
  void resize(size_t nbytes);
  // Whether the storage was ever made smaller, so that tensors may reach past its end.
  bool has_shrunk() const noexcept { return has_shrunk_.load(std::memory_order_relaxed); }
  // False for a result of without_memory(). Such a storage counts as one that has shrunk, so that
  // every request for a tensor's bytes reaches the check.
  bool has_memory() const noexcept { return has_memory_; }
  // Replaces the storage's memory for all tensors on it by other memory, to which the caller has
  // copied the bytes; `release` as above. Returns a function that frees the old memory.
  std::function<void()> replace_memory(void* data, std::function<void()> release);

  // From hold() to let_go() the memory does not move. The holder also keeps the storage alive.
  void hold(Holder who) noexcept;
  void let_go(Holder who) noexcept;
  // The reason why the memory cannot be resized: "one that 2 buffers (NumPy arrays or memoryviews)
  // hold"; empty if it can be.
  std::string what_holds_it() const;

  // Whether the table of shared memory knows the storage; maintained by that table.
  bool is_listed() const noexcept { return is_listed_.load(std::memory_order_relaxed); }
  void set_listed() noexcept { is_listed_.store(true, std::memory_order_relaxed); }
  // The number of in-place writes to tensors on this storage; see TensorImpl::version().
  std::atomic<uint32_t>& version() noexcept { return version_; }

 protected:
  void destroy() override;

 private:
  class Change;  // while one lives, no other code may change or hold the memory

  std::atomic<bool> has_shrunk_{false}, is_listed_{false};
  void* data_ = nullptr;
  size_t nbytes_ = 0;
  Allocator* allocator_ = nullptr;
  std::function<void()>* release_ = nullptr;  // owned; null for allocated memory
  std::atomic<uint64_t> holders_{0};          // counts by kind, and a bit for a Change
  std::atomic<uint32_t> version_{0};
  Device device_;
  bool writable_ = true;
  bool has_memory_ = true;
};
using Storage = IntrusivePtr<StorageImpl>;

}  // namespace treadle
