// SharedLibrary: one of NVIDIA's libraries. It is opened at its first use, so the backend loads
// without it.
//
// The search order: by name, as the dynamic loader does; in the PyPI packages beside the backend's
// own (nvidia/cu13/lib, nvidia/cudnn/lib); and in the toolkit, under CUDA_HOME or /usr/local/cuda.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <type_traits>

namespace treadle::cuda {

class SharedLibrary {
 public:
  // RuntimeError: "cuda: expected libnvrtc.so.13, which compiles kernels, got none; install it
  // with: pip install nvidia-cuda-nvrtc". Libraries are never closed.
  SharedLibrary(const char* name, const char* purpose, const char* package);

  template <class Function>
  Function* function(const char* name) const {
    return reinterpret_cast<Function*>(find(name));
  }

 private:
  void* find(const char* name) const;
  void* handle_ = nullptr;
  std::string name_;
};

// A member `name` for the library's function `symbol`, with the type that its header declares. The
// library is the member `library` of the same class.
#define TREADLE_LIBRARY_FUNCTION(name, symbol)     \
  std::remove_pointer_t<decltype(&symbol)>* name = \
      library.function<std::remove_pointer_t<decltype(&symbol)>>(#symbol)

}  // namespace treadle::cuda
