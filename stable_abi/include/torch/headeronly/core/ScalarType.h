// ScalarType: the dtypes by PyTorch's names and numbers, and their C++ types.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <ostream>

#include <torch/headeronly/macros/Macros.h>
#include <torch/headeronly/util/BFloat16.h>
#include <torch/headeronly/util/Float8.h>
#include <torch/headeronly/util/Half.h>
#include <torch/headeronly/util/complex.h>

// Those that tensors of extensions have: X(C++ type, name, number).
#define TREADLE_SCALAR_TYPES(X)                  \
  X(uint8_t, Byte, 0)                            \
  X(int8_t, Char, 1)                             \
  X(int16_t, Short, 2)                           \
  X(int, Int, 3)                                 \
  X(int64_t, Long, 4)                            \
  X(c10::Half, Half, 5)                          \
  X(float, Float, 6)                             \
  X(double, Double, 7)                           \
  X(c10::complex<c10::Half>, ComplexHalf, 8)     \
  X(c10::complex<float>, ComplexFloat, 9)        \
  X(c10::complex<double>, ComplexDouble, 10)     \
  X(bool, Bool, 11)                              \
  X(c10::BFloat16, BFloat16, 15)                 \
  X(c10::Float8_e5m2, Float8_e5m2, 23)           \
  X(c10::Float8_e4m3fn, Float8_e4m3fn, 24)       \
  X(c10::Float8_e5m2fnuz, Float8_e5m2fnuz, 25)   \
  X(c10::Float8_e4m3fnuz, Float8_e4m3fnuz, 26)   \
  X(uint16_t, UInt16, 27)                        \
  X(uint32_t, UInt32, 28)                        \
  X(uint64_t, UInt64, 29)                        \
  X(c10::Float8_e8m0fnu, Float8_e8m0fnu, 44)     \
  X(c10::Float4_e2m1fn_x2, Float4_e2m1fn_x2, 45) \
  X(c10::complex<c10::BFloat16>, BComplex32, 46)

namespace c10 {

enum class ScalarType : int8_t {
#define TREADLE_CASE(type, name, number) name = number,
  TREADLE_SCALAR_TYPES(TREADLE_CASE)
#undef TREADLE_CASE
      QInt8 = 12,
  QUInt8 = 13,
  QInt32 = 14,
  QUInt4x2 = 16,
  QUInt2x4 = 17,
  Undefined = 47,
  NumOptions = 48
};

template <typename T>
struct CppTypeToScalarType;
namespace impl {
template <ScalarType dtype>
struct ScalarTypeToCPPType;
template <ScalarType dtype>
using ScalarTypeToCPPTypeT = typename ScalarTypeToCPPType<dtype>::type;
}  // namespace impl

#define TREADLE_CASE(cpp_type, name, number)              \
  template <>                                             \
  struct CppTypeToScalarType<cpp_type> {                  \
    static constexpr ScalarType value = ScalarType::name; \
  };                                                      \
  template <>                                             \
  struct impl::ScalarTypeToCPPType<ScalarType::name> {    \
    using type = cpp_type;                                \
  };
TREADLE_SCALAR_TYPES(TREADLE_CASE)
#undef TREADLE_CASE

inline const char* toString(ScalarType dtype) {
  switch (dtype) {
#define TREADLE_CASE(type, name, number) \
  case ScalarType::name:                 \
    return #name;
    TREADLE_SCALAR_TYPES(TREADLE_CASE)
#undef TREADLE_CASE
    default:
      return "UNKNOWN_SCALAR";
  }
}
inline std::ostream& operator<<(std::ostream& stream, ScalarType dtype) {
  return stream << toString(dtype);
}
inline bool isQIntType(ScalarType t) {
  return t == ScalarType::QInt8 || t == ScalarType::QUInt8 || t == ScalarType::QInt32 ||
         t == ScalarType::QUInt4x2 || t == ScalarType::QUInt2x4;
}

}  // namespace c10

namespace torch::headeronly {
using c10::CppTypeToScalarType;
using c10::isQIntType;
using c10::ScalarType;
using c10::toString;
using c10::operator<<;
namespace impl {
using c10::impl::ScalarTypeToCPPTypeT;
}
}  // namespace torch::headeronly
