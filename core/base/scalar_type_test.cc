// Names, promotion and casting rules of dtypes.
//
// SPDX-License-Identifier: Apache-2.0

#include "core/base/scalar_type.h"

#include <gtest/gtest.h>

#include "core/base/error.h"

namespace treadle {
namespace {

// Rows and columns in the order of ScalarType.
// "--" where there is no common dtype.
constexpr const char* kTable[kNumScalarTypes] = {
    "b u1 u2 u4 u8 i1 i2 i4 i8 f2 bf f4 f8 c8 c16",
    "u1 u1 u2 u4 u8 i2 i2 i4 i8 f2 bf f4 f8 c8 c16",
    "u2 u2 u2 u4 u8 i4 i4 i4 i8 f2 bf f4 f8 c8 c16",
    "u4 u4 u4 u4 u8 i8 i8 i8 i8 f2 bf f4 f8 c8 c16",
    "u8 u8 u8 u8 u8 -- -- -- -- f2 bf f4 f8 c8 c16",
    "i1 i2 i4 i8 -- i1 i2 i4 i8 f2 bf f4 f8 c8 c16",
    "i2 i2 i4 i8 -- i2 i2 i4 i8 f2 bf f4 f8 c8 c16",
    "i4 i4 i4 i8 -- i4 i4 i4 i8 f2 bf f4 f8 c8 c16",
    "i8 i8 i8 i8 -- i8 i8 i8 i8 f2 bf f4 f8 c8 c16",
    "f2 f2 f2 f2 f2 f2 f2 f2 f2 f2 f4 f4 f8 c8 c16",
    "bf bf bf bf bf bf bf bf bf f4 bf f4 f8 c8 c16",
    "f4 f4 f4 f4 f4 f4 f4 f4 f4 f4 f4 f4 f8 c8 c16",
    "f8 f8 f8 f8 f8 f8 f8 f8 f8 f8 f8 f8 f8 c16 c16",
    "c8 c8 c8 c8 c8 c8 c8 c8 c8 c8 c8 c8 c16 c8 c16",
    "c16 c16 c16 c16 c16 c16 c16 c16 c16 c16 c16 c16 c16 c16 c16"};
constexpr const char* kShort[kNumScalarTypes] = {"b",  "u1", "u2", "u4", "u8", "i1", "i2", "i4",
                                                 "i8", "f2", "bf", "f4", "f8", "c8", "c16"};

TEST(ScalarType, PromotionTable) {
  const auto common = [](int a, int b) {
    try {
      const ScalarType both = promote_types(static_cast<ScalarType>(a), static_cast<ScalarType>(b));
      return std::string(kShort[static_cast<int>(both)]);
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::Type);
      EXPECT_NE(std::string(e.what()).find("uint64"), std::string::npos);
      return std::string("--");
    }
  };
  for (int a = 0; a < kNumScalarTypes; ++a) {
    std::string row;
    for (int b = 0; b < kNumScalarTypes; ++b) {
      row += (b == 0 ? "" : " ") + common(a, b);
      EXPECT_EQ(common(a, b), common(b, a));
    }
    EXPECT_EQ(row, kTable[a]);
  }
}

TEST(ScalarType, CastsNeverLowerTheKind) {
  EXPECT_TRUE(can_cast(ScalarType::Float64, ScalarType::Float16));
  EXPECT_TRUE(can_cast(ScalarType::Int64, ScalarType::UInt8));
  EXPECT_TRUE(can_cast(ScalarType::Bool, ScalarType::Complex64));
  EXPECT_FALSE(can_cast(ScalarType::Float16, ScalarType::Int64));
  EXPECT_FALSE(can_cast(ScalarType::Complex64, ScalarType::Float64));
  EXPECT_FALSE(can_cast(ScalarType::UInt8, ScalarType::Bool));
}

TEST(ScalarType, NamesGoBothWays) {
  for (int i = 0; i < kNumScalarTypes; ++i) {
    const auto t = static_cast<ScalarType>(i);
    EXPECT_EQ(scalar_type_from_name(name_of(t)), t);
    EXPECT_EQ(scalar_type_from_name(to_string(t)), t);
    bool found = false;
    EXPECT_TRUE(visit_type(AllTypes(), t, [&]<class T>() {
      found = scalar_type_of<T> == t && sizeof(T) == static_cast<size_t>(item_size(t));
    }));
    EXPECT_TRUE(found);
  }
  EXPECT_EQ(scalar_type_from_name("double"), ScalarType::Float64);
  try {
    scalar_type_from_name("float31");
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::Type);
    EXPECT_NE(std::string(e.what()).find("got 'float31'"), std::string::npos);
  }
}

TEST(ScalarType, DefaultDtypeIsFloating) {
  EXPECT_EQ(default_dtype(), ScalarType::Float32);
  EXPECT_THROW(set_default_dtype(ScalarType::Int64), Error);
  set_default_dtype(ScalarType::Float64);
  EXPECT_EQ(default_dtype(), ScalarType::Float64);
  set_default_dtype(ScalarType::Float32);
}

}  // namespace
}  // namespace treadle
