// Whole layers of recurrent networks by cuDNN, and their gradients. Weights are copied to cuDNN's
// layout, and their gradients back. The gates have the same order on both sides.
//
// If cuDNN refuses a call before it queues work, the caller computes it step by step. The refusal
// depends on the geometry alone, so a gradient knows the choice of its forward call.
//
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <mutex>
#include <set>

#include "aten/backend/cuda/libraries/cudnn.h"
#include "aten/backend/cuda/libraries/kept_by_thread.h"
#include "aten/ops/_recurrent_layers.h"
#include "aten/ops/_recurrent_layers_backward.h"
#include "aten/ops/contiguous.h"
#include "aten/ops/recurrent/layers.h"

namespace treadle::cuda {
namespace {

using composite::Cell;
using composite::RecurrentLayers;

cudnnRNNMode_t mode_of(Cell cell) {
  switch (cell) {
    case Cell::Tanh:
      return CUDNN_RNN_TANH;
    case Cell::Relu:
      return CUDNN_RNN_RELU;
    case Cell::Lstm:
      return CUDNN_LSTM;
    case Cell::Gru:
      return CUDNN_GRU;
  }
  fail<ErrorKind::Runtime>(OpName("cuda"), "expected a kind of recurrent cell, got another");
}

// A run of bytes of one weight, and its offset in cuDNN's weight space.
struct Piece {
  size_t param, from, to, bytes;
};

// cuDNN's description of layers, whatever sequences they get.
struct Plan {
  cudnnRNNDescriptor_t is = nullptr;
  size_t weight_bytes = 0;
  std::vector<Piece> pieces;
  bool taken = false;  // not refused
};

// The layers and sequences of one call.
struct Recurrent {
  RecurrentLayers layers;
  cudnnDataType_t type;
  int device, steps, batch, features, hidden, units;
  bool packed, record;

  bool projected() const { return hidden != units; }
  int outputs() const { return hidden * static_cast<int>(layers.directions()); }
  std::vector<int> key(cudnnRNNAlgo_t algorithm) const {
    return {device,   static_cast<int>(layers.cell),
            type,     layers.has_biases,
            units,    static_cast<int>(layers.num_layers),
            hidden,   layers.bidirectional,
            features, packed,
            algorithm};
  }
  std::vector<int> whole_key(cudnnRNNAlgo_t algorithm) const {
    std::vector<int> all = key(algorithm);
    all.insert(all.end(), {steps, batch, record});
    return all;
  }
  cudnnForwardMode_t direction() const {
    return record ? CUDNN_FWD_MODE_TRAINING : CUDNN_FWD_MODE_INFERENCE;
  }

  // The candidate algorithms, the fastest first. The limits of hidden units are those up to which,
  // by cuDNN's guide, the whole recurrence is one kernel. That kernel cannot end sequences early.
  std::vector<cudnnRNNAlgo_t> algorithms() const {
    std::vector<cudnnRNNAlgo_t> all;
    if (!packed && !projected() && type != CUDNN_DATA_DOUBLE) {
      const bool plain = layers.cell == Cell::Tanh || layers.cell == Cell::Relu;
      const int most = record ? (plain ? 256 : 128) : (plain ? 384 : 192);
      if (units <= most) all.push_back(CUDNN_RNN_ALGO_PERSIST_STATIC_SMALL_H);
      if (type == CUDNN_DATA_HALF && layers.cell != Cell::Gru && layers.num_layers == 1 &&
          !layers.bidirectional && units <= 1024 && units % 128 == 0 && features % 128 == 0 &&
          batch % 8 == 0 && batch <= 128)
        all.push_back(CUDNN_RNN_ALGO_PERSIST_STATIC);
    }
    all.push_back(CUDNN_RNN_ALGO_STANDARD);
    return all;
  }
};

bool refused(cudnnStatus_t status) {
  const int kind = status / 1000 * 1000;
  return kind == CUDNN_STATUS_BAD_PARAM || kind == CUDNN_STATUS_NOT_SUPPORTED;
}

// Adds the location of a matrix, or of a bias, of one gate. False where it has another size.
bool add_piece(Plan& plan, const TensorDescription& is, const void* at, const void* base,
               size_t param, int64_t gate, int64_t elements, size_t element_size) {
  constexpr int kMax = 8;
  int sizes[kMax], steps[kMax], rank = 0;
  cudnnDataType_t type{};
  if (cudnn().GetTensorNdDescriptor(is.get(), kMax, &type, &rank, sizes, steps) !=
          CUDNN_STATUS_SUCCESS ||
      rank > kMax || !at)
    return false;
  int64_t there = 1;
  for (int d = 0; d < rank; ++d) there *= sizes[d];
  if (there != elements) return false;
  const size_t bytes = static_cast<size_t>(elements) * element_size;
  plan.pieces.push_back(
      {param, static_cast<size_t>(gate) * bytes,
       static_cast<size_t>(static_cast<const char*>(at) - static_cast<const char*>(base)), bytes});
  return true;
}

// Asks cuDNN where each gate's matrices and biases are. False where it has them in another form.
bool find_pieces(const Recurrent& r, cudnnHandle_t handle, size_t element_size, Device device,
                 Plan& plan) {
  const Tensor space = cudnn_workspace(plan.weight_bytes, device);
  const int gates = static_cast<int>(composite::gates_of(r.layers.cell));
  const auto each = static_cast<size_t>(r.layers.weights_each(r.projected()));
  const TensorDescription matrix, bias;
  const int64_t layers = r.layers.num_layers * r.layers.directions();
  for (int64_t layer = 0; layer < layers; ++layer) {
    const size_t first = static_cast<size_t>(layer) * each;
    const int64_t inputs = layer < r.layers.directions() ? r.features : r.outputs();
    for (int gate = 0; gate < 2 * gates + r.projected(); ++gate) {
      void *matrix_at = nullptr, *bias_at = nullptr;
      if (cudnn().GetRNNWeightParams(handle, plan.is, static_cast<int32_t>(layer),
                                     plan.weight_bytes, space.data(), gate, matrix.get(),
                                     &matrix_at, bias.get(), &bias_at) != CUDNN_STATUS_SUCCESS)
        return false;
      const bool recurrent = gate >= gates, projection = gate == 2 * gates;
      const int64_t width = !recurrent ? inputs : projection ? r.units : r.hidden;
      const size_t param = projection ? first + each - 1 : first + recurrent;
      if (!add_piece(plan, matrix, matrix_at, space.data(), param, projection ? 0 : gate % gates,
                     (projection ? r.hidden : r.units) * width, element_size))
        return false;
      if (r.layers.has_biases && !projection &&
          !add_piece(plan, bias, bias_at, space.data(), first + 2 + recurrent, gate % gates,
                     r.units, element_size))
        return false;
    }
  }
  // Gates of one weight come together, to be copied together.
  std::stable_sort(plan.pieces.begin(), plan.pieces.end(),
                   [](const Piece& a, const Piece& b) { return a.param < b.param; });
  std::vector<Piece> merged;
  for (const Piece& p : plan.pieces) {
    Piece* const last = merged.empty() ? nullptr : &merged.back();
    if (last && last->param == p.param && last->from + last->bytes == p.from &&
        last->to + last->bytes == p.to)
      last->bytes += p.bytes;
    else
      merged.push_back(p);
  }
  plan.pieces = merged;
  return true;
}

// Null where cuDNN refuses.
const Plan* plan_for(const Recurrent& r, cudnnRNNAlgo_t algorithm, cudnnHandle_t handle,
                     size_t element_size, Device device) {
  const bool exact = exact_factors(r.type);
  std::vector<int> key = r.key(algorithm);
  key.push_back(exact);
  // A thread's own, since cuDNN may write to a description.
  auto& plans = kept_by_thread<std::map<std::vector<int>, Plan>>();
  const auto known = plans.find(key);
  if (known != plans.end()) return known->second.taken ? &known->second : nullptr;
  constexpr const char* kDoing = "describing recurrent layers";
  Plan plan;
  // Layers between which something is dropped are calls of their own.
  cudnnDropoutDescriptor_t nothing = nullptr;
  succeed_cudnn(cudnn().CreateDropoutDescriptor(&nothing), kDoing);
  succeed_cudnn(cudnn().SetDropoutDescriptor(nothing, handle, 0, nullptr, 0, 0), kDoing);
  succeed_cudnn(cudnn().CreateRNNDescriptor(&plan.is), kDoing);
  const bool narrow = r.type == CUDNN_DATA_HALF || r.type == CUDNN_DATA_BFLOAT16;
  const cudnnMathType_t math = exact                       ? CUDNN_FMA_MATH
                               : r.type == CUDNN_DATA_HALF ? CUDNN_TENSOR_OP_MATH
                                                           : CUDNN_DEFAULT_MATH;
  const cudnnStatus_t status = cudnn().SetRNNDescriptor_v8(
      plan.is, algorithm, mode_of(r.layers.cell),
      r.layers.has_biases ? CUDNN_RNN_DOUBLE_BIAS : CUDNN_RNN_NO_BIAS,
      r.layers.bidirectional ? CUDNN_BIDIRECTIONAL : CUDNN_UNIDIRECTIONAL, CUDNN_LINEAR_INPUT,
      r.type, narrow ? CUDNN_DATA_FLOAT : r.type, math, r.features, r.units, r.hidden,
      static_cast<int32_t>(r.layers.num_layers), nothing,
      r.packed ? CUDNN_RNN_PADDED_IO_DISABLED : CUDNN_RNN_PADDED_IO_ENABLED);
  if (!refused(status)) {
    succeed_cudnn(status, kDoing);
    succeed_cudnn(cudnn().GetRNNWeightSpaceSize(handle, plan.is, &plan.weight_bytes), kDoing);
    plan.taken = find_pieces(r, handle, element_size, device, plan);
  }
  const Plan& kept = plans.emplace(key, plan).first->second;
  return kept.taken ? &kept : nullptr;
}

// The refused calls of this process, by geometry and algorithm.
class Refusals {
 public:
  bool has(const std::vector<int>& key) {
    const std::lock_guard lock(mutex_);
    return keys_.count(key) > 0;
  }
  void add(std::vector<int> key) {
    const std::lock_guard lock(mutex_);
    keys_.insert(std::move(key));
  }

 private:
  std::mutex mutex_;
  std::set<std::vector<int>> keys_;
};
Refusals& refusals() {
  static auto* refusals = new Refusals;
  return *refusals;
}

// A sequence of vectors: the input or the output.
class Sequences {
 public:
  Sequences(const Recurrent& r, int width, IntList batch_sizes) {
    std::vector<int> lengths(static_cast<size_t>(r.batch), r.packed ? 0 : r.steps);
    for (const int64_t rows : batch_sizes)
      for (int64_t i = 0; i < rows; ++i) ++lengths[static_cast<size_t>(i)];
    succeed_cudnn(cudnn().SetRNNDataDescriptor(is_.get(), r.type,
                                               r.packed ? CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_PACKED
                                                        : CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_UNPACKED,
                                               r.steps, r.batch, width, lengths.data(), nullptr),
                  "describing sequences");
  }
  cudnnRNNDataDescriptor_t get() const { return is_.get(); }

 private:
  Description<cudnnRNNDataDescriptor_t> is_{cudnn().CreateRNNDataDescriptor,
                                            cudnn().DestroyRNNDataDescriptor};
};

// Descriptions of one call.
struct Described {
  Sequences x, y;
  TensorDescription h, c;
  Described(const Recurrent& r, IntList batch_sizes)
      : x(r, r.features, batch_sizes), y(r, r.outputs(), batch_sizes) {
    const int layers = static_cast<int>(r.layers.num_layers * r.layers.directions());
    h.set(r.type, {layers, r.batch, r.hidden, 1, 1});
    c.set(r.type, {layers, r.batch, r.units, 1, 1});
  }
};

template <class T>
Recurrent recurrent_of(const Tensor& input, IntList batch_sizes, const Tensor& hx, const Tensor& cx,
                       int64_t cell, bool has_biases, int64_t num_layers, bool bidirectional,
                       bool record) {
  const bool packed = !batch_sizes.empty();
  const auto whole = [](int64_t size) {
    check<ErrorKind::Runtime>(size <= INT32_MAX, OpName("recurrent layers"),
                              "expected sizes below 2^31 on cuda, got ", size);
    return static_cast<int>(size);
  };
  return {{static_cast<Cell>(cell), has_biases, num_layers, bidirectional},
          kData<T>,
          input.device().index,
          whole(packed ? static_cast<int64_t>(batch_sizes.size()) : input.size(0)),
          whole(hx.size(1)),
          whole(input.size(-1)),
          whole(hx.size(2)),
          whole(cx.defined() ? cx.size(2) : hx.size(2)),
          packed,
          record};
}

void copy_bytes(void* to, const void* from, size_t bytes, cudaStream_t stream) {
  succeed(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream), "copying weights");
}

// The weights as cuDNN wants them.
Tensor packed_weights(const Plan& plan, TensorList params, Device device) {
  const Tensor space = cudnn_workspace(plan.weight_bytes, device);
  const cudaStream_t stream = stream_on(device.index);
  size_t covered = 0;
  for (const Piece& p : plan.pieces) covered += p.bytes;
  if (covered < plan.weight_bytes)
    succeed(cudaMemsetAsync(space.data(), 0, plan.weight_bytes, stream), "clearing weights");
  Tensor param;  // the one that the last piece was of
  size_t number = params.size();
  for (const Piece& p : plan.pieces) {
    if (p.param != number) param = aten::contiguous(params[p.param]), number = p.param;
    copy_bytes(static_cast<char*>(space.data()) + p.to,
               static_cast<const char*>(param.data()) + p.from, p.bytes, stream);
  }
  return space;
}

void* data_of(const Tensor& t) { return t.defined() ? t.data() : nullptr; }

template <class T>
std::tuple<Tensor, Tensor, Tensor, Tensor> recurrent_layers_cuda(
    const Tensor& input, IntList batch_sizes, const Tensor& hx, const Tensor& cx, TensorList params,
    int64_t cell, bool has_biases, int64_t num_layers, bool bidirectional, bool record) {
  const Device device = input.device();
  const DeviceGuard guard(device.index);
  const Recurrent r = recurrent_of<T>(input, batch_sizes, hx, cx, cell, has_biases, num_layers,
                                      bidirectional, record);
  const auto empty = [&](IntList sizes) { return empty_tensor(sizes, input.dtype(), device); };
  const cudnnHandle_t handle = cudnn_on(device.index);
  const Described described(r, batch_sizes);
  const Tensor x = aten::contiguous(input), h = aten::contiguous(hx),
               c = cx.defined() ? aten::contiguous(cx) : cx;
  DimVector sizes(x.sizes());
  sizes.back() = r.outputs();
  for (const cudnnRNNAlgo_t algorithm : r.algorithms()) {
    if (refusals().has(r.whole_key(algorithm))) continue;
    size_t work = 0, reserved = 0;
    const Plan* const plan = plan_for(r, algorithm, handle, sizeof(T), device);
    cudnnStatus_t status =
        plan ? cudnn().GetRNNTempSpaceSizes(handle, plan->is, r.direction(), described.x.get(),
                                            &work, r.record ? &reserved : nullptr)
             : CUDNN_STATUS_NOT_SUPPORTED;
    if (status == CUDNN_STATUS_SUCCESS) {
      const Tensor y = empty(sizes), hy = empty(h.sizes()),
                   cy = c.defined() ? empty(c.sizes()) : empty({0}),
                   space = cudnn_workspace(work, device),
                   reserve = cudnn_workspace(reserved, device),
                   weights = packed_weights(*plan, params, device);
      // The lengths of sequences are in the descriptions; cuDNN 9 reads no others.
      status = cudnn().RNNForward(
          handle, plan->is, r.direction(), nullptr, described.x.get(), x.data(), described.y.get(),
          y.data(), described.h.get(), h.data(), hy.data(), described.c.get(), data_of(c),
          c.defined() ? cy.data() : nullptr, plan->weight_bytes, weights.data(), work, space.data(),
          reserved, r.record ? reserve.data() : nullptr);
      if (status == CUDNN_STATUS_SUCCESS) return {y, hy, cy, reserve};
    }
    if (!refused(status)) succeed_cudnn(status, "computing recurrent layers");
    refusals().add(r.whole_key(algorithm));
  }
  return {empty({0}), empty({0}), empty({0}), empty({0})};
}

template <class T>
std::vector<Tensor> recurrent_layers_backward_cuda(
    const Tensor& grad_output, const Tensor& grad_hy, const Tensor& grad_cy, const Tensor& input,
    IntList batch_sizes, const Tensor& hx, const Tensor& cx, TensorList params, int64_t cell,
    bool has_biases, int64_t num_layers, bool bidirectional, const Tensor& output,
    const Tensor& reserve, bool /*of_input*/, bool of_weights) {
  const Device device = input.device();
  const DeviceGuard guard(device.index);
  const Recurrent r = recurrent_of<T>(input, batch_sizes, hx, cx, cell, has_biases, num_layers,
                                      bidirectional, true);
  const cudnnHandle_t handle = cudnn_on(device.index);
  const Described described(r, batch_sizes);
  const std::vector<cudnnRNNAlgo_t> all = r.algorithms();
  const auto algorithm = std::find_if(
      all.begin(), all.end(), [&](cudnnRNNAlgo_t a) { return !refusals().has(r.whole_key(a)); });
  const Plan* const plan =
      algorithm == all.end() ? nullptr : plan_for(r, *algorithm, handle, sizeof(T), device);
  constexpr const char* kDoing = "computing the gradients of recurrent layers";
  if (!plan) succeed_cudnn(CUDNN_STATUS_NOT_SUPPORTED, kDoing);
  size_t work = 0, reserved = 0;
  succeed_cudnn(cudnn().GetRNNTempSpaceSizes(handle, plan->is, CUDNN_FWD_MODE_TRAINING,
                                             described.x.get(), &work, &reserved),
                kDoing);
  const auto like = [&](const Tensor& t) { return empty_tensor(t.sizes(), input.dtype(), device); };
  const Tensor x = aten::contiguous(input), y = aten::contiguous(output), h = aten::contiguous(hx),
               c = cx.defined() ? aten::contiguous(cx) : cx, dy = aten::contiguous(grad_output),
               dhy = aten::contiguous(grad_hy), dcy = c.defined() ? aten::contiguous(grad_cy) : c,
               space = cudnn_workspace(work, device),
               weights = packed_weights(*plan, params, device);
  std::vector<Tensor> grads{like(x), like(h),
                            c.defined() ? like(c) : empty_tensor({0}, input.dtype(), device)};
  succeed_cudnn(
      cudnn().RNNBackwardData_v8(
          handle, plan->is, nullptr, described.y.get(), y.data(), dy.data(), described.x.get(),
          grads[0].data(), described.h.get(), h.data(), dhy.data(), grads[1].data(),
          described.c.get(), data_of(c), data_of(dcy), c.defined() ? grads[2].data() : nullptr,
          plan->weight_bytes, weights.data(), work, space.data(), reserved, reserve.data()),
      kDoing);
  if (!of_weights) return grads;
  // cuDNN adds to the present values.
  const Tensor gradient_space = cudnn_workspace(plan->weight_bytes, device);
  const cudaStream_t stream = stream_on(device.index);
  succeed(cudaMemsetAsync(gradient_space.data(), 0, plan->weight_bytes, stream),
          "clearing gradients");
  succeed_cudnn(cudnn().RNNBackwardWeights_v8(
                    handle, plan->is, CUDNN_WGRAD_MODE_ADD, nullptr, described.x.get(), x.data(),
                    described.h.get(), h.data(), described.y.get(), y.data(), plan->weight_bytes,
                    gradient_space.data(), work, space.data(), reserved, reserve.data()),
                kDoing);
  for (const Tensor& p : params) grads.push_back(like(p));
  for (const Piece& p : plan->pieces)
    copy_bytes(static_cast<char*>(grads[3 + p.param].data()) + p.from,
               static_cast<const char*>(gradient_space.data()) + p.to, p.bytes, stream);
  return grads;
}

const auto registered = register_cuda<aten::ops::_recurrent_layers>(
    Floats(), []<class T>() { return &recurrent_layers_cuda<T>; }, "recurrent_layers_cuda");
const auto backward_registered = register_cuda<aten::ops::_recurrent_layers_backward>(
    Floats(), []<class T>() { return &recurrent_layers_backward_cuda<T>; },
    "recurrent_layers_backward_cuda");

}  // namespace
}  // namespace treadle::cuda
