// Recurrent layers of cuDNN for emulated devices: step by step in double on the CPU. Where weights
// lie differs from what NVIDIA's library does, so that nothing may rely on more than it says: gates
// of the recurrent weights stand apart, biases are in the reverse order.
//
// The space reserved for the gradient begins with a word that says what it holds.
//
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>

#include "aten/ops/contiguous.h"
#include "aten/ops/detach.h"
#include "aten/ops/recurrent/layers.h"
#include "autograd/graph/engine.h"
#include "autograd/meta.h"
#include "core/tensor/tensor.h"
#include "tests/cuda_emulator/cudnn.h"

namespace treadle::cuda::emulator {
namespace {

using composite::Cell;
using composite::RecurrentLayers;

struct Dropout {
  bool set = false;
};
struct Layers {
  cudnnRNNAlgo_t algorithm;
  cudnnDataType_t type;
  RecurrentLayers are;
  int features, units, hidden;
  bool padded;

  int count() const { return static_cast<int>(are.num_layers * are.directions()); }
  bool projected() const { return units != hidden; }
  int gates() const { return static_cast<int>(composite::gates_of(are.cell)); }
};
struct Sequences {
  cudnnDataType_t type;
  cudnnRNNDataLayout_t layout;
  int steps, batch, width;
  std::vector<int> lengths;

  bool packed() const { return layout == CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_PACKED; }
  int64_t rows() const {
    int64_t all = 0;
    for (const int length : lengths) all += length;
    return all;
  }
};

size_t bytes_of(cudnnDataType_t type) {
  return type == CUDNN_DATA_DOUBLE ? 8 : type == CUDNN_DATA_FLOAT ? 4 : 2;
}

// A matrix or a bias of one gate, as numbers of elements.
struct Part {
  size_t at, rows, columns;
  size_t end() const { return at + rows * columns; }
};
struct LayerParts {
  std::vector<Part> matrices, biases;  // by cuDNN's numbers
};
std::vector<LayerParts> parts_of(const Layers& l, size_t* elements) {
  constexpr size_t kGap = 8;
  std::vector<LayerParts> all;
  size_t at = 0;
  const auto put = [&](size_t rows, size_t columns) {
    const Part part{at, rows, columns};
    at = part.end();
    return part;
  };
  const auto units = static_cast<size_t>(l.units), hidden = static_cast<size_t>(l.hidden);
  for (int layer = 0; layer < l.count(); ++layer) {
    LayerParts parts;
    const size_t inputs = layer < l.are.directions()
                              ? static_cast<size_t>(l.features)
                              : hidden * static_cast<size_t>(l.are.directions());
    for (int g = 0; g < l.gates(); ++g) parts.matrices.push_back(put(units, inputs));
    for (int g = 0; g < l.gates(); ++g) {
      at += kGap;
      parts.matrices.push_back(put(units, hidden));
    }
    if (l.projected()) parts.matrices.push_back(put(hidden, units));
    if (l.are.has_biases) {
      for (int g = 0; g < 2 * l.gates(); ++g) parts.biases.push_back(put(units, 1));
      std::reverse(parts.biases.begin(), parts.biases.end());
    }
    all.push_back(parts);
  }
  if (elements) *elements = at;
  return all;
}

// Numbers of a dtype that is known when a program runs.
double read_as(cudnnDataType_t type, const void* data, int64_t at) {
  return with_type(type, [&]<class T>() { return read<T>(data, at); });
}
void write_as(cudnnDataType_t type, void* data, int64_t at, double v, double beta) {
  with_type(type, [&]<class T>() { write<T>(data, at, v, beta); });
}
Tensor loaded(cudnnDataType_t type, const void* data, IntList sizes) {
  if (!data) return {};
  const Tensor t = empty_cpu(sizes, ScalarType::Float64);
  for (int64_t i = 0; i < t.numel(); ++i) t.data_as<double>()[i] = read_as(type, data, i);
  return t;
}
void store(cudnnDataType_t type, const Tensor& t, void* data) {
  if (!data) return;
  const Tensor dense = aten::contiguous(t);
  for (int64_t i = 0; i < dense.numel(); ++i)
    write_as(type, data, i, dense.data_as<double>()[i], 0);
}

// One number for each element of the weights that are in a part: of a tensor, and of the space.
// Calls f(param, place in it, place in the space).
template <class F>
void for_each_weight(const Layers& l, F f) {
  const auto each = static_cast<size_t>(l.are.weights_each(l.projected()));
  const auto gates = static_cast<size_t>(l.gates());
  const std::vector<LayerParts> all = parts_of(l, nullptr);
  for (size_t layer = 0; layer < all.size(); ++layer) {
    const auto go = [&](const Part& part, size_t param, size_t gate) {
      const size_t n = part.rows * part.columns;
      for (size_t i = 0; i < n; ++i)
        f(layer * each + param, static_cast<int64_t>(gate * n + i),
          static_cast<int64_t>(part.at + i));
    };
    const LayerParts& parts = all[layer];
    for (size_t g = 0; g < 2 * gates; ++g) go(parts.matrices[g], g / gates, g % gates);
    for (size_t g = 0; g < parts.biases.size(); ++g) go(parts.biases[g], 2 + g / gates, g % gates);
    if (l.projected()) go(parts.matrices[2 * gates], each - 1, 0);
  }
}
std::vector<Tensor> empty_params(const Layers& l) {
  std::vector<Tensor> params;
  for (int layer = 0; layer < l.count(); ++layer) {
    const int64_t rows = int64_t{l.gates()} * l.units;
    const int64_t inputs =
        layer < l.are.directions() ? l.features : int64_t{l.hidden} * l.are.directions();
    const auto add = [&](IntList sizes) {
      params.push_back(empty_cpu(sizes, ScalarType::Float64));
    };
    add({rows, inputs});
    add({rows, l.hidden});
    if (l.are.has_biases) add({rows}), add({rows});
    if (l.projected()) add({l.hidden, l.units});
  }
  return params;
}

// The arguments of a call, in double.
struct Values {
  Tensor x, h, c;
  std::vector<Tensor> params;
  DimVector batch_sizes;
  std::tuple<Tensor, Tensor, Tensor> run(const RecurrentLayers& layers) const {
    return composite::recurrent_by_steps(layers, x, batch_sizes, h, c, params);
  }
};
Values values_of(const Layers& l, const Sequences& s, const void* x, const void* hx, const void* cx,
                 const void* weights) {
  Values v;
  v.x = s.packed() ? loaded(l.type, x, {s.rows(), s.width})
                   : loaded(l.type, x, {s.steps, s.batch, s.width});
  v.h = loaded(l.type, hx, {l.count(), s.batch, l.hidden});
  v.c = loaded(l.type, cx, {l.count(), s.batch, l.units});
  v.params = empty_params(l);
  for_each_weight(l, [&](size_t param, int64_t i, int64_t at) {
    v.params[param].data_as<double>()[i] = read_as(l.type, weights, at);
  });
  if (s.packed()) {
    for (int t = 0; t < s.steps; ++t)
      v.batch_sizes.push_back(std::count_if(s.lengths.begin(), s.lengths.end(),
                                            [&](int length) { return length > t; }));
  }
  return v;
}

// In the reserved space, in doubles: a word, the input, then the gradients of the weights.
enum Holds : int { kForward = 101, kGradients = 102 };
size_t reserve_doubles(const Layers& l, const Sequences& s) {
  size_t elements = 0;
  parts_of(l, &elements);
  return 1 + static_cast<size_t>(s.rows() * s.width) + elements;
}
void require(const double* reserve, Holds what) {
  check<ErrorKind::Runtime>(*reserve == static_cast<double>(what), OpName("cuDNN"),
                            "expected the reserved space of the call before, got ", *reserve);
}

// The modes of a thread that may be anywhere, as a program begins with them.
class Fresh {
 public:
  explicit Fresh(bool grad) : layers_(layer_state()), mode_(autograd_mode()) {
    layer_state() = {};
    autograd_mode() = {.grad = grad, .inference = false};
  }
  ~Fresh() {
    layer_state() = layers_;
    autograd_mode() = mode_;
  }
  Fresh(const Fresh&) = delete;

 private:
  LayerState layers_;
  AutogradMode mode_;
};

bool fits(const Layers& l, const Sequences& x, const Sequences& y, const Dense* h, const Dense* c) {
  const Sizes states{l.count(), x.batch, l.hidden, 1, 1}, cells{l.count(), x.batch, l.units, 1, 1};
  return x.type == l.type && y.type == l.type && x.width == l.features &&
         y.width == l.hidden * l.are.directions() && x.lengths == y.lengths &&
         x.layout == y.layout && l.padded != x.packed() && h && h->sizes == states &&
         (l.are.cell != Cell::Lstm || (c && c->sizes == cells));
}

}  // namespace
}  // namespace treadle::cuda::emulator

namespace e = treadle::cuda::emulator;

extern "C" {

cudnnStatus_t cudnnCreateDropoutDescriptor(cudnnDropoutDescriptor_t* d) {
  *d = reinterpret_cast<cudnnDropoutDescriptor_t>(new e::Dropout);
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetDropoutDescriptor(cudnnDropoutDescriptor_t d, cudnnHandle_t, float dropout,
                                        void*, size_t, unsigned long long) {
  if (dropout != 0) return CUDNN_STATUS_NOT_SUPPORTED;
  e::own<e::Dropout>(d).set = true;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnCreateRNNDescriptor(cudnnRNNDescriptor_t* d) {
  *d = reinterpret_cast<cudnnRNNDescriptor_t>(new e::Layers);
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetRNNDescriptor_v8(cudnnRNNDescriptor_t d, cudnnRNNAlgo_t algorithm,
                                       cudnnRNNMode_t mode, cudnnRNNBiasMode_t biases,
                                       cudnnDirectionMode_t direction, cudnnRNNInputMode_t input,
                                       cudnnDataType_t type, cudnnDataType_t precision,
                                       cudnnMathType_t, int32_t features, int32_t units,
                                       int32_t hidden, int32_t layers,
                                       cudnnDropoutDescriptor_t dropout, uint32_t flags) {
  const bool narrow = type == CUDNN_DATA_HALF || type == CUDNN_DATA_BFLOAT16;
  if (features < 1 || units < 1 || hidden < 1 || hidden > units || layers < 1 || !dropout ||
      !e::own<e::Dropout>(dropout).set || input != CUDNN_LINEAR_INPUT ||
      (hidden != units && mode != CUDNN_LSTM) || precision != (narrow ? CUDNN_DATA_FLOAT : type))
    return CUDNN_STATUS_BAD_PARAM;
  const e::Cell cell = mode == CUDNN_LSTM       ? e::Cell::Lstm
                       : mode == CUDNN_GRU      ? e::Cell::Gru
                       : mode == CUDNN_RNN_RELU ? e::Cell::Relu
                                                : e::Cell::Tanh;
  // The device of the emulator has no kernels that keep weights in registers.
  if (algorithm == CUDNN_RNN_ALGO_PERSIST_STATIC ||
      (algorithm != CUDNN_RNN_ALGO_STANDARD && hidden != units))
    return CUDNN_STATUS_NOT_SUPPORTED;
  e::own<e::Layers>(d) = {
      algorithm,
      type,
      {cell, biases == CUDNN_RNN_DOUBLE_BIAS, layers, direction == CUDNN_BIDIRECTIONAL},
      features,
      units,
      hidden,
      (flags & CUDNN_RNN_PADDED_IO_ENABLED) != 0};
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnCreateRNNDataDescriptor(cudnnRNNDataDescriptor_t* d) {
  *d = reinterpret_cast<cudnnRNNDataDescriptor_t>(new e::Sequences);
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnDestroyRNNDataDescriptor(cudnnRNNDataDescriptor_t d) {
  delete &e::own<e::Sequences>(d);
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetRNNDataDescriptor(cudnnRNNDataDescriptor_t d, cudnnDataType_t type,
                                        cudnnRNNDataLayout_t layout, int steps, int batch,
                                        int width, const int lengths[], void*) {
  const std::vector<int> all(lengths, lengths + batch);
  if (layout == CUDNN_RNN_DATA_LAYOUT_BATCH_MAJOR_UNPACKED) return CUDNN_STATUS_NOT_SUPPORTED;
  const bool packed = layout == CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_PACKED;
  for (size_t i = 0; i < all.size(); ++i)
    if (all[i] < 1 || all[i] > steps || (packed ? i > 0 && all[i] > all[i - 1] : all[i] != steps))
      return CUDNN_STATUS_BAD_PARAM;
  e::own<e::Sequences>(d) = {type, layout, steps, batch, width, all};
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnGetRNNTempSpaceSizes(cudnnHandle_t, cudnnRNNDescriptor_t d,
                                        cudnnForwardMode_t mode, cudnnRNNDataDescriptor_t x,
                                        size_t* work, size_t* reserve) {
  const e::Layers& l = e::own<e::Layers>(d);
  const e::Sequences& s = e::own<e::Sequences>(x);
  if (s.packed() && l.algorithm != CUDNN_RNN_ALGO_STANDARD) return CUDNN_STATUS_NOT_SUPPORTED;
  *work = 512;
  if (reserve)
    *reserve = mode == CUDNN_FWD_MODE_TRAINING ? e::reserve_doubles(l, s) * sizeof(double) : 0;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnGetRNNWeightSpaceSize(cudnnHandle_t, cudnnRNNDescriptor_t d, size_t* bytes) {
  const e::Layers& l = e::own<e::Layers>(d);
  e::parts_of(l, bytes);
  *bytes *= e::bytes_of(l.type);
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnGetRNNWeightParams(cudnnHandle_t, cudnnRNNDescriptor_t d, int32_t layer,
                                      size_t bytes, const void* weights, int32_t number,
                                      cudnnTensorDescriptor_t matrix, void** matrix_at,
                                      cudnnTensorDescriptor_t bias, void** bias_at) {
  const e::Layers& l = e::own<e::Layers>(d);
  size_t elements = 0;
  const std::vector<e::LayerParts> all = e::parts_of(l, &elements);
  const auto i = static_cast<size_t>(number);
  if (!weights || elements * e::bytes_of(l.type) != bytes || layer < 0 || layer >= l.count() ||
      number < 0 || i >= all[static_cast<size_t>(layer)].matrices.size())
    return CUDNN_STATUS_BAD_PARAM;
  const e::LayerParts& parts = all[static_cast<size_t>(layer)];
  const auto tell = [&](const std::vector<e::Part>& list, cudnnTensorDescriptor_t is, void** at) {
    if (!at) return;
    if (i >= list.size()) {
      *at = nullptr;
      return;
    }
    const e::Sizes sizes{1, static_cast<int>(list[i].rows), static_cast<int>(list[i].columns)};
    e::own<e::Dense>(is) = {l.type, sizes, e::contiguous(sizes)};
    *at = const_cast<char*>(static_cast<const char*>(weights)) + list[i].at * e::bytes_of(l.type);
  };
  tell(parts.matrices, matrix, matrix_at);
  tell(parts.biases, bias, bias_at);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnRNNForward(cudnnHandle_t handle, cudnnRNNDescriptor_t d, cudnnForwardMode_t mode,
                              const int32_t*, cudnnRNNDataDescriptor_t x_is, const void* x,
                              cudnnRNNDataDescriptor_t y_is, void* y, cudnnTensorDescriptor_t h_is,
                              const void* hx, void* hy, cudnnTensorDescriptor_t c_is,
                              const void* cx, void* cy, size_t weight_bytes, const void* weights,
                              size_t work_bytes, void* work, size_t reserve_bytes, void* reserve) {
  const e::Layers l = e::own<e::Layers>(d);
  const e::Sequences s = e::own<e::Sequences>(x_is);
  size_t elements = 0;
  e::parts_of(l, &elements);
  const bool training = mode == CUDNN_FWD_MODE_TRAINING;
  if (!e::fits(l, s, e::own<e::Sequences>(y_is), &e::own<e::Dense>(h_is), &e::own<e::Dense>(c_is)))
    return CUDNN_STATUS_BAD_PARAM;
  if (weight_bytes != elements * e::bytes_of(l.type) || work_bytes < 512 || !work ||
      (l.are.cell == e::Cell::Lstm) != (cy != nullptr) ||
      (training && (!reserve || reserve_bytes < e::reserve_doubles(l, s) * sizeof(double))))
    return CUDNN_STATUS_BAD_PARAM;
  e::queue(e::own<e::Handle>(handle).stream, [=] {
    const e::Fresh modes(false);
    const e::Values v = e::values_of(l, s, x, hx, cx, weights);
    const auto [out, h, c] = v.run(l.are);
    if (training) {
      auto* const kept = static_cast<double*>(reserve);
      *kept = e::kForward;
      std::copy_n(v.x.data_as<double>(), v.x.numel(), kept + 1);
    }
    e::store(l.type, out, y);
    e::store(l.type, h, hy);
    e::store(l.type, c, cy);
  });
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnRNNBackwardData_v8(cudnnHandle_t handle, cudnnRNNDescriptor_t d, const int32_t*,
                                      cudnnRNNDataDescriptor_t y_is, const void*, const void* dy,
                                      cudnnRNNDataDescriptor_t x_is, void* dx,
                                      cudnnTensorDescriptor_t h_is, const void* hx, const void* dhy,
                                      void* dhx, cudnnTensorDescriptor_t c_is, const void* cx,
                                      const void* dcy, void* dcx, size_t, const void* weights,
                                      size_t work_bytes, void* work, size_t reserve_bytes,
                                      void* reserve) {
  const e::Layers l = e::own<e::Layers>(d);
  const e::Sequences s = e::own<e::Sequences>(x_is);
  if (!e::fits(l, s, e::own<e::Sequences>(y_is), &e::own<e::Dense>(h_is),
               &e::own<e::Dense>(c_is)) ||
      work_bytes < 512 || !work || reserve_bytes < e::reserve_doubles(l, s) * sizeof(double))
    return CUDNN_STATUS_BAD_PARAM;
  e::queue(e::own<e::Handle>(handle).stream, [=] {
    const e::Fresh modes(true);
    auto* const kept = static_cast<double*>(reserve);
    e::require(kept, e::kForward);
    e::Values v = e::values_of(l, s, nullptr, hx, cx, weights);
    v.x = s.packed()
              ? treadle::empty_cpu({s.rows(), s.width}, treadle::ScalarType::Float64)
              : treadle::empty_cpu({s.steps, s.batch, s.width}, treadle::ScalarType::Float64);
    std::copy_n(kept + 1, v.x.numel(), v.x.data_as<double>());
    std::vector<treadle::Tensor> inputs{v.x, v.h};
    if (v.c.defined()) inputs.push_back(v.c);
    inputs.insert(inputs.end(), v.params.begin(), v.params.end());
    for (const treadle::Tensor& t : inputs) treadle::autograd::set_requires_grad(t, true);
    const auto [out, h, c] = v.run(l.are);
    std::vector<treadle::Tensor> outputs{out, h},
        grads{e::loaded(l.type, dy, out.sizes()), e::loaded(l.type, dhy, h.sizes())};
    if (c.defined()) outputs.push_back(c), grads.push_back(e::loaded(l.type, dcy, c.sizes()));
    const std::vector<treadle::Tensor> found = treadle::autograd::grad(outputs, inputs, grads);
    e::store(l.type, found[0], dx);
    e::store(l.type, found[1], dhx);
    if (c.defined()) e::store(l.type, found[2], dcx);
    std::vector<treadle::Tensor> of_params(found.begin() + 2 + c.defined(), found.end());
    for (treadle::Tensor& g : of_params) g = treadle::aten::contiguous(g);
    double* const of_weights = kept + 1 + v.x.numel();
    e::for_each_weight(l, [&](size_t param, int64_t i, int64_t at) {
      of_weights[at] = of_params[param].data_as<double>()[i];
    });
    *kept = e::kGradients;
  });
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnRNNBackwardWeights_v8(cudnnHandle_t handle, cudnnRNNDescriptor_t d,
                                         cudnnWgradMode_t mode, const int32_t*,
                                         cudnnRNNDataDescriptor_t x_is, const void*,
                                         cudnnTensorDescriptor_t, const void*,
                                         cudnnRNNDataDescriptor_t, const void*, size_t weight_bytes,
                                         void* of_weights, size_t, void*, size_t reserve_bytes,
                                         void* reserve) {
  const e::Layers l = e::own<e::Layers>(d);
  const e::Sequences s = e::own<e::Sequences>(x_is);
  size_t elements = 0;
  e::parts_of(l, &elements);
  if (mode != CUDNN_WGRAD_MODE_ADD) return CUDNN_STATUS_NOT_SUPPORTED;
  if (weight_bytes != elements * e::bytes_of(l.type) ||
      reserve_bytes < e::reserve_doubles(l, s) * sizeof(double))
    return CUDNN_STATUS_BAD_PARAM;
  e::queue(e::own<e::Handle>(handle).stream, [=] {
    const auto* const kept = static_cast<const double*>(reserve);
    e::require(kept, e::kGradients);
    const double* const found = kept + 1 + s.rows() * s.width;
    e::for_each_weight(
        l, [&](size_t, int64_t, int64_t at) { e::write_as(l.type, of_weights, at, found[at], 1); });
  });
  return CUDNN_STATUS_SUCCESS;
}

}  // extern "C"
