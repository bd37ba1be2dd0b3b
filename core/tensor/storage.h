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

class StorageImpl;

// What the bytes of a storage are computed from, when something looks at them.
class PendingValue : public RefCounted {};

// Who computes them: one object, which set_pending_values() names. A storage asks it before it
// gives out its address.
class PendingValues {
 public:
  virtual ~PendingValues() = default;
  // Computes what `storage` waits for, and what other storages compute from its bytes. Throws what
  // the computation throws, and then everything is as it was.
  virtual void settle(StorageImpl& storage) = 0;
  // `storage` has lost its last owner. False if it has got another one since.
  virtual bool forget(StorageImpl& storage) noexcept = 0;
};
void set_pending_values(PendingValues* values);

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

  // The address of the bytes, which are computed first if they are pending.
  void* data() {
    if (needs_settling()) [[unlikely]]
      settle();
    return data_;
  }
  size_t nbytes() const noexcept { return nbytes_; }
  Device device() const noexcept { return device_; }
  bool owns_memory() const noexcept { return allocator_ != nullptr; }
  bool writable() const noexcept { return writable_; }
  // Grows (keeping contents, without zero-filling) or shrinks the size. RuntimeError if
  // what_holds_it() returns a text.
  void resize(size_t nbytes);
  // Whether a tensor must ask for more than the address: the storage was made smaller, so that
  // tensors may reach past its end, has no memory, or needs_settling().
  bool needs_care() const noexcept { return care_.load(std::memory_order_acquire) != 0; }
  // False for a result of without_memory(), which always needs care.
  bool has_memory() const noexcept { return has_memory_; }

  // ---- for PendingValues, under its lock
  // A storage on the CPU whose memory comes later.
  static IntrusivePtr<StorageImpl> awaiting(size_t nbytes, IntrusivePtr<PendingValue> value);
  // What it waits for; null once its bytes are there.
  PendingValue* pending() const noexcept { return pending_.get(); }
  void set_pending(IntrusivePtr<PendingValue> value) noexcept { pending_ = std::move(value); }
  // Allocates the memory that comes later. It still waits for its bytes.
  void allocate_pending();
  // Takes that memory back.
  void deallocate_pending() noexcept;
  // Waits for bytes that are computed from those it has. Those are lent to the result, a storage
  // that pending values read. The address stays, for the new bytes will be written there.
  IntrusivePtr<StorageImpl> lend(IntrusivePtr<PendingValue> value);
  // Ends that: the memory is this storage's again.
  void take_back(StorageImpl& lent) noexcept;
  // Its bytes are there.
  void arrive() noexcept;
  // Whether pending values read its bytes, so that whoever asks for the address has them computed
  // first.
  void set_read_by_pending(bool on) noexcept { set_care(kReadByPending, on); }
  // The address, without a look at what is pending.
  void* address() const noexcept { return data_; }

  // Whether code that no operator sees may write the bytes: another owner, a buffer, another
  // process, or somebody who was told the address.
  bool may_change_unseen() const noexcept {
    return allocator_ == nullptr || is_listed() || is_told_.load(std::memory_order_relaxed) ||
           holders_.load(std::memory_order_acquire) != 0;
  }
  void set_told() noexcept { is_told_.store(true, std::memory_order_relaxed); }
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

  // Frees the memory of other code.
  struct Release final : InSmallBlock {
    explicit Release(std::function<void()> run) : run(std::move(run)) {}
    std::function<void()> run;
  };

  static constexpr uint8_t kShrunk = 1, kPending = 2, kReadByPending = 4;
  void set_care(uint8_t bit, bool on) noexcept {
    if (on)
      care_.fetch_or(bit, std::memory_order_release);
    else
      care_.fetch_and(static_cast<uint8_t>(~bit), std::memory_order_release);
  }
  bool needs_settling() const noexcept {
    return (care_.load(std::memory_order_acquire) & (kPending | kReadByPending)) != 0;
  }
  [[gnu::cold]] void settle();

  std::atomic<uint8_t> care_{0};
  std::atomic<bool> is_listed_{false}, is_told_{false};
  void* data_ = nullptr;
  IntrusivePtr<PendingValue> pending_;
  size_t nbytes_ = 0;
  Allocator* allocator_ = nullptr;
  Release* release_ = nullptr;        // owned; null for allocated memory
  std::atomic<uint64_t> holders_{0};  // counts by kind, and a bit for a Change
  std::atomic<uint32_t> version_{0};
  Device device_;
  bool writable_ = true;
  bool has_memory_ = true;
  bool was_pending_ = false;
  bool has_lent_ = false;  // another storage frees the memory
};
using Storage = IntrusivePtr<StorageImpl>;

}  // namespace treadle
