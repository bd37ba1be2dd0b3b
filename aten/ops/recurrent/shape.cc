// Checks that gates and states fit together.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/ops/recurrent/shape.h"

namespace treadle::shape {
namespace {

void state(const char* op, const Tensor& t) {
  check<ErrorKind::Runtime>(t.dim() == 2, OpName(op), "expected a state of shape (B, H), got ",
                            t.sizes());
}

// `t` has the batch and dtype of `like` and `times` as many columns.
void columns(const char* op, const char* name, const Tensor& t, const Tensor& like, int64_t times) {
  check<ErrorKind::Runtime>(t.dim() == 2 && t.size(0) == like.size(0) && t.size(1) % times == 0 &&
                                t.size(1) / times == like.size(1) && t.dtype() == like.dtype(),
                            OpName(op), "expected ", name, " of dtype ", like.dtype(), " with ",
                            like.size(0), " rows and ", times, " x ", like.size(1),
                            " columns, got ", t);
}

TensorSpec spec(const Tensor& t) { return {t.sizes(), t.dtype(), t.device()}; }

}  // namespace

std::array<TensorSpec, 2> lstm_cell(const char* op, const Tensor& gates, const Tensor& cx) {
  state(op, cx);
  columns(op, "gates", gates, cx, 4);
  return {spec(cx), spec(cx)};
}

std::array<TensorSpec, 2> lstm_cell_grad(const char* op, const Tensor& grad_h, const Tensor& grad_c,
                                         const Tensor& gates, const Tensor& cx, const Tensor& cy) {
  lstm_cell(op, gates, cx);
  columns(op, "grad_h", grad_h, cx, 1);
  columns(op, "grad_c", grad_c, cx, 1);
  columns(op, "cy", cy, cx, 1);
  return {spec(gates), spec(cx)};
}

TensorSpec gru_cell(const char* op, const Tensor& input_gates, const Tensor& hidden_gates,
                    const Tensor& hx) {
  state(op, hx);
  columns(op, "input_gates", input_gates, hx, 3);
  columns(op, "hidden_gates", hidden_gates, hx, 3);
  return spec(hx);
}

std::array<TensorSpec, 3> gru_cell_grad(const char* op, const Tensor& grad,
                                        const Tensor& input_gates, const Tensor& hidden_gates,
                                        const Tensor& hx) {
  gru_cell(op, input_gates, hidden_gates, hx);
  columns(op, "grad", grad, hx, 1);
  return {spec(input_gates), spec(hidden_gates), spec(hx)};
}

}  // namespace treadle::shape
