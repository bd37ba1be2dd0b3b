// Losses with a margin, and losses of pairs and triplets of samples.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/ops/add.h"
#include "aten/ops/arange.h"
#include "aten/ops/clamp_min.h"
#include "aten/ops/cosine_embedding_loss.h"
#include "aten/ops/cumprod.h"
#include "aten/ops/div.h"
#include "aten/ops/eq.h"
#include "aten/ops/exp.h"
#include "aten/ops/gather.h"
#include "aten/ops/ge.h"
#include "aten/ops/gt.h"
#include "aten/ops/hinge_embedding_loss.h"
#include "aten/ops/index_select.h"
#include "aten/ops/log.h"
#include "aten/ops/log1p.h"
#include "aten/ops/logical_and.h"
#include "aten/ops/losses/reduction.h"
#include "aten/ops/margin_ranking_loss.h"
#include "aten/ops/masked_fill.h"
#include "aten/ops/minimum.h"
#include "aten/ops/mul.h"
#include "aten/ops/multi_margin_loss.h"
#include "aten/ops/multilabel_margin_loss.h"
#include "aten/ops/ne.h"
#include "aten/ops/neg.h"
#include "aten/ops/pairwise_distance.h"
#include "aten/ops/poisson_nll_loss.h"
#include "aten/ops/pow.h"
#include "aten/ops/reshape.h"
#include "aten/ops/rsub.h"
#include "aten/ops/scatter_add.h"
#include "aten/ops/soft_margin_loss.h"
#include "aten/ops/softplus.h"
#include "aten/ops/sqrt.h"
#include "aten/ops/sub.h"
#include "aten/ops/to.h"
#include "aten/ops/triplet_margin_loss.h"
#include "aten/ops/unsqueeze.h"
#include "aten/ops/where.h"
#include "aten/ops/zeros_like.h"

namespace treadle::composite {
namespace {

Tensor hinge(const Tensor& x) { return aten::clamp_min(x, Scalar(0)); }

Tensor sum_last(const Tensor& x, bool keepdim = false) {
  const int64_t last[] = {-1};
  return aten::sum(x, IntList(last, 1), keepdim);
}

// Scores (N, C) or (C), and integer targets with the same leading dimension. A number is one score.
void class_scores(const char* op, const Tensor& self) {
  check<ErrorKind::Runtime>(self.dim() <= 2 && self.numel() > 0, OpName(op),
                            "expected input of shape (N, C) or (C,) with elements, got ",
                            self.sizes());
}

}  // namespace

Tensor hinge_embedding_loss(const Tensor& self, const Tensor& target, double margin,
                            int64_t reduction) {
  const Tensor zero = aten::zeros_like(self);
  const Tensor dissimilar =
      aten::where(aten::ne(target, Scalar(1)), hinge(aten::rsub(self, Scalar(margin))), zero);
  const Tensor similar = aten::where(aten::ne(target, Scalar(-1)), self, zero);
  return reduced("hinge_embedding_loss", aten::add(dissimilar, similar), reduction);
}

Tensor margin_ranking_loss(const Tensor& input1, const Tensor& input2, const Tensor& target,
                           double margin, int64_t reduction) {
  const Tensor order = aten::mul(aten::neg(target), aten::sub(input1, input2));
  return reduced("margin_ranking_loss", hinge(aten::add(order, Scalar(margin))), reduction);
}

Tensor cosine_embedding_loss(const Tensor& input1, const Tensor& input2, const Tensor& target,
                             double margin, int64_t reduction) {
  constexpr const char* kOp = "cosine_embedding_loss";
  check<ErrorKind::Runtime>(
      target.dim() <= 1 && input1.dim() == target.dim() + 1 && input2.dim() == target.dim() + 1,
      OpName(kOp), "expected inputs (N, D) with target (N,), or (D,) with (), got shapes ",
      input1.sizes(), ", ", input2.sizes(), " and ", target.sizes());
  constexpr double kEpsilon = 1e-12;
  const Tensor size1 = aten::add(sum_last(aten::mul(input1, input1)), Scalar(kEpsilon));
  const Tensor size2 = aten::add(sum_last(aten::mul(input2, input2)), Scalar(kEpsilon));
  const Tensor cosine =
      aten::div(sum_last(aten::mul(input1, input2)), aten::sqrt(aten::mul(size1, size2)));
  const Tensor zero = aten::zeros_like(cosine);
  const Tensor similar =
      aten::where(aten::eq(target, Scalar(1)), aten::rsub(cosine, Scalar(1)), zero);
  const Tensor dissimilar =
      aten::where(aten::eq(target, Scalar(-1)), hinge(aten::sub(cosine, Scalar(margin))), zero);
  return reduced(kOp, aten::add(similar, dissimilar), reduction);
}

Tensor triplet_margin_loss(const Tensor& anchor, const Tensor& positive, const Tensor& negative,
                           double margin, double p, double eps, bool swap, int64_t reduction) {
  constexpr const char* kOp = "triplet_margin_loss";
  check<ErrorKind::Runtime>(
      anchor.dim() == positive.dim() && anchor.dim() == negative.dim() && anchor.dim() >= 1,
      OpName(kOp), "expected anchor, positive and negative with the same number of ",
      "dimensions, at least 1, got shapes ", anchor.sizes(), ", ", positive.sizes(), " and ",
      negative.sizes());
  const Tensor near = aten::pairwise_distance(anchor, positive, p, eps);
  Tensor far = aten::pairwise_distance(anchor, negative, p, eps);
  if (swap) far = aten::minimum(far, aten::pairwise_distance(positive, negative, p, eps));
  return reduced(kOp, hinge(aten::add(aten::sub(near, far), Scalar(margin))), reduction);
}

// Stirling's approximation of log(target!) is added where `full` and target > 1.
Tensor poisson_nll_loss(const Tensor& input, const Tensor& target, bool log_input, bool full,
                        double eps, int64_t reduction) {
  constexpr double kLogTwoPi = 1.8378770664093453;
  Tensor loss = log_input
                    ? aten::sub(aten::exp(input), aten::mul(target, input))
                    : aten::sub(input, aten::mul(target, aten::log(aten::add(input, Scalar(eps)))));
  if (full) {
    const Tensor above = aten::gt(target, Scalar(1));
    const Tensor safe = aten::where(above, target, Scalar(2));
    const Tensor log = aten::log(safe);
    const Tensor stirling =
        aten::add(aten::sub(aten::mul(safe, log), safe),
                  aten::add(aten::mul(log, Scalar(0.5)), Scalar(0.5 * kLogTwoPi)));
    loss = aten::add(loss, aten::where(above, stirling, aten::zeros_like(stirling)));
  }
  return reduced("poisson_nll_loss", loss, reduction);
}

// log(1 + exp(-x y)), which softplus computes without overflow.
Tensor soft_margin_loss(const Tensor& self, const Tensor& target, int64_t reduction) {
  const Tensor loss = aten::softplus(aten::neg(aten::mul(self, target)), Scalar(1), Scalar(100));
  return reduced("soft_margin_loss", loss, reduction);
}

Tensor multi_margin_loss(const Tensor& self, const Tensor& target, const Scalar& p,
                         const Scalar& margin, const Tensor& weight, int64_t reduction) {
  constexpr const char* kOp = "multi_margin_loss";
  class_scores(kOp, self);
  const double power = p.checked_to<double>(kOp);
  check<ErrorKind::Value>(power == 1 || power == 2, OpName(kOp),
                          "expected p = 1 or 2, got p = ", power);
  const bool is_one = self.dim() < 2;
  const int64_t samples = is_one ? 1 : self.size(0), classes = self.numel() / samples;
  check<ErrorKind::Runtime>(
      target.dtype() == ScalarType::Int64 && target.numel() == samples && target.dim() <= 1,
      OpName(kOp), "expected int64 target with ", samples, " classes, got ", target);
  check<ErrorKind::Runtime>(!weight.defined() || (weight.dim() == 1 && weight.numel() == classes),
                            OpName(kOp), "expected weight of shape (", classes, ",), got ",
                            weight.defined() ? weight.sizes() : IntList());
  const Tensor scores = aten::reshape(self, {samples, classes});
  const Tensor label = aten::reshape(target, {samples, 1});
  const Tensor right = aten::gather(scores, 1, label);
  Tensor loss = hinge(aten::add(aten::sub(scores, right), margin));
  if (power == 2) loss = aten::mul(loss, loss);
  if (weight.defined()) {
    loss = aten::mul(loss,
                     aten::reshape(aten::index_select(weight, 0, aten::reshape(label, {samples})),
                                   {samples, 1}));
  }
  const Tensor is_label = aten::eq(
      label, aten::arange(Scalar(classes), ScalarType::Int64, std::nullopt, self.device()));
  loss = aten::div(sum_last(aten::masked_fill(loss, is_label, Scalar(0))),
                   Scalar(static_cast<double>(classes)));
  return reduced(kOp, is_one && reduction == kNone ? aten::reshape(loss, IntList()) : loss,
                 reduction);
}

// Labels of a sample are the classes before the first -1 in its row of target.
Tensor multilabel_margin_loss(const Tensor& self, const Tensor& target, int64_t reduction) {
  constexpr const char* kOp = "multilabel_margin_loss";
  class_scores(kOp, self);
  check<ErrorKind::Runtime>(target.dtype() == ScalarType::Int64 && target.sizes() == self.sizes(),
                            OpName(kOp), "expected int64 target of the input's shape ",
                            self.sizes(), ", got ", target);
  if (self.dim() == 0)
    return composite::multilabel_margin_loss(aten::reshape(self, {1}), aten::reshape(target, {1}),
                                             reduction);
  const int64_t classes = self.size(-1);
  const Tensor listed =
      aten::cumprod(aten::to(aten::ne(target, Scalar(-1)), ScalarType::Int64), -1);
  const Tensor valid = aten::eq(listed, Scalar(1));
  const Tensor label = aten::where(valid, target, Scalar(0));  // an index where none is listed
  const Tensor is_label =
      aten::gt(aten::scatter_add(aten::zeros_like(target), -1, label, listed), Scalar(0));
  const Tensor right = aten::gather(self, -1, label);
  // (..., label, class): each label against each class that is none.
  const Tensor margins =
      hinge(aten::add(aten::sub(aten::unsqueeze(self, -2), aten::unsqueeze(right, -1)), Scalar(1)));
  const Tensor counts = aten::logical_and(aten::unsqueeze(valid, -1),
                                          aten::eq(aten::unsqueeze(is_label, -2), Scalar(false)));
  const Tensor kept = aten::where(counts, margins, aten::zeros_like(margins));
  return reduced(kOp, aten::div(sum_last(sum_last(kept)), Scalar(static_cast<double>(classes))),
                 reduction);
}

}  // namespace treadle::composite
