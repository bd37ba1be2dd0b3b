// Reads and prints operator schemas, by recursive descent over the tokens.
//
// SPDX-License-Identifier: Apache-2.0
#include "core/schema/function_schema.h"

#include <algorithm>
#include <set>
#include <utility>

#include "core/schema/default_value.h"
#include "core/schema/lexer.h"

namespace treadle::schema {
namespace {

OperatorName read_name(TokenCursor& cursor) {
  OperatorName name;
  name.base = cursor.expect_name("the operator's name").text;
  if (cursor.accept("::")) {
    name.ns = std::move(name.base);
    name.base = cursor.expect_name("the operator's name after '" + name.ns + "::'").text;
  }
  if (cursor.accept(".")) name.overload = cursor.expect_name("an overload name after '.'").text;
  return name;
}

// Reports the error when neither ',' nor ')' follows an argument.
void fail_after_argument(const TokenCursor& cursor, const Argument& argument) {
  const std::string expected = "',' or ')' after argument '" + argument.name + "'";
  if (cursor.at_end() || cursor.at("->")) {
    cursor.fail(cursor.previous_end(), "expected " + expected + ", got " + describe(cursor.peek()),
                "close the arguments with ')'");
  }
  cursor.fail_expected(expected);
}

Argument read_argument(TokenCursor& cursor, bool kwarg_only) {
  Argument argument;
  argument.kwarg_only = kwarg_only;
  argument.type = parse_type(cursor);
  const Token name =
      cursor.expect_name("an argument's name after type '" + print(argument.type) + "'");
  argument.name = name.text;
  argument.offset = name.offset;
  if (cursor.accept("="))
    argument.default_value = parse_default(cursor, argument.type, argument.name);
  return argument;
}

void check_new_argument(const TokenCursor& cursor, const std::vector<Argument>& arguments,
                        const Argument& argument) {
  for (const Argument& other : arguments) {
    if (other.name == argument.name) {
      cursor.fail(argument.offset, "duplicate argument '" + argument.name + "'",
                  "rename one of the two");
    }
  }
  if (argument.kwarg_only || argument.default_value || arguments.empty()) return;
  const Argument& previous = arguments.back();
  if (previous.default_value) {
    cursor.fail(argument.offset,
                "argument '" + argument.name + "' has no default but follows '" + previous.name +
                    "', which has one",
                "give it a default, move it before '" + previous.name + "' or after '*'");
  }
}

std::vector<Argument> read_arguments(TokenCursor& cursor) {
  cursor.expect("(", "after the operator's name");
  std::vector<Argument> arguments;
  bool kwarg_only = false;
  if (cursor.accept(")")) return arguments;
  while (true) {
    const Token token = cursor.peek();
    if (cursor.accept("*")) {
      if (kwarg_only)
        cursor.fail(token.offset, "the keyword-only marker '*' appears twice", "remove the second");
      kwarg_only = true;
      if (!cursor.at(","))
        cursor.fail(token.offset, "no argument follows the keyword-only marker '*'", "remove it");
    } else {
      Argument argument = read_argument(cursor, kwarg_only);
      check_new_argument(cursor, arguments, argument);
      arguments.push_back(std::move(argument));
    }
    if (cursor.accept(")")) return arguments;
    if (!cursor.accept(",")) fail_after_argument(cursor, arguments.back());
    if (cursor.at(")")) cursor.fail_expected("an argument after ','", "remove the ','");
  }
}

Return read_return(TokenCursor& cursor) {
  Return result;
  result.type = parse_type(cursor);
  if (cursor.peek().kind == TokenKind::name) result.name = cursor.next().text;
  return result;
}

std::vector<Return> read_returns(TokenCursor& cursor) {
  std::vector<Return> returns;
  if (!cursor.accept("(")) {
    returns.push_back(read_return(cursor));
    return returns;
  }
  if (cursor.accept(")")) return returns;
  do {
    const std::size_t offset = cursor.peek().offset;
    Return result = read_return(cursor);
    for (const Return& other : returns) {
      if (!result.name.empty() && other.name == result.name) {
        cursor.fail(offset, "two results are named '" + result.name + "'", "rename one of the two");
      }
    }
    returns.push_back(std::move(result));
  } while (cursor.accept(","));
  cursor.expect(")", "after the results");
  return returns;
}

// A result can only share memory with arguments.
void check_aliases(const TokenCursor& cursor, const FunctionSchema& schema,
                   std::size_t returns_offset) {
  std::set<std::string> known = {"*"};
  std::set<std::string> written;
  for (const Argument& argument : schema.arguments) {
    if (!argument.type.alias) continue;
    const Alias& alias = *argument.type.alias;
    known.insert(alias.before.begin(), alias.before.end());
    known.insert(alias.after.begin(), alias.after.end());
    if (alias.write) written.insert(alias.before.begin(), alias.before.end());
  }
  for (const Return& result : schema.returns) {
    if (!result.type.alias) continue;
    for (const std::string& set : result.type.alias->before) {
      if (!known.count(set)) {
        cursor.fail(returns_offset, "alias set '" + set + "' of the result is on no argument",
                    "annotate the argument that the result shares memory with, as in 'Tensor(" +
                        set + ") self'");
      }
      if (result.type.writes() && !written.count(set)) {
        cursor.fail(returns_offset,
                    "the result is marked as written, 'Tensor(" + set + "!)', but no argument is",
                    "write 'Tensor(" + set + "!)' on the argument too");
      }
    }
  }
}

FunctionSchema read_schema(TokenCursor& cursor) {
  FunctionSchema schema;
  schema.name = read_name(cursor);
  schema.arguments = read_arguments(cursor);
  if (!cursor.accept("->")) {
    cursor.fail(cursor.at_end() ? cursor.previous_end() : cursor.peek().offset,
                "expected '->' and the results after the arguments, got " + describe(cursor.peek()),
                "write '-> Tensor', or '-> ()' for no result");
  }
  const std::size_t returns_offset = cursor.peek().offset;
  schema.returns = read_returns(cursor);
  if (!cursor.at_end()) cursor.fail_expected("the end of the schema");
  check_aliases(cursor, schema, returns_offset);
  return schema;
}

}  // namespace

const Argument* FunctionSchema::find_argument(std::string_view argument) const {
  const auto found =
      std::find_if(arguments.begin(), arguments.end(),
                   [&](const Argument& candidate) { return candidate.name == argument; });
  return found == arguments.end() ? nullptr : &*found;
}

std::string print(const OperatorName& name) {
  std::string text = name.ns.empty() ? name.base : name.ns + "::" + name.base;
  if (!name.overload.empty()) text += "." + name.overload;
  return text;
}

std::string print(const Argument& argument) {
  std::string text = print(argument.type) + " " + argument.name;
  if (argument.default_value) text += "=" + argument.default_value->text;
  return text;
}

std::string print(const FunctionSchema& schema) {
  std::string text = print(schema.name) + "(";
  bool first = true;
  bool marked = false;
  for (const Argument& argument : schema.arguments) {
    if (!first) text += ", ";
    first = false;
    if (argument.kwarg_only && !marked) {
      text += "*, ";
      marked = true;
    }
    text += print(argument);
  }
  text += ") -> ";
  if (schema.returns.size() != 1) text += "(";
  for (std::size_t i = 0; i < schema.returns.size(); ++i) {
    if (i > 0) text += ", ";
    text += print(schema.returns[i].type);
    if (!schema.returns[i].name.empty()) text += " " + schema.returns[i].name;
  }
  if (schema.returns.size() != 1) text += ")";
  return text;
}

FunctionSchema parse_schema(const SourceText& source) {
  TokenCursor cursor(source);
  return read_schema(cursor);
}

FunctionSchema parse_schema(std::string_view text, SourcePos start) {
  return parse_schema(SourceText(text, std::move(start)));
}

OperatorName parse_operator_name(const SourceText& source) {
  TokenCursor cursor(source);
  OperatorName name = read_name(cursor);
  if (!cursor.at_end()) cursor.fail_expected("the end of the operator's name");
  return name;
}

}  // namespace treadle::schema
