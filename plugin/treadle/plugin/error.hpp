// Errors in both directions: an error status of the host becomes an exception, and an exception in
// a callback becomes a status with its text.
//
//   check(dim >= 0, ErrorKind::Value, "fold: expected dim >= 0, got ", dim);
#pragma once

#include <cstddef>
#include <new>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>

#include "treadle/plugin.h"

// The namespace below is private to the shared library that includes it. So plug-ins built at
// different times with different versions of it live in one process.
#pragma GCC visibility push(hidden)

namespace treadle::plugin {

// The Python exception that an error becomes.
enum class ErrorKind : treadle_status {
  Type = TREADLE_TYPE_ERROR,
  Value = TREADLE_VALUE_ERROR,
  Index = TREADLE_INDEX_ERROR,
  Runtime = TREADLE_RUNTIME_ERROR,
  NotImplemented = TREADLE_NOT_IMPLEMENTED,
  OutOfMemory = TREADLE_OUT_OF_MEMORY,
  LinAlg = TREADLE_LINALG_ERROR,
  DeviceLost = TREADLE_DEVICE_LOST,
};

// A kernel throws it to leave a call to Treadle.
struct Declined {};

// An error with its kind. It is thrown for an error that the host reports. Throw it to report an
// error to the host.
class Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, const std::string& text) : std::runtime_error(text), kind_(kind) {}
  ErrorKind kind() const noexcept { return kind_; }

 private:
  ErrorKind kind_;
};

// Concatenates the parts, as << writes them.
template <class... Parts>
std::string join(const Parts&... parts) {
  std::ostringstream text;
  text << std::boolalpha;
  (text << ... << parts);
  return text.str();
}
template <class... Parts>
[[noreturn]] void fail(ErrorKind kind, const Parts&... parts) {
  throw Error(kind, join(parts...));
}
// The text of an error names the operator, the expectation and the actual value.
template <class... Parts>
void check(bool condition, ErrorKind kind, const Parts&... parts) {
  if (!condition) fail(kind, parts...);
}

namespace detail {
inline const treadle_api* started = nullptr;
}  // namespace detail

// The host's functions. RuntimeError before the plug-in was started.
inline const treadle_api& api() {
  if (detail::started == nullptr)
    throw Error(ErrorKind::Runtime, "the plug-in was not started by treadle.load_backend()");
  return *detail::started;
}

// Throws the error that a failed call of the host reported.
inline void succeed(treadle_status status) {
  if (status == TREADLE_OK) return;
  const char* text = api().last_error();
  throw Error(static_cast<ErrorKind>(status), text != nullptr ? text : "");
}

// Runs `body` for the host. An exception becomes a status. A body that returns a bool declines by
// false.
template <class Body>
treadle_status guarded(Body&& body) noexcept {
  const auto report = [](ErrorKind kind, const char* text) {
    const auto status = static_cast<treadle_status>(kind);
    return detail::started == nullptr ? status : detail::started->set_error(status, text);
  };
  try {
    if constexpr (std::is_same_v<decltype(body()), bool>) {
      return body() ? TREADLE_OK : TREADLE_DECLINED;
    } else {
      body();
      return TREADLE_OK;
    }
  } catch (const Declined&) {
    return TREADLE_DECLINED;
  } catch (const Error& error) {
    return report(error.kind(), error.what());
  } catch (const std::bad_alloc&) {
    return report(ErrorKind::OutOfMemory, "out of memory");
  } catch (const std::invalid_argument& error) {
    return report(ErrorKind::Value, error.what());
  } catch (const std::out_of_range& error) {
    return report(ErrorKind::Index, error.what());
  } catch (const std::exception& error) {
    return report(ErrorKind::Runtime, error.what());
  } catch (...) {
    return report(ErrorKind::Runtime, "an exception that is no std::exception");
  }
}

// body(begin, end) on pieces of [0, count) of at least `grain`, on the host's threads. An exception
// in a piece is thrown here.
template <class Body>
void parallel_for(int64_t count, int64_t grain, const Body& body) {
  succeed(api().parallel_for(
      count, grain,
      [](void* context, int64_t begin, int64_t end) -> treadle_status {
        return guarded([&] { (*static_cast<const Body*>(context))(begin, end); });
      },
      const_cast<Body*>(&body)));
}

}  // namespace treadle::plugin

#pragma GCC visibility pop
