// InlineVector: a vector whose first N entries need no allocation. Most nodes have one or two
// inputs and outputs, so a recorded operator costs one allocation.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <initializer_list>
#include <memory>
#include <new>
#include <utility>
#include <vector>

namespace treadle::autograd {

template <class T, size_t N>
class InlineVector {
 public:
  InlineVector() = default;
  explicit InlineVector(size_t count) { resize(count); }
  InlineVector(std::initializer_list<T> values) {
    reserve(values.size());
    for (const T& v : values) push_back(v);
  }
  InlineVector(std::vector<T> values) {  // NOLINT: a list is a list
    reserve(values.size());
    for (T& v : values) push_back(std::move(v));
  }
  InlineVector(const InlineVector& o) {
    reserve(o.size_);
    for (const T& v : o) push_back(v);
  }
  InlineVector(InlineVector&& o) noexcept { take(o); }
  InlineVector& operator=(const InlineVector& o) {
    if (this != &o) *this = InlineVector(o);
    return *this;
  }
  InlineVector& operator=(InlineVector&& o) noexcept {
    if (this != &o) {
      free_all();
      take(o);
    }
    return *this;
  }
  ~InlineVector() { free_all(); }

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T* data() { return data_; }
  const T* data() const { return data_; }
  T* begin() { return data_; }
  T* end() { return data_ + size_; }
  const T* begin() const { return data_; }
  const T* end() const { return data_ + size_; }
  T& operator[](size_t i) { return data_[i]; }
  const T& operator[](size_t i) const { return data_[i]; }
  T& back() { return data_[size_ - 1]; }

  template <class... Args>
  T& emplace_back(Args&&... args) {
    if (size_ == capacity_) reserve(2 * capacity_);
    T* made = new (data_ + size_) T{std::forward<Args>(args)...};
    ++size_;
    return *made;
  }
  void push_back(T value) { emplace_back(std::move(value)); }
  void resize(size_t count) {
    reserve(count);
    while (size_ < count) new (data_ + size_++) T();
    while (size_ > count) data_[--size_].~T();
  }
  void clear() { resize(0); }
  void reserve(size_t count) {
    if (count <= capacity_) return;
    T* grown = static_cast<T*>(::operator new(count * sizeof(T), std::align_val_t(alignof(T))));
    for (size_t i = 0; i < size_; ++i) {
      new (grown + i) T(std::move(data_[i]));
      data_[i].~T();
    }
    if (data_ != inline_data()) ::operator delete(data_, std::align_val_t(alignof(T)));
    data_ = grown;
    capacity_ = count;
  }
  std::vector<T> vec() const { return std::vector<T>(begin(), end()); }

 private:
  T* inline_data() { return reinterpret_cast<T*>(inline_); }
  void take(InlineVector& o) noexcept {
    if (o.data_ == o.inline_data()) {
      for (size_t i = 0; i < o.size_; ++i) {
        new (data_ + i) T(std::move(o.data_[i]));
        o.data_[i].~T();
      }
      size_ = o.size_;
    } else {
      data_ = o.data_;
      size_ = o.size_;
      capacity_ = o.capacity_;
      o.data_ = o.inline_data();
      o.capacity_ = N;
    }
    o.size_ = 0;
  }
  // Leaves the vector empty, in its inline storage.
  void free_all() noexcept {
    for (size_t i = 0; i < size_; ++i) data_[i].~T();
    if (data_ != inline_data()) ::operator delete(data_, std::align_val_t(alignof(T)));
    data_ = inline_data();
    size_ = 0;
    capacity_ = N;
  }

  alignas(T) unsigned char inline_[N * sizeof(T)];
  T* data_ = inline_data();
  size_t size_ = 0;
  size_t capacity_ = N;
};

}  // namespace treadle::autograd
