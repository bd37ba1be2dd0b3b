// Formats the parts of error messages, and joins the text of an error.
//
// SPDX-License-Identifier: Apache-2.0

#include "core/base/error.h"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace treadle::detail {

void append(std::string& out, std::string_view text) { out.append(text); }

void append(std::string& out, int64_t value) {
  char buffer[24];
  out.append(buffer, std::to_chars(buffer, buffer + sizeof(buffer), value).ptr);
}

void append(std::string& out, uint64_t value) {
  char buffer[24];
  out.append(buffer, std::to_chars(buffer, buffer + sizeof(buffer), value).ptr);
}

// Like Python's repr: fixed notation from 1e-4 up to 1e16, scientific beyond.
void append(std::string& out, double value) {
  if (std::isnan(value)) return append(out, "nan");
  if (std::isinf(value)) return append(out, value < 0 ? "-inf" : "inf");
  const double magnitude = std::fabs(value);
  const bool fixed = value == 0 || (magnitude >= 1e-4 && magnitude < 1e16);
  char buffer[64];
  const char* end = std::to_chars(buffer, buffer + sizeof(buffer), value,
                                  fixed ? std::chars_format::fixed : std::chars_format::scientific)
                        .ptr;
  const std::string_view text(buffer, static_cast<size_t>(end - buffer));
  out.append(text);
  if (fixed && text.find('.') == std::string_view::npos) out += ".0";
}

std::string LateText::text() const {
  std::string out;
  out.reserve(256);  // most messages, at once
  write_(data_, out);
  return out;
}

}  // namespace treadle::detail

namespace treadle {
namespace {

// A shape of a thousand dimensions is not for reading: the middle is left out of a message that,
// after the `before` characters of the operator's name, is too long.
std::string shortened(std::string message, size_t before) {
  constexpr size_t kMax = 1000, kStart = 600, kEnd = 300;
  if (before + message.size() <= kMax) return message;
  // Not inside a multi-byte character.
  const auto continues = [&](size_t at) { return (message[at] & 0xC0) == 0x80; };
  size_t start = kStart - std::min(before, kStart), end = message.size() - kEnd;
  while (start > 0 && continues(start)) --start;
  while (end < message.size() && continues(end)) ++end;
  return message.substr(0, start) + " ... " + message.substr(end);
}

constexpr std::string_view kSeparator = ": ";

size_t length_of(OpName op) { return op.text().empty() ? 0 : op.text().size() + kSeparator.size(); }

}  // namespace

Error::Error(ErrorKind kind, OpName op, std::string message)
    : kind_(kind), message_(std::move(message)) {
  set_op(op);
}

Error::Error(ErrorKind kind, OpName op, const detail::LateText& message)
    : Error(kind, op, shortened(message.text(), length_of(op))) {}

void Error::set_op(OpName op) {
  op_ = op.text();
  text_.clear();
  text_.reserve(length_of(op) + message_.size());
  if (!op_.empty()) text_.append(op_).append(kSeparator);
  text_.append(message_);
}

}  // namespace treadle
