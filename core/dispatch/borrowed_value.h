// BorrowedValue: an argument of a boxed call that points to the caller's data.
//
// A kernel that fills tensors is given its arguments so (BoxedKernel::fill): nothing is allocated
// and no reference is counted. The layout is that of treadle_value (plugin/treadle/plugin.h), so
// the kernel of a plug-in takes the arguments as they are.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <complex>
#include <cstdint>
#include <optional>
#include <string_view>

#include "core/device/generator.h"
#include "core/tensor/tensor.h"

namespace treadle {

struct BorrowedValue {
  enum Tag : int32_t {
    kNone = 0,
    kTensor = 1,
    kBool = 2,
    kInt = 3,
    kFloat = 4,
    kComplex = 5,
    kText = 6,
    kInts = 7,
    kFloats = 8,
    kBools = 9,
    kTensors = 10,
    kScalarType = 11,
    kLayout = 12,
    kDevice = 13,
    kMemoryFormat = 14,
    kGenerator = 15
  };
  struct DeviceOf {
    int32_t type, index;
  };

  Tag tag = kNone;
  uint32_t count = 0;  // of the entries of a list, or the characters of a text
  union {
    TensorImpl* tensor;
    TensorImpl* const* tensors;  // null: no tensor
    int64_t integer;             // of Bool, Int, Layout, MemoryFormat
    double number;
    double complex_parts[2];
    const char* text;
    const int64_t* integers;
    const double* numbers;
    const bool* bools;
    int32_t scalar_type;
    DeviceOf device;
    GeneratorImpl* generator;
  } as{.complex_parts = {0, 0}};
};

namespace detail {

inline BorrowedValue tagged(BorrowedValue::Tag tag, size_t count = 0) {
  BorrowedValue v;
  v.tag = tag;
  v.count = static_cast<uint32_t>(count);
  return v;
}
inline BorrowedValue with_integer(BorrowedValue::Tag tag, int64_t integer) {
  BorrowedValue v = tagged(tag);
  v.as.integer = integer;
  return v;
}

}  // namespace detail

// A tensor that is not defined is None.
inline BorrowedValue borrowed(const Tensor& t) {
  BorrowedValue v = detail::tagged(t.defined() ? BorrowedValue::kTensor : BorrowedValue::kNone);
  v.as.tensor = t.impl();
  return v;
}
inline BorrowedValue borrowed(TensorList list) {
  static_assert(sizeof(Tensor) == sizeof(TensorImpl*) && std::is_standard_layout_v<Tensor>);
  BorrowedValue v = detail::tagged(BorrowedValue::kTensors, list.size());
  v.as.tensors = reinterpret_cast<TensorImpl* const*>(list.data());
  return v;
}
inline BorrowedValue borrowed(bool b) { return detail::with_integer(BorrowedValue::kBool, b); }
inline BorrowedValue borrowed(int64_t i) { return detail::with_integer(BorrowedValue::kInt, i); }
inline BorrowedValue borrowed(double d) {
  BorrowedValue v = detail::tagged(BorrowedValue::kFloat);
  v.as.number = d;
  return v;
}
inline BorrowedValue borrowed(const Scalar& s) {
  switch (s.kind()) {
    case Scalar::Kind::Bool:
      return borrowed(s.to<bool>());
    case Scalar::Kind::Int:
      return borrowed(s.to<int64_t>());
    case Scalar::Kind::Double:
      return borrowed(s.to<double>());
    case Scalar::Kind::Complex:
      break;
  }
  const auto c = s.to<std::complex<double>>();
  BorrowedValue v = detail::tagged(BorrowedValue::kComplex);
  v.as.complex_parts[0] = c.real();
  v.as.complex_parts[1] = c.imag();
  return v;
}
inline BorrowedValue borrowed(std::string_view text) {
  BorrowedValue v = detail::tagged(BorrowedValue::kText, text.size());
  v.as.text = text.data();
  return v;
}
inline BorrowedValue borrowed(IntList list) {
  BorrowedValue v = detail::tagged(BorrowedValue::kInts, list.size());
  v.as.integers = list.data();
  return v;
}
inline BorrowedValue borrowed(DoubleList list) {
  BorrowedValue v = detail::tagged(BorrowedValue::kFloats, list.size());
  v.as.numbers = list.data();
  return v;
}
template <size_t N>
BorrowedValue borrowed(const std::array<bool, N>& list) {
  BorrowedValue v = detail::tagged(BorrowedValue::kBools, N);
  v.as.bools = list.data();
  return v;
}
inline BorrowedValue borrowed(ScalarType t) {
  BorrowedValue v = detail::tagged(BorrowedValue::kScalarType);
  v.as.scalar_type = static_cast<int32_t>(t);
  return v;
}
inline BorrowedValue borrowed(Layout l) {
  return detail::with_integer(BorrowedValue::kLayout, static_cast<int64_t>(l));
}
inline BorrowedValue borrowed(Device d) {
  BorrowedValue v = detail::tagged(BorrowedValue::kDevice);
  v.as.device = {static_cast<int32_t>(d.type), d.index};
  return v;
}
inline BorrowedValue borrowed(MemoryFormat f) {
  return detail::with_integer(BorrowedValue::kMemoryFormat, static_cast<int64_t>(f));
}
inline BorrowedValue borrowed(const Generator& g) {
  BorrowedValue v = detail::tagged(g ? BorrowedValue::kGenerator : BorrowedValue::kNone);
  v.as.generator = g.get();
  return v;
}
template <class T>
requires requires(const T& t) { borrowed(t); }
BorrowedValue borrowed(const std::optional<T>& o) { return o ? borrowed(*o) : BorrowedValue(); }

// Whether arguments of the type can be borrowed. A list of numbers of several kinds cannot.
template <class T>
concept Borrowable = requires(const T& t) {
  borrowed(t);
};

}  // namespace treadle
