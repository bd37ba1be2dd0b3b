// The public forms of dropout, batch normalisation and layer normalisation.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/ops/_batch_norm_train.h"
#include "aten/ops/_batch_norm_with_update.h"
#include "aten/ops/_native_batch_norm_legit.h"
#include "aten/ops/add.h"
#include "aten/ops/addcmul.h"
#include "aten/ops/batch_norm.h"
#include "aten/ops/bernoulli.h"
#include "aten/ops/bernoulli_.h"
#include "aten/ops/clone.h"
#include "aten/ops/copy_.h"
#include "aten/ops/detach.h"
#include "aten/ops/dropout.h"
#include "aten/ops/dropout_.h"
#include "aten/ops/empty.h"
#include "aten/ops/empty_like.h"
#include "aten/ops/layer_norm.h"
#include "aten/ops/movedim.h"
#include "aten/ops/mul.h"
#include "aten/ops/native_batch_norm.h"
#include "aten/ops/native_layer_norm.h"
#include "aten/ops/normalization/mixed_precision.h"
#include "aten/ops/normalization/running_statistics.h"
#include "aten/ops/random/dropout_noise.h"
#include "aten/ops/reshape.h"
#include "aten/ops/rsqrt.h"
#include "aten/ops/sub.h"
#include "aten/ops/sum.h"
#include "aten/ops/to.h"
#include "aten/ops/zeros_like.h"
#include "core/base/error.h"

namespace treadle::composite {
namespace {

// 0 with probability p, else 1 / (1 - p).
Tensor dropout_mask(const char* op, const Tensor& input, double p) {
  const ScalarType dtype = noise_dtype(op, input);
  const NoGrad no_grad;
  if (p == 1) return aten::zeros_like(input, dtype);
  const Tensor mask = aten::bernoulli_(aten::empty_like(input, dtype), 1 - p);
  return aten::mul_(mask, Scalar(1 / (1 - p)));
}

void floating_input(const char* op, const Tensor& input) {
  check<ErrorKind::Runtime>(input.is_floating_point(), OpName(op),
                            "expected input of a floating dtype, got ", input.dtype());
}

// Whether memory has all channels of one position after another, and is dense.
bool channels_are_innermost(const Tensor& t) {
  int64_t expected = t.size(1);
  const auto follows = [&](int64_t d) {
    const bool is_next = t.size(d) == 1 || t.stride(d) == expected;
    expected *= t.size(d);
    return is_next;
  };
  bool all = t.stride(1) == 1;
  for (int64_t d = t.dim() - 1; d >= 2; --d) all = follows(d) && all;
  return follows(0) && all;
}

// By the statistics of the batch. An input whose channels are innermost in memory is a matrix with
// a column for each channel, and its result has the same layout. CUDA's kernel is slow there.
std::tuple<Tensor, Tensor, Tensor> batch_norm_train(const Tensor& input, const Tensor& weight,
                                                    const Tensor& bias, double eps) {
  if (input.device().type == DeviceType::CUDA || input.is_contiguous() ||
      !channels_are_innermost(input))
    return aten::_batch_norm_train(input, weight, bias, eps);
  const Tensor last = aten::movedim(input, 1, -1);
  const auto [rows, mean, var] =
      aten::_batch_norm_train(aten::reshape(last, {-1, input.size(1)}), weight, bias, eps);
  return {aten::movedim(aten::reshape(rows, last.sizes()), -1, 1), mean, var};
}

// The results of batch normalisation; in training with the statistics of the batch.
struct BatchNormalised {
  Tensor output, mean, var;
};
BatchNormalised batch_normalised(const Tensor& input, const Tensor& weight, const Tensor& bias,
                                 const Tensor& running_mean, const Tensor& running_var,
                                 bool training, double momentum, double eps) {
  const bool empty = input.numel() == 0;
  check<ErrorKind::Runtime>(
      input.dim() >= 2 || (input.dim() == 1 && empty), OpName("batch_norm"),
      "expected input with at least 2 dimensions (batch, channels, ...), got shape ",
      input.sizes());
  floating_input("batch_norm", input);
  if (training && mixes_precision(input, {weight, bias})) {
    BatchNormalised wide = batch_normalised(aten::to(input, ScalarType::Float32), weight, bias,
                                            running_mean, running_var, training, momentum, eps);
    wide.output = aten::to(wide.output, input.dtype());
    return wide;
  }
  const int64_t channels = input.dim() == 1 ? 0 : input.size(1);
  check_channel_tensors("batch_norm", {weight, bias, running_mean, running_var}, channels);
  check<ErrorKind::Runtime>(
      running_mean.defined() == running_var.defined(), OpName("batch_norm"),
      "expected running_mean and running_var both or neither, got one of them");
  if (training && running_mean.defined())
    require_statistics("batch_norm", input, running_mean, running_var);
  if (empty) {  // there is nothing to learn from, and every gradient is 0
    Tensor out = aten::clone(input);
    for (const Tensor& each : {weight, bias})
      if (each.defined()) out = aten::add(out, aten::mul(aten::sum(each), Scalar(0)));
    return {out, {}, {}};
  }
  if (training) {
    const auto [output, mean, var] = batch_norm_train(input, weight, bias, eps);
    if (running_mean.defined()) {
      const NoGrad no_grad;
      const double n = static_cast<double>(input.numel() / std::max<int64_t>(1, channels));
      // The running variance is the unbiased one.
      const auto update = [&](const Tensor& running, const Tensor& batch, double scale) {
        aten::add_(aten::mul_(running, Scalar(1 - momentum)),
                   aten::mul(aten::to(batch, running.dtype()), Scalar(momentum * scale)));
      };
      update(running_mean, mean, 1);
      update(running_var, var, n / (n - 1));
    }
    return {output, mean, var};
  }
  check<ErrorKind::Runtime>(running_mean.defined(), OpName("batch_norm"),
                            "expected running_mean and running_var when not training, got None");
  DimVector shape(static_cast<size_t>(input.dim()), 1);
  shape[1] = channels;
  Tensor scale = aten::rsqrt(aten::add(running_var, Scalar(eps)));
  if (weight.defined()) scale = aten::mul(scale, weight);
  Tensor shift = aten::mul(running_mean, scale);
  shift = bias.defined() ? aten::sub(bias, shift) : aten::mul(shift, Scalar(-1));
  const Tensor out = aten::addcmul(aten::reshape(shift, shape), input, aten::reshape(scale, shape));
  return {out.dtype() == input.dtype() ? out : aten::to(out, input.dtype()), {}, {}};
}

}  // namespace

Tensor dropout(const Tensor& input, double p, bool train) {
  if (!train || p == 0) return input;
  return aten::mul(input, dropout_mask("dropout", input, p));
}

Tensor dropout_(const Tensor& self, double p, bool train) {
  if (!train || p == 0) return self;
  return aten::mul_(self, dropout_mask("dropout_", self, p));
}

Tensor batch_norm(const Tensor& input, const Tensor& weight, const Tensor& bias,
                  const Tensor& running_mean, const Tensor& running_var, bool training,
                  double momentum, double eps, bool) {
  return batch_normalised(input, weight, bias, running_mean, running_var, training, momentum, eps)
      .output;
}

std::tuple<Tensor, Tensor, Tensor> native_batch_norm(const Tensor& input, const Tensor& weight,
                                                     const Tensor& bias, const Tensor& running_mean,
                                                     const Tensor& running_var, bool training,
                                                     double momentum, double eps) {
  const BatchNormalised result =
      batch_normalised(input, weight, bias, running_mean, running_var, training, momentum, eps);
  const bool mixed = mixes_precision(input, {weight, bias, running_mean, running_var});
  const ScalarType dtype = mixed ? ScalarType::Float32 : input.dtype();
  const NoGrad no_grad;
  if (!result.mean.defined()) {
    const Tensor none = aten::empty({0}, dtype, std::nullopt, input.device());
    return {result.output, none, aten::clone(none)};
  }
  return {result.output, aten::to(aten::detach(result.mean), dtype),
          aten::to(aten::rsqrt(aten::add(result.var, Scalar(eps))), dtype)};
}

std::tuple<Tensor, Tensor, Tensor> native_batch_norm_legit(const Tensor& input,
                                                           const Tensor& weight, const Tensor& bias,
                                                           const Tensor& running_mean,
                                                           const Tensor& running_var, bool training,
                                                           double momentum, double eps) {
  return composite::native_batch_norm(input, weight, bias, running_mean, running_var, training,
                                      momentum, eps);
}

std::tuple<Tensor, Tensor, Tensor> native_batch_norm_no_stats(const Tensor& input,
                                                              const Tensor& weight,
                                                              const Tensor& bias, bool training,
                                                              double momentum, double eps) {
  return composite::native_batch_norm(input, weight, bias, Tensor(), Tensor(), training, momentum,
                                      eps);
}

std::tuple<Tensor, Tensor, Tensor, Tensor> _batch_norm_with_update(
    const Tensor& input, const Tensor& weight, const Tensor& bias, const Tensor& running_mean,
    const Tensor& running_var, double momentum, double eps) {
  const auto [output, mean, deviation] = composite::native_batch_norm(
      input, weight, bias, running_mean, running_var, true, momentum, eps);
  return {output, mean, deviation,
          aten::empty({0}, ScalarType::UInt8, std::nullopt, input.device())};
}

Tensor layer_norm(const Tensor& input, IntList normalized_shape, const Tensor& weight,
                  const Tensor& bias, double eps, bool) {
  if (mixes_precision(input, {weight, bias})) {
    return aten::to(
        aten::layer_norm(aten::to(input, ScalarType::Float32), normalized_shape, weight, bias, eps),
        input.dtype());
  }
  return std::get<0>(aten::native_layer_norm(input, normalized_shape, weight, bias, eps));
}

}  // namespace treadle::composite
