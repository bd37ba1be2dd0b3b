// Traversal of memory that the CPU sees: the elements of a generated kernel's call, by address or
// converted to one type.
//
//   for_each_element<float>(call, [](float self, float other) { return self + other; });
#pragma once

#include "treadle/plugin/types.hpp"

#pragma GCC visibility push(hidden)

namespace treadle::plugin {

// The address of an operand's first element, where storages are addresses.
inline char* address(const treadle_operand& operand) {
  return static_cast<char*>(operand.storage) + operand.offset;
}

// The index tuples of a shape, in order, with the byte offset of each of `n` operands.
class Walk {
 public:
  // `strides`: for each operand, `dims` of them, in bytes. It starts at element `first`.
  Walk(const int64_t* shape, int32_t dims, Span<const int64_t* const> strides, int64_t first = 0)
      : shape_(shape),
        strides_(strides.begin(), strides.end()),
        index_(static_cast<size_t>(dims)),
        offsets_(strides.size()) {
    for (size_t d = index_.size(); d-- > 0;) {
      index_[d] = first % shape[d];
      first /= shape[d];
      for (size_t k = 0; k < offsets_.size(); ++k) offsets_[k] += index_[d] * strides_[k][d];
    }
  }
  int64_t offset(size_t operand) const { return offsets_[operand]; }
  // The number of elements that remain in the innermost row, this one included.
  int64_t row_left() const {
    return index_.empty() ? 1 : shape_[index_.size() - 1] - index_.back();
  }
  // The distance to the next element of the row, in bytes.
  int64_t row_stride(size_t operand) const {
    return index_.empty() ? 0 : strides_[operand][index_.size() - 1];
  }
  // Forward by n <= row_left() elements.
  void advance(int64_t n = 1) {
    if (index_.empty()) return;
    size_t d = index_.size() - 1;
    move(d, n);
    while (index_[d] == shape_[d] && d > 0) {
      move(d, -index_[d]);
      move(--d, 1);
    }
  }

 private:
  void move(size_t d, int64_t n) {
    index_[d] += n;
    for (size_t k = 0; k < offsets_.size(); ++k) offsets_[k] += n * strides_[k][d];
  }

  const int64_t* shape_;
  std::vector<const int64_t*> strides_;
  std::vector<int64_t> index_, offsets_;
};

namespace detail {
inline constexpr int64_t kGrain = 32 * 1024;  // elements of a piece of work

inline std::vector<const int64_t*> strides_of(const treadle_pointwise_call& call) {
  std::vector<const int64_t*> strides = {call.out.strides};
  for (int32_t k = 0; k < call.input_count; ++k) strides.push_back(call.inputs[k].strides);
  return strides;
}
template <class T, size_t>
using Repeat = T;
}  // namespace detail

// n elements `stride` bytes apart, converted to T.
template <class T>
void load_elements(const char* from, int64_t stride, DType dtype, T* to, int64_t n) {
  visit_all_dtypes(dtype, [&](auto type) {
    using From = typename decltype(type)::type;
    for (int64_t i = 0; i < n; ++i) {
      From element;
      std::memcpy(&element, from + i * stride, sizeof element);
      to[i] = convert<T>(element);
    }
  });
}
// The reverse conversion.
template <class T>
void store_elements(const T* from, char* to, int64_t stride, DType dtype, int64_t n) {
  visit_all_dtypes(dtype, [&](auto type) {
    using To = typename decltype(type)::type;
    for (int64_t i = 0; i < n; ++i) {
      const To element = convert<To>(from[i]);
      std::memcpy(to + i * stride, &element, sizeof element);
    }
  });
}

// f(out, inputs) for each element of a call, with the address of each operand's element, on the
// host's threads. For memory that the CPU sees.
template <class F>
void for_each_address(const treadle_pointwise_call& call, const F& f) {
  const auto strides = detail::strides_of(call);
  parallel_for(call.numel, detail::kGrain, [&](int64_t begin, int64_t end) {
    Walk walk(call.shape, call.dims, Span<const int64_t* const>(strides.data(), strides.size()),
              begin);
    std::vector<const char*> inputs(static_cast<size_t>(call.input_count));
    for (int64_t i = begin; i < end; ++i, walk.advance()) {
      for (size_t k = 0; k < inputs.size(); ++k)
        inputs[k] = address(call.inputs[k]) + walk.offset(k + 1);
      f(address(call.out) + walk.offset(0), inputs.data());
    }
  });
}

namespace detail {
template <class T, class F, size_t... k>
void for_each_element(const treadle_pointwise_call& call, const F& f, std::index_sequence<k...>) {
  for_each_address(call, [&](char* out, const char* const* in) {
    T x[sizeof...(k) + 1];
    (load_elements(in[k], 0, static_cast<DType>(call.inputs[k].dtype), &x[k], 1), ...);
    const T y = f(x[k]...);
    store_elements(&y, out, 0, static_cast<DType>(call.out.dtype), 1);
  });
}
template <class T, class F, size_t... k>
constexpr bool takes(std::index_sequence<k...>) {
  return std::is_invocable_v<F, Repeat<T, k>...>;
}
}  // namespace detail

// out = f(inputs...) for each element of a call, all converted to and from T. RuntimeError where f
// takes another number of inputs.
template <class T, class F>
void for_each_element(const treadle_pointwise_call& call, const F& f) {
  bool called = false;
  const auto with = [&](auto count) {
    constexpr size_t n = decltype(count)::value;
    if constexpr (detail::takes<T, F>(std::make_index_sequence<n>())) {
      if (called || call.input_count != static_cast<int32_t>(n)) return;
      detail::for_each_element<T>(call, f, std::make_index_sequence<n>());
      called = true;
    }
  };
  with(std::integral_constant<size_t, 0>());
  with(std::integral_constant<size_t, 1>());
  with(std::integral_constant<size_t, 2>());
  with(std::integral_constant<size_t, 3>());
  with(std::integral_constant<size_t, 4>());
  with(std::integral_constant<size_t, 5>());
  with(std::integral_constant<size_t, 6>());
  check(called, ErrorKind::Runtime, "for_each_element: the function does not take the ",
        call.input_count, " inputs of ", call.name);
}

}  // namespace treadle::plugin

#pragma GCC visibility pop
