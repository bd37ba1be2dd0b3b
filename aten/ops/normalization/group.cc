// The public forms of group, instance and root-mean-square normalisation, and weight normalisation.
//
// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include "aten/ops/_rms_norm.h"
#include "aten/ops/_weight_norm.h"
#include "aten/ops/abs.h"
#include "aten/ops/add.h"
#include "aten/ops/batch_norm.h"
#include "aten/ops/copy_.h"
#include "aten/ops/div.h"
#include "aten/ops/group_norm.h"
#include "aten/ops/instance_norm.h"
#include "aten/ops/linalg_vector_norm.h"
#include "aten/ops/mean.h"
#include "aten/ops/mul.h"
#include "aten/ops/native_group_norm.h"
#include "aten/ops/norm_except_dim.h"
#include "aten/ops/normalization/mixed_precision.h"
#include "aten/ops/normalization/running_statistics.h"
#include "aten/ops/repeat.h"
#include "aten/ops/reshape.h"
#include "aten/ops/rms_norm.h"
#include "aten/ops/rsqrt.h"
#include "aten/ops/square.h"
#include "aten/ops/to.h"
#include "core/base/error.h"

namespace treadle::composite {
namespace {

Tensor repeated(const Tensor& t, int64_t times) {
  return t.defined() ? aten::repeat(t, {times}) : t;
}

// The smallest e with 1 + e != 1 in the dtype that statistics are computed in.
double machine_epsilon(ScalarType dtype) {
  return dtype == ScalarType::Float64 ? std::numeric_limits<double>::epsilon()
                                      : std::numeric_limits<float>::epsilon();
}

}  // namespace

Tensor group_norm(const Tensor& input, int64_t num_groups, const Tensor& weight, const Tensor& bias,
                  double eps, bool) {
  check<ErrorKind::Runtime>(input.dim() >= 2, OpName("group_norm"),
                            "expected input (N, C, ...) of at least 2 dimensions, got "
                            "shape ",
                            input.sizes());
  if (mixes_precision(input, {weight, bias})) {
    return aten::to(
        aten::group_norm(aten::to(input, ScalarType::Float32), num_groups, weight, bias, eps),
        input.dtype());
  }
  const int64_t samples = input.size(0), channels = input.size(1);
  int64_t plane = 1;
  for (int64_t d = 2; d < input.dim(); ++d) plane = checked_numel({plane, input.size(d)});
  return std::get<0>(
      aten::native_group_norm(input, weight, bias, samples, channels, plane, num_groups, eps));
}

// Each channel of each sample is a channel of one sample, (1, N * C, ...), for batch_norm.
Tensor instance_norm(const Tensor& input, const Tensor& weight, const Tensor& bias,
                     const Tensor& running_mean, const Tensor& running_var, bool use_input_stats,
                     double momentum, double eps, bool cudnn_enabled) {
  check<ErrorKind::Runtime>(input.dim() >= 2, OpName("instance_norm"),
                            "expected input (N, C, ...) of at least 2 dimensions, "
                            "got shape ",
                            input.sizes());
  const int64_t samples = input.size(0), channels = input.size(1);
  check_channel_tensors("instance_norm", {weight, bias, running_mean, running_var}, channels);
  check<ErrorKind::Runtime>(use_input_stats || (running_mean.defined() && running_var.defined()),
                            OpName("instance_norm"),
                            "expected running_mean and running_var with "
                            "use_input_stats = False, got None");
  if (use_input_stats) require_statistics("instance_norm", input, running_mean, running_var);
  DimVector sizes(input.sizes());
  sizes[0] = 1;
  sizes[1] = checked_numel({samples, channels});
  const Tensor mean = repeated(running_mean, samples), var = repeated(running_var, samples);
  const Tensor out = aten::batch_norm(aten::reshape(input, sizes), repeated(weight, samples),
                                      repeated(bias, samples), mean, var, use_input_stats, momentum,
                                      eps, cudnn_enabled);
  if (use_input_stats && samples > 0) {  // the running statistics are means over the samples
    const NoGrad no_grad;
    const int64_t first[] = {0};
    for (const auto& [running, all] :
         {std::pair<const Tensor&, const Tensor&>{running_mean, mean}, {running_var, var}}) {
      if (running.defined())
        aten::copy_(running,
                    aten::mean(aten::reshape(all, {samples, channels}), IntList(first, 1)));
    }
  }
  return aten::reshape(out, input.sizes());
}

Tensor rms_norm(const Tensor& input, IntList normalized_shape, const Tensor& weight,
                std::optional<double> eps) {
  if (mixes_precision(input, {weight})) {
    return aten::to(
        aten::rms_norm(aten::to(input, ScalarType::Float32), normalized_shape, weight, eps),
        input.dtype());
  }
  const double least = eps.value_or(machine_epsilon(to_real(input.dtype())));
  if (input.is_complex()) {
    const size_t count = normalized_shape.size(), rank = input.sizes().size();
    check<ErrorKind::Runtime>(
        count > 0 && rank >= count && input.sizes().slice(rank - count) == normalized_shape,
        OpName("rms_norm"), "expected input whose last sizes are ", normalized_shape,
        ", got shape ", input.sizes());
    DimVector dims;
    for (int64_t d = 1; d <= static_cast<int64_t>(normalized_shape.size()); ++d) dims.push_back(-d);
    // PyTorch's formula, whose squares are complex, too.
    const Tensor squares = aten::square(input);
    const Tensor scale =
        aten::rsqrt(aten::add(aten::mean(squares, IntList(dims), true), Scalar(least)));
    const Tensor normal = aten::mul(input, scale);
    return weight.defined() ? aten::mul(normal, weight) : normal;
  }
  if (weight.defined() && weight.dtype() != input.dtype())  // the product is in the wider dtype
    return aten::mul(aten::rms_norm(input, normalized_shape, Tensor(), least), weight);
  return std::get<0>(aten::_rms_norm(input, normalized_shape, weight, least));
}

Tensor norm_except_dim(const Tensor& v, int64_t pow, int64_t dim) {
  if (dim == -1) return aten::linalg_vector_norm(v, Scalar(pow));
  const int64_t kept = wrap_dim("norm_except_dim", dim, v.dim());
  DimVector dims;
  for (int64_t d = 0; d < v.dim(); ++d) {
    if (d != kept) dims.push_back(d);
  }
  if (dims.empty()) {  // an empty list would mean all: of a vector, the norm of each element
    const int64_t last[] = {1};
    return aten::linalg_vector_norm(aten::reshape(v, {v.numel(), 1}), Scalar(pow),
                                    IntList(last, 1));
  }
  return aten::linalg_vector_norm(v, Scalar(pow), IntList(dims), true);
}

Tensor _weight_norm(const Tensor& v, const Tensor& g, int64_t dim) {
  return aten::mul(v, aten::div(g, aten::norm_except_dim(v, 2, dim)));
}

}  // namespace treadle::composite
