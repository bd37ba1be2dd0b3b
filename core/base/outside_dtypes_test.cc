// A dtype from outside: it is found by name and number, promotes, and bad ones are refused.
//
// SPDX-License-Identifier: Apache-2.0
#include "core/base/outside_dtypes.h"

#include <gtest/gtest.h>

#include <cstdint>

#include "core/base/error.h"

namespace treadle {
namespace {

template <class F>
std::string error_of(F&& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

OutsideDtype halves(ScalarType computed = ScalarType::Float32) {
  OutsideDtype dtype;
  dtype.computed = computed;
  dtype.widen = [](const void* from, void* to, int64_t count) {
    for (int64_t i = 0; i < count; ++i)
      static_cast<float*>(to)[i] = static_cast<float>(static_cast<const int16_t*>(from)[i]) / 2;
  };
  dtype.narrow = [](const void* from, void* to, int64_t count) {
    for (int64_t i = 0; i < count; ++i)
      static_cast<int16_t*>(to)[i] = static_cast<int16_t>(static_cast<const float*>(from)[i] * 2);
  };
  return dtype;
}

TEST(OutsideDtypes, ARegisteredDtypeHasFacts) {
  const ScalarType t = register_dtype("test_halves", 2, halves());
  EXPECT_TRUE(is_outside(t) && is_stored(t) && is_floating(t) && is_signed(t));
  EXPECT_FALSE(is_complex(t) || is_quantized(t) || is_integral(t, true));
  EXPECT_EQ(item_size(t), 2);
  EXPECT_EQ(to_string(t), "treadle.test_halves");
  EXPECT_EQ(scalar_type_from_name("treadle.test_halves"), t);
  EXPECT_EQ(computed_type(t), ScalarType::Float32);
  EXPECT_EQ(promote_types(t, ScalarType::Int64), t);
  EXPECT_EQ(promote_types(t, ScalarType::Float64), ScalarType::Float64);
  EXPECT_EQ(promote_types(t, ScalarType::Float8_e5m2), ScalarType::Float32);
  const ScalarType wide = register_dtype("test_wide", 8, halves(ScalarType::Float64));
  EXPECT_EQ(item_size(wide), 8);
  EXPECT_EQ(promote_types(t, wide), ScalarType::Float64);
}

TEST(OutsideDtypes, BadOnesAreRefused) {
  EXPECT_EQ(error_of([] { register_dtype("float32", 2, halves()); }),
            "register_dtype: expected a name that no dtype has, got 'float32'");
  EXPECT_EQ(error_of([] { register_dtype("2", 2, halves()); }),
            "register_dtype: expected a name of letters, digits and _, got '2'");
  EXPECT_EQ(error_of([] { register_dtype("x", 16, halves()); }),
            "register_dtype: expected an itemsize of 1, 2, 4 or 8 bytes, got 16");
  EXPECT_EQ(error_of([] { register_dtype("x", 2, {}); }),
            "register_dtype: expected functions of both conversions, got one or none");
  for (int i = 0; i < kOutsideDtypesOfASize; ++i)
    register_dtype("test_small" + std::to_string(i), 1, halves());
  EXPECT_EQ(error_of([] { register_dtype("x", 1, halves()); }),
            "register_dtype: expected at most 8 dtypes of 1 bytes, got one more, 'x'");
  EXPECT_EQ(name_of(static_cast<ScalarType>(kMaxDtypes - 1)), "unknown dtype");
}

}  // namespace
}  // namespace treadle
