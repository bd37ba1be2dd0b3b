// Contract: the generated conditions of `check:` in native_functions.yaml, and their messages.
//
//   check: [stride > 0]
//
// becomes
//
//   if (!contract::gt(stride, 0))
//     throw contract::violation("conv2d", "stride > 0", Got{"stride", stride});
//
// which says
//
//   conv2d: expected stride > 0, got stride = (0, 1)
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "core/base/error.h"
#include "core/tensor/tensor.h"

namespace treadle::contract {

// False only in benchmarks/contract_free.cc, which measures what the checks cost: tests that can
// but refuse a call are left out there.
#ifdef TREADLE_CONTRACT_FREE
inline constexpr bool kChecked = false;
#else
inline constexpr bool kChecked = true;
#endif

// An undefined tensor where one is needed: TypeError "add: expected a tensor for argument 'other',
// got None".
void require_defined(const char* op, const char* argument, const Tensor& t);
void require_defined(const char* op, const char* argument, TensorList list);  // each of them
// A list of another length than its schema says: ValueError "conv2d: expected stride to have 2
// entries, got (1, 1, 1)".
void require_length(const char* op, const char* argument, IntList list, size_t length);
inline void require_length(const char* op, const char* argument, const OptionalIntList& list,
                           size_t length) {
  if (list) require_length(op, argument, *list, length);
}
// NotImplementedError "conv2d: expected self of a dtype in (float32, float64), got int64", or
// "hann_window: expected dtype in (float32, float64), got int64".
[[noreturn]] void wrong_dtype(const char* op, const char* subject, const char* dtypes,
                              ScalarType got);

// Whether the dtype's bit is in the row's mask.
constexpr bool has_dtype(uint32_t row, ScalarType dtype) {
  return (uint64_t{row} >> static_cast<uint32_t>(dtype) & 1) != 0;
}

// The same of an operator without kernels. Types for storage only are computed in wider ones by
// what it is made of.
constexpr bool admits(uint32_t row, ScalarType dtype) {
  return has_dtype(row, dtype) ||
         (is_stored(dtype) &&
          has_dtype(row, is_complex(dtype) ? ScalarType::Complex64 : ScalarType::Float32));
}

// An argument's value as messages show it: texts in quotes.
template <class T>
std::string shown(const T& value) {
  if constexpr (std::is_convertible_v<const T&, std::string_view>) {
    return str("'", std::string_view(value), "'");
  } else if constexpr (std::is_same_v<T, std::optional<std::string_view>>) {
    return value ? shown(*value) : "None";
  } else {
    return str(value);
  }
}

// A value of a call, and what messages call it.
template <class T>
struct Got {
  const char* name;
  const T& value;
};
template <class T>
Got(const char*, const T&) -> Got<T>;

// RuntimeError "conv2d: expected stride > 0, got stride = (0, 1)".
template <class... T>
[[gnu::cold, gnu::noinline]] Error violation(const char* op, const char* condition,
                                             const Got<T>&... got) {
  const auto write = [&](std::string& out) {
    out = str("expected ", condition);
    const char* separator = ", got ";
    ((out += str(separator, got.name, " = ", shown(got.value)), separator = ", "), ...);
  };
  return Error(ErrorKind::Runtime, OpName(op), treadle::detail::LateText(write));
}

// `one_of(side, "left", "right")`; an absent text is one of any.
inline bool one_of(std::string_view value, std::initializer_list<std::string_view> texts) {
  for (std::string_view text : texts)
    if (text == value) return true;
  return false;
}
inline bool one_of(const std::optional<std::string_view>& value,
                   std::initializer_list<std::string_view> texts) {
  return !value || one_of(*value, texts);
}

// Comparisons hold for a list when they hold for each entry, and for an absent optional always.
template <class T>
constexpr bool is_list = requires(const T& t) {
  t.begin();
  t.size();
};
template <class T>
constexpr bool is_optional = requires(const T& t) {
  t.has_value();
};
template <class Compare, class A, class B>
bool compare(Compare c, const A& a, const B& b) {
  if constexpr (is_optional<A>)
    return !a || compare(c, *a, b);
  else if constexpr (is_optional<B>)
    return !b || compare(c, a, *b);
  else if constexpr (is_list<A> && !std::is_convertible_v<A, std::string_view>) {
    for (const auto& x : a)
      if (!compare(c, x, b)) return false;
    return true;
  } else if constexpr (std::is_same_v<A, Scalar>)
    return compare(c, a.template to<double>(), b);
  else if constexpr (std::is_same_v<B, Scalar>)
    return compare(c, a, b.template to<double>());
  else
    return c(a, b);
}
template <class A, class B>
bool gt(const A& a, const B& b) {
  return compare([](const auto& x, const auto& y) { return x > y; }, a, b);
}
template <class A, class B>
bool ge(const A& a, const B& b) {
  return compare([](const auto& x, const auto& y) { return x >= y; }, a, b);
}
template <class A, class B>
bool lt(const A& a, const B& b) {
  return compare([](const auto& x, const auto& y) { return x < y; }, a, b);
}
template <class A, class B>
bool le(const A& a, const B& b) {
  return compare([](const auto& x, const auto& y) { return x <= y; }, a, b);
}
template <class A, class B>
bool eq(const A& a, const B& b) {
  return compare([](const auto& x, const auto& y) { return x == y; }, a, b);
}
template <class A, class B>
bool ne(const A& a, const B& b) {
  return compare([](const auto& x, const auto& y) { return x != y; }, a, b);
}

}  // namespace treadle::contract
