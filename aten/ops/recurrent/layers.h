// Layers of recurrent networks, step by step, from differentiable operators. They serve devices
// without a kernel for whole layers, and gradients of gradients.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tuple>

#include "core/tensor/tensor.h"

namespace treadle::composite {

// The numbers are those of `_recurrent_layers`.
enum class Cell : int64_t { Tanh, Relu, Lstm, Gru };

// The number of gates of each kind of cell: rows of its weights for each hidden unit.
constexpr int64_t gates_of(Cell cell) { return cell == Cell::Lstm ? 4 : cell == Cell::Gru ? 3 : 1; }

struct RecurrentLayers {
  Cell cell;
  bool has_biases;
  int64_t num_layers;
  bool bidirectional;

  int64_t directions() const { return bidirectional ? 2 : 1; }
  // Weights of a layer in one direction: w_ih, w_hh, b_ih, b_hh, w_hr.
  int64_t weights_each(bool projected) const { return (has_biases ? 4 : 2) + (projected ? 1 : 0); }
};

// The outputs of all steps, and h and c (undefined except for LSTM) after the last. Without
// batch_sizes input is (steps, batch, features), else (rows, features), packed. hx and cx are
// (layers * directions, batch, units). The arguments must fit together; they are not checked.
std::tuple<Tensor, Tensor, Tensor> recurrent_by_steps(const RecurrentLayers& layers, Tensor input,
                                                      IntList batch_sizes, const Tensor& hx,
                                                      const Tensor& cx, TensorList params);

}  // namespace treadle::composite
