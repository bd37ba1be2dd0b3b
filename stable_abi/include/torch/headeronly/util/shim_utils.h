// TORCH_ERROR_CODE_CHECK: the result of a function of the ABI, as an exception without its reason.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdexcept>
#include <string>

#include <torch/headeronly/macros/Macros.h>

#define TORCH_SUCCESS 0
#define TORCH_FAILURE 1

#define TORCH_ERROR_CODE_CHECK(call)                                                          \
  if ((call) != TORCH_SUCCESS) {                                                              \
    throw std::runtime_error(#call " failed at " __FILE__ ", line " C10_STRINGIZE(__LINE__)); \
  }
