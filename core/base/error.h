// Errors: every failure is a C++ exception that carries the Python exception it becomes.
//
//   check<ErrorKind::Value>(stride > 0, OpName(op), "expected stride > 0, got stride = ", stride);
//   fail<ErrorKind::Index>(OpName("select"), "expected index in [-3, 3), got index = ", index);
//
// The rule for messages: the operator, the expectation, the actual value; at most six lines; no
// internal names. An error carries the operator's name apart from the message, and what() joins
// them: "select: expected index in [-3, 3), got index = 5". The parts are formatted only when the
// check fails. `ErrorKind::Internal` marks a broken invariant of Treadle itself.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <complex>
#include <cstdint>
#include <exception>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace treadle {

enum class ErrorKind : uint8_t {
  Type,            // TypeError
  Value,           // ValueError
  Index,           // IndexError
  Runtime,         // RuntimeError
  NotImplemented,  // NotImplementedError
  OutOfMemory,     // treadle.OutOfMemoryError
  DeviceLost,      // treadle.DeviceLostError: the device does not answer any more
  LinAlg,    // treadle.linalg.LinAlgError: a matrix without the inverse, factors, ... asked for
  Internal,  // treadle.InternalError: a bug in Treadle
};

namespace detail {

void append(std::string& out, std::string_view text);
void append(std::string& out, int64_t value);
void append(std::string& out, uint64_t value);
void append(
    std::string& out,
    double value);  // shortest text that reads back the same; always with '.', 'e', inf or nan
inline void append(std::string& out, const std::string& text) {
  append(out, std::string_view(text));
}
inline void append(std::string& out, const char* text) { append(out, std::string_view(text)); }
inline void append(std::string& out, char c) { out.push_back(c); }
inline void append(std::string& out, bool value) { append(out, value ? "True" : "False"); }
template <class T>
requires(std::is_integral_v<T> && !std::is_same_v<T, bool> &&
         !std::is_same_v<T, char>) void append(std::string& out, T value) {
  if constexpr (std::is_signed_v<T>)
    append(out, static_cast<int64_t>(value));
  else
    append(out, static_cast<uint64_t>(value));
}
inline void append(std::string& out, float value) { append(out, static_cast<double>(value)); }

// Sequences print as Python tuples: (), (3,), (3, 4).
template <class T>
void append_tuple(std::string& out, const T* first, size_t count) {
  out.push_back('(');
  for (size_t i = 0; i < count; ++i) {
    if (i) out += ", ";
    append(out, first[i]);
  }
  if (count == 1) out.push_back(',');
  out.push_back(')');
}
template <class T>
requires requires(const T& t) {
  t.data();
  t.size();
  requires !std::is_convertible_v<T, std::string_view>;
}
void append(std::string& out, const T& values) {
  append_tuple(out, values.data(), static_cast<size_t>(values.size()));
}
// Types of Treadle print by their to_string(). Numbers do not, although they convert to a Scalar.
template <class T>
requires(!std::is_arithmetic_v<T>) && requires(const T& t) {
  { to_string(t) } -> std::convertible_to<std::string>;
}
void append(std::string& out, const T& value) { append(out, std::string_view(to_string(value))); }
template <class T>
void append(std::string& out, const std::optional<T>& value) {
  if (value)
    append(out, *value);
  else
    append(out, "None");
}

// The text that str() gives for some parts, made on request. It has no destructor. An exception
// that leaves a function is slower for each frame, and for each frame with an object to destroy.
class LateText {
 public:
  template <class Write>
  explicit LateText(const Write& write)
      : data_(&write), write_([](const void* data, std::string& out) {
          (*static_cast<const Write*>(data))(out);
        }) {}
  std::string text() const;

 private:
  const void* data_;
  void (*write_)(const void* data, std::string& out);
};

}  // namespace detail

// The first part of a message that is about an operator, or about another function: its name.
class OpName {
 public:
  explicit constexpr OpName(std::string_view name) : name_(name) {}
  constexpr std::string_view text() const { return name_; }

 private:
  std::string_view name_;
};

class Error : public std::exception {
 public:
  Error(ErrorKind kind, std::string message) : Error(kind, OpName({}), std::move(message)) {}
  Error(ErrorKind kind, OpName op, std::string message);
  // A message that is too long is kept without its middle.
  Error(ErrorKind kind, OpName op, const detail::LateText& message);

  ErrorKind kind() const noexcept { return kind_; }
  // The operator that the message is about; empty where the message is about none.
  const std::string& op() const noexcept { return op_; }
  const std::string& message() const noexcept { return message_; }
  // "op: message"; the message alone where there is no operator.
  const char* what() const noexcept override { return text_.c_str(); }

  // Makes the message one about another operator: of an error that passes through a composite.
  void set_op(OpName op);

 private:
  ErrorKind kind_;
  std::string op_, message_, text_;
};

// Concatenates the texts of its arguments.
template <class... Parts>
std::string str(const Parts&... parts) {
  std::string out;
  (detail::append(out, parts), ...);
  return out;
}

template <ErrorKind kind, class... Parts>
[[gnu::cold, gnu::noinline]] Error make_error(OpName op, const Parts&... parts) {
  const auto write = [&](std::string& out) { (detail::append(out, parts), ...); };
  return Error(kind, op, detail::LateText(write));
}
template <ErrorKind kind, class... Parts>
[[gnu::cold, gnu::noinline]] Error make_error(const Parts&... parts) {
  return make_error<kind>(OpName({}), parts...);
}

// The caller throws it itself, because a frame between would be one more to unwind.
template <ErrorKind kind, class... Parts>
[[noreturn, gnu::always_inline]] inline void fail(const Parts&... parts) {
  throw make_error<kind>(parts...);
}

template <ErrorKind kind, class... Parts>
inline void check(bool ok, const Parts&... parts) {
  if (!ok) [[unlikely]]
    fail<kind>(parts...);
}

// Checks an invariant of Treadle itself; `what` names it.
inline void check_internal(bool ok, const char* what) {
  if (!ok) [[unlikely]]
    fail<ErrorKind::Internal>("internal error, please report it: ", what);
}

}  // namespace treadle
