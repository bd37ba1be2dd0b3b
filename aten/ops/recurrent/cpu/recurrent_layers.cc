// Whole layers of recurrent networks, and their gradients.
//
// Beside the steps one after another, which the hidden state demands, there are only products over
// all steps at once: forward that of the input, backward those that give the gradients of the input
// and of the weights. The steps write into one tensor for all, so nothing is stacked.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/ops/recurrent/layers.h"

#include "aten/ops/_recurrent_layers.h"
#include "aten/ops/_recurrent_layers_backward.h"
#include "aten/ops/add.h"
#include "aten/ops/addmm.h"
#include "aten/ops/cat.h"
#include "aten/ops/clone.h"
#include "aten/ops/copy_.h"
#include "aten/ops/linear.h"
#include "aten/ops/mm.h"
#include "aten/ops/narrow.h"
#include "aten/ops/recurrent/cpu/rnn_cells.h"
#include "aten/ops/relu.h"
#include "aten/ops/reshape.h"
#include "aten/ops/select.h"
#include "aten/ops/split.h"
#include "aten/ops/sum.h"
#include "aten/ops/t.h"
#include "aten/ops/tanh.h"
#include "aten/ops/tanh_backward.h"
#include "aten/ops/threshold_backward.h"
#include "aten/ops/view.h"
#include "core/dispatch/profiler.h"

namespace treadle::cpu {
namespace {

using composite::Cell;
using composite::gates_of;
using composite::RecurrentLayers;
using composite::RecurrentSteps;
using composite::RecurrentWeights;

// The values of one layer in one direction that its gradients read. Each has a row for each row of
// the input.
struct Saved {
  Tensor gates;   // before their activations; of a GRU, the part that comes from the input
  Tensor hidden;  // of a GRU: the part of the gates that comes from the hidden state
  Tensor cells;   // of an LSTM: the cell state after each step
};

// A call, without the values of the tensors.
struct Call {
  RecurrentLayers layers;
  int64_t rows, units;
  ScalarType dtype;

  int64_t columns() const { return units * gates_of(layers.cell); }
  int64_t outputs() const { return units * layers.directions(); }
  // Elements that are saved for the gradients.
  int64_t saved_elements() const {
    const int64_t gru = layers.cell == Cell::Gru ? columns() : 0;
    const int64_t lstm = layers.cell == Cell::Lstm ? units : 0;
    return checked_numel({rows, layers.num_layers * layers.directions() * (columns() + gru + lstm) +
                                    (layers.num_layers - 1) * outputs()});
  }
};

// Takes matrices, one after another, from the tensor that is saved, or makes them if it is
// undefined.
class Parts {
 public:
  Parts(const Call& call, const Tensor& reserve) : call_(call), reserve_(reserve) {}

  Tensor take(int64_t columns) {
    if (!reserve_.defined()) return empty_cpu({call_.rows, columns}, call_.dtype);
    const int64_t begin = taken_;
    taken_ += call_.rows * columns;
    return aten::view(aten::narrow(reserve_, 0, begin, call_.rows * columns),
                      {call_.rows, columns});
  }
  Saved take_saved() {
    const Cell cell = call_.layers.cell;
    Saved saved;
    saved.gates = take(call_.columns());
    if (cell == Cell::Gru) saved.hidden = take(call_.columns());
    if (cell == Cell::Lstm) saved.cells = take(call_.units);
    return saved;
  }

 private:
  const Call& call_;
  Tensor reserve_;
  int64_t taken_ = 0;
};

std::vector<Tensor> by_steps(const Tensor& rows, const RecurrentSteps& steps) {
  return rows.defined() ? aten::split(rows, IntList(steps.rows()), 0)
                        : std::vector<Tensor>(static_cast<size_t>(steps.count()));
}

Tensor matrix(const Tensor& t, int64_t rows) {
  return t.dim() == 2 ? t : aten::reshape(t, {rows, t.size(-1)});
}

Tensor columns_of(const Tensor& all, int64_t direction, int64_t units) {
  return aten::narrow(all, 1, direction * units, units);
}

// One layer in one direction. Writes the outputs into `out`, which has a column for each unit.
template <class T>
void run(Cell cell, const Tensor& x, const RecurrentSteps& steps, const RecurrentWeights& w,
         const Tensor& hx, const Tensor& cx, const Saved& saved, const Tensor& out,
         const Tensor& hy, const Tensor& cy) {
  const bool gru = cell == Cell::Gru;
  Tensor bias = w.b_ih;
  if (bias.defined() && !gru) bias = aten::add(w.b_ih, w.b_hh);
  aten::linear_out(x, w.w_ih, bias, saved.gates);
  const Tensor w_hh = aten::t(w.w_hh);
  const std::vector<Tensor> gates = by_steps(saved.gates, steps),
                            hidden = by_steps(saved.hidden, steps), h = by_steps(out, steps),
                            c = by_steps(saved.cells, steps);
  for (int64_t k = 0; k < steps.count(); ++k) {
    const int64_t at = steps.at(k);
    const auto i = static_cast<size_t>(at);
    const Tensor h_before = steps.before(at, h, hx);
    if (gru) {
      if (w.b_hh.defined())
        aten::addmm_out(w.b_hh, h_before, w_hh, Scalar(1), Scalar(1), hidden[i]);
      else
        aten::mm_out(h_before, w_hh, hidden[i]);
      gru_cell_cpu<T>(gates[i], hidden[i], h_before, h[i]);
      continue;
    }
    aten::addmm_(gates[i], h_before, w_hh);
    if (cell == Cell::Lstm)
      lstm_cell_cpu<T>(gates[i], steps.before(at, c, cx), h[i], c[i]);
    else if (cell == Cell::Tanh)
      aten::tanh_out(gates[i], h[i]);
    else
      aten::copy_(h[i], aten::relu(gates[i]));
  }
  aten::copy_(hy, steps.last(h));
  if (cell == Cell::Lstm) aten::copy_(cy, steps.last(c));
}

template <class T>
std::tuple<Tensor, Tensor, Tensor, Tensor> recurrent_layers_cpu(
    const Tensor& input, IntList batch_sizes, const Tensor& hx, const Tensor& cx, TensorList params,
    int64_t cell, bool has_biases, int64_t num_layers, bool bidirectional, bool record) {
  const auto empty = [&](IntList sizes) { return empty_cpu(sizes, input.dtype()); };
  const profiler::NestedCalls recorded;
  const bool projected = cx.defined() && cx.size(2) != hx.size(2);
  if (projected) return {empty({0}), empty({0}), empty({0}), empty({0})};
  const int64_t features = input.size(-1);
  const Call call{{static_cast<Cell>(cell), has_biases, num_layers, bidirectional},
                  features ? input.numel() / features : 0,
                  hx.size(2),
                  input.dtype()};
  const RecurrentLayers& layers = call.layers;
  const Tensor reserve = record ? empty({call.saved_elements()}) : Tensor();
  DimVector sizes(input.sizes());
  sizes.back() = call.outputs();
  const Tensor output = empty(sizes), hy = empty(hx.sizes()),
               cy = cx.defined() ? empty(cx.sizes()) : empty({0});
  Parts parts(call, reserve);
  Tensor x = matrix(input, call.rows);
  for (int64_t layer = 0; layer < num_layers; ++layer) {
    const Tensor out =
        layer == num_layers - 1 ? matrix(output, call.rows) : parts.take(call.outputs());
    for (int64_t direction = 0; direction < layers.directions(); ++direction) {
      const int64_t index = layer * layers.directions() + direction;
      const auto own = [&](const Tensor& state) { return aten::select(state, 0, index); };
      run<T>(layers.cell, x, RecurrentSteps(input, batch_sizes, direction == 1),
             layers.weights_at(index, false, params), own(hx), cx.defined() ? own(cx) : cx,
             parts.take_saved(), columns_of(out, direction, call.units), own(hy),
             cx.defined() ? own(cy) : cx);
    }
    x = out;
  }
  return {output, hy, cy, record ? reserve : empty({0})};
}

// Gradients of one layer in one direction: of the gates, as far as they come from the input and
// from the hidden state, and of the state that the layer begins with.
struct StepGrads {
  Tensor gates, hidden, hx, cx;
};

// `grad_h` and `grad_c` hold the gradients of the last states and are used up.
template <class T>
StepGrads run_backward(Cell cell, const RecurrentSteps& steps, const Tensor& w_hh,
                       const Saved& saved, const std::vector<Tensor>& h_before,
                       const std::vector<Tensor>& c_before, const Tensor& out,
                       const Tensor& grad_out, const Tensor& grad_h, const Tensor& grad_c) {
  const Tensor grad_gates = empty_cpu(saved.gates.sizes(), saved.gates.dtype()),
               grad_hidden = cell == Cell::Gru
                                 ? empty_cpu(saved.hidden.sizes(), saved.hidden.dtype())
                                 : grad_gates;
  const std::vector<Tensor> gates = by_steps(saved.gates, steps),
                            hidden = by_steps(saved.hidden, steps), h = by_steps(out, steps),
                            c = by_steps(saved.cells, steps), dh = by_steps(grad_out, steps),
                            dgates = by_steps(grad_gates, steps),
                            dhidden = by_steps(grad_hidden, steps);
  for (int64_t k = steps.count() - 1; k >= 0; --k) {
    const auto i = static_cast<size_t>(steps.at(k));
    const int64_t n = steps.rows()[i];
    // Those that take part in this step; the other rows wait for the step that they end with.
    const Tensor d = aten::narrow(grad_h, 0, 0, n);
    aten::add_(d, dh[i]);
    if (cell == Cell::Gru) {
      gru_cell_backward_cpu<T>(d, gates[i], hidden[i], h_before[i], dgates[i], dhidden[i], d);
      aten::addmm_(d, dhidden[i], w_hh);
      continue;
    }
    if (cell == Cell::Lstm) {
      const Tensor dc = aten::narrow(grad_c, 0, 0, n);
      lstm_cell_backward_cpu<T>(d, dc, gates[i], c_before[i], c[i], dgates[i], dc);
    } else {
      aten::copy_(dgates[i], cell == Cell::Tanh ? aten::tanh_backward(d, h[i])
                                                : aten::threshold_backward(d, h[i], Scalar(0)));
    }
    aten::mm_out(dgates[i], w_hh, d);
  }
  return {grad_gates, grad_hidden, grad_h, grad_c};
}

template <class T>
std::vector<Tensor> recurrent_layers_backward_cpu(
    const Tensor& grad_output, const Tensor& grad_hy, const Tensor& grad_cy, const Tensor& input,
    IntList batch_sizes, const Tensor& hx, const Tensor& cx, TensorList params, int64_t cell,
    bool has_biases, int64_t num_layers, bool bidirectional, const Tensor& output,
    const Tensor& reserve, bool of_input, bool of_weights) {
  const profiler::NestedCalls recorded;
  const Call call{{static_cast<Cell>(cell), has_biases, num_layers, bidirectional},
                  input.numel() / input.size(-1),
                  hx.size(2),
                  input.dtype()};
  const RecurrentLayers& layers = call.layers;
  const auto empty = [&](IntList sizes) { return empty_cpu(sizes, input.dtype()); };
  const int64_t each = layers.weights_each(false);
  std::vector<Tensor> grads(static_cast<size_t>(of_weights ? 3 + params.size() : 3));
  grads[0] = empty({0});
  grads[2] = empty({0});
  grads[1] = aten::clone(grad_hy);
  if (cx.defined()) grads[2] = aten::clone(grad_cy);

  Parts parts(call, reserve);
  std::vector<Tensor> outs(static_cast<size_t>(num_layers));
  std::vector<Saved> saved;
  for (int64_t layer = 0; layer < num_layers; ++layer) {
    outs[static_cast<size_t>(layer)] =
        layer == num_layers - 1 ? matrix(output, call.rows) : parts.take(call.outputs());
    for (int64_t direction = 0; direction < layers.directions(); ++direction)
      saved.push_back(parts.take_saved());
  }
  Tensor grad_out = matrix(grad_output, call.rows);
  for (int64_t layer = num_layers - 1; layer >= 0; --layer) {
    const Tensor &out = outs[static_cast<size_t>(layer)],
                 x = layer ? outs[static_cast<size_t>(layer - 1)] : matrix(input, call.rows);
    Tensor grad_x;
    for (int64_t direction = 0; direction < layers.directions(); ++direction) {
      const int64_t index = layer * layers.directions() + direction;
      const RecurrentWeights w = layers.weights_at(index, false, params);
      const RecurrentSteps steps(input, batch_sizes, direction == 1);
      const Saved& of = saved[static_cast<size_t>(index)];
      const Tensor own_out = columns_of(out, direction, call.units);
      const auto before = [&](const Tensor& after, const Tensor& initial) {
        const std::vector<Tensor> states = by_steps(after, steps);
        std::vector<Tensor> all;
        for (int64_t step = 0; step < steps.count(); ++step)
          all.push_back(steps.before(step, states, initial));
        return all;
      };
      const std::vector<Tensor> h_before = before(own_out, aten::select(hx, 0, index));
      const std::vector<Tensor> c_before =
          before(of.cells, cx.defined() ? aten::select(cx, 0, index) : cx);
      const StepGrads g = run_backward<T>(layers.cell, steps, w.w_hh, of, h_before, c_before,
                                          own_out, columns_of(grad_out, direction, call.units),
                                          aten::select(grads[1], 0, index),
                                          cx.defined() ? aten::select(grads[2], 0, index) : cx);
      if (layer || of_input) {
        if (direction == 0)
          grad_x = aten::mm(g.gates, w.w_ih);
        else
          aten::addmm_(grad_x, g.gates, w.w_ih);
      }
      if (!of_weights) continue;
      Tensor* const to = &grads[static_cast<size_t>(3 + index * each)];
      const Tensor hidden = aten::t(g.hidden);
      to[0] = aten::mm(aten::t(g.gates), x);
      to[1] = aten::mm(hidden, aten::cat(h_before));
      if (!has_biases) continue;
      const int64_t rows[] = {0};
      to[2] = aten::sum(g.gates, IntList(rows, 1));
      to[3] = layers.cell == Cell::Gru ? aten::sum(g.hidden, IntList(rows, 1)) : aten::clone(to[2]);
    }
    grad_out = grad_x;
  }
  if (of_input) grads[0] = aten::view(grad_out, input.sizes());
  return grads;
}

const auto registered = register_kernels<aten::ops::_recurrent_layers, DeviceType::CPU>(
    []<class T>() { return &recurrent_layers_cpu<T>; }, "recurrent_layers_cpu");
const auto backward_registered =
    register_kernels<aten::ops::_recurrent_layers_backward, DeviceType::CPU>(
        []<class T>() { return &recurrent_layers_backward_cpu<T>; },
        "recurrent_layers_backward_cpu");

}  // namespace
}  // namespace treadle::cpu
