// Recurrent networks: cells, and whole layers over sequences.
//
// A layer multiplies the inputs of all steps by its weight in one product. A step then costs one
// product with the hidden state and one pointwise cell.
//
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <vector>

#include "aten/ops/_gru_cell.h"
#include "aten/ops/_lstm_cell.h"
#include "aten/ops/_recurrent_layers.h"
#include "aten/ops/add.h"
#include "aten/ops/addmm.h"
#include "aten/ops/cat.h"
#include "aten/ops/contiguous.h"
#include "aten/ops/dropout.h"
#include "aten/ops/gru.h"
#include "aten/ops/gru_cell.h"
#include "aten/ops/linear.h"
#include "aten/ops/lstm.h"
#include "aten/ops/lstm_cell.h"
#include "aten/ops/matmul.h"
#include "aten/ops/narrow.h"
#include "aten/ops/recurrent/layers.h"
#include "aten/ops/relu.h"
#include "aten/ops/rnn_relu.h"
#include "aten/ops/rnn_relu_cell.h"
#include "aten/ops/rnn_tanh.h"
#include "aten/ops/rnn_tanh_cell.h"
#include "aten/ops/split.h"
#include "aten/ops/stack.h"
#include "aten/ops/t.h"
#include "aten/ops/tanh.h"
#include "aten/ops/transpose.h"
#include "aten/ops/unbind.h"
#include "core/base/error.h"
#include "core/base/math_switches.h"

namespace treadle::composite {
namespace {

struct State {
  Tensor h, c;  // c for LSTM only
};

using Weights = RecurrentWeights;

bool shaped(const Tensor& t, std::initializer_list<int64_t> sizes) {
  return t.dim() == static_cast<int64_t>(sizes.size()) &&
         std::equal(sizes.begin(), sizes.end(), t.sizes().begin());
}

void check_weights(const char* op, Cell cell, const Weights& w, int64_t inputs, int64_t units,
                   int64_t hidden, const Tensor& input) {
  const int64_t rows = checked_numel({gates_of(cell), units});
  check<ErrorKind::Runtime>(input.is_floating_point(), OpName(op),
                            "expected input of a floating dtype, got ", input.dtype());
  const auto require = [&](const char* name, const Tensor& t,
                           std::initializer_list<int64_t> sizes) {
    if (!t.defined()) return;
    check<ErrorKind::Runtime>(shaped(t, sizes) && t.dtype() == input.dtype(), OpName(op),
                              "expected ", name, " of shape ", DimVector(sizes), " and dtype ",
                              input.dtype(), ", got ", t);
  };
  require("w_ih", w.w_ih, {rows, inputs});
  require("w_hh", w.w_hh, {rows, hidden});
  require("b_ih", w.b_ih, {rows});
  require("b_hh", w.b_hh, {rows});
  require("w_hr", w.w_hr, {hidden, units});
  check<ErrorKind::Runtime>(w.b_ih.defined() == w.b_hh.defined(), OpName(op),
                            "expected b_ih and b_hh both or neither, got one of them");
}

// The contribution of the inputs of all steps to the gates. The gates of an LSTM or a plain cell
// are sums, so both biases go in here; a GRU multiplies a part that has the hidden bias already.
Tensor input_gates(Cell cell, const Tensor& input, const Weights& w) {
  if (!w.b_ih.defined()) return aten::linear(input, w.w_ih);
  return aten::linear(input, w.w_ih, cell == Cell::Gru ? w.b_ih : aten::add(w.b_ih, w.b_hh));
}

// One step; `w_hh` is transposed: (hidden, gates).
State step(Cell cell, const Tensor& gates, const State& state, const Weights& w,
           const Tensor& w_hh) {
  if (cell == Cell::Gru) {
    const Tensor hidden =
        w.b_hh.defined() ? aten::addmm(w.b_hh, state.h, w_hh) : aten::matmul(state.h, w_hh);
    return {aten::_gru_cell(gates, hidden, state.h), {}};
  }
  const Tensor sum = aten::addmm(gates, state.h, w_hh);
  if (cell == Cell::Tanh) return {aten::tanh(sum), {}};
  if (cell == Cell::Relu) return {aten::relu(sum), {}};
  auto [h, c] = aten::_lstm_cell(sum, state.c);
  if (w.w_hr.defined()) h = aten::matmul(h, aten::t(w.w_hr));
  return {h, c};
}

// One direction of one layer. The steps of `input` are its first dimension, or, if it is packed,
// runs of rows. The result has the same form.
Tensor run(Cell cell, const Tensor& input, IntList batch_sizes, bool reverse, const Weights& w,
           State& state) {
  const RecurrentSteps steps(input, batch_sizes, reverse);
  const Tensor all = input_gates(cell, input, w), w_hh = aten::t(w.w_hh);
  const std::vector<Tensor> gates =
      batch_sizes.empty() ? aten::unbind(all, 0) : aten::split(all, batch_sizes, 0);
  std::vector<Tensor> outputs(gates.size()), cells(gates.size());
  for (int64_t k = 0; k < steps.count(); ++k) {
    const int64_t at = steps.at(k);
    const auto i = static_cast<size_t>(at);
    const State before{steps.before(at, outputs, state.h), steps.before(at, cells, state.c)};
    const State after = step(cell, gates[i], before, w, w_hh);
    outputs[i] = after.h;
    cells[i] = after.c;
  }
  state = {steps.last(outputs), state.c.defined() ? steps.last(cells) : state.c};
  return batch_sizes.empty() ? aten::stack(outputs) : aten::cat(outputs);
}

// Whether the backend of a tensor's device computes whole layers at once.
bool at_once(const Tensor& input) {
  if (!input.is_cpu() && !math_switches().recurrent_library) return false;
  const KernelRow* const row =
      aten::ops::_recurrent_layers::op.table().row(input.device().type, Layout::Strided);
  const auto t = static_cast<size_t>(input.dtype());
  return row && (row->kernels[t] || row->boxed[t]) && row->places[t] &&
         row->places[t]->source < KernelSource::Composite;
}

// Layers between which nothing is dropped.
std::tuple<Tensor, Tensor, Tensor> run_layers(const RecurrentLayers& l, const Tensor& input,
                                              IntList batch_sizes, const Tensor& hx,
                                              const Tensor& cx, TensorList params) {
  if (at_once(input) && input.numel() > 0 && hx.numel() > 0) {
    const bool record = grad_enabled() && !inference_enabled() &&
                        (input.requires_grad() || hx.requires_grad() || cx.requires_grad() ||
                         std::any_of(params.begin(), params.end(),
                                     [](const Tensor& t) { return t.requires_grad(); }));
    const auto [out, h, c, reserve] =
        aten::_recurrent_layers(input, batch_sizes, hx, cx, params, static_cast<int64_t>(l.cell),
                                l.has_biases, l.num_layers, l.bidirectional, record);
    if (out.numel() > 0) return {out, h, cx.defined() ? c : cx};
  }
  return recurrent_by_steps(l, input, batch_sizes, hx, cx, params);
}

struct Settings {
  const char* op;
  RecurrentLayers layers;
  double dropout;
  bool train;
};

// All layers. hx and cx are (layers * directions, B, units).
std::tuple<Tensor, Tensor, Tensor> layers(const Settings& s, Tensor input, IntList batch_sizes,
                                          const Tensor& hx, const Tensor& cx, TensorList params) {
  const RecurrentLayers& l = s.layers;
  const int64_t directions = l.directions();
  const int64_t count = checked_numel({l.num_layers, directions});
  const int64_t batch = batch_sizes.empty() ? input.size(1) : batch_sizes[0];
  check<ErrorKind::Runtime>(hx.dim() == 3 && hx.size(0) == count && hx.size(1) == batch,
                            OpName(s.op), "expected hidden state of shape (", count, ", ", batch,
                            ", hidden), got ", hx.sizes());
  check<ErrorKind::Runtime>(hx.dtype() == input.dtype(), OpName(s.op),
                            "expected hidden state of dtype ", input.dtype(), ", got ", hx.dtype());
  const int64_t hidden = hx.size(2);
  int64_t units = hidden;
  if (l.cell == Cell::Lstm) {
    check<ErrorKind::Runtime>(
        cx.dim() == 3 && cx.size(0) == count && cx.size(1) == batch && cx.dtype() == input.dtype(),
        OpName(s.op), "expected cell state of dtype ", input.dtype(), " and shape (", count, ", ",
        batch, ", units), got ", cx);
    units = cx.size(2);
  }
  const auto require_here = [&](const Tensor& t, auto... name) {
    if (!t.defined()) return;
    check<ErrorKind::Runtime>(t.device() == input.device(), OpName(s.op),
                              "expected all tensors on one device, got input on ", input.device(),
                              " and ", name..., " on ", t.device());
  };
  require_here(hx, "the hidden state");
  require_here(cx, "the cell state");
  for (size_t i = 0; i < params.size(); ++i) require_here(params[i], "weight ", i);
  const bool projected = units != hidden;
  const int64_t each = l.weights_each(projected);
  check<ErrorKind::Runtime>(static_cast<int64_t>(params.size()) == checked_numel({count, each}),
                            OpName(s.op), "expected ", each, " weights for each of ", count,
                            " layers and directions, got ", params.size());
  for (int64_t index = 0; index < count; ++index) {
    const int64_t features =
        index < directions ? input.size(-1) : checked_numel({hidden, directions});
    check_weights(s.op, l.cell, l.weights_at(index, projected, params), features, units, hidden,
                  input);
  }
  if (s.dropout == 0 || !s.train || l.num_layers == 1)
    return run_layers(l, input, batch_sizes, hx, cx, params);

  RecurrentLayers one = l;
  one.num_layers = 1;
  const auto weights = static_cast<size_t>(directions * each);
  std::vector<Tensor> h_end, c_end;
  for (int64_t layer = 0; layer < l.num_layers; ++layer) {
    const auto own = [&](const Tensor& state) {
      return state.defined() ? aten::narrow(state, 0, layer * directions, directions) : state;
    };
    if (layer > 0) input = aten::dropout(input, s.dropout, true);
    const auto [out, h, c] =
        run_layers(one, input, batch_sizes, own(hx), own(cx),
                   params.slice(static_cast<size_t>(layer) * weights, weights));
    input = out;
    h_end.push_back(h);
    c_end.push_back(c);
  }
  return {input, aten::cat(h_end), cx.defined() ? aten::cat(c_end) : cx};
}

std::tuple<Tensor, Tensor, Tensor> whole(const Settings& s, const Tensor& input, const Tensor& hx,
                                         const Tensor& cx, TensorList params, bool batch_first) {
  check<ErrorKind::Runtime>(input.dim() == 3, OpName(s.op),
                            "expected input of 3 dimensions (steps, batch, features), got shape ",
                            input.sizes());
  const Tensor steps = batch_first ? aten::transpose(input, 0, 1) : input;
  check<ErrorKind::Runtime>(steps.size(0) > 0, OpName(s.op),
                            "expected a sequence of at least 1 step, got input of shape ",
                            input.sizes());
  auto [out, h, c] = layers(s, steps, {}, hx, cx, params);
  return {batch_first ? aten::transpose(out, 0, 1) : out, h, c};
}

std::tuple<Tensor, Tensor, Tensor> of_packed(const Settings& s, const Tensor& data,
                                             const Tensor& batch_sizes, const Tensor& hx,
                                             const Tensor& cx, TensorList params) {
  check<ErrorKind::Runtime>(data.dim() == 2, OpName(s.op),
                            "expected packed data of 2 dimensions (rows, features), got shape ",
                            data.sizes());
  check<ErrorKind::Runtime>(batch_sizes.dim() == 1 && batch_sizes.numel() > 0 &&
                                batch_sizes.dtype() == ScalarType::Int64 && batch_sizes.is_cpu(),
                            OpName(s.op),
                            "expected batch_sizes of dtype int64 on the cpu, with a size "
                            "for each step, got ",
                            batch_sizes, " on ", batch_sizes.device());
  const Tensor dense = aten::contiguous(batch_sizes);
  const IntList list(dense.data_as<int64_t>(), static_cast<size_t>(dense.numel()));
  const DimVector sizes(list);
  int64_t left = data.size(0);
  for (size_t t = 0; t < sizes.size(); ++t) {
    check<ErrorKind::Runtime>(sizes[t] > 0 && (t == 0 || sizes[t] <= sizes[t - 1]), OpName(s.op),
                              "expected batch_sizes to be positive and not to grow, got ", sizes[t],
                              " at step ", t);
    check<ErrorKind::Runtime>(sizes[t] <= left, OpName(s.op), "expected batch_sizes that sum to ",
                              data.size(0), ", the rows of data, got more");
    left -= sizes[t];
  }
  check<ErrorKind::Runtime>(left == 0, OpName(s.op), "expected batch_sizes that sum to ",
                            data.size(0), ", the rows of data, got ", data.size(0) - left);
  return layers(s, data, sizes, hx, cx, params);
}

std::pair<Tensor, Tensor> lstm_state(const char* op, TensorList hx) {
  check<ErrorKind::Runtime>(hx.size() == 2 && hx[0].defined() && hx[1].defined(), OpName(op),
                            "expected hx = (h, c), got ", hx.size(), " tensors");
  return {hx[0], hx[1]};
}

State cell_of(const char* op, Cell cell, const Tensor& input, const Tensor& hx, const Tensor& cx,
              const Weights& w) {
  check<ErrorKind::Runtime>(input.dim() == 2, OpName(op),
                            "expected input of 2 dimensions (batch, features), got shape ",
                            input.sizes());
  for (const Tensor* state : {&hx, &cx}) {
    check<ErrorKind::Runtime>(
        !state->defined() || (state->dim() == 2 && state->size(0) == input.size(0) &&
                              state->dtype() == input.dtype()),
        OpName(op), "expected a state of dtype ", input.dtype(), " with ", input.size(0),
        " rows, got ", state->defined() ? *state : hx);
  }
  const int64_t units = cx.defined() ? cx.size(1) : hx.size(1);
  check<ErrorKind::Runtime>(hx.size(1) == units, OpName(op), "expected h and c of one shape, got ",
                            hx.sizes(), " and ", cx.defined() ? cx.sizes() : hx.sizes());
  check_weights(op, cell, w, input.size(1), units, units, input);
  return step(cell, input_gates(cell, input, w), {hx, cx}, w, aten::t(w.w_hh));
}

}  // namespace

std::tuple<Tensor, Tensor, Tensor> recurrent_by_steps(const RecurrentLayers& l, Tensor input,
                                                      IntList batch_sizes, const Tensor& hx,
                                                      const Tensor& cx, TensorList params) {
  const bool projected = cx.defined() && cx.size(2) != hx.size(2);
  const std::vector<Tensor> h0 = aten::unbind(hx, 0);
  const std::vector<Tensor> c0 =
      cx.defined() ? aten::unbind(cx, 0) : std::vector<Tensor>(h0.size());
  std::vector<Tensor> h_end, c_end;
  for (int64_t layer = 0; layer < l.num_layers; ++layer) {
    std::vector<Tensor> outputs;
    for (int64_t direction = 0; direction < l.directions(); ++direction) {
      const int64_t index = layer * l.directions() + direction;
      State state{h0[static_cast<size_t>(index)], c0[static_cast<size_t>(index)]};
      outputs.push_back(run(l.cell, input, batch_sizes, direction == 1,
                            l.weights_at(index, projected, params), state));
      h_end.push_back(state.h);
      c_end.push_back(state.c);
    }
    input = l.bidirectional ? aten::cat(outputs, -1) : outputs[0];
  }
  return {input, aten::stack(h_end), cx.defined() ? aten::stack(c_end) : cx};
}

std::tuple<Tensor, Tensor, Tensor> lstm(const Tensor& input, TensorList hx, TensorList params,
                                        bool has_biases, int64_t num_layers, double dropout,
                                        bool train, bool bidirectional, bool batch_first) {
  const auto [h, c] = lstm_state("lstm", hx);
  return whole({"lstm", {Cell::Lstm, has_biases, num_layers, bidirectional}, dropout, train}, input,
               h, c, params, batch_first);
}
std::tuple<Tensor, Tensor, Tensor> lstm(const Tensor& data, const Tensor& batch_sizes,
                                        TensorList hx, TensorList params, bool has_biases,
                                        int64_t num_layers, double dropout, bool train,
                                        bool bidirectional) {
  const auto [h, c] = lstm_state("lstm", hx);
  return of_packed({"lstm", {Cell::Lstm, has_biases, num_layers, bidirectional}, dropout, train},
                   data, batch_sizes, h, c, params);
}

std::tuple<Tensor, Tensor> gru(const Tensor& input, const Tensor& hx, TensorList params,
                               bool has_biases, int64_t num_layers, double dropout, bool train,
                               bool bidirectional, bool batch_first) {
  const auto [out, h, c] =
      whole({"gru", {Cell::Gru, has_biases, num_layers, bidirectional}, dropout, train}, input, hx,
            Tensor(), params, batch_first);
  return {out, h};
}
std::tuple<Tensor, Tensor> gru(const Tensor& data, const Tensor& batch_sizes, const Tensor& hx,
                               TensorList params, bool has_biases, int64_t num_layers,
                               double dropout, bool train, bool bidirectional) {
  const auto [out, h, c] =
      of_packed({"gru", {Cell::Gru, has_biases, num_layers, bidirectional}, dropout, train}, data,
                batch_sizes, hx, Tensor(), params);
  return {out, h};
}

std::tuple<Tensor, Tensor> rnn_tanh(const Tensor& input, const Tensor& hx, TensorList params,
                                    bool has_biases, int64_t num_layers, double dropout, bool train,
                                    bool bidirectional, bool batch_first) {
  const auto [out, h, c] =
      whole({"rnn_tanh", {Cell::Tanh, has_biases, num_layers, bidirectional}, dropout, train},
            input, hx, Tensor(), params, batch_first);
  return {out, h};
}
std::tuple<Tensor, Tensor> rnn_tanh(const Tensor& data, const Tensor& batch_sizes, const Tensor& hx,
                                    TensorList params, bool has_biases, int64_t num_layers,
                                    double dropout, bool train, bool bidirectional) {
  const auto [out, h, c] =
      of_packed({"rnn_tanh", {Cell::Tanh, has_biases, num_layers, bidirectional}, dropout, train},
                data, batch_sizes, hx, Tensor(), params);
  return {out, h};
}

std::tuple<Tensor, Tensor> rnn_relu(const Tensor& input, const Tensor& hx, TensorList params,
                                    bool has_biases, int64_t num_layers, double dropout, bool train,
                                    bool bidirectional, bool batch_first) {
  const auto [out, h, c] =
      whole({"rnn_relu", {Cell::Relu, has_biases, num_layers, bidirectional}, dropout, train},
            input, hx, Tensor(), params, batch_first);
  return {out, h};
}
std::tuple<Tensor, Tensor> rnn_relu(const Tensor& data, const Tensor& batch_sizes, const Tensor& hx,
                                    TensorList params, bool has_biases, int64_t num_layers,
                                    double dropout, bool train, bool bidirectional) {
  const auto [out, h, c] =
      of_packed({"rnn_relu", {Cell::Relu, has_biases, num_layers, bidirectional}, dropout, train},
                data, batch_sizes, hx, Tensor(), params);
  return {out, h};
}

std::tuple<Tensor, Tensor> lstm_cell(const Tensor& input, TensorList hx, const Tensor& w_ih,
                                     const Tensor& w_hh, const Tensor& b_ih, const Tensor& b_hh) {
  const auto [h, c] = lstm_state("lstm_cell", hx);
  const State s = cell_of("lstm_cell", Cell::Lstm, input, h, c, {w_ih, w_hh, b_ih, b_hh, {}});
  return {s.h, s.c};
}
Tensor gru_cell(const Tensor& input, const Tensor& hx, const Tensor& w_ih, const Tensor& w_hh,
                const Tensor& b_ih, const Tensor& b_hh) {
  return cell_of("gru_cell", Cell::Gru, input, hx, {}, {w_ih, w_hh, b_ih, b_hh, {}}).h;
}
Tensor rnn_tanh_cell(const Tensor& input, const Tensor& hx, const Tensor& w_ih, const Tensor& w_hh,
                     const Tensor& b_ih, const Tensor& b_hh) {
  return cell_of("rnn_tanh_cell", Cell::Tanh, input, hx, {}, {w_ih, w_hh, b_ih, b_hh, {}}).h;
}
Tensor rnn_relu_cell(const Tensor& input, const Tensor& hx, const Tensor& w_ih, const Tensor& w_hh,
                     const Tensor& b_ih, const Tensor& b_hh) {
  return cell_of("rnn_relu_cell", Cell::Relu, input, hx, {}, {w_ih, w_hh, b_ih, b_hh, {}}).h;
}

}  // namespace treadle::composite
