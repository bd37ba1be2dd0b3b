// The table of the runtime's functions, and the conversion of their errors.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/backend/cuda/calls.h"

#include "core/base/error.h"

namespace treadle::cuda {
namespace {

[[gnu::cold]] void raise(cudaError_t code, std::string_view doing) {
  calls().get_last_error();
  const std::string message = str("expected ", doing, " to succeed, got ", cudaGetErrorName(code),
                                  " (", cudaGetErrorString(code), ")");
  if (code == cudaErrorMemoryAllocation) fail<ErrorKind::OutOfMemory>(OpName("cuda"), message);
  fail<ErrorKind::Runtime>(OpName("cuda"), message);
}

}  // namespace

Calls& calls() {
  static Calls calls;
  return calls;
}

void succeed(cudaError_t code, std::string_view doing) {
  if (code != cudaSuccess) [[unlikely]]
    raise(code, doing);
}

}  // namespace treadle::cuda
