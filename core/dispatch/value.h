// Value: one tagged argument or result of a boxed call, and Stack, a sequence of values.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/device/generator.h"
#include "core/tensor/tensor.h"

namespace treadle {

class Value {
 public:
  using Ints = std::vector<int64_t>;
  using Doubles = std::vector<double>;
  using Bools = std::vector<bool>;
  using Tensors = std::vector<Tensor>;
  using Scalars = std::vector<Scalar>;
  // bool, int64_t and double alternatives are exact: no conversions between them.
  using Variant = std::variant<std::monostate, Tensor, bool, int64_t, double, Scalar, std::string,
                               Ints, Doubles, Bools, Tensors, ScalarType, Layout, Device,
                               MemoryFormat, Generator, Scalars>;

  Value() = default;
  template <class T>
  requires(!std::is_same_v<std::decay_t<T>, Value> &&
           std::is_constructible_v<Variant, std::in_place_type_t<std::decay_t<T>>, T>) Value(T&& v)
      : v_(std::in_place_type<std::decay_t<T>>, std::forward<T>(v)) {}  // NOLINT

  bool is_none() const { return std::holds_alternative<std::monostate>(v_); }
  template <class T>
  bool is() const {
    return std::holds_alternative<T>(v_);
  }
  // TypeError naming both types when the value is of another.
  template <class T>
  const T& as() const {
    if (const T* p = std::get_if<T>(&v_)) return *p;
    wrong_type(Value(std::in_place, T{}));
  }
  const Variant& variant() const { return v_; }
  std::string_view type_name() const;  // "Tensor", "int", "int[]", "None", ...

 private:
  template <class T>
  Value(std::in_place_t, T v) : v_(std::in_place_type<T>, std::move(v)) {}
  [[noreturn]] void wrong_type(const Value& expected) const;
  Variant v_;
};

using Stack = std::vector<Value>;

}  // namespace treadle
