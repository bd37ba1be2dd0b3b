// Schemas: printing restores the parsed text, the parts match the text, and bad texts are refused
// with a location.
//
// SPDX-License-Identifier: Apache-2.0
#include "core/schema/function_schema.h"

#include <gtest/gtest.h>

#include <string>
#include <variant>
#include <vector>

#include "core/schema/type.h"

namespace treadle::schema {
namespace {

std::string error_of(const std::string& text) {
  try {
    parse_schema(text);
  } catch (const SchemaError& error) {
    return error.what();
  }
  return "no error";
}

class RoundTrip : public testing::TestWithParam<const char*> {};

TEST_P(RoundTrip, PrintsWhatWasParsed) { EXPECT_EQ(print(parse_schema(GetParam())), GetParam()); }

INSTANTIATE_TEST_SUITE_P(
    Schemas, RoundTrip,
    testing::Values(
        "f() -> ()", "f(Tensor self) -> Tensor", "ns::f.over(Tensor self) -> Tensor",
        "__and__.Scalar(Tensor self, Scalar other) -> Tensor", "f_(Tensor(a!) self) -> Tensor(a!)",
        "f(Tensor(a) self) -> Tensor(a)[]", "f(Tensor(a -> *) self) -> Tensor(a)[]",
        "f(Tensor(a|b) x, Tensor(b! -> b|c) y) -> (Tensor(a), Tensor(b!) second)",
        "f(Tensor(a!)[] self) -> ()", "f(Tensor?[] indices) -> Tensor",
        "f(int[2] a=1, SymInt[1]? b=None, bool[3] c=True, *, Tensor? d) -> Tensor",
        "f(int[2] a=[]) -> Tensor", "f(int[1] dim=[-2,-1]) -> Tensor",
        "f(int a=9223372036854775807, int b=-9223372036854775808) -> int",
        "f(float a=1e-05, float b=-0.5, float c=inf, float d=1) -> float",
        "f(str a='x', str b=\"y\", str c=\"\\\"'\\\\\", str d=\"\") -> str",
        "f(bool a=True, bool? b=None, bool[2] c=[True,False]) -> bool",
        "f(int reduction=Mean, MemoryFormat m=contiguous_format, ScalarType t=long) -> ScalarType",
        "f(Tensor self, *, Generator? generator=None) -> (Tensor values, Tensor indices)",
        "f(Dimname[] names, Layout? layout, Device? device, Storage s, Stream t) -> QScheme"));

TEST(FunctionSchema, SpacingIsFree) {
  EXPECT_EQ(print(parse_schema("f ( Tensor  self ,*,\n int [2] a = [ 1 ,2 ] )->Tensor")),
            "f(Tensor self, *, int[2] a=[1,2]) -> Tensor");
}

TEST(FunctionSchema, Parts) {
  const FunctionSchema schema = parse_schema(
      "mine::add_.Tensor(Tensor(a!) self, int[2]? size=None, *, Scalar alpha=1) -> Tensor(a!)");
  EXPECT_EQ(schema.name.ns, "mine");
  EXPECT_EQ(schema.name.base, "add_");
  EXPECT_EQ(schema.name.overload, "Tensor");
  ASSERT_EQ(schema.arguments.size(), 3u);
  EXPECT_TRUE(schema.arguments[0].type.writes());
  EXPECT_EQ(schema.arguments[0].type.alias->before, std::vector<std::string>{"a"});
  EXPECT_TRUE(schema.arguments[1].type.optional);
  EXPECT_EQ(schema.arguments[1].type.list_size, 2);
  EXPECT_EQ(schema.arguments[1].default_value->kind, DefaultKind::None);
  EXPECT_FALSE(schema.arguments[1].kwarg_only);
  EXPECT_TRUE(schema.arguments[2].kwarg_only);
  EXPECT_EQ(std::get<std::int64_t>(schema.arguments[2].default_value->value), 1);
  EXPECT_EQ(schema.find_argument("alpha"), &schema.arguments[2]);
  EXPECT_EQ(schema.find_argument("beta"), nullptr);
}

TEST(FunctionSchema, DefaultValues) {
  const FunctionSchema schema =
      parse_schema("f(float a=1e-05, str b='it\\'s', int[] c=[1,-2], ScalarType d=long) -> ()");
  EXPECT_DOUBLE_EQ(std::get<double>(schema.arguments[0].default_value->value), 1e-5);
  EXPECT_EQ(std::get<std::string>(schema.arguments[1].default_value->value), "it's");
  ASSERT_EQ(schema.arguments[2].default_value->items.size(), 2u);
  EXPECT_EQ(std::get<std::int64_t>(schema.arguments[2].default_value->items[1].value), -2);
  EXPECT_EQ(schema.arguments[3].default_value->kind, DefaultKind::Name);
}

TEST(FunctionSchema, ErrorsPointAtThePlace) {
  EXPECT_EQ(error_of("f(Tensor self, Tenser other) -> Tensor"),
            "<string>:1:16: error: unknown type 'Tenser'; did you mean 'Tensor'?\n"
            "f(Tensor self, Tenser other) -> Tensor\n"
            "               ^");
  EXPECT_EQ(error_of(""), "<string>:1:1: error: expected the operator's name, got the end");
  EXPECT_EQ(error_of("f(Tensor self)\n  Tensor"),
            "<string>:2:3: error: expected '->' and the results after the arguments, got 'Tensor'; "
            "write '-> Tensor', or "
            "'-> ()' for no result\n"
            "  Tensor\n"
            "  ^");
}

TEST(FunctionSchema, StartMovesThePlace) {
  try {
    parse_schema("f(Tenser self) -> Tensor", {"ops.py", 7, 20});
    FAIL();
  } catch (const SchemaError& error) {
    EXPECT_STREQ(error.what(), "ops.py:7:22: error: unknown type 'Tenser'; did you mean 'Tensor'?");
    EXPECT_EQ(error.diagnostic().line, 7);
    EXPECT_EQ(error.diagnostic().column, 22);
    EXPECT_EQ(error.diagnostic().hint, "did you mean 'Tensor'?");
  }
}

// Every prefix of a schema, and the schema without any one character, is parsed or refused, and
// nothing else happens.
TEST(FunctionSchema, DamagedTextsAreRefusedCleanly) {
  const std::string text =
      "ns::f_.o(Tensor(a! -> a|b) self, int[2]? s=[1,-2], *, str m=\"x\\\"\", float e=1e-05) -> "
      "(Tensor(a!) v, Tensor)";
  ASSERT_EQ(print(parse_schema(text)), text);
  for (std::size_t i = 0; i < text.size(); ++i) {
    for (const std::string& damaged :
         {text.substr(0, i), text.substr(0, i) + text.substr(i + 1), text.substr(i)}) {
      try {
        const std::string printed = print(parse_schema(damaged));
        EXPECT_EQ(print(parse_schema(printed)), printed);
      } catch (const SchemaError& error) {
        EXPECT_NE(std::string(error.what()).find("error: "), std::string::npos);
      }
    }
  }
}

TEST(Type, RoundTrip) {
  for (const char* text : {"Tensor", "Tensor?", "Tensor?[]", "int[2]", "SymInt[1]?", "Tensor(a!)",
                           "Tensor(a -> *)[]", "Tensor(*)?", "float[]?", "ConstQuantizerPtr"}) {
    EXPECT_EQ(print(parse_type(text)), text);
  }
  EXPECT_EQ(parse_type("Tensor?[]"), parse_type("Tensor ? [ ]"));
  EXPECT_FALSE(parse_type("Tensor?[]") == parse_type("Tensor[]?"));
  EXPECT_THROW(parse_type("Tensor Tensor"), SchemaError);
  EXPECT_THROW(parse_type("int[99999999999999999999]"), SchemaError);
}

TEST(Suggestion, OffersOnlyWhatIsNear) {
  const std::vector<std::string> known = {"self", "other", "alpha"};
  EXPECT_EQ(closest_match("aplha", known), "alpha");
  EXPECT_EQ(closest_match("othr", known), "other");
  EXPECT_EQ(closest_match("completely", known), "");
  EXPECT_EQ(closest_match("x", known), "");
  EXPECT_EQ(closest_match(std::string(100000, 'a'), known), "");
}

}  // namespace
}  // namespace treadle::schema
