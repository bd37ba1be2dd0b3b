// Expressions: precedence, canonical text, locations of errors, and a reader that no text can
// break.
//
// SPDX-License-Identifier: Apache-2.0
#include "core/schema/expr.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

namespace treadle::schema {
namespace {

// The tree with every operand in parentheses, so that precedence can be seen.
std::string grouped(const Expr& expr) {
  const auto child = [&](std::size_t i) { return grouped(expr->children[i]); };
  switch (expr->kind) {
    case ExprKind::Binary:
      return "(" + child(0) + expr->text + child(1) + ")";
    case ExprKind::Unary:
      return "(" + expr->text + child(0) + ")";
    case ExprKind::Select:
      return "(" + child(0) + "?" + child(1) + ":" + child(2) + ")";
    default:
      return print(expr);
  }
}

std::string grouped(const std::string& text) { return grouped(parse_expr(text)); }

std::string error_of(const std::string& text) {
  try {
    parse_expr(text);
  } catch (const SchemaError& error) {
    return error.diagnostic().hint.empty()
               ? error.diagnostic().message
               : error.diagnostic().message + "; " + error.diagnostic().hint;
  }
  return "no error";
}

TEST(Expr, Precedence) {
  EXPECT_EQ(grouped("a + b * c"), "(a+(b*c))");
  EXPECT_EQ(grouped("a - b - c"), "((a-b)-c)");
  EXPECT_EQ(grouped("a / b % c"), "((a/b)%c)");
  EXPECT_EQ(grouped("-a * b"), "((-a)*b)");
  EXPECT_EQ(grouped("!a && b"), "((!a)&&b)");
  EXPECT_EQ(grouped("a + 1 < b && c || d == e"), "((((a+1)<b)&&c)||(d==e))");
  EXPECT_EQ(grouped("a ? b : c ? d : e"), "(a?b:(c?d:e))");
  EXPECT_EQ(grouped("a || b ? c + d : e"), "((a||b)?(c+d):e)");
  EXPECT_EQ(grouped("- - a"), "(-(-a))");
  EXPECT_EQ(grouped("a - -1"), "(a-(-1))");
}

class Canonical : public testing::TestWithParam<std::pair<const char*, const char*>> {};

TEST_P(Canonical, TextAndItsTextAgain) {
  const std::string printed = print(parse_expr(GetParam().first));
  EXPECT_EQ(printed, GetParam().second);
  EXPECT_EQ(print(parse_expr(printed)), printed);
  EXPECT_EQ(grouped(printed), grouped(GetParam().first));
}

using Texts = std::pair<const char*, const char*>;
INSTANTIATE_TEST_SUITE_P(
    Texts, Canonical,
    testing::Values(Texts{"self+alpha*other", "self + alpha * other"},
                    Texts{"((a+b))*c", "(a + b) * c"}, Texts{"a-(b-c)", "a - (b - c)"},
                    Texts{"(a-b)-c", "a - b - c"}, Texts{"-(-a)", "-(-a)"}, Texts{"--a", "-(-a)"},
                    Texts{"!!a", "!!a"}, Texts{"-(a+b)", "-(a + b)"},
                    Texts{"(a<b)==c", "(a < b) == c"}, Texts{"(a?b:c)?d:e", "(a ? b : c) ? d : e"},
                    Texts{"(a?b:c)+d", "(a ? b : c) + d"}, Texts{"(a||b)&&c", "(a || b) && c"},
                    Texts{"f( a,b )", "f(a, b)"}, Texts{"f()", "f()"},
                    Texts{"a.size( 0 ).x()[i]", "a.size(0).x()[i]"},
                    Texts{"(a+b).dim()", "(a + b).dim()"}, Texts{"(-a)[0]", "(-a)[0]"},
                    Texts{"(1).x()", "(1).x()"}, Texts{"{a,{b,1}}", "{a, {b, 1}}"},
                    Texts{"{}", "{}"}, Texts{"1e-5+.5+2.", "1e-5 + .5 + 2."},
                    Texts{"'it\\'s'", "\"it's\""}, Texts{"\"a\\\"b\\\\\"", "\"a\\\"b\\\\\""},
                    Texts{"True&&false", "true && false"}, Texts{"a==None", "a == None"}));

TEST(Expr, PlacesOfNodes) {
  const Expr expr = parse_expr("a + b.size(0)");
  EXPECT_EQ(expr->offset, 0u);
  EXPECT_EQ(expr->children[1]->kind, ExprKind::Method);
  EXPECT_EQ(expr->children[1]->offset, 4u);
  EXPECT_EQ(expr->children[1]->name_offset, 6u);
  EXPECT_EQ(expr->children[1]->children[1]->offset, 11u);
}

TEST(Expr, VisitsParentsFirst) {
  std::string names;
  visit(parse_expr("f(a, b.g(c)) + d"), [&](const ExprNode& node) { names += node.text; });
  EXPECT_EQ(names, "+fagbcd");
}

TEST(Expr, DivisionOfIntegersThatRoundsDown) {
  const Expr expr = parse_integer_expr(SourceText("(i0+1)//2%3 - i1/4"));
  EXPECT_EQ(print(expr), "(i0 + 1) // 2 % 3 - i1 / 4");
  EXPECT_EQ(expr->children[0]->children[0]->text, "//");
  EXPECT_EQ(error_of("a // b"), "unexpected '//'; division is written 'a / b'");
}

TEST(Expr, Errors) {
  EXPECT_EQ(error_of(""), "empty expression; write one, or remove the key");
  EXPECT_EQ(error_of("a +"), "expected an expression, got the end");
  EXPECT_EQ(error_of("a b"), "expected an operator or the end of the expression, got 'b'");
  EXPECT_EQ(error_of("(a"), "expected ')', got the end");
  EXPECT_EQ(error_of("f(a"), "expected ',' or ')' in the arguments of 'f', got the end");
  EXPECT_EQ(error_of("f(a,)"), "expected an expression after ',', got ')'; remove the ','");
  EXPECT_EQ(error_of("a[0"), "expected ']' after the index, got the end");
  EXPECT_EQ(error_of("a ? b"), "expected ':' after the first value of '?', got the end");
  EXPECT_EQ(error_of("a.b"),
            "expected '(' after '.b', got the end; only methods are reached with '.', as in "
            "'self.dim()'");
  EXPECT_EQ(error_of("a < b < c"),
            "comparisons do not chain; write 'a < b && b < c', or use parentheses");
  EXPECT_EQ(error_of("a & b"),
            "expected an operator or the end of the expression, got '&'; write 'a && b', or "
            "'bitwise_and(a, b)' for bits");
  EXPECT_EQ(error_of("a and b"),
            "expected an operator or the end of the expression, got 'and'; write '&&'");
  EXPECT_EQ(error_of("not a"), "expected an expression, got 'not'; write '!'");
  EXPECT_EQ(error_of("[a]"), "expected an expression, got '['; lists are written '{a, b}'");
  EXPECT_EQ(error_of("2x"), "unexpected 'x' after number '2'; numbers are written 1, 0.5 or 1e-5");
  EXPECT_EQ(error_of("9223372036854775808"),
            "integer 9223372036854775808 does not fit into 64 bits");
  EXPECT_EQ(error_of("'abc"), "string without an end; close it with '");
  EXPECT_EQ(error_of("a # b"), "unexpected character '#'");
  EXPECT_EQ(error_of("a\x01"), "unexpected character byte 0x01");
}

// Each of these would overflow the stack of an unbounded reader, or of the tree's destructor.
TEST(Expr, DepthIsBounded) {
  const auto repeated = [](const std::string& piece) {
    std::string text;
    for (int i = 0; i < 100000; ++i) text += piece;
    return text;
  };
  for (const std::string& text :
       {repeated("("), repeated("-"), repeated("!"), repeated("f("), repeated("{"), repeated("a["),
        repeated("a ? "), repeated("a ? b : "), repeated("a + ") + "a", "a" + repeated(".f()"),
        "a" + repeated("[0]")}) {
    EXPECT_EQ(error_of(text), "expression is nested more than 200 levels deep; split it")
        << text.substr(0, 20);
  }
  std::string wide = "f(a";
  for (int i = 0; i < 10000; ++i) wide += ", a";
  EXPECT_EQ(parse_expr(wide + ")")->children.size(), 10001u);
}

TEST(Expr, DamagedTextsAreRefusedCleanly) {
  const std::string text =
      "a.size(0) >= -1.5e-3 && f({x, 'y\\n'}, b[i % 2]) || !(c ? true : None == d)";
  for (std::size_t i = 0; i < text.size(); ++i) {
    for (const std::string& damaged :
         {text.substr(0, i), text.substr(0, i) + text.substr(i + 1), text.substr(i)}) {
      try {
        const std::string printed = print(parse_expr(damaged));
        EXPECT_EQ(print(parse_expr(printed)), printed);
      } catch (const SchemaError& error) {
        EXPECT_FALSE(error.diagnostic().message.empty());
      }
    }
  }
}

}  // namespace
}  // namespace treadle::schema
