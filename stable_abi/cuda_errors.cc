// Messages for errors of the CUDA runtime, in the runtime's own words.
//
// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>

#include <cstdlib>
#include <cstring>

#include "stable_abi/boundary.h"

namespace treadle::stable_abi {
namespace {

// The runtime that extensions use; they have loaded it.
std::string said_by_runtime(const char* function, int32_t error) {
  for (const char* name : {"libcudart.so.13", "libcudart.so.12"}) {
    void* library = dlopen(name, RTLD_LAZY | RTLD_NOLOAD);
    if (!library) continue;
    using Say = const char* (*)(int32_t);
    const auto say = reinterpret_cast<Say>(dlsym(library, function));
    const char* text = say ? say(error) : nullptr;
    dlclose(library);
    if (text) return text;
  }
  return {};
}

}  // namespace
}  // namespace treadle::stable_abi

using namespace treadle;              // NOLINT
using namespace treadle::stable_abi;  // NOLINT

AOTITorchError torch_c10_cuda_check_msg(int32_t error, const char* file, const char* function,
                                        uint32_t line, bool, char** message) {
  return guarded([&] {
    *message = nullptr;
    if (error == 0) return;
    std::string text = said_by_runtime("cudaGetErrorString", error);
    if (text.empty()) text = str("error ", error);
    text = str("CUDA error: ", text, " (", function ? function : "", ", ", file ? file : "", ":",
               static_cast<uint64_t>(line), ")");
    *message = strdup(text.c_str());
  });
}
void torch_c10_cuda_free_error_msg(char* message) { std::free(message); }
