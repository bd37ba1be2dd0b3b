// Allocation, release and resizing of the bytes that tensors share.
//
// SPDX-License-Identifier: Apache-2.0

#include "core/tensor/storage.h"

#include <cstring>
#include <thread>
#include <utility>

#include "core/base/error.h"
#include "core/device/backend.h"
#include "core/tensor/shared_memory.h"

namespace treadle {
namespace {

// The bits of StorageImpl::holders_: 31 for each kind of holder.
constexpr int kCountBits = 31;
constexpr uint64_t kChanging = uint64_t{1} << 63;

constexpr int shift_of(Holder who) { return who == Holder::Buffer ? 0 : kCountBits; }
constexpr uint64_t count_of(uint64_t holders, Holder who) {
  return holders >> shift_of(who) & ((uint64_t{1} << kCountBits) - 1);
}

PendingValues* pending_values = nullptr;

std::string text_of(uint64_t holders) {
  const uint64_t buffers = count_of(holders, Holder::Buffer);
  const uint64_t tensors = count_of(holders, Holder::DLPack);
  std::string text = "one that ";
  if (buffers == 1) text += "1 buffer (a NumPy array or memoryview)";
  if (buffers > 1) text += str(buffers, " buffers (NumPy arrays or memoryviews)");
  if (buffers && tensors) text += " and ";
  if (tensors) text += str(tensors, tensors == 1 ? " DLPack capsule" : " DLPack capsules");
  return text + (buffers + tensors == 1 ? " holds" : " hold");
}

}  // namespace

void set_pending_values(PendingValues* values) { pending_values = values; }

class StorageImpl::Change {
 public:
  explicit Change(StorageImpl& storage) : holders_(storage.holders_) {
    while (holders_.fetch_or(kChanging, std::memory_order_acquire) & kChanging)
      std::this_thread::yield();
  }
  ~Change() { holders_.fetch_and(~kChanging, std::memory_order_release); }
  Change(const Change&) = delete;
  Change& operator=(const Change&) = delete;

 private:
  std::atomic<uint64_t>& holders_;
};

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
  if (release) release_ = new Release(std::move(release));
}

IntrusivePtr<StorageImpl> StorageImpl::without_memory(size_t nbytes, Device device) {
  auto storage = make_intrusive<StorageImpl>(nullptr, nbytes, device, nullptr);
  storage->has_memory_ = false;
  storage->set_care(kShrunk, true);
  return storage;
}

IntrusivePtr<StorageImpl> StorageImpl::awaiting(size_t nbytes, IntrusivePtr<PendingValue> value) {
  auto storage = make_intrusive<StorageImpl>(nullptr, nbytes, kCPU, nullptr);
  storage->allocator_ = &cpu_allocator();
  storage->pending_ = std::move(value);
  storage->was_pending_ = true;
  storage->set_care(kPending, true);
  return storage;
}

void StorageImpl::allocate_pending() {
  if (data_ == nullptr) data_ = allocator_->allocate(nbytes_, device_);
}

void StorageImpl::deallocate_pending() noexcept {
  if (has_lent_) return;
  if (data_ != nullptr) allocator_->deallocate(data_, nbytes_, device_);
  data_ = nullptr;
}

IntrusivePtr<StorageImpl> StorageImpl::lend(IntrusivePtr<PendingValue> value) {
  auto lent = make_intrusive<StorageImpl>(data_, nbytes_, device_, nullptr);
  lent->allocator_ = allocator_;
  pending_ = std::move(value);
  was_pending_ = has_lent_ = true;
  set_care(kPending, true);
  return lent;
}

void StorageImpl::take_back(StorageImpl& lent) noexcept {
  lent.data_ = nullptr;
  has_lent_ = false;
}

void StorageImpl::arrive() noexcept {
  pending_.reset();
  set_care(kPending, false);
}

void StorageImpl::settle() { pending_values->settle(*this); }

StorageImpl::~StorageImpl() {
  if (allocator_) {
    if (data_ && !has_lent_) allocator_->deallocate(data_, nbytes_, device_);
  } else if (release_) {
    release_->run();
    delete release_;
  }
}

void StorageImpl::destroy() {
  if (is_listed() && !leave_shared_memory(*this)) {
    release();
    return;
  }
  if (was_pending_ && !pending_values->forget(*this)) {
    release();
    return;
  }
  delete this;
}

void StorageImpl::hold(Holder who) noexcept {
  // A resize that has begun either sees the holder and refuses, or is over when this returns.
  uint64_t seen = holders_.fetch_add(uint64_t{1} << shift_of(who), std::memory_order_acquire);
  while (seen & kChanging) [[unlikely]] {
      std::this_thread::yield();
      seen = holders_.load(std::memory_order_acquire);
    }
}

void StorageImpl::let_go(Holder who) noexcept {
  holders_.fetch_sub(uint64_t{1} << shift_of(who), std::memory_order_release);
}

std::string StorageImpl::what_holds_it() const {
  if (device_.is_meta()) return {};
  if (!has_memory()) return "one without memory, of a tensor that stands for others";
  if (is_listed()) return "one in memory that processes share";
  if (!owns_memory()) return "one over memory of another owner";
  const uint64_t holders = holders_.load(std::memory_order_acquire) & ~kChanging;
  return holders ? text_of(holders) : std::string();
}

void StorageImpl::resize(size_t nbytes) {
  if (needs_settling()) settle();
  const Change change(*this);
  if (nbytes == nbytes_) return;
  if (device_.is_meta()) {
    nbytes_ = nbytes;
    return;
  }
  const std::string held = what_holds_it();
  check<ErrorKind::Runtime>(held.empty(), "expected a storage that can be resized, got ", held);
  void* const former = data_;
  const size_t former_nbytes = nbytes_;
  void* moved = allocator_->allocate(nbytes, device_);
  const size_t kept = nbytes < former_nbytes ? nbytes : former_nbytes;
  if (kept && device_.is_cpu()) {
    std::memcpy(moved, former, kept);
  } else if (kept) {
    try {
      move_bytes({moved, 0, device_}, {former, 0, device_}, kept, false);
    } catch (...) {
      allocator_->deallocate(moved, nbytes, device_);
      throw;
    }
  }
  if (nbytes < former_nbytes) set_care(kShrunk, true);
  data_ = moved;
  nbytes_ = nbytes;
  if (former) allocator_->deallocate(former, former_nbytes, device_);
}

std::function<void()> StorageImpl::replace_memory(void* data, std::function<void()> release) {
  if (needs_settling()) settle();
  const Change change(*this);
  std::function<void()> former;
  if (allocator_) {
    if (data_)
      former = [allocator = allocator_, data = data_, nbytes = nbytes_, device = device_] {
        allocator->deallocate(data, nbytes, device);
      };
  } else if (release_) {
    former = std::move(release_->run);
  }
  auto* owner = new Release(std::move(release));
  delete release_;
  release_ = owner;
  allocator_ = nullptr;
  data_ = data;
  return former;
}

}  // namespace treadle
