// linear_cross_entropy: the last layer of a language model and its loss, some rows at a time.
//
// Made of Treadle's operators, so that it runs on every device; what it adds is that the logits
// (N, classes), by far the largest tensor of such a model, are never there as a whole, neither in
// the forward nor in the backward pass.
//
// SPDX-License-Identifier: Apache-2.0
#include "extra_ops/ops/linear_cross_entropy.h"
#include "aten/functions.h"
#include "extra_ops/ops/linear_cross_entropy_backward.h"
#include "extra_ops/ops/linear_cross_entropy_forward.h"

namespace extra_ops {

namespace {

// Logits that are in memory at a time.
constexpr int64_t kLogits = int64_t{1} << 23;

// f(first row, rows) for pieces of the rows.
template <class F>
void each_piece(int64_t rows, int64_t classes, F&& f) {
  const int64_t most = std::max<int64_t>(1, kLogits / std::max<int64_t>(1, classes));
  for (int64_t first = 0; first < rows; first += most) f(first, std::min(most, rows - first));
}

void check_arguments(const Tensor& input, const Tensor& weight, const Tensor& target,
                     const Tensor& bias) {
  const char* const op = "linear_cross_entropy";
  check<ErrorKind::Runtime>(input.dim() == 2, OpName(op),
                            "expected input of shape (N, features), got ", input.sizes());
  check<ErrorKind::Runtime>(weight.dim() == 2 && weight.size(1) == input.size(1), OpName(op),
                            "expected weight of shape (classes, ", input.size(1), "), got ",
                            weight.sizes());
  check<ErrorKind::Runtime>(target.dim() == 1 && target.size(0) == input.size(0), OpName(op),
                            "expected target of shape (", input.size(0), "), got ", target.sizes());
  check<ErrorKind::Runtime>(target.dtype() == ScalarType::Int64, OpName(op),
                            "expected target of dtype int64, got ", target.dtype());
  check<ErrorKind::Runtime>(!bias.defined() || (bias.dim() == 1 && bias.size(0) == weight.size(0)),
                            OpName(op), "expected bias of shape (", weight.size(0), "), got ",
                            bias.defined() ? bias.sizes() : IntList());
}

// The rows that are ignored, and the class of each row; ignored ones have class 0.
struct Targets {
  Tensor ignored;
  Tensor classes;  // (N, 1)
};
Targets targets_of(const Tensor& target, int64_t ignore_index, int64_t classes) {
  const Tensor ignored = aten::eq(target, ignore_index);
  const Tensor plain = aten::where(ignored, aten::zeros_like(target), target);
  if (!target.is_meta() && target.numel() > 0) {
    const int64_t least = aten::item(aten::amin(plain)).to<int64_t>();
    const int64_t most = aten::item(aten::amax(plain)).to<int64_t>();
    check<ErrorKind::Index>(
        least >= 0 && most < classes, OpName("linear_cross_entropy"), "expected target in [0, ",
        classes, ") or ignore_index = ", ignore_index, ", got target = ", least < 0 ? least : most);
  }
  return {ignored, aten::unsqueeze(plain, 1)};
}

// How many rows count.
Tensor count_of(const Tensor& ignored, ScalarType dtype) {
  return aten::to(aten::sum(aten::eq(ignored, false)), dtype);
}

}  // namespace

namespace composite {

Tensor linear_cross_entropy(const Tensor& input, const Tensor& weight, const Tensor& target,
                            const Tensor& bias, int64_t ignore_index, std::string_view reduction) {
  return std::get<0>(extra_ops::linear_cross_entropy_forward(input, weight, target, bias,
                                                             ignore_index, reduction));
}

std::tuple<Tensor, Tensor> linear_cross_entropy_forward(const Tensor& input, const Tensor& weight,
                                                        const Tensor& target, const Tensor& bias,
                                                        int64_t ignore_index,
                                                        std::string_view reduction) {
  check_arguments(input, weight, target, bias);
  const int64_t rows = input.size(0), classes = weight.size(0);
  const Targets targets = targets_of(target, ignore_index, classes);
  const Tensor log_sum = aten::new_empty(input, {rows}), picked = aten::new_empty(input, {rows});
  each_piece(rows, classes, [&](int64_t first, int64_t n) {
    const Tensor logits = aten::linear(aten::narrow(input, 0, first, n), weight, bias);
    aten::copy_(aten::narrow(log_sum, 0, first, n), aten::logsumexp(logits, {1}));
    const Tensor chosen = aten::gather(logits, 1, aten::narrow(targets.classes, 0, first, n));
    aten::copy_(aten::narrow(picked, 0, first, n), aten::squeeze(chosen, 1));
  });
  const Tensor losses =
      aten::where(targets.ignored, aten::zeros_like(log_sum), aten::sub(log_sum, picked));
  if (reduction == "none") return {losses, log_sum};
  if (reduction == "sum") return {aten::sum(losses), log_sum};
  return {aten::div(aten::sum(losses), count_of(targets.ignored, input.dtype())), log_sum};
}

std::tuple<Tensor, Tensor, Tensor> linear_cross_entropy_backward(
    const Tensor& grad, const Tensor& input, const Tensor& weight, const Tensor& target,
    const Tensor& bias, const Tensor& log_sum, int64_t ignore_index, std::string_view reduction,
    std::array<bool, 3> output_mask) {
  const int64_t rows = input.size(0), classes = weight.size(0);
  const Targets targets = targets_of(target, ignore_index, classes);
  const Tensor each =
      reduction == "mean" ? aten::div(grad, count_of(targets.ignored, input.dtype())) : grad;
  const Tensor zeros = aten::zeros_like(log_sum);
  const Tensor row_grads =
      aten::unsqueeze(aten::where(targets.ignored, zeros, aten::add(zeros, each)), 1);
  Tensor grad_input, grad_weight, grad_bias;
  if (output_mask[0]) grad_input = aten::zeros_like(input);
  if (output_mask[1]) grad_weight = aten::zeros_like(weight);
  if (output_mask[2] && bias.defined()) grad_bias = aten::zeros_like(bias);
  each_piece(rows, classes, [&](int64_t first, int64_t n) {
    const auto piece = [&](const Tensor& t) { return aten::narrow(t, 0, first, n); };
    // softmax(logits) - 1 at the target, times the gradient of the row's loss.
    const Tensor d = aten::linear(piece(input), weight, bias);
    aten::exp_(aten::sub_(d, aten::unsqueeze(piece(log_sum), 1)));
    const Tensor index = piece(targets.classes);
    aten::scatter_add_(d, 1, index, aten::full_like(aten::to(index, d.dtype()), -1));
    aten::mul_(d, piece(row_grads));
    if (grad_input.defined()) aten::copy_(piece(grad_input), aten::mm(d, weight));
    if (grad_weight.defined()) aten::addmm_(grad_weight, aten::t(d), piece(input));
    if (grad_bias.defined()) aten::add_(grad_bias, aten::sum(d, IntList{0}));
  });
  return {grad_input, grad_weight, grad_bias};
}

}  // namespace composite

}  // namespace extra_ops
