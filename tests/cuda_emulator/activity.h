// CUPTI's records of emulated devices: each piece of work, with the call that queued it.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>
#include <cupti.h>

#include <functional>
#include <string>

namespace treadle::cuda::emulator {

struct Activity {
  CUpti_ActivityKind kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;  // or MEMCPY, MEMCPY2, MEMSET
  std::string name = "kernel of a library";                         // of a kernel
  size_t bytes = 0;                                                 // of the others
  CUpti_ActivityMemcpyKind copy = CUPTI_ACTIVITY_MEMCPY_KIND_UNKNOWN;
};

// To be called where work is queued: the same work, which is recorded when it is done if it was
// queued while something recorded.
std::function<void()> recorded(const Activity& activity, int device, cudaStream_t stream,
                               std::function<void()> work);

}  // namespace treadle::cuda::emulator
