// Quantized tensors made of real numbers or of whole ones, and what they are made of.
//
// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "aten/engine/layouts.h"
#include "aten/ops/_choose_qparams_per_tensor.h"
#include "aten/ops/_empty_affine_quantized.h"
#include "aten/ops/_make_per_channel_quantized_tensor.h"
#include "aten/ops/_make_per_tensor_quantized_tensor.h"
#include "aten/ops/aminmax.h"
#include "aten/ops/clone.h"
#include "aten/ops/dequantize.h"
#include "aten/ops/empty.h"
#include "aten/ops/int_repr.h"
#include "aten/ops/item.h"
#include "aten/ops/q_per_channel_axis.h"
#include "aten/ops/q_per_channel_scales.h"
#include "aten/ops/q_per_channel_zero_points.h"
#include "aten/ops/q_scale.h"
#include "aten/ops/q_zero_point.h"
#include "aten/ops/quantize_per_channel.h"
#include "aten/ops/quantize_per_tensor.h"
#include "aten/ops/quantize_per_tensor_dynamic.h"
#include "aten/ops/quantized/contents.h"
#include "aten/ops/quantized/parameters.h"
#include "aten/ops/reshape.h"
#include "aten/ops/select.h"
#include "aten/ops/to.h"

namespace treadle::composite {
namespace {

using namespace quantized;  // NOLINT

void require_real(const char* op, const Tensor& t) {
  check<ErrorKind::Runtime>(t.is_strided() && is_floating(t.dtype()), OpName(op),
                            "expected a strided tensor of real numbers, got a ",
                            name_of(t.layout()), " one of ", t.dtype());
}

Tensor numbers(const char* op, const Tensor& t, ScalarType dtype, Device device, int64_t count) {
  check<ErrorKind::Runtime>(t.dim() <= 1 && t.numel() == count, OpName(op), "expected ", count,
                            " scales and zero points, got shape ", t.sizes());
  return aten::reshape(aten::to(t, device, dtype), {count});
}

// Of a scale and a zero point for each place in dimension `axis`.
Affine per_channel(const char* op, const Tensor& values, const Tensor& scales,
                   const Tensor& zero_points, int64_t axis) {
  check<ErrorKind::Runtime>(values.dim() > 0, OpName(op), "expected a tensor with dimensions");
  Affine affine;
  affine.axis = wrap_dim(op, axis, values.dim());
  affine.values = values;
  const int64_t count = values.size(affine.axis);
  affine.scales = numbers(op, scales, ScalarType::Float64, values.device(), count);
  affine.zero_points = numbers(op, zero_points, ScalarType::Int64, values.device(), count);
  info_of(layout()).check(op, values.sizes(), *contents_of(tensor_of(affine)));
  return affine;
}

}  // namespace

Tensor quantize_per_tensor(const Tensor& self, double scale, int64_t zero_point, ScalarType dtype) {
  require_real("quantize_per_tensor", self);
  return quantized::quantized("quantize_per_tensor", self, scale, zero_point,
                              integers_of("quantize_per_tensor", dtype));
}

Tensor quantize_per_tensor(const Tensor& self, const Tensor& scale, const Tensor& zero_point,
                           ScalarType dtype) {
  return composite::quantize_per_tensor(self, aten::item(scale).to<double>(),
                                        aten::item(zero_point).to<int64_t>(), dtype);
}

std::vector<Tensor> quantize_per_tensor(TensorList tensors, const Tensor& scales,
                                        const Tensor& zero_points, ScalarType dtype) {
  const auto count = static_cast<int64_t>(tensors.size());
  const Tensor s = numbers("quantize_per_tensor", scales, ScalarType::Float64, kCPU, count);
  const Tensor z = numbers("quantize_per_tensor", zero_points, ScalarType::Int64, kCPU, count);
  std::vector<Tensor> results;
  for (int64_t i = 0; i < count; ++i)
    results.push_back(composite::quantize_per_tensor(
        tensors[static_cast<size_t>(i)], aten::select(s, 0, i), aten::select(z, 0, i), dtype));
  return results;
}

Tensor quantize_per_tensor_dynamic(const Tensor& self, ScalarType dtype, bool reduce_range) {
  require_real("quantize_per_tensor_dynamic", self);
  const ScalarType integers = integers_of("quantize_per_tensor_dynamic", dtype);
  check<ErrorKind::NotImplemented>(integers != ScalarType::Int32,
                                   OpName("quantize_per_tensor_dynamic"),
                                   "expected the dtype quint8 or qint8, got ", dtype);
  const Parameters p =
      chosen_parameters("quantize_per_tensor_dynamic", self,
                        integers == ScalarType::UInt8 ? 0
                        : reduce_range                ? -64
                                                      : -128,
                        (reduce_range ? 127 : 255) - (integers == ScalarType::UInt8 ? 0
                                                      : reduce_range                ? 64
                                                                                    : 128));
  return quantized::quantized("quantize_per_tensor_dynamic", self, p.scale, p.zero_point, integers);
}

Tensor quantize_per_channel(const Tensor& self, const Tensor& scales, const Tensor& zero_points,
                            int64_t axis, ScalarType dtype) {
  require_real("quantize_per_channel", self);
  const ScalarType integers = integers_of("quantize_per_channel", dtype);
  const Tensor like_result = empty_tensor(self.sizes(), integers, self.device());
  const Affine like = per_channel("quantize_per_channel", like_result, scales, zero_points, axis);
  return quantized::quantized(self, like);
}

std::tuple<double, int64_t> _choose_qparams_per_tensor(const Tensor& self, bool reduce_range) {
  require_real("_choose_qparams_per_tensor", self);
  const Parameters p =
      chosen_parameters("_choose_qparams_per_tensor", self, 0, reduce_range ? 127 : 255);
  return {p.scale, p.zero_point};
}

Tensor _make_per_tensor_quantized_tensor(const Tensor& self, double scale, int64_t zero_point) {
  return tensor_of("_make_per_tensor_quantized_tensor", aten::clone(self), scale, zero_point);
}

Tensor _make_per_channel_quantized_tensor(const Tensor& self, const Tensor& scale,
                                          const Tensor& zero_point, int64_t axis) {
  return tensor_of(per_channel("_make_per_channel_quantized_tensor", aten::clone(self),
                               aten::clone(scale), aten::clone(zero_point), axis));
}

Tensor _empty_affine_quantized(IntList size, std::optional<ScalarType> dtype,
                               std::optional<Layout> /*layout*/, std::optional<Device> device,
                               std::optional<bool> pin_memory, double scale, int64_t zero_point,
                               std::optional<MemoryFormat> memory_format) {
  const ScalarType integers =
      integers_of("_empty_affine_quantized", dtype.value_or(ScalarType::Float32));
  return tensor_of("_empty_affine_quantized",
                   aten::empty(size, integers, std::nullopt, device, pin_memory, memory_format),
                   scale, zero_point);
}

Tensor dequantize(const Tensor& self) {
  if (self.is_strided()) return aten::to(self, ScalarType::Float32);
  return dequantized(affine_of("dequantize", self));
}
std::vector<Tensor> dequantize(TensorList tensors) {
  std::vector<Tensor> results;
  for (const Tensor& t : tensors) results.push_back(aten::dequantize(t));
  return results;
}

Tensor int_repr(const Tensor& self) { return aten::clone(affine_of("int_repr", self).values); }
double q_scale(const Tensor& self) { return per_tensor("q_scale", self).scale(); }
int64_t q_zero_point(const Tensor& self) { return per_tensor("q_zero_point", self).zero_point(); }

namespace {
Affine with_channels(const char* op, const Tensor& self) {
  Affine affine = affine_of(op, self);
  check<ErrorKind::Runtime>(affine.per_channel(), OpName(op),
                            "expected a quantized tensor with a scale for each channel, got one "
                            "with a single scale");
  return affine;
}
}  // namespace

Tensor q_per_channel_scales(const Tensor& self) {
  return aten::clone(with_channels("q_per_channel_scales", self).scales);
}
Tensor q_per_channel_zero_points(const Tensor& self) {
  return aten::clone(with_channels("q_per_channel_zero_points", self).zero_points);
}
int64_t q_per_channel_axis(const Tensor& self) {
  return with_channels("q_per_channel_axis", self).axis;
}

}  // namespace treadle::composite
