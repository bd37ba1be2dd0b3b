// The arguments of one call of a tvm-ffi function.
//
//   Arguments arguments(function);
//   arguments.add(tensor);
//   arguments.add(arguments.list(IntList{2, 3}));    // an Array of tvm-ffi
//   function.call(nullptr, arguments.data(), arguments.size(), &result);
//
// Tensors are described where they are: they must outlive the call. Lists are objects that
// libtvm_ffi makes; their tensors share the memory of those that are given.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "python_bindings/csrc/exchange/tvm_ffi.h"

namespace treadle::python::tvm_ffi {

inline constexpr size_t kMostArguments = 32;

inline Any any(int64_t value, TypeIndex type = kInt) {
  Any a{.type_index = type};
  a.as.integer = value;
  return a;
}
inline Any any(double value) {
  Any a{.type_index = kFloat};
  a.as.number = value;
  return a;
}
inline Any any(bool value) { return any(int64_t{value}, kBool); }

class Arguments {
 public:
  explicit Arguments(const Function& function) : function_(function) {}
  ~Arguments();
  Arguments(const Arguments&) = delete;
  Arguments& operator=(const Arguments&) = delete;

  // ValueError where there are too many.
  void add(const Any& value);
  void add(const Tensor& t);

  // Values that live as long as this does.
  Any text(std::string_view text);
  Any dtype(ScalarType dtype) const;
  Any device(Device device) const;
  Any tensor_object(const Tensor& t);  // an element of a list
  // RuntimeError without libtvm_ffi.
  Any list(const std::vector<Any>& elements);
  template <class List>
  Any list(const List& values) {
    std::vector<Any> elements;
    elements.reserve(values.size());
    for (const auto& value : values) {
      if constexpr (std::is_same_v<decltype(value), const Tensor&>)
        elements.push_back(tensor_object(value));
      else
        elements.push_back(any(value));
    }
    return list(elements);
  }

  const Any* data() const { return values_.data(); }
  int32_t size() const { return static_cast<int32_t>(count_); }

 private:
  void require_library(const void* what) const;
  Any object(void* made, TypeIndex type);

  const Function& function_;
  size_t count_ = 0;
  std::array<Any, kMostArguments> values_;
  std::array<DLTensor, kMostArguments> tensors_;
  std::vector<std::unique_ptr<std::string>> texts_;
  std::vector<void*> objects_;
};

}  // namespace treadle::python::tvm_ffi
