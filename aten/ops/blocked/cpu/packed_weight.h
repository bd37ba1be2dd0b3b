// The weight of a convolution in the order that oneDNN computes in, made once.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "aten/ops/convolution/cpu/conv_geometry.h"
#include "core/tensor/tensor.h"

namespace treadle::cpu {

// The channels that a register of oneDNN's kernels here holds; 0 where these take all channels of
// a position side by side.
int64_t register_block();

// A convolution of images in blocks of channels.
struct PackedCall {
  ConvGeometry geometry;
  int64_t in_block, out_block;
  bool relu, bias;
  friend auto operator<=>(const PackedCall&, const PackedCall&) = default;
};

// Threads may share it.
class PackedWeight {
 public:
  explicit PackedWeight(Tensor weight);  // (O, C / groups, kernel...), contiguous, of float32
  ~PackedWeight();

  // False, with nothing written, for a geometry without a fast kernel. `bias` may be null.
  bool convolve(const PackedCall& call, const float* input, const float* bias, float* output) const;

 private:
  struct Plans;
  Tensor weight_;
  std::unique_ptr<Plans> plans_;
};

}  // namespace treadle::cpu
