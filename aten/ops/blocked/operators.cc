// Operators on images in blocks. Convolutions run on them as they are, with weights that are packed
// once. Pointwise operators compute with the values, and pooling channel by channel. Views, linear
// maps and the like take the strided tensor.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/engine/layouts.h"
#include "aten/ops/_mkldnn_convolution.h"
#include "aten/ops/_mkldnn_reorders.h"
#include "aten/ops/adaptive_avg_pool1d.h"
#include "aten/ops/adaptive_avg_pool2d.h"
#include "aten/ops/adaptive_avg_pool3d.h"
#include "aten/ops/add.h"
#include "aten/ops/addcmul.h"
#include "aten/ops/avg_pool1d.h"
#include "aten/ops/avg_pool2d.h"
#include "aten/ops/avg_pool3d.h"
#include "aten/ops/batch_norm.h"
#include "aten/ops/blocked/contents.h"
#include "aten/ops/blocked/cpu/packed_weight.h"
#include "aten/ops/cat.h"
#include "aten/ops/contiguous.h"
#include "aten/ops/convolution.h"
#include "aten/ops/convolution/shape.h"
#include "aten/ops/flatten.h"
#include "aten/ops/linear.h"
#include "aten/ops/max_pool1d.h"
#include "aten/ops/max_pool2d.h"
#include "aten/ops/max_pool3d.h"
#include "aten/ops/mean.h"
#include "aten/ops/mul.h"
#include "aten/ops/neg.h"
#include "aten/ops/ones_like.h"
#include "aten/ops/relu.h"
#include "aten/ops/reshape.h"
#include "aten/ops/rsqrt.h"
#include "aten/ops/to.h"
#include "aten/ops/to_dense.h"
#include "aten/ops/to_mkldnn.h"
#include "aten/ops/upsample_bilinear2d.h"
#include "aten/ops/upsample_nearest2d.h"
#include "aten/ops/view.h"
#include "aten/ops/zeros_like.h"
#include "core/schema/function_schema.h"

namespace treadle::blocked {
namespace {

const char* name_of_call(const Operator& op) { return op.info().base_name; }

// ---- pointwise ----

// On the values, where all tensors are images of one shape and block, or single numbers.
bool by_values(const Operator& op, Stack& stack) {
  if (op.entry().kind != OperatorKind::Pointwise) return false;
  const size_t first = detail::first_argument(stack, op.schema().arguments.size());
  std::optional<Image> like;
  for (size_t i = first; i < stack.size(); ++i) {
    if (!stack[i].is<Tensor>() || !stack[i].as<Tensor>().defined()) continue;
    const Tensor t = stack[i].as<Tensor>();
    if (!is_blocked(t)) {
      if (t.dim() > 0) return false;
    } else if (!like) {
      like = image_of(name_of_call(op), t);
    } else if (like->sizes != DimVector(t.sizes())) {
      return false;
    }
  }
  Stack arguments(stack.begin() + static_cast<int64_t>(first), stack.end());
  for (Value& v : arguments) {
    if (!v.is<Tensor>() || !v.as<Tensor>().defined() || !is_blocked(v.as<Tensor>())) continue;
    v = Value(with_block(image_of(name_of_call(op), v.as<Tensor>()), like->block).values);
  }
  op.call_boxed(arguments);
  for (Value& v : arguments) {
    Image result = *like;
    result.values = v.as<Tensor>();
    // Only numbers of float32 are kept in blocks.
    v = Value(result.values.dtype() == ScalarType::Float32 ? tensor_of(result) : dense(result));
  }
  detail::replace_arguments(stack, first, std::move(arguments));
  return true;
}

// ---- channel by channel ----

void by_channels(const Operator& op, Stack& stack) {
  const size_t first = detail::first_argument(stack, op.schema().arguments.size());
  const Image image = image_of(name_of_call(op), stack[first].as<Tensor>());
  Stack arguments(stack.begin() + static_cast<int64_t>(first), stack.end());
  arguments[0] = Value(image.block == 0 ? image.values : as_channels_last(image));
  op.call_boxed(arguments);
  if (image.block > 0) {
    const Tensor result = arguments[0].as<Tensor>();
    arguments[0] = Value(tensor_of(from_channels_last(result, image)));
  }
  detail::replace_arguments(stack, first, std::move(arguments));
}

// On the strided tensors; the result is one.
void in_dense(const Operator& op, Stack& stack) {
  const size_t first = detail::first_argument(stack, op.schema().arguments.size());
  Stack arguments(stack.begin() + static_cast<int64_t>(first), stack.end());
  for (Value& v : arguments)
    if (v.is<Tensor>() && v.as<Tensor>().defined()) v = Value(dense(v.as<Tensor>()));
  op.call_boxed(arguments);
  detail::replace_arguments(stack, first, std::move(arguments));
}

// ---- batch normalisation by running statistics ----

Tensor batch_norm(const Tensor& input, const Tensor& weight, const Tensor& bias,
                  const Tensor& running_mean, const Tensor& running_var, bool training,
                  double /*momentum*/, double eps, bool /*cudnn_enabled*/) {
  Image image = image_of("batch_norm", input);
  check<ErrorKind::NotImplemented>(
      !training && running_mean.defined() && running_var.defined(), OpName("batch_norm"),
      "expected running statistics for a tensor of layout mkldnn, got training; call to_dense()");
  check<ErrorKind::Runtime>(image.block > 0, OpName("batch_norm"), "expected an image, got shape ",
                            input.sizes());
  Tensor scale = aten::rsqrt(aten::add(dense(running_var), Scalar(eps)));
  if (weight.defined()) scale = aten::mul(scale, dense(weight));
  Tensor shift = aten::neg(aten::mul(dense(running_mean), scale));
  if (bias.defined()) shift = aten::add(shift, dense(bias));
  check<ErrorKind::Runtime>(
      scale.sizes() == IntList({image.sizes[1]}) && shift.sizes() == scale.sizes(),
      OpName("batch_norm"), "expected statistics of ", image.sizes[1], " channels, got shape ",
      scale.sizes());
  DimVector each(static_cast<size_t>(image.values.dim()), 1);
  each[1] = image.sizes[1] / image.block;
  each.back() = image.block;
  image.values =
      aten::addcmul(aten::reshape(shift, each), image.values, aten::reshape(scale, each));
  return tensor_of(image);
}

// ---- convolution ----

struct Packed {
  Packed(std::shared_ptr<const LayoutContents> of, Tensor values)
      : contents(std::move(of)), weight(std::move(values)) {}
  std::shared_ptr<const LayoutContents> contents;
  cpu::PackedWeight weight;
};

std::shared_ptr<const Packed> packed(const Tensor& weight) {
  auto& impl = static_cast<LayoutTensorImpl&>(*weight.impl());
  const auto contents = impl.contents();
  if (auto known = std::static_pointer_cast<const Packed>(impl.prepared());
      known && known->contents == contents)
    return known;
  auto made = std::make_shared<const Packed>(contents, dense(image_of("convolution", weight)));
  impl.prepare(made);
  return made;
}

}  // namespace
}  // namespace treadle::blocked

namespace treadle::composite {

using namespace blocked;  // NOLINT

Tensor to_mkldnn(const Tensor& self, std::optional<ScalarType> dtype) {
  if (is_blocked(self)) return self;
  check<ErrorKind::NotImplemented>(dtype.value_or(ScalarType::Float32) == ScalarType::Float32,
                                   OpName("to_mkldnn"), "expected the dtype float32, got ",
                                   dtype.value_or(ScalarType::Float32));
  return blocked::blocked("to_mkldnn", self);
}

int64_t _mkldnn_reorders() { return blocked::reorders(); }

Tensor _mkldnn_convolution(const Tensor& input, const Tensor& weight, const Tensor& bias,
                           IntList stride, IntList padding, IntList dilation, int64_t groups,
                           bool relu) {
  constexpr const char* kOp = "_mkldnn_convolution";
  const Tensor w = is_blocked(weight) ? weight : blocked::blocked(kOp, weight);
  const Tensor x = is_blocked(input) ? input : blocked::blocked(kOp, input);
  check<ErrorKind::Runtime>(x.dtype() == ScalarType::Float32 && w.dtype() == ScalarType::Float32,
                            OpName(kOp), "expected input and weight of float32, got ", x.dtype(),
                            " and ", w.dtype());
  check<ErrorKind::NotImplemented>(
      !grad_enabled() || !(values_of(x).requires_grad() || values_of(w).requires_grad()),
      OpName(kOp),
      "expected no gradients with a tensor of layout mkldnn; use no_grad() or "
      "to_dense()");
  const auto shaped = [](IntList sizes) { return empty_tensor(sizes, ScalarType::Float32, kMeta); };
  const Tensor b = bias.defined() ? aten::contiguous(dense(bias)) : bias;
  check<ErrorKind::Runtime>(!b.defined() || (b.dtype() == ScalarType::Float32 && b.is_cpu()),
                            OpName(kOp), "expected a bias of float32 on the cpu");
  const TensorSpec spec =
      shape::convolution(kOp, shaped(x.sizes()), shaped(w.sizes()),
                         b.defined() ? shaped(b.sizes()) : b, stride, padding, dilation, false,
                         DimVector(w.dim() > 2 ? static_cast<size_t>(w.dim() - 2) : 1, 0), groups);
  const Image image = image_of(kOp, x);
  if (image.block > 0 && x.dim() == w.dim()) {
    Image result{Tensor(), DimVector(spec.sizes), block_for(spec.sizes[1])};
    DimVector sizes = result.sizes;
    sizes[1] /= result.block;
    sizes.push_back(result.block);
    result.values = empty_cpu(sizes, ScalarType::Float32);
    const cpu::PackedCall call{
        cpu::conv_geometry(x.sizes(), w.sizes(), spec.sizes, stride, padding, dilation, groups),
        image.block, result.block, relu, b.defined()};
    if (result.values.numel() > 0 &&
        packed(w)->weight.convolve(call, image.values.data_as<float>(),
                                   b.defined() ? b.data_as<float>() : nullptr,
                                   result.values.data_as<float>()))
      return tensor_of(result);
  }
  const Tensor real = aten::convolution(dense(image), dense(w), b, stride, padding, dilation, false,
                                        DimVector(static_cast<size_t>(w.dim() - 2), 0), groups);
  return blocked::blocked(kOp, relu ? aten::relu(real) : real);
}

}  // namespace treadle::composite

namespace treadle::blocked {
namespace {

Tensor convolution(const Tensor& input, const Tensor& weight, const Tensor& bias, IntList stride,
                   IntList padding, IntList dilation, bool transposed, IntList output_padding,
                   int64_t groups) {
  if (transposed)
    return blocked(
        "convolution",
        aten::convolution(dense(input), dense(weight), bias.defined() ? dense(bias) : bias, stride,
                          padding, dilation, transposed, output_padding, groups));
  return aten::_mkldnn_convolution(input, weight, bias, stride, padding, dilation, groups, false);
}

// ---- joins, copies ----

// Of images along their channels, as values where blocks fit.
Tensor cat(TensorList tensors, int64_t dim) {
  std::vector<Tensor> parts;
  Image first = image_of("cat", tensors[0]);
  bool fits = first.block > 0 && wrap_dim("cat", dim, tensors[0].dim()) == 1;
  int64_t channels = 0;
  for (const Tensor& t : tensors) {
    const Image image = image_of("cat", t);
    fits = fits && image.block == first.block && image.sizes.size() == first.sizes.size();
    parts.push_back(image.values);
    channels += fits ? image.sizes[1] : 0;
  }
  if (fits && block_for(channels) == first.block) {
    first.values = aten::cat(parts, 1);
    first.sizes[1] = channels;
    return tensor_of(first);
  }
  parts.clear();
  for (const Tensor& t : tensors) parts.push_back(dense(t));
  return blocked("cat", aten::cat(parts, dim));
}

Tensor to_dense(const Tensor& self, std::optional<ScalarType> dtype, std::optional<bool>) {
  return aten::to(dense(self), dtype.value_or(self.dtype()));
}
[[maybe_unused]] const Registration registered = [] {
  namespace ops = aten::ops;
  set_layout_rule(layout(), &by_values);
  register_copies(layout());
  for (Operator* op :
       {&ops::max_pool1d::op, &ops::max_pool2d::op, &ops::max_pool3d::op, &ops::avg_pool1d::op,
        &ops::avg_pool2d::op, &ops::avg_pool3d::op, &ops::adaptive_avg_pool1d::op,
        &ops::adaptive_avg_pool2d::op, &ops::adaptive_avg_pool3d::op, &ops::upsample_nearest2d::op,
        &ops::upsample_bilinear2d::op})
    register_boxed_layout_kernel(*op, layout(), &by_channels);
  for (Operator* op : {&ops::view::op, &ops::reshape::op, &ops::flatten_using_ints::op,
                       &ops::linear::op, &ops::mean::op, &ops::mean_dim::op})
    register_boxed_layout_kernel(*op, layout(), &in_dense);
  register_layout_kernel<ops::convolution>(layout(), &convolution);
  register_layout_kernel<ops::batch_norm>(layout(), &batch_norm);
  register_layout_kernel<ops::cat>(layout(), &cat);
  register_layout_kernel<ops::to_dense>(layout(), &to_dense);
  return Registration();
}();

}  // namespace
}  // namespace treadle::blocked
