// The search for the library, done once, and a handle for each thread and device.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/backend/cuda/libraries/cudnn.h"

#include <map>

#include "aten/backend/cuda/libraries/kept_by_thread.h"

namespace treadle::cuda {

const Cudnn& cudnn() {
  static const auto* cudnn = new Cudnn;
  return *cudnn;
}

void succeed_cudnn(cudnnStatus_t code, const char* doing) {
  check<ErrorKind::Runtime>(code == CUDNN_STATUS_SUCCESS, OpName("cuda"), "expected ", doing,
                            " to succeed, got ", cudnn().GetErrorString(code));
}

cudnnHandle_t cudnn_on(int device) {
  cudnnHandle_t& handle = kept_by_thread<std::map<int, cudnnHandle_t>>()[device];
  if (!handle) succeed_cudnn(cudnn().Create(&handle), "starting cuDNN");
  succeed_cudnn(cudnn().SetStream(handle, stream_on(device)), "choosing cuDNN's stream");
  return handle;
}

Tensor cudnn_workspace(size_t bytes, Device device) {
  return empty_tensor({static_cast<int64_t>(bytes)}, ScalarType::UInt8, device);
}

void TensorDescription::set(cudnnDataType_t type, const std::vector<int>& sizes) const {
  std::vector<int> steps(sizes.size());
  int step = 1;
  for (size_t i = sizes.size(); i-- > 0; step *= sizes[i]) steps[i] = step;
  succeed_cudnn(cudnn().SetTensorNdDescriptor(get(), type, static_cast<int>(sizes.size()),
                                              sizes.data(), steps.data()),
                "describing a tensor");
}

}  // namespace treadle::cuda

// For treadle.backends.cudnn.version(): 0 where the library is not there.
extern "C" size_t treadle_cudnn_version() {
  try {
    return treadle::cuda::cudnn().GetVersion();
  } catch (const treadle::Error&) {
    return 0;
  }
}
