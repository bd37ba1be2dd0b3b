// THO_DISPATCH_V2: the same function for several dtypes.
//
//   THO_DISPATCH_V2(x.scalar_type(), "twice", AT_WRAP([&] { twice<scalar_t>(x); }),
//                   AT_EXPAND(AT_FLOATING_TYPES), ScalarType::Half)
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/headeronly/core/Dispatch.h>

#define AT_WRAP(...) __VA_ARGS__
#define AT_EXPAND(X) X

#define AT_INTEGRAL_TYPES                                                      \
  torch::headeronly::ScalarType::Byte, torch::headeronly::ScalarType::Char,    \
      torch::headeronly::ScalarType::Int, torch::headeronly::ScalarType::Long, \
      torch::headeronly::ScalarType::Short
#define AT_FLOATING_TYPES \
  torch::headeronly::ScalarType::Double, torch::headeronly::ScalarType::Float
#define AT_BAREBONES_UNSIGNED_TYPES                                             \
  torch::headeronly::ScalarType::UInt16, torch::headeronly::ScalarType::UInt32, \
      torch::headeronly::ScalarType::UInt64
#define AT_INTEGRAL_TYPES_V2 AT_EXPAND(AT_INTEGRAL_TYPES), AT_EXPAND(AT_BAREBONES_UNSIGNED_TYPES)
#define AT_COMPLEX_TYPES \
  torch::headeronly::ScalarType::ComplexDouble, torch::headeronly::ScalarType::ComplexFloat
#define AT_FLOAT8_TYPES                                                                       \
  torch::headeronly::ScalarType::Float8_e5m2, torch::headeronly::ScalarType::Float8_e5m2fnuz, \
      torch::headeronly::ScalarType::Float8_e4m3fn,                                           \
      torch::headeronly::ScalarType::Float8_e4m3fnuz,                                         \
      torch::headeronly::ScalarType::Float8_e8m0fnu
#define AT_ALL_TYPES AT_EXPAND(AT_INTEGRAL_TYPES), AT_EXPAND(AT_FLOATING_TYPES)
#define AT_ALL_TYPES_AND_COMPLEX AT_EXPAND(AT_ALL_TYPES), AT_EXPAND(AT_COMPLEX_TYPES)

// A macro for each of the further arguments: a macro that comes back to itself is scanned again.
#define TREADLE_AGAIN_1(...) __VA_ARGS__
#define TREADLE_AGAIN_2(...) TREADLE_AGAIN_1(TREADLE_AGAIN_1(TREADLE_AGAIN_1(__VA_ARGS__)))
#define TREADLE_AGAIN_3(...) TREADLE_AGAIN_2(TREADLE_AGAIN_2(TREADLE_AGAIN_2(__VA_ARGS__)))
#define TREADLE_AGAIN(...) TREADLE_AGAIN_3(TREADLE_AGAIN_3(TREADLE_AGAIN_3(__VA_ARGS__)))
#define TREADLE_NOTHING
#define TREADLE_FOR_EACH(macro, with, ...) \
  __VA_OPT__(TREADLE_AGAIN(TREADLE_EACH(macro, with, __VA_ARGS__)))
#define TREADLE_EACH(macro, with, first, ...) \
  macro(first, with) __VA_OPT__(TREADLE_MORE TREADLE_NOTHING()(macro, with, __VA_ARGS__))
#define TREADLE_MORE() TREADLE_EACH
#define TREADLE_DISPATCH_CASE(dtype, function) THO_DISPATCH_CASE(dtype, function)

#define THO_DISPATCH_V2(TYPE, NAME, BODY, ...) \
  THO_DISPATCH_SWITCH(TYPE, NAME, TREADLE_FOR_EACH(TREADLE_DISPATCH_CASE, (BODY), __VA_ARGS__))
