// Convolutions whose weight is packed once: plans for one weight, and how a batch runs in pieces.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "aten/backend/cpu/onednn.h"
#include "aten/ops/convolution/cpu/onednn_sizes.h"
#include "core/base/error.h"
#include "core/base/fork_safe_mutex.h"
#include "core/tensor/tensor.h"
#include "core/threads/parallel.h"

namespace treadle::cpu::onednn {

// A primitive, the weight in the order that it takes, and its work space. Without a primitive:
// oneDNN has no fast one.
struct PackedPlan {
  dnnl::primitive primitive;
  memory::desc input, output, bias, scratch, weight;
  Tensor packed;
};

inline Tensor buffer(const memory::desc& desc) {
  return empty_cpu({std::max<int64_t>(1, static_cast<int64_t>(desc.get_size()))},
                   ScalarType::UInt8);
}

[[noreturn]] inline void rethrow(const char* op, const dnnl::error& e) {
  if (e.status == dnnl_out_of_memory)
    fail<ErrorKind::OutOfMemory>(OpName(op), "out of memory for the work space");
  fail<ErrorKind::Runtime>(OpName(op), "the library of products failed: ", e.what());
}

// The plans of one weight. Threads share it.
template <class Call>
class PackedPlans {
 public:
  // The plan of a call; make(call) makes one.
  template <class Make>
  std::shared_ptr<const PackedPlan> find(const Call& call, Make&& make) {
    const std::lock_guard lock(mutex_);
    if (const auto found = plans_.find(call); found != plans_.end()) return found->second;
    std::shared_ptr<const PackedPlan> plan;
    single_threaded([&] {
      require_room_for_code();
      plan = make(call);
    });
    constexpr size_t kMax = 64;
    if (plans_.size() >= kMax) plans_.clear();
    plans_.emplace(call, plan);
    return plan;
  }

  // The weight in the order `wanted`. Called by make().
  Tensor packed(const memory::desc& wanted, const memory::desc& given, const Tensor& weight) {
    for (const auto& [desc, bytes] : packed_)
      if (desc == wanted) return bytes;
    const Tensor bytes = buffer(wanted);
    memory from(given, engine(), const_cast<void*>(weight.data()));
    memory to(wanted, engine(), bytes.data());
    dnnl::stream stream(engine());
    dnnl::reorder(dnnl::reorder::primitive_desc(engine(), given, engine(), wanted))
        .execute(stream, from, to);
    stream.wait();
    packed_.emplace_back(wanted, bytes);
    return bytes;
  }

 private:
  ForkSafeMutex mutex_;
  std::map<Call, std::shared_ptr<const PackedPlan>> plans_;
  std::vector<std::pair<memory::desc, Tensor>> packed_;  // shared by plans
};

inline void execute(const PackedPlan& plan, const void* input, const void* bias, void* output) {
  const Tensor scratch = buffer(plan.scratch);
  dnnl::stream stream(engine());
  std::unordered_map<int, memory> arguments{
      {DNNL_ARG_SRC, memory(plan.input, engine(), const_cast<void*>(input))},
      {DNNL_ARG_WEIGHTS, memory(plan.weight, engine(), plan.packed.data())},
      {DNNL_ARG_DST, memory(plan.output, engine(), output)},
      {DNNL_ARG_SCRATCHPAD, memory(plan.scratch, engine(), scratch.data())}};
  if (bias) arguments[DNNL_ARG_BIAS] = memory(plan.bias, engine(), const_cast<void*>(bias));
  plan.primitive.execute(stream, arguments);
  stream.wait();
}

// Runs a convolution in the pieces of its geometry, each on one thread. False, with nothing
// written, if a piece has no fast kernel. Elements have `size` bytes.
template <class Call, class Make>
bool convolve(PackedPlans<Call>& plans, const Call& call, size_t size, const void* input,
              const void* bias, void* output, Make&& make) {
  const ConvGeometry& g = call.geometry;
  std::vector<std::shared_ptr<const PackedPlan>> found;
  for (int64_t p = 0; p < g.pieces(); ++p) {
    Call piece = call;
    piece.geometry = g.piece(p);
    found.push_back(plans.find(piece, make));
    if (!found.back()->primitive) return false;
  }
  parallel_chunks(g.pieces(), [&](int64_t p) {
    single_threaded([&] {
      const auto first = static_cast<size_t>(g.first_image(p));
      execute(*found[static_cast<size_t>(p)],
              static_cast<const char*>(input) + first * static_cast<size_t>(g.in_image()) * size,
              bias, static_cast<char*>(output) + first * static_cast<size_t>(g.out_image()) * size);
    });
  });
  return true;
}

// A forward convolution in these orders, with the weight packed; without a primitive where oneDNN
// has but a reference loop.
template <class Call>
std::shared_ptr<const PackedPlan> forward_plan(PackedPlans<Call>& plans, const Call& call,
                                               PackedPlan orders, memory::data_type weight_type,
                                               const dnnl::primitive_attr& attributes,
                                               const Tensor& weight) {
  const ConvSizes sizes(call.geometry);
  auto plan = std::make_shared<PackedPlan>(std::move(orders));
  plan->bias = contiguous({call.geometry.out_channels}, memory::data_type::f32);
  const memory::desc any(sizes.weight, weight_type, memory::format_tag::any);
  const auto kind = dnnl::prop_kind::forward_inference;
  const auto algorithm = dnnl::algorithm::convolution_direct;
  const auto desc = call.bias ? dnnl::convolution_forward::desc(
                                    kind, algorithm, plan->input, any, plan->bias, plan->output,
                                    sizes.stride, sizes.dilation, sizes.before, sizes.behind)
                              : dnnl::convolution_forward::desc(
                                    kind, algorithm, plan->input, any, plan->output, sizes.stride,
                                    sizes.dilation, sizes.before, sizes.behind);
  try {
    const dnnl::convolution_forward::primitive_desc d(desc, attributes, engine());
    if (std::string_view(d.impl_info_str()).find("ref") != std::string_view::npos) return plan;
    plan->weight = d.weights_desc();
    plan->scratch = d.scratchpad_desc();
    plan->packed = plans.packed(plan->weight, contiguous(sizes.weight, weight_type), weight);
    plan->primitive = dnnl::convolution_forward(d);
  } catch (const dnnl::error& e) {
    if (e.status == dnnl_out_of_memory) throw;
  }
  return plan;
}

}  // namespace treadle::cpu::onednn
