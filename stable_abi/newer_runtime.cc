// Functions of newer C++ runtimes than the system's may be: PyTorch's libraries have them for
// extensions, which are compiled with a newer compiler. Each does what the runtime's does.
//
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstddef>
#include <ios>
#include <memory>

#define EXPORT __attribute__((visibility("default")))

namespace {

// Replaces `old_count` characters at `place` by `count` characters, which may lie in the same text;
// `rest` characters follow. The text has room for the result.
template <class Char>
void replace(Char* place, size_t old_count, const Char* by, size_t count, size_t rest) {
  const std::unique_ptr<Char[]> kept(new Char[count]);
  std::copy_n(by, count, kept.get());
  if (old_count < count)
    std::copy_backward(place + old_count, place + old_count + rest, place + count + rest);
  else
    std::copy_n(place + old_count, rest, place + count);
  std::copy_n(kept.get(), count, place);
}

}  // namespace

// std::string::_M_replace_cold and that of std::wstring, of GCC 13.
EXPORT void
replace_in_string(void*, char* place, size_t old_count, const char* by, size_t count, size_t rest) __asm__(
    "_ZNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE15_M_replace_coldEPcmPKcmm");
EXPORT void
replace_in_wstring(void*, wchar_t* place, size_t old_count, const wchar_t* by, size_t count, size_t rest) __asm__(
    "_ZNSt7__cxx1112basic_stringIwSt11char_traitsIwESaIwEE15_M_replace_coldEPwmPKwmm");
// std::ios_base_library_init, of GCC 13: the standard streams are ready from then on.
EXPORT void init_streams() __asm__("_ZSt21ios_base_library_initv");

void replace_in_string(void*, char* place, size_t old_count, const char* by, size_t count,
                       size_t rest) {
  replace(place, old_count, by, count, rest);
}
void replace_in_wstring(void*, wchar_t* place, size_t old_count, const wchar_t* by, size_t count,
                        size_t rest) {
  replace(place, old_count, by, count, rest);
}
void init_streams() { static const std::ios_base::Init ready; }
