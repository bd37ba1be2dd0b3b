// Dropout of whole channels, and alpha dropout (Klambauer et al., "Self-normalizing neural
// networks", 2017), which keeps mean and variance of selu's activations.
//
// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "aten/ops/add.h"
#include "aten/ops/alpha_dropout.h"
#include "aten/ops/alpha_dropout_.h"
#include "aten/ops/bernoulli_.h"
#include "aten/ops/empty.h"
#include "aten/ops/feature_alpha_dropout.h"
#include "aten/ops/feature_alpha_dropout_.h"
#include "aten/ops/feature_dropout.h"
#include "aten/ops/feature_dropout_.h"
#include "aten/ops/mul.h"
#include "aten/ops/native_dropout_backward.h"
#include "aten/ops/random/dropout_noise.h"
#include "aten/ops/sub.h"
#include "aten/ops/zeros.h"
#include "core/base/error.h"

namespace treadle::composite {
namespace {

// 0 with probability p, else 1; one value for each element, or for each channel of each sample.
Tensor kept(const char* op, const Tensor& input, double p, bool channels) {
  const ScalarType dtype = noise_dtype(op, input);
  DimVector sizes(input.sizes());
  if (channels) {
    check<ErrorKind::Runtime>(input.dim() >= 2, OpName(op),
                              "expected input (N, C, ...) of at least 2 dimensions, got shape ",
                              input.sizes());
    for (size_t d = 2; d < sizes.size(); ++d) sizes[d] = 1;
  }
  const NoGrad no_grad;
  if (p == 1) return aten::zeros(sizes, dtype, std::nullopt, input.device());
  return aten::bernoulli_(aten::empty(sizes, dtype, std::nullopt, input.device()), 1 - p);
}

// The factor of the kept elements, and the numbers added to kept and to dropped ones.
struct Alpha {
  double scale, kept_shift, dropped_shift;
  explicit Alpha(double p) {
    constexpr double kAlpha = 1.7580993408473766;  // scale * alpha of selu: its negative limit
    scale = 1 / std::sqrt((kAlpha * kAlpha * p + 1) * (1 - p));
    kept_shift = kAlpha * scale * p;
    dropped_shift = kept_shift - kAlpha * scale;
  }
};

struct Affine {
  Tensor factor, shift;
};
Affine alpha_noise(const char* op, const Tensor& input, double p, bool channels) {
  const Tensor mask = kept(op, input, p, channels);
  const NoGrad no_grad;
  if (p == 1) return {mask, mask};
  const Alpha a(p);
  // mask * kept_shift + (1 - mask) * dropped_shift
  const Tensor shift =
      aten::add(aten::mul(mask, Scalar(a.kept_shift - a.dropped_shift)), Scalar(a.dropped_shift));
  return {aten::mul(mask, Scalar(a.scale)), shift};
}

Tensor alpha(const char* op, const Tensor& input, double p, bool train, bool channels) {
  if (!train || p == 0) return input;
  const Affine noise = alpha_noise(op, input, p, channels);
  return aten::add(aten::mul(input, noise.factor), noise.shift);
}
Tensor alpha_(const char* op, const Tensor& self, double p, bool train, bool channels) {
  if (!train || p == 0) return self;
  const Affine noise = alpha_noise(op, self, p, channels);
  return aten::add_(aten::mul_(self, noise.factor), noise.shift);
}

Tensor scaled_channels(const char* op, const Tensor& input, double p) {
  const Tensor mask = kept(op, input, p, true);
  const NoGrad no_grad;
  return p == 1 ? mask : aten::mul(mask, Scalar(1 / (1 - p)));
}

}  // namespace

Tensor feature_dropout(const Tensor& input, double p, bool train) {
  if (!train || p == 0) return input;
  return aten::mul(input, scaled_channels("feature_dropout", input, p));
}
Tensor feature_dropout_(const Tensor& self, double p, bool train) {
  if (!train || p == 0) return self;
  return aten::mul_(self, scaled_channels("feature_dropout_", self, p));
}
Tensor alpha_dropout(const Tensor& input, double p, bool train) {
  return alpha("alpha_dropout", input, p, train, false);
}
Tensor alpha_dropout_(const Tensor& self, double p, bool train) {
  return alpha_("alpha_dropout_", self, p, train, false);
}
Tensor feature_alpha_dropout(const Tensor& input, double p, bool train) {
  return alpha("feature_alpha_dropout", input, p, train, true);
}
Tensor feature_alpha_dropout_(const Tensor& self, double p, bool train) {
  return alpha_("feature_alpha_dropout_", self, p, train, true);
}

Tensor native_dropout_backward(const Tensor& grad_output, const Tensor& mask, double scale) {
  return aten::mul(aten::mul(grad_output, mask), Scalar(scale));
}

}  // namespace treadle::composite
