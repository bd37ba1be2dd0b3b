// Kinds, conversions and printing of scalars.
//
// SPDX-License-Identifier: Apache-2.0

#include "core/base/scalar.h"

#include <gtest/gtest.h>

#include <limits>

#include "core/base/error.h"

namespace treadle {
namespace {

using Complex = std::complex<double>;

TEST(Scalar, ConvertsWithoutUndefinedBehaviour) {
  EXPECT_EQ(Scalar(3).to<float>(), 3.0f);
  EXPECT_EQ(Scalar(-1).to<uint8_t>(), 255);
  EXPECT_EQ(Scalar(300).to<uint8_t>(), 44);
  EXPECT_EQ(Scalar(1e300).to<int64_t>(), INT64_MAX);
  EXPECT_EQ(Scalar(-1e300).to<int64_t>(), INT64_MIN);
  EXPECT_EQ(Scalar(std::numeric_limits<double>::quiet_NaN()).to<int64_t>(), INT64_MIN);
  EXPECT_EQ(Scalar(Complex(2, 3)).to<double>(), 2.0);
  EXPECT_EQ(Scalar(true).to<int64_t>(), 1);
  EXPECT_TRUE(Scalar(Complex(0, 1)).to<bool>());
  EXPECT_EQ(static_cast<float>(Scalar(1.5).to<Half>()), 1.5f);
}

template <class T>
bool fits(const Scalar& s) {
  try {
    s.checked_to<T>("fill_");
    return true;
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::Runtime);
    return false;
  }
}

TEST(Scalar, CheckedConversionRejectsWhatDoesNotFit) {
  EXPECT_TRUE(fits<uint8_t>(255) && fits<uint8_t>(-255) && fits<uint8_t>(255.9) &&
              fits<uint8_t>(-1));
  EXPECT_FALSE(fits<uint8_t>(256) || fits<uint8_t>(-256) || fits<uint8_t>(256.0));
  EXPECT_TRUE(fits<int8_t>(-128) && fits<int8_t>(127) && fits<int8_t>(-128.9) &&
              fits<int8_t>(127.9));
  EXPECT_FALSE(fits<int8_t>(128) || fits<int8_t>(-129) || fits<int8_t>(-129.0));
  EXPECT_TRUE(fits<int64_t>(-9223372036854775808.0));
  EXPECT_FALSE(fits<int64_t>(9223372036854775808.0) ||
               fits<int64_t>(std::numeric_limits<double>::infinity()));
  EXPECT_TRUE(fits<float>(std::numeric_limits<double>::infinity()));
  EXPECT_FALSE(fits<float>(1e39) || fits<Half>(70000) || fits<Half>(int64_t{1} << 20));
  EXPECT_TRUE(fits<double>(Complex(1, 0)) && fits<bool>(7) &&
              fits<std::complex<float>>(Complex(1, 2)));
  EXPECT_FALSE(fits<double>(Complex(1, 2)) || fits<std::complex<float>>(Complex(1e39, 0)));
  try {
    Scalar(300).checked_to<uint8_t>("fill_");
    FAIL();
  } catch (const Error& e) {
    EXPECT_STREQ(e.what(), "fill_: expected a value that fits uint8, got 300");
  }
}

TEST(Scalar, PrintsAsPythonDoes) {
  EXPECT_EQ(to_string(Scalar(true)), "True");
  EXPECT_EQ(to_string(Scalar(-7)), "-7");
  EXPECT_EQ(to_string(Scalar(1.0)), "1.0");
  EXPECT_EQ(to_string(Scalar(0.1)), "0.1");
  EXPECT_EQ(to_string(Scalar(1e16)), "1e+16");
  EXPECT_EQ(to_string(Scalar(100000.0)), "100000.0");
  EXPECT_EQ(to_string(Scalar(1e-5)), "1e-05");
  EXPECT_EQ(to_string(Scalar(Complex(1, -2))), "(1-2j)");
  EXPECT_EQ(to_string(Scalar(Complex(0, 2.5))), "2.5j");
}

TEST(Scalar, HasADtypeAndANegative) {
  EXPECT_EQ(Scalar(1).type(), ScalarType::Int64);
  EXPECT_EQ(Scalar(1.0).type(), ScalarType::Float32);
  EXPECT_EQ(Scalar(Complex(1, 1)).type(), ScalarType::Complex64);
  EXPECT_EQ((-Scalar(int64_t{INT64_MIN})).to<int64_t>(), INT64_MIN);
  EXPECT_EQ((-Scalar(Complex(1, 2))).to<Complex>(), Complex(-1, -2));
  EXPECT_TRUE(Scalar(2).equal(2.0));
  EXPECT_FALSE(Scalar(Complex(2, 1)).equal(2.0));
}

}  // namespace
}  // namespace treadle
