// Two-dimensional float convolution and its gradients on oneDNN, for one piece of the batch.
//
// Primitives are made once for each geometry and kept. Calls are single-threaded: the caller splits
// the batch in a way that depends on the problem only, so that results have the same bits at any
// thread count.
#pragma once

#include <array>
#include <cstdint>

namespace treadle::cpu {

struct ConvGeometry {
  int64_t batch, in_channels, in_height, in_width;
  int64_t out_channels, out_height, out_width;
  int64_t kernel_height, kernel_width;
  std::array<int64_t, 2> stride, padding, dilation;
  int64_t groups;
  friend auto operator<=>(const ConvGeometry&, const ConvGeometry&) = default;
};

// All tensors are contiguous: input NCHW, weight (O, C / groups, kH, kW), output NCHW. `bias` may
// be null.
void conv_forward_onednn(const ConvGeometry& g, const float* input, const float* weight,
                         const float* bias, float* output);
void conv_grad_input_onednn(const ConvGeometry& g, const float* grad, const float* weight,
                            float* grad_input);
void conv_grad_weight_onednn(const ConvGeometry& g, const float* grad, const float* input,
                             float* grad_weight);

}  // namespace treadle::cpu
