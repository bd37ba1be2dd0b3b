// Reads expressions by precedence climbing and prints them with the fewest parentheses.
//
// SPDX-License-Identifier: Apache-2.0
#include "core/schema/expr.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <utility>

#include "core/schema/lexer.h"

namespace treadle::schema {
namespace {

// The binding strength of a construct; a larger number binds more tightly.
enum Precedence { kSelect = 1, kOr, kAnd, kCompare, kAdd, kMultiply, kUnary, kPostfix };

int binary_precedence(std::string_view op) {
  if (op == "||") return kOr;
  if (op == "&&") return kAnd;
  if (op == "<" || op == ">" || op == "<=" || op == ">=" || op == "==" || op == "!=")
    return kCompare;
  if (op == "+" || op == "-") return kAdd;
  if (op == "*" || op == "/" || op == "%" || op == "//") return kMultiply;
  return 0;
}

int precedence_of(const ExprNode& node) {
  switch (node.kind) {
    case ExprKind::Select:
      return kSelect;
    case ExprKind::Binary:
      return binary_precedence(node.text);
    case ExprKind::Unary:
      return kUnary;
    default:
      return kPostfix;
  }
}

// The replacement for an operator that C++ or Python has and this grammar has not.
std::string operator_hint(std::string_view op) {
  constexpr std::pair<std::string_view, std::string_view> kInstead[] = {
      {"&", "write 'a && b', or 'bitwise_and(a, b)' for bits"},
      {"|", "write 'a || b', or 'bitwise_or(a, b)' for bits"},
      {"^", "write 'bitwise_xor(a, b)' for bits, or 'pow(a, b)' for a power"},
      {"~", "write '!a', or 'bitwise_not(a)' for bits"},
      {"=", "comparison is written '=='"},
      {"->", "methods are called with '.'"},
      {"::", "names have no namespace here"},
      {"and", "write '&&'"},
      {"or", "write '||'"},
      {"not", "write '!'"},
      {"if", "write 'condition ? a : b'"}};
  for (const auto& [foreign, remedy] : kInstead) {
    if (op == foreign) return std::string(remedy);
  }
  return "";
}

class Parser {
 public:
  Parser(const SourceText& source, bool of_integers) : cursor_(source), of_integers_(of_integers) {}

  Expr parse() {
    if (cursor_.at_end()) cursor_.fail(0, "empty expression", "write one, or remove the key");
    Expr result = expression();
    if (!cursor_.at_end())
      cursor_.fail_expected("an operator or the end of the expression",
                            cursor_.at(",") ? "write several as a list, '[a, b]'" : foreign_hint());
    return result;
  }

 private:
  // Counts nested constructs while they are being read, so that the reader's own recursion is
  // bounded too.
  struct Nesting {
    explicit Nesting(Parser& owner) : parser(owner) {
      if (++parser.nesting_ > kMaxExprDepth) parser.fail_depth(parser.cursor_.peek().offset);
    }
    ~Nesting() { --parser.nesting_; }
    Parser& parser;
  };

  [[noreturn]] void fail_depth(std::size_t offset) {
    cursor_.fail(offset,
                 "expression is nested more than " + std::to_string(kMaxExprDepth) + " levels deep",
                 "split it");
  }

  std::string foreign_hint() const { return operator_hint(cursor_.peek().text); }

  Expr make(ExprKind kind, std::string_view text, std::vector<Expr> children, std::size_t offset,
            std::size_t name_offset) {
    int depth = 0;
    for (const Expr& child : children) depth = std::max(depth, child->depth);
    if (depth + 1 > kMaxExprDepth) fail_depth(offset);
    return std::make_shared<const ExprNode>(
        ExprNode{kind, std::string(text), std::move(children), offset, name_offset, depth + 1});
  }
  Expr make(ExprKind kind, std::string_view text, std::vector<Expr> children, std::size_t offset) {
    return make(kind, text, std::move(children), offset, offset);
  }

  Expr expression() {
    const Nesting nesting(*this);
    Expr condition = binary(kOr);
    if (!cursor_.accept("?")) return condition;
    Expr then = expression();
    cursor_.expect(":", "after the first value of '?'");
    Expr otherwise = expression();
    const std::size_t offset = condition->offset;
    return make(ExprKind::Select, "", {std::move(condition), std::move(then), std::move(otherwise)},
                offset);
  }

  // A chain of binary operators that bind at least as tightly as `least`.
  Expr binary(int least) {
    Expr left = unary();
    while (true) {
      const Token op = cursor_.peek();
      const int precedence = op.kind == TokenKind::punctuation ? binary_precedence(op.text) : 0;
      if (precedence < least || precedence == 0) return left;
      if (op.text == "//" && !of_integers_)
        cursor_.fail(op.offset, "unexpected '//'", "division is written 'a / b'");
      cursor_.next();
      Expr right = binary(precedence + 1);
      const std::size_t offset = left->offset;
      left = make(ExprKind::Binary, op.text, {std::move(left), std::move(right)}, offset);
      const Token& following = cursor_.peek();
      if (precedence == kCompare && following.kind == TokenKind::punctuation &&
          binary_precedence(following.text) == kCompare) {
        cursor_.fail(following.offset, "comparisons do not chain",
                     "write 'a < b && b < c', or use parentheses");
      }
    }
  }

  Expr unary() {
    const Token op = cursor_.peek();
    if (!cursor_.at("-") && !cursor_.at("!")) return postfix();
    const Nesting nesting(*this);
    cursor_.next();
    Expr operand = unary();
    return make(ExprKind::Unary, op.text, {std::move(operand)}, op.offset);
  }

  Expr postfix() {
    Expr object = primary();
    while (true) {
      const std::size_t offset = object->offset;
      if (cursor_.accept(".")) {
        const Token name = cursor_.expect_name("a method's name after '.'");
        if (!cursor_.at("(")) {
          cursor_.fail_expected("'(' after '." + std::string(name.text) + "'",
                                "only methods are reached with '.', as in 'self.dim()'");
        }
        std::vector<Expr> children =
            items("(", ")", "the arguments of '" + std::string(name.text) + "'");
        children.insert(children.begin(), std::move(object));
        object = make(ExprKind::Method, name.text, std::move(children), offset, name.offset);
      } else if (cursor_.accept("[")) {
        Expr index = expression();
        cursor_.expect("]", "after the index");
        object = make(ExprKind::Index, "", {std::move(object), std::move(index)}, offset);
      } else {
        return object;
      }
    }
  }

  // "(a, b)": the opening bracket, expressions, the closing one.
  std::vector<Expr> items(std::string_view open, std::string_view close, const std::string& what) {
    std::vector<Expr> result;
    cursor_.expect(open, "before " + what);
    if (cursor_.accept(close)) return result;
    do {
      if (cursor_.at(close)) cursor_.fail_expected("an expression after ','", "remove the ','");
      result.push_back(expression());
    } while (cursor_.accept(","));
    if (!cursor_.accept(close)) {
      cursor_.fail_expected("',' or '" + std::string(close) + "' in " + what, foreign_hint());
    }
    return result;
  }

  Expr primary() {
    const Token token = cursor_.peek();
    switch (token.kind) {
      case TokenKind::integer: {
        std::int64_t value = 0;
        const auto parsed =
            std::from_chars(token.text.data(), token.text.data() + token.text.size(), value);
        if (parsed.ec != std::errc()) {
          cursor_.fail(token.offset,
                       "integer " + std::string(token.text) + " does not fit into 64 bits");
        }
        cursor_.next();
        return make(ExprKind::Int, token.text, {}, token.offset);
      }
      case TokenKind::floating:
        cursor_.next();
        return make(ExprKind::Float, token.text, {}, token.offset);
      case TokenKind::string:
        cursor_.next();
        return make(ExprKind::String, unquote(token.text), {}, token.offset);
      case TokenKind::name:
        return name();
      default:
        break;
    }
    if (cursor_.accept("(")) {
      Expr inner = expression();
      if (!cursor_.accept(")")) cursor_.fail_expected("')'", foreign_hint());
      return inner;
    }
    if (cursor_.at("{")) return make(ExprKind::List, "", items("{", "}", "a list"), token.offset);
    if (cursor_.at("[")) cursor_.fail_expected("an expression", "lists are written '{a, b}'");
    cursor_.fail_expected("an expression", foreign_hint());
  }

  Expr name() {
    const std::string hint = foreign_hint();
    if (!hint.empty()) cursor_.fail_expected("an expression", hint);
    const Token token = cursor_.next();
    if (token.text == "true" || token.text == "True")
      return make(ExprKind::Bool, "true", {}, token.offset);
    if (token.text == "false" || token.text == "False")
      return make(ExprKind::Bool, "false", {}, token.offset);
    if (token.text == "None") return make(ExprKind::None, "", {}, token.offset);
    if (!cursor_.at("(")) return make(ExprKind::Name, token.text, {}, token.offset);
    return make(ExprKind::Call, token.text,
                items("(", ")", "the arguments of '" + std::string(token.text) + "'"),
                token.offset);
  }

  TokenCursor cursor_;
  bool of_integers_;
  int nesting_ = 0;
};

std::string quote(const std::string& text) {
  std::string result = "\"";
  for (char c : text) {
    if (c == '\n') {
      result += "\\n";
    } else if (c == '\t') {
      result += "\\t";
    } else {
      if (c == '"' || c == '\\') result += '\\';
      result += c;
    }
  }
  return result + "\"";
}

void append(std::string& out, const ExprNode& node);

// Puts parentheses around a construct that binds less tightly than `least`.
void append_operand(std::string& out, const ExprNode& node, int least) {
  const bool parentheses = precedence_of(node) < least;
  if (parentheses) out += '(';
  append(out, node);
  if (parentheses) out += ')';
}

void append_items(std::string& out, const ExprNode& node, std::size_t first) {
  for (std::size_t i = first; i < node.children.size(); ++i) {
    if (i > first) out += ", ";
    append(out, *node.children[i]);
  }
}

void append(std::string& out, const ExprNode& node) {
  switch (node.kind) {
    case ExprKind::Name:
    case ExprKind::Int:
    case ExprKind::Float:
    case ExprKind::Bool:
      out += node.text;
      break;
    case ExprKind::String:
      out += quote(node.text);
      break;
    case ExprKind::None:
      out += "None";
      break;
    case ExprKind::Call:
      out += node.text + "(";
      append_items(out, node, 0);
      out += ")";
      break;
    case ExprKind::Method: {
      // "1.dim()" would read as a number.
      const bool number =
          node.children[0]->kind == ExprKind::Int || node.children[0]->kind == ExprKind::Float;
      append_operand(out, *node.children[0], number ? kPostfix + 1 : kPostfix);
      out += "." + node.text + "(";
      append_items(out, node, 1);
      out += ")";
      break;
    }
    case ExprKind::Index:
      append_operand(out, *node.children[0], kPostfix);
      out += "[";
      append(out, *node.children[1]);
      out += "]";
      break;
    case ExprKind::Binary: {
      const int precedence = binary_precedence(node.text);
      // Comparisons do not chain, so both of their operands bind tighter.
      append_operand(out, *node.children[0], precedence == kCompare ? precedence + 1 : precedence);
      out += " " + node.text + " ";
      append_operand(out, *node.children[1], precedence + 1);
      break;
    }
    case ExprKind::Unary: {
      out += node.text;
      // "--x" would be a decrement in C++.
      const ExprNode& operand = *node.children[0];
      const bool doubled =
          node.text == "-" && operand.kind == ExprKind::Unary && operand.text == "-";
      append_operand(out, operand, doubled ? kPostfix : kUnary);
      break;
    }
    case ExprKind::Select:
      append_operand(out, *node.children[0], kSelect + 1);
      out += " ? ";
      append(out, *node.children[1]);
      out += " : ";
      append(out, *node.children[2]);
      break;
    case ExprKind::List:
      out += "{";
      append_items(out, node, 0);
      out += "}";
      break;
  }
}

}  // namespace

Expr parse_expr(const SourceText& source) { return Parser(source, false).parse(); }

Expr parse_integer_expr(const SourceText& source) { return Parser(source, true).parse(); }

Expr parse_expr(std::string_view text, SourcePos start) {
  return parse_expr(SourceText(text, std::move(start)));
}

std::string print(const ExprNode& node) {
  std::string out;
  append(out, node);
  return out;
}

std::string print(const Expr& expr) { return print(*expr); }

void visit(const Expr& expr, const std::function<void(const ExprNode&)>& visitor) {
  visitor(*expr);
  for (const Expr& child : expr->children) visit(child, visitor);
}

}  // namespace treadle::schema
