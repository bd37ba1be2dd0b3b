// Storage: a reference-counted run of bytes on one device, shared by the tensors that view it.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>

#include "core/allocator.h"
#include "core/intrusive_ptr.h"

namespace treadle {

class StorageImpl final : public RefCounted {
 public:
  // Allocates. A meta storage has a size and no bytes.
  StorageImpl(size_t nbytes, Device device);
  // Wraps memory owned elsewhere; `release` runs once when the storage dies (from any thread).
  StorageImpl(void* data, size_t nbytes, Device device, std::function<void()> release,
              bool writable = true);
  ~StorageImpl() override;

  void* data() const noexcept { return data_; }
  size_t nbytes() const noexcept { return nbytes_; }
  Device device() const noexcept { return device_; }
  bool owns_memory() const noexcept { return allocator_ != nullptr; }
  bool writable() const noexcept { return writable_; }
  // Grows (keeping contents, zero-filling nothing) or shrinks the size; RuntimeError for memory
  // owned elsewhere.
  void resize(size_t nbytes);
  // Puts other memory, to which the caller has copied the bytes, in place of the storage's, for all
  // tensors on it; `release` as above. Returns what frees the memory that it had.
  std::function<void()> replace_memory(void* data, std::function<void()> release);
  // How often tensors on this storage were written in place; see TensorImpl::version().
  std::atomic<uint32_t>& version() noexcept { return version_; }

 private:
  void* data_ = nullptr;
  size_t nbytes_ = 0;
  Allocator* allocator_ = nullptr;
  std::function<void()>* release_ = nullptr;  // owned; null for allocated memory
  std::atomic<uint32_t> version_{0};
  Device device_;
  bool writable_ = true;
};
using Storage = IntrusivePtr<StorageImpl>;

}  // namespace treadle
