// The package's name for the program: `treadle`, or `torch` for a program that imports it under
// that name (treadle.run). The texts of dtypes, sizes and types begin with it.
//
//   in_package("float32")   // "torch.float32"
#pragma once

#include <string>
#include <string_view>

namespace treadle::python {

std::string in_package(std::string_view name);
// Text with names of the package, such as `treadle.return_types.max`, in the program's words.
std::string in_words_of_the_program(std::string_view text);
// Only with the interpreter's lock, as all that is here.
void set_package_name(const std::string& name);

}  // namespace treadle::python
