// The package's name for the program: `treadle`, or `torch` for a program that imports it under
// that name (treadle.run). The texts of dtypes, sizes and types begin with it.
//
//   in_package("float32")   // "torch.float32"
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace treadle::python {

std::string in_package(std::string_view name);
// Replaces names of the package in a text, such as `treadle.return_types.max`, by the program's
// name for it.
std::string in_words_of_the_program(std::string_view text);
// All functions here need the interpreter lock.
void set_package_name(const std::string& name);

}  // namespace treadle::python
