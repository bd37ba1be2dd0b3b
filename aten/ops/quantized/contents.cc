// SPDX-License-Identifier: Apache-2.0
#include "aten/ops/quantized/contents.h"

#include <cmath>

#include "aten/engine/strides/memory_format.h"
#include "aten/ops/_dequantize_affine.h"
#include "aten/ops/_quantize_affine.h"
#include "aten/ops/contiguous.h"
#include "aten/ops/permute.h"
#include "aten/ops/to.h"

namespace treadle::quantized {
namespace {

void check_integers(const char* op, ScalarType dtype) {
  check<ErrorKind::Runtime>(
      dtype == ScalarType::UInt8 || dtype == ScalarType::Int8 || dtype == ScalarType::Int32,
      OpName(op), "expected whole numbers of uint8, int8 or int32, got ", dtype);
}

void check_numbers(const char* op, ScalarType dtype, const Tensor& scales,
                   const Tensor& zero_points) {
  const Tensor s = aten::contiguous(aten::to(scales, kCPU, ScalarType::Float64));
  const Tensor z = aten::contiguous(aten::to(zero_points, kCPU, ScalarType::Int64));
  const int64_t low = dtype == ScalarType::UInt8  ? 0
                      : dtype == ScalarType::Int8 ? INT8_MIN
                                                  : INT32_MIN;
  const int64_t high = dtype == ScalarType::UInt8  ? UINT8_MAX
                       : dtype == ScalarType::Int8 ? INT8_MAX
                                                   : INT32_MAX;
  for (int64_t i = 0; i < s.numel(); ++i) {
    const double scale = s.data_as<double>()[i];
    check<ErrorKind::Runtime>(std::isfinite(scale) && scale > 0, OpName(op),
                              "expected positive scales, got ", scale);
    const int64_t zero = z.data_as<int64_t>()[i];
    check<ErrorKind::Runtime>(low <= zero && zero <= high, OpName(op), "expected zero points from ",
                              low, " to ", high, ", got ", zero);
  }
}

void check_contents(const char* op, IntList sizes, const LayoutContents& contents) {
  const Tensor& values = contents.parts[0];
  const Tensor &scales = contents.parts[1], &zero_points = contents.parts[2];
  const int64_t axis = contents.fields[0];
  for (const Tensor& part : contents.parts) {
    check<ErrorKind::Runtime>(part.defined() && part.is_strided(), OpName(op),
                              "expected strided tensors of values, scales and zero points");
    check<ErrorKind::Runtime>(part.device() == values.device(), OpName(op),
                              "expected scales and zero points on ", values.device(), ", got ",
                              part.device());
  }
  check_integers(op, values.dtype());
  check<ErrorKind::Runtime>(values.sizes() == sizes, OpName(op), "expected values of shape ", sizes,
                            ", got ", values.sizes());
  check<ErrorKind::Runtime>(axis >= -1 && axis < values.dim(), OpName(op),
                            "expected an axis from -1 to ", values.dim() - 1, ", got ", axis);
  const int64_t count = axis < 0 ? 1 : values.size(axis);
  check<ErrorKind::Runtime>(
      scales.dtype() == ScalarType::Float64 && zero_points.dtype() == ScalarType::Int64, OpName(op),
      "expected scales of float64 and zero points of int64, got ", scales.dtype(), " and ",
      zero_points.dtype());
  check<ErrorKind::Runtime>(
      scales.sizes() == IntList({count}) && zero_points.sizes() == IntList({count}), OpName(op),
      "expected ", count, " scales and zero points, got shapes ", scales.sizes(), " and ",
      zero_points.sizes());
  if (!values.is_meta()) check_numbers(op, values.dtype(), scales, zero_points);
}

// `f` for the numbers with their channels at a known place, contiguous. The result has the order of
// dimensions in memory that `t` has.
template <class F>
Tensor in_order(const Tensor& t, int64_t axis, F&& f) {
  const MemoryFormat format = shape::format_of(t);
  if (format == MemoryFormat::Contiguous) return f(aten::contiguous(t), axis);
  const int64_t there = axis < 0 ? axis : shape::dim_with_channels_innermost(axis, t.dim());
  const Tensor result = f(aten::contiguous(shape::channels_innermost(t)), there);
  DimVector order{0, t.dim() - 1};
  for (int64_t d = 1; d + 1 < t.dim(); ++d) order.push_back(d);
  return aten::permute(result, order);
}

ScalarType shown_dtype(ScalarType values) {
  return values == ScalarType::UInt8  ? ScalarType::QUInt8
         : values == ScalarType::Int8 ? ScalarType::QInt8
                                      : ScalarType::QInt32;
}

[[maybe_unused]] const Layout registered = layout();

}  // namespace

Layout layout() {
  static const Layout made = [] {
    static const LayoutInfo info{
        {"values", "scales", "zero_points"}, {"axis"}, 0, &check_contents, &shown_dtype};
    const Layout added = register_layout("quantized");
    describe_layout(added, info);
    return added;
  }();
  return made;
}

double Affine::scale() const {
  return aten::to(scales, kCPU, ScalarType::Float64).data_as<double>()[0];
}
int64_t Affine::zero_point() const {
  return aten::to(zero_points, kCPU, ScalarType::Int64).data_as<int64_t>()[0];
}

Affine affine_of(const char* op, const Tensor& t) {
  check<ErrorKind::Runtime>(is_quantized(t), OpName(op), "expected a quantized tensor, got a ",
                            name_of(t.layout()), " one of ", t.dtype());
  const auto contents = contents_of(t);
  return {contents->parts[0], contents->parts[1], contents->parts[2], contents->fields[0]};
}

Affine per_tensor(const char* op, const Tensor& t) {
  Affine affine = affine_of(op, t);
  check<ErrorKind::Runtime>(!affine.per_channel(), OpName(op),
                            "expected a quantized tensor with one scale, got one with a scale for "
                            "each channel; call dequantize()");
  return affine;
}

Tensor tensor_of(const Affine& affine) {
  return layout_tensor(layout(), affine.values.sizes(),
                       {{affine.values, affine.scales, affine.zero_points}, {affine.axis}});
}

Tensor tensor_of(const char* op, const Tensor& values, double scale, int64_t zero_point) {
  Affine affine{values, empty_cpu({1}, ScalarType::Float64), empty_cpu({1}, ScalarType::Int64)};
  affine.scales.data_as<double>()[0] = scale;
  affine.zero_points.data_as<int64_t>()[0] = zero_point;
  check_integers(op, values.dtype());
  check_numbers(op, values.dtype(), affine.scales, affine.zero_points);
  if (!values.is_cpu()) {
    affine.scales = aten::to(affine.scales, values.device(), ScalarType::Float64);
    affine.zero_points = aten::to(affine.zero_points, values.device(), ScalarType::Int64);
  }
  return tensor_of(affine);
}

ScalarType integers_of(const char* op, ScalarType dtype) {
  switch (dtype) {
    case ScalarType::QUInt8:
      return ScalarType::UInt8;
    case ScalarType::QInt8:
      return ScalarType::Int8;
    case ScalarType::QInt32:
      return ScalarType::Int32;
    default:
      fail<ErrorKind::NotImplemented>(OpName(op),
                                      "expected the dtype quint8, qint8 or qint32, got ", dtype);
  }
}

Tensor dequantized(const Affine& affine) {
  return in_order(affine.values, affine.axis, [&](const Tensor& values, int64_t axis) {
    return aten::_dequantize_affine(values, affine.scales, affine.zero_points, axis);
  });
}

Tensor quantized(const Tensor& real, const Affine& like) {
  Affine affine = like;
  affine.values = in_order(real, like.axis, [&](const Tensor& t, int64_t axis) {
    return aten::_quantize_affine(t, like.scales, like.zero_points, axis, like.values.dtype());
  });
  return tensor_of(affine);
}

Tensor quantized(const char* op, const Tensor& real, double scale, int64_t zero_point,
                 ScalarType integers) {
  const Tensor none = empty_tensor({0}, integers, real.device());
  Affine like = affine_of(op, tensor_of(op, none, scale, zero_point));
  return quantized(real, like);
}

}  // namespace treadle::quantized
