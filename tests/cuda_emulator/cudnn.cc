// cuDNN for emulated devices: handles, and descriptions of tensors. Graphs and layers of recurrent
// networks have files of their own.
//
// SPDX-License-Identifier: Apache-2.0
#include "tests/cuda_emulator/cudnn.h"

#include <algorithm>

namespace e = treadle::cuda::emulator;

extern "C" {

size_t cudnnGetVersion() { return CUDNN_VERSION; }
cudnnStatus_t cudnnCreate(cudnnHandle_t* handle) {
  *handle = reinterpret_cast<cudnnHandle_t>(new e::Handle);
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream) {
  e::own<e::Handle>(handle).stream = stream;
  return CUDNN_STATUS_SUCCESS;
}
const char* cudnnGetErrorString(cudnnStatus_t code) {
  return code == CUDNN_STATUS_BAD_PARAM       ? "CUDNN_STATUS_BAD_PARAM"
         : code == CUDNN_STATUS_NOT_SUPPORTED ? "CUDNN_STATUS_NOT_SUPPORTED"
                                              : "CUDNN_STATUS_EXECUTION_FAILED";
}
cudnnStatus_t cudnnCreateTensorDescriptor(cudnnTensorDescriptor_t* d) {
  *d = reinterpret_cast<cudnnTensorDescriptor_t>(new e::Dense);
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnDestroyTensorDescriptor(cudnnTensorDescriptor_t d) {
  delete &e::own<e::Dense>(d);
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetTensorNdDescriptor(cudnnTensorDescriptor_t d, cudnnDataType_t type, int rank,
                                         const int sizes[], const int strides[]) {
  if (rank < 4 || rank > 8) return CUDNN_STATUS_BAD_PARAM;
  e::own<e::Dense>(d) = {type, {sizes, sizes + rank}, {strides, strides + rank}};
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnGetTensorNdDescriptor(const cudnnTensorDescriptor_t d, int most,
                                         cudnnDataType_t* type, int* rank, int sizes[],
                                         int strides[]) {
  const e::Dense& dense = e::own<e::Dense>(d);
  *type = dense.type;
  *rank = static_cast<int>(dense.sizes.size());
  const size_t count = std::min(dense.sizes.size(), static_cast<size_t>(most));
  std::copy_n(dense.sizes.begin(), count, sizes);
  std::copy_n(dense.strides.begin(), count, strides);
  return CUDNN_STATUS_SUCCESS;
}

}  // extern "C"
