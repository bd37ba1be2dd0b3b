// What code that catches C++ exceptions itself needs to know of those that carry Python's.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <exception>

namespace treadle::python {

// Sets the Python exception that `error` carries through C++ code. False if it carries none.
bool restore_carried(const std::exception& error) noexcept;

}  // namespace treadle::python
