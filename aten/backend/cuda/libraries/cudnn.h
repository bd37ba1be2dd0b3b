// cuDNN: its functions, this thread's handle, and descriptors of tensors.
//
//   const cudnnHandle_t handle = cudnn_on(out.device().index);
//   TensorDescription h_is;
//   h_is.set(kData<float>, {2, 8, 32, 1});
//   succeed_cudnn(cudnn().RNNForward(handle, ..., h_is.get(), ...), "computing ...");
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cudnn.h>

#include <vector>

#include "aten/backend/cuda/kernels/registration.h"
#include "aten/backend/cuda/shared_library.h"
#include "core/base/math_switches.h"

namespace treadle::cuda {

struct Cudnn {
  SharedLibrary library{"libcudnn.so.9", "computes convolutions and recurrent layers",
                        "nvidia-cudnn-cu13"};
#define TREADLE_CUDNN(name)                             \
  std::remove_pointer_t<decltype(&cudnn##name)>* name = \
      library.function<std::remove_pointer_t<decltype(&cudnn##name)>>("cudnn" #name)
  TREADLE_CUDNN(Create);
  TREADLE_CUDNN(SetStream);
  TREADLE_CUDNN(GetErrorString);
  TREADLE_CUDNN(GetVersion);
  TREADLE_CUDNN(CreateTensorDescriptor);
  TREADLE_CUDNN(DestroyTensorDescriptor);
  TREADLE_CUDNN(SetTensorNdDescriptor);
  TREADLE_CUDNN(GetTensorNdDescriptor);
  // Convolutions.
  TREADLE_CUDNN(BackendCreateDescriptor);
  TREADLE_CUDNN(BackendDestroyDescriptor);
  TREADLE_CUDNN(BackendSetAttribute);
  TREADLE_CUDNN(BackendGetAttribute);
  TREADLE_CUDNN(BackendFinalize);
  TREADLE_CUDNN(BackendExecute);
  // Recurrent layers.
  TREADLE_CUDNN(CreateDropoutDescriptor);
  TREADLE_CUDNN(SetDropoutDescriptor);
  TREADLE_CUDNN(CreateRNNDescriptor);
  TREADLE_CUDNN(SetRNNDescriptor_v8);
  TREADLE_CUDNN(CreateRNNDataDescriptor);
  TREADLE_CUDNN(DestroyRNNDataDescriptor);
  TREADLE_CUDNN(SetRNNDataDescriptor);
  TREADLE_CUDNN(GetRNNTempSpaceSizes);
  TREADLE_CUDNN(GetRNNWeightSpaceSize);
  TREADLE_CUDNN(GetRNNWeightParams);
  TREADLE_CUDNN(RNNForward);
  TREADLE_CUDNN(RNNBackwardData_v8);
  TREADLE_CUDNN(RNNBackwardWeights_v8);
#undef TREADLE_CUDNN
};
// RuntimeError if the library is missing.
const Cudnn& cudnn();

// RuntimeError with cuDNN's message for `doing`.
void succeed_cudnn(cudnnStatus_t code, const char* doing);

// This thread's handle on a device. It queues in the thread's current stream.
cudnnHandle_t cudnn_on(int device);

Tensor cudnn_workspace(size_t bytes, Device device);

template <class T>
constexpr cudnnDataType_t kData = std::is_same_v<T, double>     ? CUDNN_DATA_DOUBLE
                                  : std::is_same_v<T, Half>     ? CUDNN_DATA_HALF
                                  : std::is_same_v<T, BFloat16> ? CUDNN_DATA_BFLOAT16
                                                                : CUDNN_DATA_FLOAT;

// Whether factors must not be rounded: those of float32, unless the program allows TF32.
inline bool exact_factors(cudnnDataType_t type) {
  return type == CUDNN_DATA_FLOAT && !math_switches().convolution_tf32;
}

// A descriptor for the duration of a call.
template <class Handle>
class Description {
 public:
  using Make = cudnnStatus_t(Handle*);
  using Free = cudnnStatus_t(Handle);
  Description(Make* make, Free* free) : free_(free) {
    succeed_cudnn(make(&handle_), "describing a tensor");
  }
  Description(const Description&) = delete;
  ~Description() { free_(handle_); }
  Handle get() const { return handle_; }

 private:
  Handle handle_ = nullptr;
  Free* free_;
};

struct TensorDescription : Description<cudnnTensorDescriptor_t> {
  TensorDescription()
      : Description(cudnn().CreateTensorDescriptor, cudnn().DestroyTensorDescriptor) {}
  // A contiguous tensor, of at least 4 dimensions.
  void set(cudnnDataType_t type, const std::vector<int>& sizes) const;
};

}  // namespace treadle::cuda
