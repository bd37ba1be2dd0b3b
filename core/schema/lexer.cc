// Cuts a text into tokens: names, numbers, strings and punctuation. White space separates tokens
// and is dropped.
//
// SPDX-License-Identifier: Apache-2.0
#include "core/schema/lexer.h"

#include <algorithm>
#include <array>
#include <utility>

namespace treadle::schema {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_name_start(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_name_part(char c) { return is_name_start(c) || is_digit(c); }
bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

constexpr std::array<std::string_view, 9> kTwoCharacters = {
    "->", "<=", ">=", "==", "!=", "&&", "||", "::", "//"};
constexpr std::string_view kOneCharacter = "()[]{},.?:=*!|+-/%<>&^~";

// The end of the number that starts at `begin`. "1", "1.5", ".5", "1e-05".
std::size_t number_end(std::string_view text, std::size_t begin, bool& floating) {
  std::size_t i = begin;
  const auto digits = [&] {
    while (i < text.size() && is_digit(text[i])) ++i;
  };
  digits();
  if (i < text.size() && text[i] == '.') {
    floating = true;
    ++i;
    digits();
  }
  if (i < text.size() && (text[i] == 'e' || text[i] == 'E')) {
    std::size_t exponent = i + 1;
    if (exponent < text.size() && (text[exponent] == '+' || text[exponent] == '-')) ++exponent;
    if (exponent < text.size() && is_digit(text[exponent])) {
      floating = true;
      i = exponent;
      digits();
    }
  }
  return i;
}

std::string printable(char c) {
  const auto byte = static_cast<unsigned char>(c);
  if (byte >= 0x20 && byte < 0x7F) return std::string("'") + c + "'";
  constexpr std::string_view kHex = "0123456789abcdef";
  return std::string("byte 0x") + kHex[byte >> 4] + kHex[byte & 15];
}

}  // namespace

std::vector<Token> tokenize(const SourceText& source) {
  const std::string_view text = source.text();
  std::vector<Token> tokens;
  std::size_t i = 0;
  while (i < text.size()) {
    const char c = text[i];
    if (is_space(c)) {
      ++i;
      continue;
    }
    const std::size_t begin = i;
    TokenKind kind = TokenKind::punctuation;
    if (is_name_start(c)) {
      kind = TokenKind::name;
      while (i < text.size() && is_name_part(text[i])) ++i;
    } else if (is_digit(c) || (c == '.' && i + 1 < text.size() && is_digit(text[i + 1]))) {
      bool floating = false;
      i = number_end(text, i, floating);
      kind = floating ? TokenKind::floating : TokenKind::integer;
      if (i < text.size() && is_name_part(text[i])) {
        throw SchemaError(source.diagnostic(i,
                                            "unexpected " + printable(text[i]) + " after number '" +
                                                std::string(text.substr(begin, i - begin)) + "'",
                                            "numbers are written 1, 0.5 or 1e-5"));
      }
    } else if (c == '"' || c == '\'') {
      kind = TokenKind::string;
      ++i;
      while (i < text.size() && text[i] != c) i += text[i] == '\\' ? 2 : 1;
      if (i >= text.size()) {
        throw SchemaError(
            source.diagnostic(begin, "string without an end", std::string("close it with ") + c));
      }
      ++i;
    } else if (std::find(kTwoCharacters.begin(), kTwoCharacters.end(), text.substr(i, 2)) !=
               kTwoCharacters.end()) {
      i += 2;
    } else if (kOneCharacter.find(c) != std::string_view::npos) {
      ++i;
    } else {
      throw SchemaError(source.diagnostic(i, "unexpected character " + printable(c)));
    }
    tokens.push_back({kind, text.substr(begin, i - begin), begin});
  }
  tokens.push_back({TokenKind::end, text.substr(text.size()), text.size()});
  return tokens;
}

std::string unquote(std::string_view token) {
  std::string result;
  for (std::size_t i = 1; i + 1 < token.size(); ++i) {
    char c = token[i];
    if (c == '\\' && i + 2 < token.size()) {
      c = token[++i];
      if (c == 'n') c = '\n';
      if (c == 't') c = '\t';
    }
    result += c;
  }
  return result;
}

TokenCursor::TokenCursor(const SourceText& source) : source_(source), tokens_(tokenize(source)) {}

const Token& TokenCursor::peek(std::size_t ahead) const {
  return tokens_[std::min(position_ + ahead, tokens_.size() - 1)];
}

Token TokenCursor::next() {
  const Token token = peek();
  previous_end_ = token.offset + token.text.size();
  if (position_ + 1 < tokens_.size()) ++position_;
  return token;
}

bool TokenCursor::at(std::string_view punctuation, std::size_t ahead) const {
  const Token& token = peek(ahead);
  return token.kind == TokenKind::punctuation && token.text == punctuation;
}

bool TokenCursor::accept(std::string_view punctuation) {
  if (!at(punctuation)) return false;
  next();
  return true;
}

void TokenCursor::expect(std::string_view punctuation, std::string_view where) {
  if (!accept(punctuation))
    fail_expected("'" + std::string(punctuation) + "' " + std::string(where));
}

Token TokenCursor::expect_name(std::string_view what) {
  if (peek().kind != TokenKind::name) fail_expected(what);
  return next();
}

void TokenCursor::fail(std::size_t offset, std::string message, std::string hint) const {
  throw SchemaError(source_.diagnostic(offset, std::move(message), std::move(hint)));
}

void TokenCursor::fail_expected(std::string_view what, std::string hint) const {
  fail(peek().offset, "expected " + std::string(what) + ", got " + describe(peek()),
       std::move(hint));
}

std::string describe(const Token& token) {
  return token.kind == TokenKind::end ? "the end" : "'" + std::string(token.text) + "'";
}

bool is_identifier(std::string_view text) {
  return !text.empty() && is_name_start(text[0]) &&
         std::all_of(text.begin(), text.end(), is_name_part);
}

}  // namespace treadle::schema
