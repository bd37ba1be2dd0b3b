// One text, which Python sets.
#include "python_bindings/csrc/package_name.h"

namespace treadle::python {
namespace {

constexpr std::string_view kPackage = "treadle";

std::string& spoken() {
  static std::string name(kPackage);
  return name;
}

}  // namespace

std::string in_package(std::string_view name) { return spoken() + "." + std::string(name); }

std::string in_words_of_the_program(std::string_view name) {
  const bool own = name.substr(0, kPackage.size()) == kPackage &&
                   name.substr(kPackage.size(), 1) == ".";
  return own ? in_package(name.substr(kPackage.size() + 1)) : std::string(name);
}

void set_package_name(const std::string& name) { spoken() = name; }

}  // namespace treadle::python
