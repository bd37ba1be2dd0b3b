// Activations with weights or randomness, and glu; the others are pointwise entries.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/ops/_prelu_kernel.h"
#include "aten/ops/add.h"
#include "aten/ops/bilinear.h"
#include "aten/ops/copy_.h"
#include "aten/ops/empty_like.h"
#include "aten/ops/glu.h"
#include "aten/ops/gt.h"
#include "aten/ops/le.h"
#include "aten/ops/leaky_relu.h"
#include "aten/ops/matmul.h"
#include "aten/ops/mul.h"
#include "aten/ops/narrow.h"
#include "aten/ops/permute.h"
#include "aten/ops/prelu.h"
#include "aten/ops/reshape.h"
#include "aten/ops/rrelu.h"
#include "aten/ops/rrelu_.h"
#include "aten/ops/sigmoid.h"
#include "aten/ops/sum.h"
#include "aten/ops/uniform_.h"
#include "aten/ops/where.h"
#include "core/base/error.h"

namespace treadle::composite {
namespace {

// Slopes of rrelu: chosen by chance below zero, 1 above.
Tensor random_slopes(const char* op, const Tensor& self, double lower, double upper,
                     const Generator& generator) {
  check<ErrorKind::Runtime>(self.is_floating_point(), OpName(op),
                            "expected input of a floating dtype, got ", self.dtype());
  const NoGrad no_grad;
  const Tensor chance = aten::uniform_(aten::empty_like(self), lower, upper, generator);
  return aten::where(aten::le(self, Scalar(0)), chance, Scalar(1));
}

void slope_range(const char* op, double lower, double upper) {
  check<ErrorKind::Runtime>(lower <= upper, OpName(op), "expected lower <= upper, got ", lower,
                            " and ", upper);
}

}  // namespace

Tensor prelu(const Tensor& self, const Tensor& weight) {
  check<ErrorKind::Runtime>(self.dtype() == weight.dtype(), OpName("prelu"),
                            "expected weight of dtype ", self.dtype(), ", got ", weight.dtype());
  if (weight.numel() == 1) return aten::_prelu_kernel(self, aten::reshape(weight, IntList()));
  const int64_t channels = self.dim() >= 2 ? self.size(1) : 1;
  check<ErrorKind::Runtime>(weight.dim() == 1 && weight.numel() == channels, OpName("prelu"),
                            "expected weight with 1 element or of shape (", channels, ",), got ",
                            weight.sizes());
  DimVector shape(static_cast<size_t>(std::max<int64_t>(1, self.dim())), 1);
  shape[self.dim() >= 2 ? 1 : 0] = channels;
  return aten::_prelu_kernel(self, aten::reshape(weight, shape));
}

Tensor glu(const Tensor& self, int64_t dim) {
  check<ErrorKind::Runtime>(self.dim() > 0, OpName("glu"),
                            "expected input of at least 1 dimension, got shape ()");
  const int64_t at = wrap_dim("glu", dim, self.dim()), size = self.size(at);
  check<ErrorKind::Runtime>(size % 2 == 0, OpName("glu"), "expected an even size in dimension ",
                            dim, ", got shape ", self.sizes());
  return aten::mul(aten::narrow(self, at, 0, size / 2),
                   aten::sigmoid(aten::narrow(self, at, size / 2, size / 2)));
}

Tensor rrelu(const Tensor& self, const Scalar& lower, const Scalar& upper, bool training,
             const Generator& generator) {
  const double low = lower.checked_to<double>("rrelu"), high = upper.checked_to<double>("rrelu");
  slope_range("rrelu", low, high);
  if (!training) return aten::leaky_relu(self, Scalar((low + high) / 2));
  return aten::mul(self, random_slopes("rrelu", self, low, high, generator));
}

Tensor rrelu_(const Tensor& self, const Scalar& lower, const Scalar& upper, bool training,
              const Generator& generator) {
  const double low = lower.checked_to<double>("rrelu_"), high = upper.checked_to<double>("rrelu_");
  slope_range("rrelu_", low, high);
  if (!training) return aten::leaky_relu_(self, Scalar((low + high) / 2));
  return aten::mul_(self, random_slopes("rrelu_", self, low, high, generator));
}

Tensor bilinear(const Tensor& input1, const Tensor& input2, const Tensor& weight,
                const Tensor& bias) {
  check<ErrorKind::Runtime>(weight.dim() == 3, OpName("bilinear"),
                            "expected weight of 3 dimensions (out, in1, in2), got shape ",
                            weight.sizes());
  const int64_t outputs = weight.size(0), in1 = weight.size(1), in2 = weight.size(2);
  check<ErrorKind::Runtime>(
      input1.dim() >= 1 && input1.size(-1) == in1 && input2.dim() >= 1 && input2.size(-1) == in2,
      OpName("bilinear"), "expected inputs whose last dimensions are ", in1, " and ", in2,
      ", got shapes ", input1.sizes(), " and ", input2.sizes());
  const size_t leading = input1.sizes().size() - 1;
  check<ErrorKind::Runtime>(
      input2.dim() == input1.dim() &&
          input1.sizes().slice(0, leading) == input2.sizes().slice(0, leading),
      OpName("bilinear"), "expected inputs that agree in all dimensions but the last, got shapes ",
      input1.sizes(), " and ", input2.sizes());
  check<ErrorKind::Runtime>(!bias.defined() || (bias.dim() == 1 && bias.numel() == outputs),
                            OpName("bilinear"), "expected bias of shape (", outputs, ",), got ",
                            bias.defined() ? bias.sizes() : IntList());
  DimVector sizes(input1.sizes().slice(0, leading));
  const int64_t rows = checked_numel(sizes);
  // One matrix product for all outputs: (rows, in1) @ (in1, out * in2), then a weighted sum.
  const Tensor flat =
      aten::reshape(aten::permute(weight, {1, 0, 2}), {in1, checked_numel({outputs, in2})});
  const Tensor half =
      aten::reshape(aten::matmul(aten::reshape(input1, {rows, in1}), flat), {rows, outputs, in2});
  const int64_t last[] = {-1};
  const Tensor products = aten::mul(half, aten::reshape(input2, {rows, 1, in2}));
  sizes.push_back(outputs);
  const Tensor out =
      aten::reshape(aten::sum(products, IntList(last, 1), false, products.dtype()), sizes);
  return bias.defined() ? aten::add(out, bias) : out;
}

}  // namespace treadle::composite
