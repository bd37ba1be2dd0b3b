// operator new that throws where memory cannot be had, as the standard says. AddressSanitizer's own
// ends the process there, and that the library lives on is what the tests look at. To be preloaded
// before the sanitizer's library, whose other forms these ask, so that it still checks every block.
//
// SPDX-License-Identifier: Apache-2.0

#include <cstddef>
#include <new>

namespace {

void* or_throw(void* block) {
  if (!block) throw std::bad_alloc();
  return block;
}

}  // namespace

void* operator new(std::size_t size) { return or_throw(operator new(size, std::nothrow)); }
void* operator new[](std::size_t size) { return or_throw(operator new[](size, std::nothrow)); }
void* operator new(std::size_t size, std::align_val_t alignment) {
  return or_throw(operator new(size, alignment, std::nothrow));
}
void* operator new[](std::size_t size, std::align_val_t alignment) {
  return or_throw(operator new[](size, alignment, std::nothrow));
}
