// Storage: allocation, release and resizing of the bytes tensors share.

#include "core/storage.h"

#include <cstring>
#include <utility>

#include "core/backend.h"
#include "core/error.h"

namespace treadle {

StorageImpl::StorageImpl(size_t nbytes, Device device)
    : nbytes_(nbytes), device_(with_index(device)) {
  if (device.is_meta()) return;
  Allocator& allocator = device.is_cpu() ? cpu_allocator() : allocator_for(device.type);
  data_ = allocator.allocate(nbytes, device_);
  allocator_ = &allocator;
}

StorageImpl::StorageImpl(void* data, size_t nbytes, Device device, std::function<void()> release,
                         bool writable)
    : data_(data), nbytes_(nbytes), device_(with_index(device)), writable_(writable) {
  if (release) release_ = new std::function<void()>(std::move(release));
}

StorageImpl::~StorageImpl() {
  if (allocator_) {
    if (data_) allocator_->deallocate(data_, nbytes_, device_);
  } else if (release_) {
    (*release_)();
    delete release_;
  }
}

void StorageImpl::resize(size_t nbytes) {
  if (nbytes == nbytes_) return;
  if (device_.is_meta()) {
    nbytes_ = nbytes;
    return;
  }
  check<ErrorKind::Runtime>(
      owns_memory(),
      "expected a storage that can be resized, got one over memory of another owner");
  void* grown = allocator_->allocate(nbytes, device_);
  const size_t kept = nbytes < nbytes_ ? nbytes : nbytes_;
  if (kept && device_.is_cpu()) {
    std::memcpy(grown, data_, kept);
  } else if (kept) {
    try {
      move_bytes({grown, 0, device_}, {data_, 0, device_}, kept, false);
    } catch (...) {
      allocator_->deallocate(grown, nbytes, device_);
      throw;
    }
  }
  if (data_) allocator_->deallocate(data_, nbytes_, device_);
  data_ = grown;
  nbytes_ = nbytes;
}

std::function<void()> StorageImpl::replace_memory(void* data, std::function<void()> release) {
  std::function<void()> former;
  if (allocator_) {
    if (data_)
      former = [allocator = allocator_, data = data_, nbytes = nbytes_, device = device_] {
        allocator->deallocate(data, nbytes, device);
      };
  } else if (release_) {
    former = std::move(*release_);
  }
  auto* owner = new std::function<void()>(std::move(release));
  delete release_;
  release_ = owner;
  allocator_ = nullptr;
  data_ = data;
  return former;
}

}  // namespace treadle
