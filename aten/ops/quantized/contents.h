// Quantized tensors taken apart. An element is a whole number q that stands for the real number
// (q - zero point) * scale. Scale and zero point are those of the tensor or, per channel, those of
// the element's place in dimension `axis`.
//
// The layout's parts are the whole numbers, the scales (float64) and the zero points (int64); its
// field is the axis, -1 where all elements share one scale. A tensor of quint8, qint8 or qint32 has
// whole numbers of uint8, int8 or int32.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/tensor/layout_tensor.h"

namespace treadle::quantized {

struct Affine {
  Tensor values, scales, zero_points;
  int64_t axis = -1;

  bool per_channel() const { return axis >= 0; }
  // Those of all elements, on any device.
  double scale() const;
  int64_t zero_point() const;
};

// The layout, "quantized", which is registered as one from outside is.
Layout layout();
inline bool is_quantized(const Tensor& t) { return !t.is_strided() && t.layout() == layout(); }
// RuntimeError for a tensor of another layout: "`op`: expected a quantized tensor".
Affine affine_of(const char* op, const Tensor& t);
// The same, and RuntimeError if there is a scale for each channel.
Affine per_tensor(const char* op, const Tensor& t);
Tensor tensor_of(const Affine& affine);
// Of one scale and zero point. RuntimeError unless the scale is positive and the zero point a value
// of the dtype.
Tensor tensor_of(const char* op, const Tensor& values, double scale, int64_t zero_point);

// uint8 for quint8, ...; NotImplementedError for what is no such dtype.
ScalarType integers_of(const char* op, ScalarType dtype);

// The real numbers, in float32.
Tensor dequantized(const Affine& affine);
// The nearest whole numbers, of two the even one; those that do not fit become the nearest that do.
Tensor quantized(const Tensor& real, const Affine& like);
Tensor quantized(const char* op, const Tensor& real, double scale, int64_t zero_point,
                 ScalarType integers);

}  // namespace treadle::quantized
