// Checks of inputs and parameters of batch and layer normalisation.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/ops/normalization/shape.h"

namespace treadle::shape {
namespace {

void same_dtype(const char* op, const char* name, const Tensor& t, const Tensor& input) {
  check<ErrorKind::Runtime>(!t.defined() || t.dtype() == input.dtype(), OpName(op), "expected ",
                            name, " of the input's dtype ", input.dtype(), ", got ",
                            t.defined() ? t.dtype() : input.dtype());
}

// Statistics of 16-bit inputs have dtype float32.
ScalarType statistics_type(const Tensor& input) {
  return item_size(input.dtype()) == 2 ? ScalarType::Float32 : input.dtype();
}

void per_channel(const char* op, const char* name, const Tensor& t, int64_t channels) {
  if (!t.defined()) return;
  check<ErrorKind::Runtime>(t.dim() == 1 && t.sizes()[0] == channels, OpName(op), "expected ", name,
                            " of shape (", channels, ",), got ", t.sizes());
}

}  // namespace

std::array<TensorSpec, 3> batch_norm(const char* op, const Tensor& input, const Tensor& weight,
                                     const Tensor& bias) {
  check<ErrorKind::Runtime>(
      input.dim() >= 2, OpName(op),
      "expected input with at least 2 dimensions (batch, channels, ...), got shape ",
      input.sizes());
  const int64_t channels = input.sizes()[1];
  per_channel(op, "weight", weight, channels);
  per_channel(op, "bias", bias, channels);
  same_dtype(op, "weight", weight, input);
  same_dtype(op, "bias", bias, input);
  check<ErrorKind::Value>(channels == 0 || input.numel() / channels != 1, OpName(op),
                          "expected more than 1 value per channel when training, got input shape ",
                          input.sizes());
  const TensorSpec statistic{{channels}, statistics_type(input), input.device()};
  return {TensorSpec{input.sizes(), input.dtype(), input.device()}, statistic, statistic};
}

std::array<TensorSpec, 3> batch_norm_grad(const char* op, const Tensor& grad, const Tensor& input,
                                          const Tensor& weight, const Tensor& mean,
                                          const Tensor& var) {
  check<ErrorKind::Runtime>(
      input.dim() >= 2 && grad.sizes() == input.sizes() && grad.dtype() == input.dtype(),
      OpName(op), "expected grad and input of one shape and dtype, got ", grad, " and ", input);
  per_channel(op, "weight", weight, input.sizes()[1]);
  same_dtype(op, "weight", weight, input);
  per_channel(op, "mean", mean, input.sizes()[1]);
  per_channel(op, "var", var, input.sizes()[1]);
  check<ErrorKind::Runtime>(mean.dtype() == statistics_type(input) && var.dtype() == mean.dtype(),
                            OpName(op), "expected mean and var of dtype ", statistics_type(input),
                            ", got ", mean.dtype(), " and ", var.dtype());
  const TensorSpec parameter{{input.sizes()[1]}, input.dtype(), input.device()};
  return {TensorSpec{input.sizes(), input.dtype(), input.device()}, parameter, parameter};
}

std::array<TensorSpec, 3> layer_norm(const char* op, const Tensor& input, IntList normalized_shape,
                                     const Tensor& weight, const Tensor& bias) {
  check<ErrorKind::Runtime>(!normalized_shape.empty(), OpName(op),
                            "expected normalized_shape with at least 1 entry, got ()");
  const size_t kept =
      input.sizes().size() - std::min(input.sizes().size(), normalized_shape.size());
  check<ErrorKind::Runtime>(
      input.sizes().size() >= normalized_shape.size() &&
          input.sizes().slice(kept) == normalized_shape,
      OpName(op), "expected input whose last dimensions are normalized_shape = ", normalized_shape,
      ", got shape ", input.sizes());
  for (const auto& [name, t] :
       {std::pair<const char*, const Tensor&>{"weight", weight}, {"bias", bias}}) {
    if (!t.defined()) continue;
    check<ErrorKind::Runtime>(t.sizes() == normalized_shape, OpName(op), "expected ", name,
                              " of shape ", normalized_shape, ", got ", t.sizes());
    same_dtype(op, name, t, input);
  }
  DimVector statistics(input.sizes());
  for (size_t d = kept; d < statistics.size(); ++d) statistics[d] = 1;
  const TensorSpec statistic{statistics, statistics_type(input), input.device()};
  return {TensorSpec{input.sizes(), input.dtype(), input.device()}, statistic, statistic};
}

std::array<TensorSpec, 3> layer_norm_grad(const char* op, const Tensor& grad, const Tensor& input,
                                          IntList normalized_shape, const Tensor& weight,
                                          const Tensor& mean, const Tensor& rstd) {
  const auto forward = layer_norm(op, input, normalized_shape, weight, Tensor());
  check<ErrorKind::Runtime>(grad.sizes() == input.sizes() && grad.dtype() == input.dtype(),
                            OpName(op), "expected grad and input of one shape and dtype, got ",
                            grad, " and ", input);
  check<ErrorKind::Runtime>(mean.numel() == checked_numel(forward[1].sizes) &&
                                rstd.numel() == mean.numel() && mean.dtype() == forward[1].dtype &&
                                rstd.dtype() == mean.dtype(),
                            OpName(op), "expected mean and rstd of shape ", forward[1].sizes,
                            ", got ", mean, " and ", rstd);
  const TensorSpec parameter{normalized_shape, input.dtype(), input.device()};
  return {forward[0], parameter, parameter};
}

}  // namespace treadle::shape
