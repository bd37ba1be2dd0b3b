// HeaderOnlyArrayRef: a sequence that somebody else owns, by its first element and its length.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <type_traits>
#include <vector>

#include <torch/headeronly/util/Exception.h>

namespace c10 {

template <typename T>
class HeaderOnlyArrayRef {
 public:
  using value_type = T;
  using size_type = size_t;
  using iterator = const T*;
  using const_iterator = const T*;
  using reverse_iterator = std::reverse_iterator<iterator>;

  constexpr HeaderOnlyArrayRef() = default;
  constexpr HeaderOnlyArrayRef(const T& one) : data_(&one), size_(1) {}
  constexpr HeaderOnlyArrayRef(const T* data, size_t size) : data_(data), size_(size) {}
  constexpr HeaderOnlyArrayRef(const T* begin, const T* end)
      : data_(begin), size_(static_cast<size_t>(end - begin)) {}
  // Vectors, arrays, other sequences that lie in memory.
  template <typename C, typename = std::enable_if_t<std::is_convertible_v<
                            decltype(std::declval<const C&>().data()), const T*>>>
  constexpr HeaderOnlyArrayRef(const C& values) : data_(values.data()), size_(values.size()) {}
  template <size_t N>
  constexpr HeaderOnlyArrayRef(const T (&values)[N]) : data_(values), size_(N) {}
  constexpr HeaderOnlyArrayRef(const std::initializer_list<T>& values)
      : data_(values.begin()), size_(values.size()) {}

  constexpr const T* data() const { return data_; }
  constexpr size_t size() const { return size_; }
  constexpr bool empty() const { return size_ == 0; }
  constexpr iterator begin() const { return data_; }
  constexpr iterator end() const { return data_ + size_; }
  constexpr const_iterator cbegin() const { return begin(); }
  constexpr const_iterator cend() const { return end(); }
  constexpr reverse_iterator rbegin() const { return reverse_iterator(end()); }
  constexpr reverse_iterator rend() const { return reverse_iterator(begin()); }

  constexpr const T& operator[](size_t i) const { return data_[i]; }
  const T& at(size_t i) const {
    STD_TORCH_CHECK(i < size_, "expected an index below ", size_, ", got ", i);
    return data_[i];
  }
  const T& front() const { return at(0); }
  const T& back() const { return at(size_ - 1); }
  HeaderOnlyArrayRef slice(size_t first, size_t count) const {
    STD_TORCH_CHECK(first <= size_ && count <= size_ - first, "expected a slice of ", size_,
                    " elements, got ", count, " from ", first);
    return {data_ + first, count};
  }
  HeaderOnlyArrayRef slice(size_t first) const { return slice(first, size_ - first); }
  std::vector<T> vec() const { return std::vector<T>(begin(), end()); }
  bool equals(HeaderOnlyArrayRef other) const {
    return size_ == other.size_ && std::equal(begin(), end(), other.begin());
  }
  friend bool operator==(HeaderOnlyArrayRef a, HeaderOnlyArrayRef b) { return a.equals(b); }
  friend bool operator!=(HeaderOnlyArrayRef a, HeaderOnlyArrayRef b) { return !a.equals(b); }

 private:
  const T* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace c10

namespace torch::headeronly {
using c10::HeaderOnlyArrayRef;
using IntHeaderOnlyArrayRef = HeaderOnlyArrayRef<int64_t>;
}  // namespace torch::headeronly
