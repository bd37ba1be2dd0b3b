// IntrusivePtr: a reference-counted pointer. The count lives in the object, so a handle is one
// word, and the object is freed together with its last handle.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "core/base/small_blocks.h"

namespace treadle {

class RefCounted : public InSmallBlock {
 public:
  RefCounted() = default;
  RefCounted(const RefCounted&) = delete;
  RefCounted& operator=(const RefCounted&) = delete;
  virtual ~RefCounted() = default;

  void retain() const noexcept { count_.fetch_add(1, std::memory_order_relaxed); }
  // The last owner leaves the count at one, so destruction costs no atomic read-modify-write.
  // Meanwhile try_retain() may still take the object: see destroy().
  void release() const noexcept {
    int32_t n = count_.load(std::memory_order_acquire);
    while (n != 1) {
      if (count_.compare_exchange_weak(n, n - 1, std::memory_order_acq_rel,
                                       std::memory_order_acquire))
        return;
    }
    const_cast<RefCounted*>(this)->destroy();
  }
  // For code that knows the object without owning it: takes a reference, unless the object never
  // had one. Such code holds a lock, under which destroy() makes it forget the object.
  bool try_retain() const noexcept {
    int32_t n = count_.load(std::memory_order_relaxed);
    while (n > 0) {
      if (count_.compare_exchange_weak(n, n + 1, std::memory_order_acq_rel)) return true;
    }
    return false;
  }
  // The first reference of an object that no other thread has seen yet: a plain store.
  void retain_first() const noexcept { count_.store(1, std::memory_order_relaxed); }
  int32_t use_count() const noexcept { return count_.load(std::memory_order_relaxed); }

 protected:
  // Called by the last owner, whose reference is still counted. Deletes the object. A class
  // overrides it where destruction must not recurse, and where other code uses try_retain(). Such a
  // class takes the lock and checks whether the count is above one by now. If so, it only gives its
  // own reference back, by release(). Otherwise it makes that code forget the object before it
  // releases the lock.
  virtual void destroy() { delete this; }

 private:
  mutable std::atomic<int32_t> count_{0};
};

template <class T>
class IntrusivePtr {
 public:
  constexpr IntrusivePtr() noexcept = default;
  constexpr IntrusivePtr(std::nullptr_t) noexcept {}  // NOLINT
  explicit IntrusivePtr(T* p) noexcept : p_(p) {
    if (p_) p_->retain();
  }
  IntrusivePtr(const IntrusivePtr& o) noexcept : p_(o.p_) {
    if (p_) p_->retain();
  }
  IntrusivePtr(IntrusivePtr&& o) noexcept : p_(std::exchange(o.p_, nullptr)) {}
  template <class U>
  requires std::is_convertible_v<U*, T*> IntrusivePtr(const IntrusivePtr<U>& o)
  noexcept : p_(o.get()) {
    if (p_) p_->retain();
  }  // NOLINT
  template <class U>
  requires std::is_convertible_v<U*, T*> IntrusivePtr(IntrusivePtr<U>&& o)
  noexcept : p_(o.detach()) {}  // NOLINT
  ~IntrusivePtr() {
    if (p_) p_->release();
  }
  IntrusivePtr& operator=(IntrusivePtr o) noexcept {
    std::swap(p_, o.p_);
    return *this;
  }

  // Takes over a reference that is already counted.
  static IntrusivePtr adopt(T* p) noexcept {
    IntrusivePtr r;
    r.p_ = p;
    return r;
  }
  // Gives up the reference without decrementing the count.
  T* detach() noexcept { return std::exchange(p_, nullptr); }

  T* get() const noexcept { return p_; }
  T* operator->() const noexcept { return p_; }
  T& operator*() const noexcept { return *p_; }
  explicit operator bool() const noexcept { return p_ != nullptr; }
  void reset() noexcept { *this = IntrusivePtr(); }
  friend bool operator==(const IntrusivePtr& a, const IntrusivePtr& b) noexcept {
    return a.p_ == b.p_;
  }
  friend bool operator==(const IntrusivePtr& a, std::nullptr_t) noexcept { return a.p_ == nullptr; }

 private:
  T* p_ = nullptr;
};

template <class T, class... Args>
IntrusivePtr<T> make_intrusive(Args&&... args) {
  T* object = new T(std::forward<Args>(args)...);
  object->retain_first();
  return IntrusivePtr<T>::adopt(object);
}

}  // namespace treadle
