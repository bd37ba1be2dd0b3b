// Checks of inputs and parameters of group and root-mean-square normalisation.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/ops/normalization/shape_group.h"

#include "aten/engine/strides/memory_format.h"

namespace treadle::shape {
namespace {

// Statistics of 16-bit inputs have dtype float32.
ScalarType statistics_type(const Tensor& input) {
  return item_size(input.dtype()) == 2 ? ScalarType::Float32 : input.dtype();
}

TensorSpec like(const Tensor& t) { return {t.sizes(), t.dtype(), t.device()}; }

// As `images`, if its shape is (samples, channels, ...); an operator may be told otherwise.
TensorSpec like_images(const Tensor& images, int64_t samples, int64_t channels) {
  TensorSpec spec = like(images);
  if (images.dim() >= 2 && images.size(0) == samples && images.size(1) == channels)
    spec.format = kept_format(images);
  return spec;
}

void parameter(const char* op, const char* name, const Tensor& t, IntList sizes,
               const Tensor& input) {
  check<ErrorKind::Runtime>(!t.defined() || (t.sizes() == sizes && t.dtype() == input.dtype()),
                            OpName(op), "expected ", name, " of shape ", sizes, " and dtype ",
                            input.dtype(), ", got ", t.defined() ? t : input);
}

void gradient(const char* op, const Tensor& grad, const Tensor& input) {
  check<ErrorKind::Runtime>(grad.sizes() == input.sizes() && grad.dtype() == input.dtype(),
                            OpName(op), "expected grad and input of one shape and dtype, got ",
                            grad, " and ", input);
}

void statistic(const char* op, const char* name, const Tensor& t, const TensorSpec& want) {
  check<ErrorKind::Runtime>(t.sizes() == IntList(want.sizes) && t.dtype() == want.dtype, OpName(op),
                            "expected ", name, " of shape ", want.sizes, " and dtype ", want.dtype,
                            ", got ", t);
}

}  // namespace

std::array<TensorSpec, 3> group_norm(const char* op, const Tensor& input, const Tensor& weight,
                                     const Tensor& bias, int64_t samples, int64_t channels,
                                     int64_t plane, int64_t groups) {
  check<ErrorKind::Runtime>(samples >= 0 && channels >= 0 && plane >= 0 && groups > 0, OpName(op),
                            "expected N, C, HxW >= 0 and group > 0, got ", samples, ", ", channels,
                            ", ", plane, " and ", groups);
  check<ErrorKind::Runtime>(channels % groups == 0, OpName(op),
                            "expected channels divisible by the groups, got ", channels,
                            " channels and ", groups, " groups");
  check<ErrorKind::Runtime>(input.numel() == checked_numel({samples, channels, plane}), OpName(op),
                            "expected input with ", samples, " x ", channels, " x ", plane,
                            " elements, got shape ", input.sizes());
  const int64_t per_channel[] = {channels};
  parameter(op, "weight", weight, IntList(per_channel, 1), input);
  parameter(op, "bias", bias, IntList(per_channel, 1), input);
  const TensorSpec statistics{{samples, groups}, statistics_type(input), input.device()};
  return {like_images(input, samples, channels), statistics, statistics};
}

std::array<TensorSpec, 3> group_norm_grad(const char* op, const Tensor& grad, const Tensor& input,
                                          const Tensor& weight, const Tensor& mean,
                                          const Tensor& rstd, int64_t samples, int64_t channels,
                                          int64_t plane, int64_t groups) {
  const auto forward = group_norm(op, input, weight, Tensor(), samples, channels, plane, groups);
  gradient(op, grad, input);
  statistic(op, "mean", mean, forward[1]);
  statistic(op, "rstd", rstd, forward[2]);
  const TensorSpec per_channel{{channels}, input.dtype(), input.device()};
  return {forward[0], per_channel, per_channel};
}

std::array<TensorSpec, 2> rms_norm(const char* op, const Tensor& input, IntList normalized_shape,
                                   const Tensor& weight) {
  check<ErrorKind::Runtime>(!normalized_shape.empty(), OpName(op),
                            "expected normalized_shape with at least 1 entry, got ()");
  const size_t rank = input.sizes().size(), last = normalized_shape.size();
  check<ErrorKind::Runtime>(
      rank >= last && input.sizes().slice(rank - last) == normalized_shape, OpName(op),
      "expected input whose last dimensions are normalized_shape = ", normalized_shape,
      ", got shape ", input.sizes());
  parameter(op, "weight", weight, normalized_shape, input);
  DimVector rows(input.sizes());
  for (size_t d = rank - last; d < rank; ++d) rows[d] = 1;
  return {like(input), TensorSpec{rows, statistics_type(input), input.device()}};
}

std::array<TensorSpec, 2> rms_norm_grad(const char* op, const Tensor& grad, const Tensor& input,
                                        IntList normalized_shape, const Tensor& rstd,
                                        const Tensor& weight) {
  const auto forward = rms_norm(op, input, normalized_shape, weight);
  gradient(op, grad, input);
  statistic(op, "rstd", rstd, forward[1]);
  return {like(input), TensorSpec{normalized_shape, input.dtype(), input.device()}};
}

}  // namespace treadle::shape
