// Compiles the CUDA C++ source of generated kernels for an architecture, with NVRTC, which needs no
// device. Compiled code is cached on disk, under TREADLE_CUDA_CACHE, else
// $XDG_CACHE_HOME/treadle/cuda or ~/.cache/treadle/cuda. An empty TREADLE_CUDA_CACHE disables the
// cache.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace treadle::cuda {

// Machine code of `source` for e.g. architecture 90 (compute capability 9.0). The source includes
// the headers of device_headers.h. InternalError with the compiler's first messages if it does not
// compile.
std::string compile(std::string_view source, int architecture);
// The same without the cache.
std::string compile_anew(std::string_view source, int architecture);

// The folder of cached kernels; empty: no cache.
std::string cache_folder();

}  // namespace treadle::cuda
