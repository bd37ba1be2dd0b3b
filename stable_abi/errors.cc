// The text of the calling thread's last error, and the two functions that make messages.
//
// SPDX-License-Identifier: Apache-2.0
#include <stdexcept>

#include "stable_abi/boundary.h"
#include "stable_abi/python_functions.h"

namespace treadle::stable_abi {
namespace {

std::string& last_error() {
  thread_local std::string text;
  return text;
}

}  // namespace

void keep_error() noexcept {
  try {
    try {
      throw;
    } catch (const std::bad_alloc&) {
      last_error() = "expected memory of the cpu, got none";
    } catch (const std::exception& error) {
      last_error() = error.what();
    } catch (...) {
      last_error() = "expected a C++ exception with a text, got one of another kind";
    }
  } catch (...) {
    last_error().clear();  // no memory for the text
  }
}

}  // namespace treadle::stable_abi

using namespace treadle;              // NOLINT
using namespace treadle::stable_abi;  // NOLINT

const char* torch_exception_get_what() { return last_error().c_str(); }
const char* torch_exception_get_what_without_backtrace() { return last_error().c_str(); }

void aoti_torch_check(bool condition, const char*, const char*, uint32_t, const char* message) {
  if (!condition) throw std::runtime_error(message ? message : "");
}

void aoti_torch_warn(const char*, const char* file, uint32_t line, const char* message) {
  // Without Python there is nobody to warn.
  if (const PythonFunctions* python = python_functions())
    python->warn(message ? message : "", file ? file : "", line);
}
