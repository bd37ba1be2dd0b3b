// Products of whole numbers of 8 bits on oneDNN, summed exactly in 32 bits. Processors without
// VNNI add two products in 16 bits: there, numbers of 7 bits are exact and larger ones may not be.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "aten/ops/convolution/cpu/conv_geometry.h"
#include "core/tensor/tensor.h"

namespace treadle::cpu {

// A convolution: its geometry, dtypes, scales and zero points. Images have channels innermost.
struct Int8Convolution {
  ConvGeometry geometry;
  ScalarType input, output;  // UInt8 or Int8
  double input_scale, output_scale;
  int64_t input_zero, output_zero;
  bool relu, bias;
  friend auto operator<=>(const Int8Convolution&, const Int8Convolution&) = default;
};

// A weight of int8 (out, in...), of zero points 0, with what oneDNN made of it for the calls so
// far. Threads may share it.
class Int8Weight {
 public:
  // `scales`: one for each of the `out` channels. `values` is contiguous.
  Int8Weight(Tensor values, std::vector<float> scales);
  ~Int8Weight();

  const std::vector<float>& scales() const { return scales_; }
  // The sum of each channel's numbers.
  const std::vector<int32_t>& sums() const { return sums_; }

  // x (rows, in) @ weight.T -> (rows, out).
  void multiply(ScalarType input, int64_t rows, const void* x, int32_t* result) const;
  // False, with nothing written, for a geometry without a fast kernel. `bias` is in real numbers,
  // or null.
  bool convolve(const Int8Convolution& c, const void* input, const float* bias, void* output) const;

 private:
  struct Plans;
  Tensor values_;
  std::vector<float> scales_;
  std::vector<int32_t> sums_;
  std::unique_ptr<Plans> plans_;
};

}  // namespace treadle::cpu
