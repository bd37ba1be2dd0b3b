// Convolutions of cuDNN's graphs for emulated devices, computed in double by the CPU's kernels.
// Three ways are offered: the first may differ from run to run, and the device refuses the
// second. Reads nothing of a descriptor after it was destroyed but what others took from it before.
//
// SPDX-License-Identifier: Apache-2.0
#include "tests/cuda_emulator/cudnn.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>

#include "aten/ops/_convolution_grad_weight.h"
#include "aten/ops/contiguous.h"
#include "aten/ops/convolution.h"
#include "core/tensor/tensor.h"

namespace treadle::cuda::emulator {
namespace {

// The values that were set, as bytes; descriptors as they were when they were set.
struct Descriptor {
  using Ptr = std::shared_ptr<const Descriptor>;
  cudnnBackendDescriptorType_t type;
  bool final = false;
  std::map<int, std::string> values;
  std::map<int, std::vector<Ptr>> parts;
  int64_t way = 0;  // of an engine, and of what is made of it

  template <class T>
  std::vector<T> list(cudnnBackendAttributeName_t name) const {
    const auto it = values.find(name);
    if (it == values.end()) return {};
    std::vector<T> all(it->second.size() / sizeof(T));
    std::memcpy(all.data(), it->second.data(), all.size() * sizeof(T));
    return all;
  }
  template <class T>
  T value(cudnnBackendAttributeName_t name) const {
    T first{};
    const auto it = values.find(name);
    if (it != values.end()) std::memcpy(&first, it->second.data(), sizeof(T));
    return first;
  }
  const Descriptor* part(cudnnBackendAttributeName_t name) const {
    const auto it = parts.find(name);
    return it == parts.end() ? nullptr : it->second[0].get();
  }
};

size_t size_of(cudnnBackendAttributeType_t type) {
  switch (type) {
    case CUDNN_TYPE_INT64:
    case CUDNN_TYPE_DOUBLE:
    case CUDNN_TYPE_VOID_PTR:
    case CUDNN_TYPE_HANDLE:
      return 8;
    case CUDNN_TYPE_BOOLEAN:
      return 1;
    default:
      return 4;  // float32, and enumerations
  }
}

using Sizes64 = std::vector<int64_t>;
Sizes64 sizes_of(const Descriptor& t) { return t.list<int64_t>(CUDNN_ATTR_TENSOR_DIMENSIONS); }
bool is_tensor(const Descriptor* t) {
  return t && t->type == CUDNN_BACKEND_TENSOR_DESCRIPTOR && t->final;
}
int64_t id_of(const Descriptor& t) { return t.value<int64_t>(CUDNN_ATTR_TENSOR_UNIQUE_ID); }
cudnnDataType_t type_of(const Descriptor& t) {
  return t.value<cudnnDataType_t>(CUDNN_ATTR_TENSOR_DATA_TYPE);
}

enum class Wanted { Y, X, W };
// One convolution of a graph.
struct Call {
  Wanted wanted;
  const Descriptor *x, *w, *y, *geometry;
  double alpha, beta;

  DimVector entries(cudnnBackendAttributeName_t name) const {
    const Sizes64 all = geometry->list<int64_t>(name);
    return DimVector(IntList(all));
  }
  int64_t groups() const { return sizes_of(*x)[1] / sizes_of(*w)[1]; }
};
Call call_of(const Descriptor& op) {
  const auto make = [&](Wanted wanted, cudnnBackendAttributeName_t x, cudnnBackendAttributeName_t w,
                        cudnnBackendAttributeName_t y, cudnnBackendAttributeName_t geometry,
                        cudnnBackendAttributeName_t alpha, cudnnBackendAttributeName_t beta) {
    Call c{wanted, op.part(x), op.part(w), op.part(y), op.part(geometry), 0, 0};
    const bool wide = c.x && type_of(*c.x) == CUDNN_DATA_DOUBLE;
    const auto factor = [&](cudnnBackendAttributeName_t name) {
      return wide ? op.value<double>(name) : double{op.value<float>(name)};
    };
    c.alpha = factor(alpha);
    c.beta = factor(beta);
    return c;
  };
  switch (op.type) {
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR:
      return make(Wanted::Y, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
                  CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
                  CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
                  CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
                  CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
                  CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA);
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR:
      return make(Wanted::X, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
                  CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
                  CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
                  CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
                  CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
                  CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA);
    default:
      return make(Wanted::W, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
                  CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
                  CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
                  CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
                  CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
                  CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA);
  }
}

// Whether sizes fit each other, as cuDNN checks.
bool fits(const Call& c) {
  if (!is_tensor(c.x) || !is_tensor(c.w) || !is_tensor(c.y) || !c.geometry || !c.geometry->final)
    return false;
  const Sizes64 x = sizes_of(*c.x), w = sizes_of(*c.w), y = sizes_of(*c.y);
  const DimVector stride = c.entries(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES),
                  dilation = c.entries(CUDNN_ATTR_CONVOLUTION_DILATIONS),
                  padding = c.entries(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS);
  if (w.size() != x.size() || y.size() != x.size() || stride.size() != x.size() - 2 ||
      x[0] != y[0] || y[1] != w[0] || w[1] == 0 || x[1] % w[1] != 0 || w[0] % c.groups() != 0 ||
      type_of(*c.w) != type_of(*c.x))
    return false;
  for (size_t d = 0; d < stride.size(); ++d) {
    const int64_t reach = dilation[d] * (w[d + 2] - 1) + 1;
    const int64_t free = x[d + 2] + 2 * padding[d] - reach;
    if (free < 0 || y[d + 2] != free / stride[d] + 1) return false;
  }
  return true;
}

bool fits_together(const Descriptor& d) {
  const auto same = [&](cudnnBackendAttributeName_t a, cudnnBackendAttributeName_t b) {
    return d.list<int64_t>(a).size() == d.list<int64_t>(b).size();
  };
  switch (d.type) {
    case CUDNN_BACKEND_TENSOR_DESCRIPTOR:
      return sizes_of(d).size() >= 4 &&
             IntList(d.list<int64_t>(CUDNN_ATTR_TENSOR_STRIDES)) ==
                 IntList(contiguous_strides(sizes_of(d))) &&
             d.value<int64_t>(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT) > 0;
    case CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR:
      return same(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS) &&
             same(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_ATTR_CONVOLUTION_DILATIONS) &&
             d.list<int64_t>(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS) ==
                 d.list<int64_t>(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS) &&
             d.value<int64_t>(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS) ==
                 static_cast<int64_t>(
                     d.list<int64_t>(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES).size());
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR:
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR:
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR:
      return fits(call_of(d));
    case CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR:
      return is_tensor(d.part(CUDNN_ATTR_OPERATION_POINTWISE_XDESC)) &&
             is_tensor(d.part(CUDNN_ATTR_OPERATION_POINTWISE_BDESC)) &&
             is_tensor(d.part(CUDNN_ATTR_OPERATION_POINTWISE_YDESC)) &&
             d.part(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR);
    case CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR:
      return d.value<void*>(CUDNN_ATTR_OPERATIONGRAPH_HANDLE) &&
             d.part(CUDNN_ATTR_OPERATIONGRAPH_OPS);
    case CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR:
      return d.part(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
    case CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR:
      return d.value<void*>(CUDNN_ATTR_EXECUTION_PLAN_HANDLE) &&
             d.part(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
    case CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR:
      return same(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
    default:
      return true;
  }
}

constexpr int64_t kWays = 3, kVarying = 0, kRefused = 1, kWorkspace = 512;
// The library fuses a bias where images have two dimensions and numbers are not of 64 bits.
bool has_ways(const Descriptor& graph) {
  const std::vector<Descriptor::Ptr>& ops = graph.parts.at(CUDNN_ATTR_OPERATIONGRAPH_OPS);
  if (ops.size() == 1) return true;
  const Call c = call_of(*ops[0]);
  return sizes_of(*c.x).size() == 4 && type_of(*c.x) != CUDNN_DATA_DOUBLE;
}

template <class T>
Tensor in_double(const Descriptor& d, const void* data) {
  const Sizes64 sizes = sizes_of(d);
  const Tensor t = empty_cpu(sizes, ScalarType::Float64);
  for (int64_t i = 0; i < t.numel(); ++i) t.data_as<double>()[i] = read<T>(data, i);
  return t;
}

template <class T>
void compute(const Call& c, std::map<int64_t, void*> at, const Descriptor* add) {
  const DimVector stride = c.entries(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES),
                  padding = c.entries(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS),
                  dilation = c.entries(CUDNN_ATTR_CONVOLUTION_DILATIONS);
  const auto value = [&](const Descriptor* t) { return in_double<T>(*t, at.at(id_of(*t))); };
  const Sizes64 x = sizes_of(*c.x), w = sizes_of(*c.w), y = sizes_of(*c.y);
  const Descriptor* out = c.wanted == Wanted::Y ? c.y : c.wanted == Wanted::X ? c.x : c.w;
  Tensor result;
  if (c.wanted == Wanted::Y) {
    const DimVector none(stride.size(), 0);
    result = aten::convolution(value(c.x), value(c.w), Tensor(), stride, padding, dilation, false,
                               none, c.groups());
  } else if (c.wanted == Wanted::X) {
    DimVector rest;  // of x behind where the last window ends
    for (size_t d = 0; d < stride.size(); ++d)
      rest.push_back(x[d + 2] + 2 * padding[d] - dilation[d] * (w[d + 2] - 1) - 1 -
                     stride[d] * (y[d + 2] - 1));
    result = aten::convolution(value(c.y), value(c.w), Tensor(), stride, padding, dilation, true,
                               rest, c.groups());
  } else {
    result = aten::_convolution_grad_weight(value(c.y), value(c.x), w, stride, padding, dilation,
                                            c.groups());
  }
  result = aten::contiguous(result);
  if (add) {
    const void* const bias = at.at(id_of(*add->part(CUDNN_ATTR_OPERATION_POINTWISE_BDESC)));
    out = add->part(CUDNN_ATTR_OPERATION_POINTWISE_YDESC);
    const int64_t points = result.numel() / (y[0] * y[1]);
    for (int64_t i = 0; i < result.numel(); ++i)
      result.data_as<double>()[i] += read<T>(bias, i / points % y[1]);
  }
  void* const to = at.at(id_of(*out));
  for (int64_t i = 0; i < result.numel(); ++i)
    write<T>(to, i, c.alpha * result.data_as<double>()[i], c.beta);
}

// Whether every place that an operation names is given, and aligned as its tensor says.
bool is_aligned(const Descriptor& op, const std::map<int64_t, void*>& at) {
  for (const auto& [name, parts] : op.parts)
    for (const Descriptor::Ptr& t : parts) {
      if (t->type != CUDNN_BACKEND_TENSOR_DESCRIPTOR ||
          t->value<bool>(CUDNN_ATTR_TENSOR_IS_VIRTUAL))
        continue;
      const auto place = at.find(id_of(*t));
      if (place == at.end() || !place->second ||
          reinterpret_cast<uintptr_t>(place->second) %
                  t->value<uint64_t>(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT) !=
              0)
        return false;
    }
  return true;
}

}  // namespace
}  // namespace treadle::cuda::emulator

namespace e = treadle::cuda::emulator;

extern "C" {

cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type,
                                           cudnnBackendDescriptor_t* d) {
  auto* const made = new e::Descriptor;
  made->type = type;
  *d = made;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t d) {
  delete static_cast<e::Descriptor*>(d);
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t count,
                                       const void* values) {
  auto& to = *static_cast<e::Descriptor*>(d);
  if (to.final || count < 1) return CUDNN_STATUS_BAD_PARAM;
  if (type != CUDNN_TYPE_BACKEND_DESCRIPTOR) {
    to.values[name].assign(static_cast<const char*>(values),
                           static_cast<size_t>(count) * e::size_of(type));
    return CUDNN_STATUS_SUCCESS;
  }
  const auto* const list = static_cast<e::Descriptor* const*>(values);
  std::vector<e::Descriptor::Ptr> parts;
  for (int64_t i = 0; i < count; ++i) {
    if (!list[i]->final) return CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED;
    parts.push_back(std::make_shared<const e::Descriptor>(*list[i]));
  }
  to.parts[name] = parts;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t d) {
  auto& made = *static_cast<e::Descriptor*>(d);
  if (!e::fits_together(made)) return CUDNN_STATUS_BAD_PARAM;
  if (made.type == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR) {
    made.way = made.part(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG)->way;
    if (made.way == e::kRefused) return CUDNN_STATUS_NOT_SUPPORTED;
  }
  made.final = true;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnBackendGetAttribute(const cudnnBackendDescriptor_t d,
                                       cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t, int64_t most, int64_t* count,
                                       void* values) {
  const auto& from = *static_cast<const e::Descriptor*>(d);
  if (!from.final) return CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED;
  switch (name) {
    case CUDNN_ATTR_ENGINEHEUR_RESULTS: {
      const e::Descriptor* const graph = from.part(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
      *count = e::has_ways(*graph) ? e::kWays : 0;
      if (!values) return CUDNN_STATUS_SUCCESS;
      *count = std::min(*count, most);
      for (int64_t i = 0; i < *count; ++i) {
        e::Descriptor& way = *static_cast<e::Descriptor**>(values)[i];
        way.parts[CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH] =
            from.parts.at(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
        way.way = i;
        way.final = true;
      }
      return CUDNN_STATUS_SUCCESS;
    }
    case CUDNN_ATTR_ENGINECFG_ENGINE: {
      e::Descriptor& engine = **static_cast<e::Descriptor**>(values);
      engine.way = from.way;
      engine.final = true;
      *count = 1;
      return CUDNN_STATUS_SUCCESS;
    }
    case CUDNN_ATTR_ENGINE_NUMERICAL_NOTE:
      *count = from.way == e::kVarying ? 1 : 0;
      if (*count)
        *static_cast<cudnnBackendNumericalNote_t*>(values) = CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC;
      return CUDNN_STATUS_SUCCESS;
    case CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE:
      *static_cast<int64_t*>(values) = e::kWorkspace;
      *count = 1;
      return CUDNN_STATUS_SUCCESS;
    default:
      return CUDNN_STATUS_NOT_SUPPORTED;
  }
}
cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t plan_,
                                  cudnnBackendDescriptor_t pack_) {
  const auto& plan = *static_cast<const e::Descriptor*>(plan_);
  const auto& pack = *static_cast<const e::Descriptor*>(pack_);
  if (!plan.final || !pack.final || !pack.value<void*>(CUDNN_ATTR_VARIANT_PACK_WORKSPACE))
    return CUDNN_STATUS_BAD_PARAM;
  std::map<int64_t, void*> at;
  const auto ids = pack.list<int64_t>(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
  const auto places = pack.list<void*>(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
  for (size_t i = 0; i < ids.size(); ++i) at[ids[i]] = places[i];
  const std::vector<e::Descriptor::Ptr> ops = plan.part(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG)
                                                  ->part(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH)
                                                  ->parts.at(CUDNN_ATTR_OPERATIONGRAPH_OPS);
  for (const e::Descriptor::Ptr& op : ops)
    if (!e::is_aligned(*op, at)) return CUDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER;
  e::queue(e::own<e::Handle>(handle).stream, [=] {
    const e::Call c = e::call_of(*ops[0]);
    const e::Descriptor* const add = ops.size() > 1 ? ops[1].get() : nullptr;
    e::with_type(e::type_of(*c.x), [&]<class T>() { e::compute<T>(c, at, add); });
  });
  return CUDNN_STATUS_SUCCESS;
}

}  // extern "C"
