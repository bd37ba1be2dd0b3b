// Graphs of one convolution, and cuDNN's description of them, attribute by attribute.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/ops/convolution/cuda/convolution_plan.h"

#include <algorithm>
#include <array>

namespace treadle::cuda {
namespace {

constexpr const char* kDoing = "planning a convolution";

// Names of tensors within a graph.
enum Id : int64_t { kX = 'x', kW = 'w', kY = 'y', kBias = 'b', kSum = 's' };

using Sizes = ConvolutionGeometry::Sizes;

cudnnDataType_t sums_of(const ConvolutionGeometry& g) {
  return g.type == CUDNN_DATA_DOUBLE ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT;
}

CudnnDescriptor tensor(Id id, const ConvolutionGeometry& g, const Sizes& sizes,
                       bool passing = false) {
  CudnnDescriptor t(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  // Values that pass only from one operation to the next have the precision of sums.
  const cudnnDataType_t type = passing ? sums_of(g) : g.type;
  t.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, id);
  t.set(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type);
  t.set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, kPlanAlignment);
  t.set(CUDNN_ATTR_TENSOR_DIMENSIONS, sizes);
  t.set(CUDNN_ATTR_TENSOR_STRIDES, contiguous_strides(sizes));
  if (passing) t.set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, &passing);
  succeed_cudnn(t.finalize(), kDoing);
  return t;
}

// The names of an operation's attributes, by the part that it computes.
struct Names {
  cudnnBackendDescriptorType_t operation;
  cudnnBackendAttributeName_t x, w, y, convolution, alpha, beta;
};
const Names& names_of(ConvolutionPart part) {
  static constexpr Names kForward{CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
                                  CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
                                  CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
                                  CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
                                  CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
                                  CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
                                  CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA},
      kData{CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA},
      kFilter{CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA};
  return part == ConvolutionPart::Y ? kForward : part == ConvolutionPart::X ? kData : kFilter;
}

CudnnDescriptor convolution(const ConvolutionGeometry& g) {
  CudnnDescriptor c(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  const cudnnDataType_t sums = sums_of(g);
  const cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
  c.set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &sums);
  c.set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, &mode);
  c.set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, static_cast<int64_t>(g.stride.size()));
  c.set(CUDNN_ATTR_CONVOLUTION_DILATIONS, g.dilation);
  c.set(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, g.stride);
  c.set(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, g.padding);
  c.set(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, g.padding);
  succeed_cudnn(c.finalize(), kDoing);
  return c;
}

CudnnDescriptor operation(const ConvolutionGeometry& g, ConvolutionPart part,
                          const CudnnDescriptor& y) {
  const Names& names = names_of(part);
  CudnnDescriptor op(names.operation);
  op.set(names.x, tensor(kX, g, g.x));
  op.set(names.w, tensor(kW, g, g.w));
  op.set(names.y, y);
  op.set(names.convolution, convolution(g));
  const double wide[2] = {1, 0};
  const float narrow[2] = {1, 0};
  const bool is_double = g.type == CUDNN_DATA_DOUBLE;
  const auto factor = [&](cudnnBackendAttributeName_t name, int which) {
    op.set(name, is_double ? CUDNN_TYPE_DOUBLE : CUDNN_TYPE_FLOAT, 1,
           is_double ? static_cast<const void*>(&wide[which]) : &narrow[which]);
  };
  factor(names.alpha, 0);
  factor(names.beta, 1);
  succeed_cudnn(op.finalize(), kDoing);
  return op;
}

CudnnDescriptor add_bias(const ConvolutionGeometry& g, const CudnnDescriptor& sum,
                         const CudnnDescriptor& y) {
  CudnnDescriptor add(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
  const cudnnPointwiseMode_t mode = CUDNN_POINTWISE_ADD;
  const cudnnDataType_t sums = sums_of(g);
  add.set(CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &mode);
  add.set(CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, 1, &sums);
  succeed_cudnn(add.finalize(), kDoing);
  Sizes per_channel(g.y.size(), 1);
  per_channel[1] = g.y[1];
  CudnnDescriptor op(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
  op.set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, add);
  op.set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, sum);
  op.set(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, tensor(kBias, g, per_channel));
  op.set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y);
  succeed_cudnn(op.finalize(), kDoing);
  return op;
}

// Whether an algorithm gives the same bits each time, with the requested precision.
bool suits(const CudnnDescriptor& way, const ConvolutionGeometry& g) {
  CudnnDescriptor engine(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  cudnnBackendDescriptor_t handle = engine.get();
  way.get(CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &handle);
  std::array<cudnnBackendNumericalNote_t, CUDNN_NUMERICAL_NOTE_TYPE_COUNT> notes;
  const int64_t count = engine.get(CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
                                   static_cast<int64_t>(notes.size()), notes.data());
  return std::none_of(notes.begin(), notes.begin() + count, [&](cudnnBackendNumericalNote_t note) {
    return note == CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC ||
           note == CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION ||
           note == CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS ||
           (g.exact && note == CUDNN_NUMERICAL_NOTE_TENSOR_CORE);
  });
}

}  // namespace

CudnnDescriptor::CudnnDescriptor(cudnnBackendDescriptorType_t type) {
  succeed_cudnn(cudnn().BackendCreateDescriptor(type, &handle_), kDoing);
}
CudnnDescriptor::~CudnnDescriptor() {
  if (handle_) cudnn().BackendDestroyDescriptor(handle_);
}
void CudnnDescriptor::set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                          int64_t count, const void* values) {
  succeed_cudnn(cudnn().BackendSetAttribute(handle_, name, type, count, values), kDoing);
}
int64_t CudnnDescriptor::get(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                             int64_t most, void* values) const {
  int64_t count = 0;
  succeed_cudnn(cudnn().BackendGetAttribute(handle_, name, type, most, &count, values), kDoing);
  return count;
}
cudnnStatus_t CudnnDescriptor::finalize() const { return cudnn().BackendFinalize(handle_); }

std::vector<CudnnDescriptor> convolution_ways(const ConvolutionGeometry& g, ConvolutionPart part,
                                              const CudnnTarget& target) {
  const CudnnDescriptor y = tensor(kY, g, g.y);
  std::vector<CudnnDescriptor> operations;
  if (g.bias) {
    const CudnnDescriptor sum = tensor(kSum, g, g.y, true);
    operations.push_back(operation(g, part, sum));
    operations.push_back(add_bias(g, sum, y));
  } else {
    operations.push_back(operation(g, part, y));
  }
  std::vector<cudnnBackendDescriptor_t> handles;
  for (const CudnnDescriptor& op : operations) handles.push_back(op.get());
  CudnnDescriptor graph(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  if (target.handle)
    graph.set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &target.handle);
  graph.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
            static_cast<int64_t>(handles.size()), handles.data());
  std::vector<CudnnDescriptor> ways;
  if (graph.finalize() != CUDNN_STATUS_SUCCESS) return ways;
  for (const cudnnBackendHeurMode_t mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK}) {
    CudnnDescriptor heuristic(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
    heuristic.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph);
    heuristic.set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode);
    if (target.properties) heuristic.set(CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, *target.properties);
    if (heuristic.finalize() != CUDNN_STATUS_SUCCESS) continue;
    const int64_t count =
        heuristic.get(CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, nullptr);
    std::vector<CudnnDescriptor> found;
    std::vector<cudnnBackendDescriptor_t> places;
    for (int64_t i = 0; i < count; ++i) {
      found.emplace_back(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
      places.push_back(found.back().get());
    }
    const int64_t got = heuristic.get(CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                                      count, places.data());
    for (int64_t i = 0; i < got; ++i)
      if (suits(found[static_cast<size_t>(i)], g))
        ways.push_back(std::move(found[static_cast<size_t>(i)]));
  }
  return ways;
}

std::optional<ConvolutionPlan> ConvolutionPlan::make(CudnnDescriptor way,
                                                     const CudnnTarget& target) {
  constexpr int64_t kMaxWorkspace = int64_t{1} << 30;
  CudnnDescriptor plan(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  if (target.handle)
    plan.set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &target.handle);
  if (target.properties) plan.set(CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, *target.properties);
  plan.set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, way);
  if (plan.finalize() != CUDNN_STATUS_SUCCESS) return {};
  int64_t workspace = 0;
  plan.get(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, &workspace);
  if (workspace > kMaxWorkspace) return {};
  return ConvolutionPlan(std::move(way), std::move(plan), static_cast<size_t>(workspace));
}

cudnnStatus_t ConvolutionPlan::run(cudnnHandle_t handle, const Places& at, void* workspace) const {
  const int64_t ids[] = {kX, kW, kY, kBias};
  void* const places[] = {at.x, at.w, at.y, at.bias};
  const int64_t count = at.bias ? 4 : 3;
  CudnnDescriptor arguments(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  arguments.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, count, ids);
  arguments.set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, count, places);
  arguments.set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &workspace);
  succeed_cudnn(arguments.finalize(), "computing a convolution");
  return cudnn().BackendExecute(handle, plan_.get(), arguments.get());
}

}  // namespace treadle::cuda
