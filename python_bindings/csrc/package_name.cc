// The package's name: one text, which Python sets.
//
// SPDX-License-Identifier: Apache-2.0
#include "python_bindings/csrc/package_name.h"

#include <cctype>

namespace treadle::python {
namespace {

constexpr std::string_view kPackage = "treadle";

std::string& spoken() {
  static std::string name(kPackage);
  return name;
}

}  // namespace

std::string in_package(std::string_view name) { return spoken() + "." + std::string(name); }

std::string in_words_of_the_program(std::string_view text) {
  std::string words;
  while (spoken() != kPackage) {
    const size_t at = text.find("treadle.");
    if (at == std::string_view::npos) break;
    const bool is_part = at > 0 && (std::isalnum(static_cast<unsigned char>(text[at - 1])) ||
                                    text[at - 1] == '_' || text[at - 1] == '.');
    words += text.substr(0, at);
    words += is_part ? std::string(kPackage) : spoken();
    text.remove_prefix(at + kPackage.size());
  }
  return words.append(text);
}

void set_package_name(const std::string& name) { spoken() = name; }

}  // namespace treadle::python
