// Operators on quantized tensors. Those that move elements, as their entries say, and pooling by
// the largest element move whole numbers. Others that keep the scale compute in float32.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/engine/layouts.h"
#include "aten/ops/_quantized_cat.h"
#include "aten/ops/_to_copy.h"
#include "aten/ops/adaptive_avg_pool1d.h"
#include "aten/ops/adaptive_avg_pool2d.h"
#include "aten/ops/adaptive_avg_pool3d.h"
#include "aten/ops/all.h"
#include "aten/ops/avg_pool1d.h"
#include "aten/ops/avg_pool2d.h"
#include "aten/ops/avg_pool3d.h"
#include "aten/ops/cat.h"
#include "aten/ops/clamp.h"
#include "aten/ops/clone.h"
#include "aten/ops/contiguous.h"
#include "aten/ops/copy_.h"
#include "aten/ops/detach.h"
#include "aten/ops/empty_like.h"
#include "aten/ops/eq.h"
#include "aten/ops/equal.h"
#include "aten/ops/ge.h"
#include "aten/ops/gt.h"
#include "aten/ops/hardtanh.h"
#include "aten/ops/le.h"
#include "aten/ops/lt.h"
#include "aten/ops/max_pool1d.h"
#include "aten/ops/max_pool2d.h"
#include "aten/ops/max_pool3d.h"
#include "aten/ops/mean.h"
#include "aten/ops/ne.h"
#include "aten/ops/quantized/contents.h"
#include "aten/ops/relu.h"
#include "aten/ops/relu6.h"
#include "aten/ops/reshape.h"
#include "aten/ops/to.h"
#include "aten/ops/to_dense.h"
#include "aten/ops/upsample_bilinear2d.h"
#include "aten/ops/upsample_nearest1d.h"
#include "aten/ops/upsample_nearest2d.h"
#include "aten/ops/upsample_nearest3d.h"
#include "core/schema/function_schema.h"

namespace treadle::quantized {
namespace {

const char* name_of_call(const Operator& op) { return op.info().base_name; }

bool is_quantized_value(const Value& v) {
  return v.is<Tensor>() && v.as<Tensor>().defined() && is_quantized(v.as<Tensor>());
}

// Calls the operator with `made_of` each quantized argument, and turns each tensor of its results
// into `result_of` it.
template <class From, class To>
void call_with(const Operator& op, Stack& stack, From&& made_of, To&& result_of) {
  const size_t first = detail::first_argument(stack, op.schema().arguments.size());
  Stack arguments(stack.begin() + static_cast<int64_t>(first), stack.end());
  for (Value& v : arguments)
    if (is_quantized_value(v)) v = Value(made_of(v.as<Tensor>()));
  op.call_boxed(arguments);
  for (Value& v : arguments)
    if (v.is<Tensor>() && v.as<Tensor>().defined()) v = Value(result_of(v.as<Tensor>()));
  detail::replace_arguments(stack, first, std::move(arguments));
}

// The scale that all quantized arguments share.
Affine shared_scale(const Operator& op, const Stack& stack) {
  std::optional<Affine> found;
  const size_t first = detail::first_argument(stack, op.schema().arguments.size());
  for (size_t i = first; i < stack.size(); ++i) {
    if (!is_quantized_value(stack[i])) continue;
    const Affine affine = per_tensor(name_of_call(op), stack[i].as<Tensor>());
    if (found)
      check<ErrorKind::Runtime>(
          affine.scale() == found->scale() && affine.zero_point() == found->zero_point(),
          OpName(name_of_call(op)), "expected quantized tensors of one scale and zero point, got ",
          found->scale(), ", ", found->zero_point(), " and ", affine.scale(), ", ",
          affine.zero_point());
    found = affine;
  }
  check_internal(found.has_value(), "a quantized argument");
  return *found;
}

// On the whole numbers.
void by_values(const Operator& op, Stack& stack) {
  Affine affine = shared_scale(op, stack);
  call_with(
      op, stack, [&](const Tensor& t) { return affine_of(name_of_call(op), t).values; },
      [&](const Tensor& result) {
        affine.values = result;
        return tensor_of(affine);
      });
}

// On the real numbers; results have the scale of the arguments.
void in_float(const Operator& op, Stack& stack) {
  const Affine affine = shared_scale(op, stack);
  call_with(
      op, stack, [&](const Tensor& t) { return dequantized(affine_of(name_of_call(op), t)); },
      [&](const Tensor& result) {
        return is_floating(result.dtype()) ? quantized(result, affine) : result;
      });
}

// On the real numbers; results are no quantized tensors.
void compared(const Operator& op, Stack& stack) {
  call_with(
      op, stack, [&](const Tensor& t) { return dequantized(affine_of(name_of_call(op), t)); },
      [](const Tensor& result) { return result; });
}

bool by_entry(const Operator& op, Stack& stack) {
  const bool moves = op.entry().kind == OperatorKind::View || op.entry().moves != 0;
  if (!moves) return false;
  const size_t first = detail::first_argument(stack, op.schema().arguments.size());
  for (size_t i = first; i < stack.size(); ++i) {
    if (!stack[i].is<Value::Tensors>()) continue;
    for (const Tensor& t : stack[i].as<Value::Tensors>())
      if (t.defined() && is_quantized(t)) return false;
  }
  by_values(op, stack);
  return true;
}

// ---- within bounds ----

// The whole number of a bound.
int64_t number_of(const Affine& affine, double real) {
  const Tensor one = empty_cpu({1}, ScalarType::Float64);
  one.data_as<double>()[0] = real;
  const Tensor q = affine_of("clamp", quantized("clamp", one, affine.scale(), affine.zero_point(),
                                                affine.values.dtype()))
                       .values;
  return aten::to(q, ScalarType::Int64).data_as<int64_t>()[0];
}

Tensor bounded(const char* op, const Tensor& self, const std::optional<Scalar>& min,
               const std::optional<Scalar>& max) {
  Affine affine = per_tensor(op, self);
  const auto whole = [&](const std::optional<Scalar>& bound) -> std::optional<Scalar> {
    if (!bound) return std::nullopt;
    return Scalar(number_of(affine, bound->to<double>()));
  };
  affine.values = aten::clamp(affine.values, whole(min), whole(max));
  return tensor_of(affine);
}

Tensor relu(const Tensor& self) { return bounded("relu", self, Scalar(0), std::nullopt); }
Tensor relu6(const Tensor& self) { return bounded("relu6", self, Scalar(0), Scalar(6)); }
Tensor clamp(const Tensor& self, const std::optional<Scalar>& min,
             const std::optional<Scalar>& max) {
  return bounded("clamp", self, min, max);
}
Tensor hardtanh(const Tensor& self, const Scalar& min_val, const Scalar& max_val) {
  return bounded("hardtanh", self, min_val, max_val);
}

// ---- joins, copies ----

Tensor cat(TensorList tensors, int64_t dim) {
  const Affine first = per_tensor("cat", tensors[0]);
  return aten::_quantized_cat(tensors, dim, first.scale(), first.zero_point());
}

bool equal(const Tensor& self, const Tensor& other) {
  const Affine a = affine_of("equal", self), b = affine_of("equal", other);
  return a.axis == b.axis && a.values.dtype() == b.values.dtype() &&
         aten::equal(a.values, b.values) && aten::equal(a.scales, b.scales) &&
         aten::equal(a.zero_points, b.zero_points);
}

Tensor with_same_numbers(const Tensor& self, const Tensor& values) {
  Affine affine = affine_of("clone", self);
  affine.values = values;
  return tensor_of(affine);
}
Tensor clone(const Tensor& self, std::optional<MemoryFormat> format) {
  return with_same_numbers(self, aten::clone(values_of(self), format));
}
Tensor detach(const Tensor& self) { return with_same_numbers(self, values_of(self)); }
Tensor to_dense(const Tensor& self, std::optional<ScalarType> dtype, std::optional<bool>) {
  return aten::to(dequantized(affine_of("to_dense", self)), dtype.value_or(ScalarType::Float32));
}
Tensor contiguous(const Tensor& self, MemoryFormat format) {
  return with_same_numbers(self, aten::contiguous(values_of(self), format));
}
Tensor empty_like(const Tensor& self, std::optional<ScalarType>, std::optional<Layout>,
                  std::optional<Device>, std::optional<bool>, std::optional<MemoryFormat> format) {
  return with_same_numbers(self, aten::empty_like(values_of(self), std::nullopt, std::nullopt,
                                                  std::nullopt, std::nullopt, format));
}

// The dtype is that of the tensor: real numbers come from dequantize().
Tensor moved(const Tensor& self, std::optional<ScalarType> dtype, std::optional<Device> device,
             bool copy) {
  const ScalarType own = values_of(self).dtype();
  check<ErrorKind::Runtime>(
      !dtype || *dtype == own ||
          (::treadle::is_quantized(*dtype) && integers_of("to", *dtype) == own),
      OpName("to"), "expected the dtype of the quantized tensor, got ", dtype.value_or(own),
      "; call dequantize()");
  const Device there = device ? empty_tensor({0}, own, *device).device() : self.device();
  if (!copy && there == self.device()) return self;
  return with_parts(self, [&](const Tensor& part, bool) {
    return aten::to(part, there, part.dtype(), false, copy);
  });
}
Tensor to_copy(const Tensor& self, std::optional<ScalarType> dtype, std::optional<Layout>,
               std::optional<Device> device, std::optional<bool>, bool,
               std::optional<MemoryFormat>) {
  return moved(self, dtype, device, true);
}
Tensor to_layout(const Tensor& self, std::optional<ScalarType> dtype, std::optional<Layout>,
                 std::optional<Device> device, std::optional<bool>, bool, bool copy,
                 std::optional<MemoryFormat>) {
  return moved(self, dtype, device, copy);
}
Tensor to_dtype(const Tensor& self, ScalarType dtype, bool, bool copy,
                std::optional<MemoryFormat>) {
  return moved(self, dtype, std::nullopt, copy);
}
Tensor to_device(const Tensor& self, Device device, ScalarType dtype, bool, bool copy,
                 std::optional<MemoryFormat>) {
  return moved(self, dtype, device, copy);
}

// From a tensor of the same shape: a quantized one with its numbers, real numbers rounded.
Tensor copy(const Tensor& self, const Tensor& src, bool) {
  check<ErrorKind::Runtime>(is_quantized(self) && self.sizes() == src.sizes(), OpName("copy_"),
                            "expected a quantized tensor of shape ", src.sizes(), ", got a ",
                            name_of(self.layout()), " one of shape ", self.sizes());
  const Affine affine = affine_of("copy_", self);
  const Tensor there = src.is_strided()
                           ? quantized(aten::to(src, self.device(), ScalarType::Float32), affine)
                           : aten::to(src, self.device(), values_of(src).dtype(), false, true);
  write_layout_tensor("copy_", self, there);
  return self;
}

[[maybe_unused]] const Registration registered = [] {
  namespace ops = aten::ops;
  set_layout_rule(layout(), &by_entry);
  // Whether reshape() copies depends on the strides of the whole numbers.
  for (Operator* op :
       {&ops::max_pool1d::op, &ops::max_pool2d::op, &ops::max_pool3d::op, &ops::reshape::op})
    register_boxed_layout_kernel(*op, layout(), &by_values);
  for (Operator* op :
       {&ops::avg_pool1d::op, &ops::avg_pool2d::op, &ops::avg_pool3d::op,
        &ops::adaptive_avg_pool1d::op, &ops::adaptive_avg_pool2d::op, &ops::adaptive_avg_pool3d::op,
        &ops::mean::op, &ops::mean_dim::op, &ops::upsample_nearest1d::op,
        &ops::upsample_nearest2d::op, &ops::upsample_nearest3d::op, &ops::upsample_bilinear2d::op})
    register_boxed_layout_kernel(*op, layout(), &in_float);
  for (Operator* op :
       {&ops::eq_Tensor::op, &ops::eq_Scalar::op, &ops::ne_Tensor::op, &ops::ne_Scalar::op,
        &ops::lt_Tensor::op, &ops::lt_Scalar::op, &ops::le_Tensor::op, &ops::le_Scalar::op,
        &ops::gt_Tensor::op, &ops::gt_Scalar::op, &ops::ge_Tensor::op, &ops::ge_Scalar::op})
    register_boxed_layout_kernel(*op, layout(), &compared);
  register_layout_kernel<ops::relu>(layout(), &relu);
  register_layout_kernel<ops::relu6>(layout(), &relu6);
  register_layout_kernel<ops::clamp>(layout(), &clamp);
  register_layout_kernel<ops::hardtanh>(layout(), &hardtanh);
  register_layout_kernel<ops::cat>(layout(), &cat);
  register_layout_kernel<ops::equal>(layout(), &equal);
  register_layout_kernel<ops::clone>(layout(), &clone);
  register_layout_kernel<ops::detach>(layout(), &detach);
  register_layout_kernel<ops::to_dense>(layout(), &to_dense);
  register_layout_kernel<ops::contiguous>(layout(), &contiguous);
  register_layout_kernel<ops::empty_like>(layout(), &empty_like);
  register_layout_kernel<ops::_to_copy>(layout(), &to_copy);
  register_layout_kernel<ops::to_dtype_layout>(layout(), &to_layout);
  register_layout_kernel<ops::to_dtype>(layout(), &to_dtype);
  register_layout_kernel<ops::to_device>(layout(), &to_device);
  register_layout_kernel<ops::copy_>(layout(), &copy);
  return Registration();
}();

}  // namespace
}  // namespace treadle::quantized
