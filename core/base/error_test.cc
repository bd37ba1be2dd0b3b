// The parts of an error, and the text that they make.
//
// SPDX-License-Identifier: Apache-2.0
#include "core/base/error.h"

#include <gtest/gtest.h>

#include <exception>

namespace treadle {
namespace {

template <class F>
Error error_of(F&& f) {
  try {
    f();
  } catch (const Error& error) {
    return error;
  }
  return Error(ErrorKind::Internal, "no error");
}

TEST(Error, TheOperatorIsApartFromTheMessage) {
  const Error error = error_of(
      [] { fail<ErrorKind::Index>(OpName("select"), "expected index < ", 3, ", got ", 5); });
  EXPECT_EQ(error.kind(), ErrorKind::Index);
  EXPECT_EQ(error.op(), "select");
  EXPECT_EQ(error.message(), "expected index < 3, got 5");
  EXPECT_STREQ(error.what(), "select: expected index < 3, got 5");
}

TEST(Error, AMessageMayBeAboutNoOperator) {
  const Error error = error_of([] { check<ErrorKind::Value>(false, "expected a: b, got c"); });
  EXPECT_EQ(error.op(), "");
  EXPECT_EQ(error.message(), "expected a: b, got c");
  EXPECT_STREQ(error.what(), "expected a: b, got c");
}

TEST(Error, AnotherOperatorMayTakeItOver) {
  Error error(ErrorKind::Runtime, OpName("mm"), "expected two matrices");
  error.set_op(OpName("linear"));
  EXPECT_STREQ(error.what(), "linear: expected two matrices");
  error.set_op(OpName(""));
  EXPECT_STREQ(error.what(), "expected two matrices");
  EXPECT_STREQ(static_cast<const std::exception&>(error).what(), "expected two matrices");
}

// A thousand characters are shown, the operator's name among them.
TEST(Error, TheMiddleOfALongMessageIsLeftOut) {
  const std::string op(50, 'o'), text = std::string(900, 'a') + std::string(900, 'z');
  const Error error = error_of([&] { fail<ErrorKind::Value>(OpName(op), text); });
  EXPECT_EQ(error.what(), op + ": " + std::string(548, 'a') + " ... " + std::string(300, 'z'));
  const std::string short_enough(948, 'a');
  EXPECT_EQ(error_of([&] { fail<ErrorKind::Value>(OpName(op), short_enough); }).message(),
            short_enough);
}

}  // namespace
}  // namespace treadle
