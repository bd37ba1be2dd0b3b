// The plug-in: the backend and its kernels.
//
// SPDX-License-Identifier: Apache-2.0
#include "backend.h"
#include "kernels.h"

namespace treadle_opencl {
namespace {

void start() {
  const treadle_device_type type =
      treadle::plugin::register_backend<OpenClBackend>({"opencl", /*cache_memory=*/true});
  register_kernels(type);
}

}  // namespace
}  // namespace treadle_opencl

TREADLE_PLUGIN("treadle-opencl", "0.1.0", treadle_opencl::start)
