// Losses composed of other operators; nll_loss has its own kernel.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/ops/abs.h"
#include "aten/ops/add.h"
#include "aten/ops/any.h"
#include "aten/ops/binary_cross_entropy.h"
#include "aten/ops/binary_cross_entropy_with_logits.h"
#include "aten/ops/clamp.h"
#include "aten/ops/clamp_min.h"
#include "aten/ops/cross_entropy_loss.h"
#include "aten/ops/div.h"
#include "aten/ops/exp.h"
#include "aten/ops/gt.h"
#include "aten/ops/huber_loss.h"
#include "aten/ops/index_select.h"
#include "aten/ops/item.h"
#include "aten/ops/kl_div.h"
#include "aten/ops/l1_loss.h"
#include "aten/ops/log.h"
#include "aten/ops/log_sigmoid.h"
#include "aten/ops/log_softmax.h"
#include "aten/ops/logical_or.h"
#include "aten/ops/losses/reduction.h"
#include "aten/ops/lt.h"
#include "aten/ops/movedim.h"
#include "aten/ops/mse_loss.h"
#include "aten/ops/mul.h"
#include "aten/ops/ne.h"
#include "aten/ops/neg.h"
#include "aten/ops/nll_loss.h"
#include "aten/ops/nll_loss_forward.h"
#include "aten/ops/reshape.h"
#include "aten/ops/rsub.h"
#include "aten/ops/smooth_l1_loss.h"
#include "aten/ops/sub.h"
#include "aten/ops/to.h"
#include "aten/ops/where.h"
#include "aten/ops/xlogy.h"
#include "aten/ops/zeros_like.h"
#include "core/base/error.h"

namespace treadle::composite {
namespace {

void probabilities(const char* op, const Tensor& self, const Tensor& target) {
  check<ErrorKind::Value>(self.sizes() == target.sizes(), OpName(op),
                          "expected target of the input's shape ", self.sizes(), ", got ",
                          target.sizes());
}

// The dimension of the classes: 1 for a batch, 0 for a single sample.
int64_t class_dim(const Tensor& self) { return self.dim() == 1 ? 0 : 1; }

// factor * d^2 up to the distance delta from 0, and beyond it the line that continues with its
// slope. The square is that of d itself, because |d| would lose its second derivative at 0. Where
// it is not selected it is the square of 0, because the slope of an infinite square is NaN times 0.
Tensor huber(const Tensor& d, double delta, double factor, double slope) {
  const Tensor size = aten::abs(d);
  const Tensor near = aten::lt(size, Scalar(delta));
  const Tensor within = aten::where(near, d, Scalar(0));
  const Tensor square = aten::mul(aten::mul(within, within), Scalar(factor));
  const Tensor line = aten::mul(aten::sub(size, Scalar(0.5 * delta)), Scalar(slope));
  return aten::where(near, square, line);
}

}  // namespace

Tensor mse_loss(const Tensor& self, const Tensor& target, int64_t reduction) {
  const Tensor d = aten::sub(self, target);
  return reduced("mse_loss", aten::mul(d, d), reduction);
}

Tensor l1_loss(const Tensor& self, const Tensor& target, int64_t reduction) {
  return reduced("l1_loss", aten::abs(aten::sub(self, target)), reduction);
}

Tensor smooth_l1_loss(const Tensor& self, const Tensor& target, int64_t reduction, double beta) {
  const Tensor d = aten::sub(self, target);
  if (beta == 0) return reduced("smooth_l1_loss", aten::abs(d), reduction);
  return reduced("smooth_l1_loss", huber(d, beta, 0.5 / beta, 1), reduction);
}

Tensor huber_loss(const Tensor& self, const Tensor& target, int64_t reduction, double delta) {
  return reduced("huber_loss", huber(aten::sub(self, target), delta, 0.5, delta), reduction);
}

Tensor binary_cross_entropy(const Tensor& self, const Tensor& target, const Tensor& weight,
                            int64_t reduction) {
  probabilities("binary_cross_entropy", self, target);
  if (!self.is_meta() && self.numel() > 0) {
    const NoGrad no_grad;
    const Tensor outside = aten::logical_or(aten::lt(self, Scalar(0)), aten::gt(self, Scalar(1)));
    check<ErrorKind::Runtime>(!aten::item(aten::any(outside)).to<bool>(),
                              OpName("binary_cross_entropy"),
                              "expected every element of the input between 0 "
                              "and 1, got one outside");
  }
  const auto bounded_log = [](const Tensor& x) {
    return aten::clamp_min(aten::log(x), Scalar(-100));
  };
  const Tensor positive = aten::mul(target, bounded_log(self));
  const Tensor negative =
      aten::mul(aten::rsub(target, Scalar(1)), bounded_log(aten::rsub(self, Scalar(1))));
  Tensor loss = aten::neg(aten::add(positive, negative));
  if (weight.defined()) loss = aten::mul(loss, weight);
  return reduced("binary_cross_entropy", loss, reduction);
}

// (1 - y) x + w (log(1 + exp(-|x|)) + max(-x, 0)), where w = 1 + (pos_weight - 1) y. The dtype is
// that of a floating y, whatever the others are.
Tensor binary_cross_entropy_with_logits(const Tensor& self, const Tensor& target,
                                        const Tensor& weight, const Tensor& pos_weight,
                                        int64_t reduction) {
  probabilities("binary_cross_entropy_with_logits", self, target);
  Tensor softplus = aten::neg(aten::log_sigmoid(self));
  if (pos_weight.defined()) {
    softplus = aten::mul(softplus,
                         aten::add(aten::mul(aten::sub(pos_weight, Scalar(1)), target), Scalar(1)));
  }
  Tensor loss = aten::add(aten::mul(aten::rsub(target, Scalar(1)), self), softplus);
  if (weight.defined()) loss = aten::mul(loss, weight);
  if (is_floating(target.dtype())) loss = aten::to(loss, target.dtype());
  return reduced("binary_cross_entropy_with_logits", loss, reduction);
}

Tensor kl_div(const Tensor& self, const Tensor& target, int64_t reduction, bool log_target) {
  if (log_target)
    return reduced("kl_div", aten::mul(aten::exp(target), aten::sub(target, self)), reduction);
  const Tensor loss = aten::sub(aten::xlogy(target, target), aten::mul(target, self));
  return reduced("kl_div", loss, reduction);
}

Tensor nll_loss(const Tensor& self, const Tensor& target, const Tensor& weight, int64_t reduction,
                int64_t ignore_index) {
  check<ErrorKind::Value>(self.dim() >= 1, OpName("nll_loss"),
                          "expected input ([N,] C, ...), got shape ", self.sizes());
  check<ErrorKind::Value>(target.dim() == std::max<int64_t>(0, self.dim() - 1), OpName("nll_loss"),
                          "expected target with ", std::max<int64_t>(0, self.dim() - 1),
                          " dimensions for input of shape ", self.sizes(), ", got shape ",
                          target.sizes());
  if (self.dim() == 1) {  // one sample
    const Tensor one = std::get<0>(aten::nll_loss_forward(aten::reshape(self, {1, self.size(0)}),
                                                          aten::reshape(target, {1}), weight,
                                                          reduction, ignore_index));
    return reduction == kNone ? aten::reshape(one, IntList()) : one;
  }
  DimVector want(self.sizes());
  want.erase(1);
  check<ErrorKind::Value>(target.sizes() == IntList(want), OpName("nll_loss"),
                          "expected target of shape ", want, " for input of shape ", self.sizes(),
                          ", got ", target.sizes());
  if (self.dim() == 2)
    return std::get<0>(aten::nll_loss_forward(self, target, weight, reduction, ignore_index));
  // Classes last, every other dimension one long batch.
  const Tensor rows = aten::reshape(aten::movedim(self, 1, -1), {target.numel(), self.size(1)});
  const Tensor loss = std::get<0>(aten::nll_loss_forward(
      rows, aten::reshape(target, {target.numel()}), weight, reduction, ignore_index));
  return reduction == kNone ? aten::reshape(loss, target.sizes()) : loss;
}

Tensor cross_entropy_loss(const Tensor& self, const Tensor& target, const Tensor& weight,
                          int64_t reduction, int64_t ignore_index, double label_smoothing) {
  check<ErrorKind::Value>(self.dim() >= 1, OpName("cross_entropy_loss"),
                          "expected input ([N,] C, ...), got shape ", self.sizes());
  const int64_t dim = class_dim(self), classes = self.size(dim);
  const Tensor logp = aten::log_softmax(self, dim);
  DimVector per_class(static_cast<size_t>(self.dim()), 1);
  per_class[static_cast<size_t>(dim)] = classes;
  check<ErrorKind::Value>(!weight.defined() || (weight.dim() == 1 && weight.numel() == classes),
                          OpName("cross_entropy_loss"), "expected weight of shape (", classes,
                          ",), got ", weight.defined() ? weight.sizes() : IntList());
  const Tensor w = weight.defined() ? aten::reshape(weight, per_class) : weight;

  if (target.sizes() == self.sizes() && target.is_floating_point()) {  // class probabilities
    Tensor p = target;
    if (label_smoothing > 0) {
      p = aten::add(aten::mul(p, Scalar(1 - label_smoothing)),
                    Scalar(label_smoothing / static_cast<double>(classes)));
    }
    Tensor terms = aten::mul(logp, p);
    if (w.defined()) terms = aten::mul(terms, w);
    const Tensor loss = aten::neg(aten::sum(terms, IntList(&dim, 1)));
    if (reduction != kMean) return reduced("cross_entropy_loss", loss, reduction);
    return aten::div(aten::sum(loss),
                     Scalar(static_cast<double>(self.numel() / std::max<int64_t>(1, classes))));
  }
  const Tensor nll = aten::nll_loss(logp, target, weight, reduction, ignore_index);
  if (label_smoothing == 0) return nll;

  // Smoothing: the mean over classes of -log p, of the samples that count.
  const Tensor terms =
      aten::neg(aten::sum(w.defined() ? aten::mul(logp, w) : logp, IntList(&dim, 1)));
  const Tensor counts = aten::ne(target, Scalar(ignore_index));
  const Tensor smooth = aten::where(counts, terms, aten::zeros_like(terms));
  Tensor smoothed;
  if (reduction == kMean) {
    Tensor total;
    if (weight.defined()) {
      const Tensor safe = aten::where(counts, target, Scalar(0));
      const Tensor chosen = aten::reshape(
          aten::index_select(weight, 0, aten::reshape(safe, {safe.numel()})), target.sizes());
      total = aten::sum(aten::where(counts, chosen, aten::zeros_like(chosen)));
    } else {
      total = aten::sum(counts);
    }
    smoothed = aten::div(aten::sum(smooth), total);
  } else {
    smoothed = reduced("cross_entropy_loss", smooth, reduction);
  }
  return aten::add(aten::mul(nll, Scalar(1 - label_smoothing)),
                   aten::mul(smoothed, Scalar(label_smoothing / static_cast<double>(classes))));
}

}  // namespace treadle::composite
