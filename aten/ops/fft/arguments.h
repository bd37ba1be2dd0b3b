// Common parts of all transforms: the conversion of arguments to a tensor of the right dtype and
// sizes, a list of dimensions and a normalisation.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string_view>

#include "core/tensor/tensor.h"

namespace treadle::composite {

// The divisor of the result. The numbers are those of the kernels' `normalization`.
enum class FftNorm : int64_t { kNone = 0, kRoot = 1, kCount = 2 };

// `norm` None or "backward" divides in the inverse transform, "forward" in the other one, "ortho"
// by the square root in both.
FftNorm fft_norm(const char* op, std::optional<std::string_view> norm, bool forward);

// A floating or complex tensor, at least 32 bits wide, complex if requested.
Tensor fft_input(const char* op, const Tensor& self, bool complex);
// The same, but a complex tensor is an error.
Tensor fft_real_input(const char* op, const Tensor& self);

// The dimensions to transform, wrapped, and the number of points of each.
struct FftDims {
  DimVector dims, sizes;
};
// For one dimension. If `n` is None, it is the dimension's size, or the size of the real signal
// whose half is given.
FftDims fft_dim(const char* op, const Tensor& self, std::optional<int64_t> n, int64_t dim,
                bool half);
// For several. An entry -1 of `s` is like None.
FftDims fft_dims(const char* op, const Tensor& self, OptionalIntList s, OptionalIntList dim,
                 bool half);

// `self` cut, or padded with zeros, to `sizes` along `dims`.
Tensor fft_resized(const char* op, const Tensor& self, const FftDims& wanted);

}  // namespace treadle::composite
