// Gradients of cells and layers: a kernel, or a composition where they are differentiated again.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/ops/recurrent/gradients.h"

#include "aten/ops/_gru_cell_backward.h"
#include "aten/ops/_lstm_cell_backward.h"
#include "aten/ops/_recurrent_layers_backward.h"
#include "aten/ops/cat.h"
#include "aten/ops/chunk.h"
#include "aten/ops/clone.h"
#include "aten/ops/recurrent/layers.h"
#include "aten/ops/sigmoid.h"
#include "aten/ops/tanh.h"
#include "autograd/graph/engine.h"
#include "autograd/ops_syntax.h"

namespace treadle::autograd {

using namespace ops_syntax;  // NOLINT: infix operators of formulas

std::tuple<Tensor, Tensor> lstm_cell_backward(const Tensor& grad_h, const Tensor& grad_c,
                                              const Tensor& gates, const Tensor& cx,
                                              const Tensor& cy) {
  if (!grad_enabled()) return aten::_lstm_cell_backward(grad_h, grad_c, gates, cx, cy);
  const Scalar one(1);
  const std::vector<Tensor> parts = aten::chunk(gates, 4, 1);
  const Tensor i = aten::sigmoid(parts[0]), f = aten::sigmoid(parts[1]), g = aten::tanh(parts[2]),
               o = aten::sigmoid(parts[3]);
  const Tensor t = aten::tanh(f * cx + i * g);  // of cy, recomputed so that it is recorded
  const Tensor dc = grad_c + grad_h * o * (one - t * t);
  const Tensor grad_gates[] = {dc * g * i * (one - i), dc * cx * f * (one - f),
                               dc * i * (one - g * g), grad_h * t * o * (one - o)};
  return {aten::cat(TensorList(grad_gates, 4), 1), dc * f};
}

std::tuple<Tensor, Tensor, Tensor> gru_cell_backward(const Tensor& grad, const Tensor& input_gates,
                                                     const Tensor& hidden_gates, const Tensor& hx) {
  if (!grad_enabled()) return aten::_gru_cell_backward(grad, input_gates, hidden_gates, hx);
  const Scalar one(1);
  const std::vector<Tensor> x = aten::chunk(input_gates, 3, 1), h = aten::chunk(hidden_gates, 3, 1);
  const Tensor r = aten::sigmoid(x[0] + h[0]), z = aten::sigmoid(x[1] + h[1]);
  const Tensor n = aten::tanh(x[2] + r * h[2]);
  const Tensor dn = grad * (one - z) * (one - n * n);
  const Tensor dz = grad * (hx - n) * z * (one - z);
  const Tensor dr = dn * h[2] * r * (one - r);
  const Tensor of_input[] = {dr, dz, dn}, of_hidden[] = {dr, dz, dn * r};
  return {aten::cat(TensorList(of_input, 3), 1), aten::cat(TensorList(of_hidden, 3), 1), grad * z};
}

std::tuple<Tensor, Tensor, Tensor, std::vector<Tensor>> recurrent_layers_backward(
    const Tensor& grad_output, const Tensor& grad_hy, const Tensor& grad_cy, const Tensor& input,
    IntList batch_sizes, const Tensor& hx, const Tensor& cx, TensorList params, int64_t cell,
    bool has_biases, int64_t num_layers, bool bidirectional, const Tensor& output,
    const Tensor& reserve, std::array<bool, 4> wanted) {
  if (!grad_enabled()) {
    const std::vector<Tensor> all = aten::_recurrent_layers_backward(
        grad_output, grad_hy, grad_cy, input, batch_sizes, hx, cx, params, cell, has_biases,
        num_layers, bidirectional, output, keeps_graph() ? aten::clone(reserve) : reserve,
        wanted[0], wanted[3]);
    return {wanted[0] ? all[0] : Tensor(),
            all[1],
            cx.defined() ? all[2] : cx,
            {all.begin() + 3, all.end()}};
  }
  const composite::RecurrentLayers layers{static_cast<composite::Cell>(cell), has_biases,
                                          num_layers, bidirectional};
  const auto [out, hy, cy] =
      composite::recurrent_by_steps(layers, input, batch_sizes, hx, cx, params);
  std::vector<Tensor> outputs{out, hy}, grads{grad_output, grad_hy}, inputs;
  if (cx.defined()) outputs.push_back(cy), grads.push_back(grad_cy);
  if (wanted[0]) inputs.push_back(input);
  if (wanted[1]) inputs.push_back(hx);
  if (wanted[2]) inputs.push_back(cx);
  for (const Tensor& p : params)
    if (wanted[3] && p.requires_grad()) inputs.push_back(p);
  const std::vector<Tensor> found = grad(outputs, inputs, grads, true, true, true);
  auto next = found.begin();
  const auto take = [&](bool there) { return there ? *next++ : Tensor(); };
  Tensor of_input = take(wanted[0]), of_hx = take(wanted[1]), of_cx = take(wanted[2]);
  std::vector<Tensor> of_params;
  for (const Tensor& p : params) of_params.push_back(take(wanted[3] && p.requires_grad()));
  return {of_input, of_hx, of_cx, of_params};
}

}  // namespace treadle::autograd
