// The tokens of schemas and expressions. One lexer serves both grammars.
//
//   "add.Tensor(Tensor self, ...": name 'add', punctuation '.', name 'Tensor', punctuation '(', ...
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "core/schema/diagnostic.h"

namespace treadle::schema {

enum class TokenKind { name, integer, floating, string, punctuation, end };

struct Token {
  TokenKind kind = TokenKind::end;
  std::string_view text;  // as written; a string keeps its quotes
  std::size_t offset = 0;
};

// The last token is always `end`. Throws SchemaError for a character that begins no token.
std::vector<Token> tokenize(const SourceText& source);

// The characters of a string token, without its quotes and with escapes replaced.
std::string unquote(std::string_view token);

// Reads tokens in order. `source` must outlive it.
class TokenCursor {
 public:
  explicit TokenCursor(const SourceText& source);

  const Token& peek(std::size_t ahead = 0) const;
  Token next();
  bool at(std::string_view punctuation, std::size_t ahead = 0) const;
  bool at_end() const { return peek().kind == TokenKind::end; }

  // Consumes the next token if it is this punctuation.
  bool accept(std::string_view punctuation);
  // Consumes the next token, which must be this punctuation; `where` follows "expected ')'" in the
  // message.
  void expect(std::string_view punctuation, std::string_view where);
  // Consumes the next token, which must be a name; `what` follows "expected".
  Token expect_name(std::string_view what);

  // The end of the previous token: the location for "something is missing here".
  std::size_t previous_end() const { return previous_end_; }

  [[noreturn]] void fail(std::size_t offset, std::string message, std::string hint = "") const;
  // "expected WHAT, got 'x'", at the next token.
  [[noreturn]] void fail_expected(std::string_view what, std::string hint = "") const;

 private:
  const SourceText& source_;
  std::vector<Token> tokens_;
  std::size_t position_ = 0;
  std::size_t previous_end_ = 0;
};

// 'x' or "the end": a token's name in messages.
std::string describe(const Token& token);

bool is_identifier(std::string_view text);

}  // namespace treadle::schema
