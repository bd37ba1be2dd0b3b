// Finds the functions of NVIDIA's libraries in this one.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/backend/cuda/shared_library.h"

#include <dlfcn.h>

namespace treadle::cuda {
namespace {

// A stand-in for a function that the emulator has not: it fails, whatever its library.
int missing() { return 15; }

}  // namespace

SharedLibrary::SharedLibrary(const char* name, const char*, const char*) : name_(name) {
  Dl_info here{};
  dladdr(reinterpret_cast<const void*>(&missing), &here);
  handle_ = dlopen(here.dli_fname, RTLD_NOW | RTLD_NOLOAD);
}

void* SharedLibrary::find(const char* name) const {
  void* const address = dlsym(handle_, name);
  return address ? address : reinterpret_cast<void*>(&missing);
}

}  // namespace treadle::cuda
