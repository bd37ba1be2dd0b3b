// Opens libraries.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/backend/cuda/shared_library.h"

#include <dlfcn.h>

#include <cstdlib>
#include <vector>

#include "core/base/error.h"

namespace treadle::cuda {
namespace {

std::vector<std::string> folders() {
  std::vector<std::string> found = {""};
  Dl_info here{};
  if (dladdr(reinterpret_cast<void*>(&folders), &here) && here.dli_fname) {
    // site-packages/treadle_cuda/lib/libtreadle_cuda.so
    std::string path = here.dli_fname;
    for (int i = 0; i < 3 && !path.empty(); ++i) {
      const size_t slash = path.rfind('/');
      path.resize(slash == std::string::npos ? 0 : slash);
    }
    if (!path.empty()) {
      found.push_back(path + "/nvidia/cu13/lib/");
      found.push_back(path + "/nvidia/cudnn/lib/");
    }
  }
  const char* const home = std::getenv("CUDA_HOME");
  found.push_back(std::string(home && *home ? home : "/usr/local/cuda") + "/lib64/");
  return found;
}

}  // namespace

SharedLibrary::SharedLibrary(const char* name, const char* purpose, const char* package)
    : name_(name) {
  for (const std::string& folder : folders()) {
    handle_ = dlopen((folder + name).c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle_) return;
  }
  fail<ErrorKind::Runtime>(OpName("cuda"), "expected ", name, ", which ", purpose,
                           ", got none; install it with: pip install ", package);
}

void* SharedLibrary::find(const char* name) const {
  void* const address = dlsym(handle_, name);
  check<ErrorKind::Runtime>(address != nullptr, OpName("cuda"), "expected ", name_, " to have ",
                            name, ", got a release without it");
  return address;
}

}  // namespace treadle::cuda
