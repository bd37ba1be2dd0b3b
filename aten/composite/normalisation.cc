// Dropout, batch and layer normalisation as users call them.
#include "aten/composite/mixed_precision.h"
#include "aten/composite/running_statistics.h"
#include "aten/ops/_batch_norm_train.h"
#include "aten/ops/add.h"
#include "aten/ops/batch_norm.h"
#include "aten/ops/bernoulli.h"
#include "aten/ops/bernoulli_.h"
#include "aten/ops/clone.h"
#include "aten/ops/copy_.h"
#include "aten/ops/dropout.h"
#include "aten/ops/dropout_.h"
#include "aten/ops/empty_like.h"
#include "aten/ops/layer_norm.h"
#include "aten/ops/mul.h"
#include "aten/ops/native_layer_norm.h"
#include "aten/ops/reshape.h"
#include "aten/ops/rsqrt.h"
#include "aten/ops/sub.h"
#include "aten/ops/sum.h"
#include "aten/ops/to.h"
#include "aten/ops/zeros_like.h"
#include "core/error.h"

namespace treadle::composite {
namespace {

// 0 with probability p, else 1 / (1 - p).
Tensor dropout_mask(const Tensor& input, double p) {
  const NoGrad no_grad;
  if (p == 1) return aten::zeros_like(input);
  const Tensor mask = aten::bernoulli_(aten::empty_like(input), 1 - p);
  return aten::mul_(mask, Scalar(1 / (1 - p)));
}

void floating_input(const char* op, const Tensor& input) {
  check<ErrorKind::Runtime>(input.is_floating_point(), op,
                            ": expected input of a floating dtype, got ", input.dtype());
}

}  // namespace

Tensor dropout(const Tensor& input, double p, bool train) {
  if (!train || p == 0) return input;
  floating_input("dropout", input);
  return aten::mul(input, dropout_mask(input, p));
}

Tensor dropout_(const Tensor& self, double p, bool train) {
  if (!train || p == 0) return self;
  floating_input("dropout_", self);
  return aten::mul_(self, dropout_mask(self, p));
}

Tensor batch_norm(const Tensor& input, const Tensor& weight, const Tensor& bias,
                  const Tensor& running_mean, const Tensor& running_var, bool training,
                  double momentum, double eps, bool) {
  const bool empty = input.numel() == 0;
  check<ErrorKind::Runtime>(
      input.dim() >= 2 || (input.dim() == 1 && empty),
      "batch_norm: expected input with at least 2 dimensions (batch, channels, ...), got shape ",
      input.sizes());
  floating_input("batch_norm", input);
  if (mixes_precision(input, {weight, bias})) {
    return aten::to(aten::batch_norm(aten::to(input, ScalarType::Float32), weight, bias,
                                     running_mean, running_var, training, momentum, eps, false),
                    input.dtype());
  }
  const int64_t channels = input.dim() == 1 ? 0 : input.size(1);
  check_channel_tensors("batch_norm", {weight, bias, running_mean, running_var}, channels);
  check<ErrorKind::Runtime>(
      running_mean.defined() == running_var.defined(),
      "batch_norm: expected running_mean and running_var both or neither, got one of them");
  if (training) require_statistics("batch_norm", input, running_mean, running_var);
  if (empty) {  // there is nothing to learn from, and every gradient is 0
    Tensor out = aten::clone(input);
    for (const Tensor& each : {weight, bias}) {
      if (each.defined()) out = aten::add(out, aten::mul(aten::sum(each), Scalar(0)));
    }
    return out;
  }
  if (training) {
    const auto [output, mean, var] = aten::_batch_norm_train(input, weight, bias, eps);
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
    return output;
  }
  check<ErrorKind::Runtime>(
      running_mean.defined(),
      "batch_norm: expected running_mean and running_var when not training, got None");
  DimVector shape(static_cast<size_t>(input.dim()), 1);
  shape[1] = channels;
  Tensor scale = aten::rsqrt(aten::add(running_var, Scalar(eps)));
  if (weight.defined()) scale = aten::mul(scale, weight);
  Tensor shift = aten::mul(running_mean, scale);
  shift = bias.defined() ? aten::sub(bias, shift) : aten::mul(shift, Scalar(-1));
  const Tensor out =
      aten::add(aten::mul(input, aten::reshape(scale, shape)), aten::reshape(shift, shape));
  return out.dtype() == input.dtype() ? out : aten::to(out, input.dtype());
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
