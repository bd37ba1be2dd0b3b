// ScalarType: the element types (dtypes) of tensors, their C++ types, names and promotion rules.
//
//   static_assert(scalar_type_of<float> == ScalarType::Float32);
//   promote_types(ScalarType::Int64, ScalarType::Float16) == ScalarType::Float16
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

#include "core/base/half.h"

namespace treadle {

enum class ScalarType : uint8_t {
  Bool,
  UInt8,
  UInt16,
  UInt32,
  UInt64,
  Int8,
  Int16,
  Int32,
  Int64,
  Float16,
  BFloat16,
  Float32,
  Float64,
  Complex64,
  Complex128,
  // Storage-only types, see is_stored(). The C interface for plug-ins numbers only the types above.
  Float8_e4m3fn,
  Float8_e5m2,
  Float8_e4m3fnuz,
  Float8_e5m2fnuz,
  Float8_e8m0fnu,
  Float4_e2m1fn_x2,
  Complex32,
  BComplex32,
  QInt8,
  QUInt8,
  QInt32,
  QUInt4x2,
  QUInt2x4,
};
inline constexpr int kNumScalarTypes = 15;  // the types that kernels know
inline constexpr int kMaxScalarTypes = 16;  // width of a kernel table's row
inline constexpr int kNumDtypes = 28;       // all that the library has
// Types that a program registers (core/base/outside_dtypes.h) have the numbers from 32 on: two bits
// of a number say the size of an element, three count the types of that size.
inline constexpr int kFirstOutsideDtype = 32;
inline constexpr int kOutsideDtypesOfASize = 8;
inline constexpr int kMaxDtypes = 64;
constexpr bool is_outside(ScalarType t) { return static_cast<int>(t) >= kFirstOutsideDtype; }

// The value of an element in memory. Memory that was written as another dtype, or not yet written,
// may hold other bytes than a bool's. Any nonzero byte is true.
template <class T>
constexpr T element_value(const T& element) {
  if constexpr (std::is_same_v<T, bool>)
    return reinterpret_cast<const uint8_t&>(element) != 0;
  else
    return element;
}

template <class... Ts>
struct TypeList {};
// The order is that of ScalarType.
using AllTypes =
    TypeList<bool, uint8_t, uint16_t, uint32_t, uint64_t, int8_t, int16_t, int32_t, int64_t, Half,
             BFloat16, float, double, std::complex<float>, std::complex<double>>;

template <ScalarType S>
struct CppTypeOf;
template <class T>
struct ScalarTypeOf;
template <ScalarType S, class T>
struct TypePair {
  using type = T;
  static constexpr ScalarType value = S;
};
template <>
struct CppTypeOf<ScalarType::Bool> {
  using type = bool;
};
template <>
struct CppTypeOf<ScalarType::UInt8> {
  using type = uint8_t;
};
template <>
struct CppTypeOf<ScalarType::UInt16> {
  using type = uint16_t;
};
template <>
struct CppTypeOf<ScalarType::UInt32> {
  using type = uint32_t;
};
template <>
struct CppTypeOf<ScalarType::UInt64> {
  using type = uint64_t;
};
template <>
struct CppTypeOf<ScalarType::Int8> {
  using type = int8_t;
};
template <>
struct CppTypeOf<ScalarType::Int16> {
  using type = int16_t;
};
template <>
struct CppTypeOf<ScalarType::Int32> {
  using type = int32_t;
};
template <>
struct CppTypeOf<ScalarType::Int64> {
  using type = int64_t;
};
template <>
struct CppTypeOf<ScalarType::Float16> {
  using type = Half;
};
template <>
struct CppTypeOf<ScalarType::BFloat16> {
  using type = BFloat16;
};
template <>
struct CppTypeOf<ScalarType::Float32> {
  using type = float;
};
template <>
struct CppTypeOf<ScalarType::Float64> {
  using type = double;
};
template <>
struct CppTypeOf<ScalarType::Complex64> {
  using type = std::complex<float>;
};
template <>
struct CppTypeOf<ScalarType::Complex128> {
  using type = std::complex<double>;
};
template <ScalarType S>
using cpp_type = typename CppTypeOf<S>::type;

template <>
struct ScalarTypeOf<bool> {
  static constexpr ScalarType value = ScalarType::Bool;
};
template <>
struct ScalarTypeOf<uint8_t> {
  static constexpr ScalarType value = ScalarType::UInt8;
};
template <>
struct ScalarTypeOf<uint16_t> {
  static constexpr ScalarType value = ScalarType::UInt16;
};
template <>
struct ScalarTypeOf<uint32_t> {
  static constexpr ScalarType value = ScalarType::UInt32;
};
template <>
struct ScalarTypeOf<uint64_t> {
  static constexpr ScalarType value = ScalarType::UInt64;
};
template <>
struct ScalarTypeOf<int8_t> {
  static constexpr ScalarType value = ScalarType::Int8;
};
template <>
struct ScalarTypeOf<int16_t> {
  static constexpr ScalarType value = ScalarType::Int16;
};
template <>
struct ScalarTypeOf<int32_t> {
  static constexpr ScalarType value = ScalarType::Int32;
};
template <>
struct ScalarTypeOf<int64_t> {
  static constexpr ScalarType value = ScalarType::Int64;
};
template <>
struct ScalarTypeOf<Half> {
  static constexpr ScalarType value = ScalarType::Float16;
};
template <>
struct ScalarTypeOf<BFloat16> {
  static constexpr ScalarType value = ScalarType::BFloat16;
};
template <>
struct ScalarTypeOf<float> {
  static constexpr ScalarType value = ScalarType::Float32;
};
template <>
struct ScalarTypeOf<double> {
  static constexpr ScalarType value = ScalarType::Float64;
};
template <>
struct ScalarTypeOf<std::complex<float>> {
  static constexpr ScalarType value = ScalarType::Complex64;
};
template <>
struct ScalarTypeOf<std::complex<double>> {
  static constexpr ScalarType value = ScalarType::Complex128;
};
template <class T>
inline constexpr ScalarType scalar_type_of = ScalarTypeOf<T>::value;

// The type in which a kernel computes: float for the 16-bit floats, else the type itself.
template <class T>
struct ComputeType {
  using type = T;
};
template <>
struct ComputeType<Half> {
  using type = float;
};
template <>
struct ComputeType<BFloat16> {
  using type = float;
};
template <class T>
using compute_type = typename ComputeType<T>::type;

template <class T>
inline constexpr bool is_complex_type = false;
template <class T>
inline constexpr bool is_complex_type<std::complex<T>> = true;
template <class T>
inline constexpr bool is_floating_type = std::is_same_v<T, float> || std::is_same_v<T, double> ||
                                         std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>;
// The real type of a complex type; any other type itself.
template <class T>
struct RealType {
  using type = T;
};
template <class T>
struct RealType<std::complex<T>> {
  using type = T;
};
template <class T>
using real_type = typename RealType<T>::type;

inline constexpr auto kItemSize = [] {
  constexpr uint8_t kOwn[kNumDtypes] = {1,  1, 2, 4, 8, 1, 2, 4, 8, 2, 2, 4, 8, 8,
                                        16, 1, 1, 1, 1, 1, 1, 4, 4, 1, 1, 4, 1, 1};
  std::array<uint8_t, kMaxDtypes> sizes{};
  for (int i = 0; i < kNumDtypes; ++i) sizes[static_cast<size_t>(i)] = kOwn[i];
  for (int i = kFirstOutsideDtype; i < kMaxDtypes; ++i)
    sizes[static_cast<size_t>(i)] = static_cast<uint8_t>(1 << (i / kOutsideDtypesOfASize % 4));
  return sizes;
}();
constexpr int64_t item_size(ScalarType t) { return kItemSize[static_cast<size_t>(t)]; }

// Types that tensors hold and convert, but that no kernel computes in. Layer::Resolve gives kernels
// their values in a wider type, computed_type().
constexpr bool is_stored(ScalarType t) { return t > ScalarType::Complex128; }
// Names of types whose tensors also need a scale. Treadle has none of them.
constexpr bool is_quantized(ScalarType t) { return t >= ScalarType::QInt8 && !is_outside(t); }
constexpr bool is_complex(ScalarType t) {
  return t == ScalarType::Complex64 || t == ScalarType::Complex128 || t == ScalarType::Complex32 ||
         t == ScalarType::BComplex32;
}
constexpr bool is_floating(ScalarType t) {
  return (t >= ScalarType::Float16 && t <= ScalarType::Float64) ||
         (t >= ScalarType::Float8_e4m3fn && t <= ScalarType::Float4_e2m1fn_x2) || is_outside(t);
}
// bool counts as integral only if `with_bool`.
constexpr bool is_integral(ScalarType t, bool with_bool) {
  return (t >= ScalarType::UInt8 && t <= ScalarType::Int64) || (with_bool && t == ScalarType::Bool);
}
constexpr bool is_signed(ScalarType t) {
  return t >= ScalarType::Int8 && t != ScalarType::Float8_e8m0fnu && t != ScalarType::QUInt8 &&
         (t < ScalarType::QUInt4x2 || is_outside(t));
}
// The real type of a complex type (complex64 -> float32); any other type itself.
constexpr ScalarType to_real(ScalarType t) {
  return t == ScalarType::Complex64    ? ScalarType::Float32
         : t == ScalarType::Complex128 ? ScalarType::Float64
         : t == ScalarType::Complex32  ? ScalarType::Float16
         : t == ScalarType::BComplex32 ? ScalarType::BFloat16
                                       : t;
}
// The complex type to compute in.
constexpr ScalarType to_complex(ScalarType t) {
  return t == ScalarType::Float64 || t == ScalarType::Complex128 ? ScalarType::Complex128
                                                                 : ScalarType::Complex64;
}

// PyTorch's promotion lattice for two tensors of the same rank category. An unsigned and a signed
// integer give the smallest signed type that holds both. No integer type holds both uint64 and a
// signed one, which is a TypeError. A type for storage only keeps itself beside types of lower
// kinds; beside others, the types that they are computed in promote.
ScalarType promote_types(ScalarType a, ScalarType b);
// Whether a value of type `from` may be written to a tensor of type `to` (the kind must not go
// down: complex -> floating -> integral -> bool).
bool can_cast(ScalarType from, ScalarType to);

// The type that holds each value of a type for storage only: of the library's own float32 and
// complex64.
ScalarType computed_type(ScalarType stored);

// "float32" and "treadle.float32" are names of the same type; throws TypeError for an unknown name.
std::string_view name_of(ScalarType t);
ScalarType scalar_type_from_name(std::string_view name);
inline std::string to_string(ScalarType t) { return "treadle." + std::string(name_of(t)); }

// The dtype of new floating tensors without a given one: float32 until changed. Only a floating
// type is accepted.
ScalarType default_dtype();
void set_default_dtype(ScalarType t);

// Calls f.template operator()<T>() with the C++ type of `t`, which must be in `Ts...`; returns
// false when it is not.
template <class... Ts, class F>
inline bool visit_type(TypeList<Ts...>, ScalarType t, F&& f) {
  bool found = false;
  (void)((t == scalar_type_of<Ts> ? (f.template operator()<Ts>(), found = true) : false) || ...);
  return found;
}

}  // namespace treadle
