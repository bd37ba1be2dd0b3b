// The text of the calling thread's last error, and the two functions that make messages.
//
// SPDX-License-Identifier: Apache-2.0
#include <stdexcept>

#include "stable_abi/boundary.h"
#include "stable_abi/python_functions.h"

namespace treadle::stable_abi {
namespace {
thread_local std::string t_text;
thread_local uint64_t t_count = 0;
}  // namespace

uint64_t error_count() noexcept { return t_count; }
const std::string& last_error() noexcept { return t_text; }

void keep_error() noexcept {
  ++t_count;
  try {
    try {
      throw;
    } catch (const std::bad_alloc&) {
      t_text = "expected memory of the cpu, got none";
    } catch (const std::exception& error) {
      t_text = error.what();
    } catch (...) {
      t_text = "expected a C++ exception with a text, got one of another kind";
    }
  } catch (...) {
    t_text.clear();  // no memory for the text
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
