// Layers of recurrent networks: their weights, and which rows of a batch take part in each step.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tuple>
#include <vector>

#include "core/tensor/tensor.h"

namespace treadle::composite {

// The numbers are those of `_recurrent_layers`.
enum class Cell : int64_t { Tanh, Relu, Lstm, Gru };

// The number of gates of each kind of cell: rows of its weights for each hidden unit.
constexpr int64_t gates_of(Cell cell) { return cell == Cell::Lstm ? 4 : cell == Cell::Gru ? 3 : 1; }

// The weights of one layer in one direction, undefined where there is none.
struct RecurrentWeights {
  Tensor w_ih, w_hh, b_ih, b_hh, w_hr;
};

struct RecurrentLayers {
  Cell cell;
  bool has_biases;
  int64_t num_layers;
  bool bidirectional;

  int64_t directions() const { return bidirectional ? 2 : 1; }
  // Weights of a layer in one direction: w_ih, w_hh, b_ih, b_hh, w_hr.
  int64_t weights_each(bool projected) const { return (has_biases ? 4 : 2) + (projected ? 1 : 0); }
  // `index` counts layers and directions; the direction changes faster.
  RecurrentWeights weights_at(int64_t index, bool projected, TensorList params) const;
};

// The steps of one layer in one direction. Sequences of different lengths come packed: the rows of
// step 0, then those of step 1, .... They are sorted so that the longest sequence is first.
class RecurrentSteps {
 public:
  // `batch_sizes` has the rows of each step; without it, the steps of `input` are its first
  // dimension.
  RecurrentSteps(const Tensor& input, IntList batch_sizes, bool reverse);

  int64_t count() const { return static_cast<int64_t>(rows_.size()); }
  // The step that is computed k-th.
  int64_t at(int64_t k) const { return reverse_ ? count() - 1 - k : k; }
  // How many sequences take part in each step.
  const DimVector& rows() const { return rows_; }
  // The state that `step` begins with. `after` has the states after each step that was computed;
  // sequences that begin with `step` have the state `initial`. Undefined where `initial` is.
  Tensor before(int64_t step, const std::vector<Tensor>& after, const Tensor& initial) const;
  // The states of all sequences after their last steps.
  Tensor last(const std::vector<Tensor>& after) const;

 private:
  DimVector rows_;
  bool reverse_;
};

// The outputs of all steps, and h and c (undefined except for LSTM) after the last, from
// differentiable operators. This serves devices without a kernel for whole layers, and gradients of
// gradients. Without batch_sizes input is (steps, batch, features), else (rows, features), packed.
// hx and cx are (layers * directions, batch, units). The arguments must fit together; they are not
// checked.
std::tuple<Tensor, Tensor, Tensor> recurrent_by_steps(const RecurrentLayers& layers, Tensor input,
                                                      IntList batch_sizes, const Tensor& hx,
                                                      const Tensor& cx, TensorList params);

}  // namespace treadle::composite
