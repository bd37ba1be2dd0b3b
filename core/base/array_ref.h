// Views of lists, and DimVector: a list of sizes, strides or dims that needs no allocation up to
// five entries.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace treadle {

// An ArrayRef made from a braced list lives as long as the call whose argument it is, which is its
// purpose.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Winit-list-lifetime"
// A view of consecutive values. It does not own them, so it never outlives the statement unless the
// owner does.
template <class T>
class ArrayRef {
 public:
  constexpr ArrayRef() = default;
  constexpr ArrayRef(const T* data, size_t size) : data_(data), size_(size) {}
  ArrayRef(const std::vector<T>& v) : data_(v.data()), size_(v.size()) {}                // NOLINT
  constexpr ArrayRef(std::initializer_list<T> v) : data_(v.begin()), size_(v.size()) {}  // NOLINT
  template <size_t N>
  constexpr ArrayRef(const T (&v)[N]) : data_(v), size_(N) {}  // NOLINT
  template <size_t N>
  constexpr ArrayRef(const std::array<T, N>& v) : data_(v.data()), size_(N) {}  // NOLINT
  template <class C>
  requires requires(const C& c) {
    { c.data() } -> std::same_as<const T*>;
    c.is_dim_vector;
  }
  constexpr ArrayRef(const C& c) : data_(c.data()), size_(c.size()) {}  // NOLINT

  constexpr const T* data() const { return data_; }
  constexpr size_t size() const { return size_; }
  constexpr bool empty() const { return size_ == 0; }
  constexpr const T* begin() const { return data_; }
  constexpr const T* end() const { return data_ + size_; }
  constexpr const T& operator[](size_t i) const { return data_[i]; }
  constexpr const T& front() const { return data_[0]; }
  constexpr const T& back() const { return data_[size_ - 1]; }
  constexpr ArrayRef slice(size_t first, size_t count) const { return {data_ + first, count}; }
  constexpr ArrayRef slice(size_t first) const { return {data_ + first, size_ - first}; }
  std::vector<T> vec() const { return std::vector<T>(begin(), end()); }
  friend constexpr bool operator==(ArrayRef a, ArrayRef b) {
    // Most lists are so short that a call of memcmp, as in std::equal, would take longer.
    if (a.size_ != b.size_) return false;
    for (size_t i = 0; i < a.size_; ++i) {
      if (!(a.data_[i] == b.data_[i])) return false;
    }
    return true;
  }

 private:
  const T* data_ = nullptr;
  size_t size_ = 0;
};

#pragma GCC diagnostic pop
using IntList = ArrayRef<int64_t>;

class DimVector {
 public:
  static constexpr bool is_dim_vector = true;
  static constexpr size_t kInline = 5;

  DimVector() = default;
  explicit DimVector(size_t size, int64_t value = 0) { resize(size, value); }
  DimVector(std::initializer_list<int64_t> v) { assign(v.begin(), v.end()); }
  DimVector(IntList v) { assign(v.begin(), v.end()); }                                 // NOLINT
  DimVector(const std::vector<int64_t>& v) { assign(v.data(), v.data() + v.size()); }  // NOLINT
  DimVector(const int64_t* first, const int64_t* last) { assign(first, last); }
  DimVector(const DimVector& o) { assign(o.begin(), o.end()); }
  DimVector(DimVector&& o) noexcept { take(o); }
  DimVector& operator=(const DimVector& o) {
    if (this != &o) assign(o.begin(), o.end());
    return *this;
  }
  DimVector& operator=(DimVector&& o) noexcept {
    if (this != &o) {
      free_heap();
      take(o);
    }
    return *this;
  }
  ~DimVector() { free_heap(); }

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  int64_t* data() { return data_; }
  const int64_t* data() const { return data_; }
  int64_t* begin() { return data_; }
  int64_t* end() { return data_ + size_; }
  const int64_t* begin() const { return data_; }
  const int64_t* end() const { return data_ + size_; }
  int64_t& operator[](size_t i) { return data_[i]; }
  int64_t operator[](size_t i) const { return data_[i]; }
  int64_t front() const { return data_[0]; }
  int64_t back() const { return data_[size_ - 1]; }
  int64_t& back() { return data_[size_ - 1]; }

  void assign(const int64_t* first, const int64_t* last) {
    const size_t n = static_cast<size_t>(last - first);
    reserve(n);
    copy(data_, first, n);
    size_ = n;
  }
  void resize(size_t n, int64_t value = 0) {
    reserve(n);
    for (size_t i = size_; i < n; ++i) data_[i] = value;
    size_ = n;
  }
  void push_back(int64_t v) {
    if (size_ == capacity_) reserve(2 * capacity_);
    data_[size_++] = v;
  }
  void pop_back() { --size_; }
  void clear() { size_ = 0; }
  void insert(size_t position, int64_t value) {
    push_back(value);
    std::rotate(begin() + position, end() - 1, end());
  }
  void erase(size_t position) {
    std::copy(begin() + position + 1, end(), begin() + position);
    --size_;
  }
  std::vector<int64_t> vec() const { return std::vector<int64_t>(begin(), end()); }
  friend bool operator==(const DimVector& a, const DimVector& b) {
    return IntList(a) == IntList(b);
  }

 private:
  void reserve(size_t n) {
    if (n > capacity_) [[unlikely]]
      grow(n);
  }
  [[gnu::noinline]] void grow(size_t n) {
    int64_t* grown = new int64_t[n];
    std::memcpy(grown, data_, size_ * sizeof(int64_t));
    free_heap();
    data_ = grown;
    capacity_ = n;
  }
  void take(DimVector& o) noexcept {
    size_ = o.size_;
    capacity_ = o.capacity_;
    if (o.data_ == o.inline_) {
      data_ = inline_;
      copy_few(inline_, o.inline_, o.size_);
    } else {
      data_ = o.data_;
    }
    o.data_ = o.inline_;
    o.capacity_ = kInline;
    o.size_ = 0;
  }
  // `from` may be a later part of `to`.
  static void copy(int64_t* to, const int64_t* from, size_t n) {
    if (n <= kInline)
      copy_few(to, from, n);
    else
      std::memmove(to, from, n * sizeof(int64_t));
  }
  // At most kInline entries, in pairs and without a call.
  static void copy_few(int64_t* to, const int64_t* from, size_t n) {
    if (n >= 2) std::memmove(to, from, 2 * sizeof(int64_t));
    if (n >= 4) std::memmove(to + 2, from + 2, 2 * sizeof(int64_t));
    if (n % 2 == 1) to[n - 1] = from[n - 1];
  }
  void free_heap() noexcept {
    if (data_ != inline_) delete[] data_;
    data_ = inline_;
    capacity_ = kInline;
  }

  int64_t* data_ = inline_;
  size_t size_ = 0;
  size_t capacity_ = kInline;
  int64_t inline_[kInline];
};

// A list of dims that may be absent; `nullopt` and the empty list differ.
using OptionalIntList = std::optional<IntList>;
using DoubleList = ArrayRef<double>;

}  // namespace treadle
