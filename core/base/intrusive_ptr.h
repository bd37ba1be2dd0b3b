// IntrusivePtr: a reference-counted pointer. The count lives in the object, so a handle is one
// word, and the object is freed together with its last handle.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace treadle {

class RefCounted {
 public:
  RefCounted() = default;
  RefCounted(const RefCounted&) = delete;
  RefCounted& operator=(const RefCounted&) = delete;
  virtual ~RefCounted() = default;

  void retain() const noexcept { count_.fetch_add(1, std::memory_order_relaxed); }
  // The last owner leaves the count at one, so destroying costs no atomic read-modify-write. The
  // object may still be taken by try_retain() then: see destroy().
  void release() const noexcept {
    int32_t n = count_.load(std::memory_order_acquire);
    while (n != 1) {
      if (count_.compare_exchange_weak(n, n - 1, std::memory_order_acq_rel,
                                       std::memory_order_acquire))
        return;
    }
    const_cast<RefCounted*>(this)->destroy();
  }
  // For those who know the object without owning it: takes a reference unless there was never one.
  // They do it under a lock, under which destroy() makes them forget the object.
  bool try_retain() const noexcept {
    int32_t n = count_.load(std::memory_order_relaxed);
    while (n > 0) {
      if (count_.compare_exchange_weak(n, n + 1, std::memory_order_acq_rel)) return true;
    }
    return false;
  }
  // The first reference of an object nobody else has seen yet: a plain store.
  void retain_first() const noexcept { count_.store(1, std::memory_order_relaxed); }
  int32_t use_count() const noexcept { return count_.load(std::memory_order_relaxed); }

 protected:
  // Called by the last owner, whose reference is still counted. Deletes; overridden where
  // destruction must not recurse, and where somebody uses try_retain(): such a class takes the
  // lock, looks whether the count is above one by now, and if so only gives its own reference back,
  // by release(); else it makes them forget the object before the lock is let go of.
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

  // Takes over a reference that was counted already.
  static IntrusivePtr adopt(T* p) noexcept {
    IntrusivePtr r;
    r.p_ = p;
    return r;
  }
  // Gives up the reference without dropping it.
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
