// ConvolutionPlan: cuDNN's plan for a convolution of one geometry, or for one of its gradients.
//
//   std::vector<CudnnDescriptor> ways = convolution_ways(geometry, ConvolutionPart::Y, {handle});
//   std::optional<ConvolutionPlan> plan = ConvolutionPlan::make(std::move(ways[0]), {handle});
//   plan->run(handle, {.x = x, .w = w, .y = y}, workspace);
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include "aten/backend/cuda/libraries/cudnn.h"

namespace treadle::cuda {

// One of cuDNN's graph descriptors. Its attributes are set one by one.
class CudnnDescriptor {
 public:
  explicit CudnnDescriptor(cudnnBackendDescriptorType_t type);
  CudnnDescriptor(CudnnDescriptor&& other) noexcept : handle_(std::exchange(other.handle_, {})) {}
  CudnnDescriptor& operator=(CudnnDescriptor&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~CudnnDescriptor();
  cudnnBackendDescriptor_t get() const { return handle_; }

  void set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t count,
           const void* values);
  void set(cudnnBackendAttributeName_t name, const CudnnDescriptor& value) {
    set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &value.handle_);
  }
  void set(cudnnBackendAttributeName_t name, int64_t value) {
    set(name, CUDNN_TYPE_INT64, 1, &value);
  }
  void set(cudnnBackendAttributeName_t name, IntList values) {
    set(name, CUDNN_TYPE_INT64, static_cast<int64_t>(values.size()), values.data());
  }
  // The number of values, at most `most`.
  int64_t get(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t most,
              void* values) const;
  [[nodiscard]] cudnnStatus_t finalize() const;

 private:
  cudnnBackendDescriptor_t handle_ = nullptr;
};

// The target of planning: a device by its handle, or an absent one by its properties.
struct CudnnTarget {
  cudnnHandle_t handle = nullptr;
  const CudnnDescriptor* properties = nullptr;
};

// All addresses passed to a plan are multiples of it, in bytes. cuDNN 9 refuses to plan for a bias
// and 16-bit numbers whose alignment is only their size.
inline constexpr int64_t kPlanAlignment = 16;

struct ConvolutionGeometry {
  using Sizes = std::vector<int64_t>;
  cudnnDataType_t type;
  Sizes x, w, y;  // contiguous: (N, C, space...) with at least two dimensions of space
  Sizes stride, padding, dilation;
  bool bias = false;   // added to y, one for each channel
  bool exact = false;  // factors of float32 are not rounded
};
enum class ConvolutionPart { Y, X, W };  // the operand that is computed from the other two

// The algorithms that give the same bits each time, the best first by cuDNN's own estimate. Empty
// if cuDNN has none, as for a bias with some geometries.
std::vector<CudnnDescriptor> convolution_ways(const ConvolutionGeometry& geometry,
                                              ConvolutionPart part, const CudnnTarget& target);

class ConvolutionPlan {
 public:
  // Empty if the device cannot run it, or not without more than 1 GiB.
  static std::optional<ConvolutionPlan> make(CudnnDescriptor way, const CudnnTarget& target);

  struct Places {
    void *x, *w, *y, *bias = nullptr;
  };
  // Queues it in the handle's stream.
  cudnnStatus_t run(cudnnHandle_t handle, const Places& at, void* workspace) const;
  size_t workspace() const { return workspace_; }

 private:
  ConvolutionPlan(CudnnDescriptor way, CudnnDescriptor plan, size_t workspace)
      : way_(std::move(way)), plan_(std::move(plan)), workspace_(workspace) {}
  CudnnDescriptor way_, plan_;
  size_t workspace_;
};

}  // namespace treadle::cuda
