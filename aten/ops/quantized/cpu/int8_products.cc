// SPDX-License-Identifier: Apache-2.0
#include "aten/ops/quantized/cpu/int8_products.h"

#include <map>
#include <mutex>
#include <string_view>
#include <unordered_map>

#include "aten/backend/cpu/onednn.h"
#include "core/base/error.h"
#include "core/base/fork_safe_mutex.h"
#include "core/base/parallel.h"

namespace treadle::cpu {
namespace {

using dnnl::memory;
using onednn::engine;

memory::data_type type_of(ScalarType dtype) {
  return dtype == ScalarType::UInt8  ? memory::data_type::u8
         : dtype == ScalarType::Int8 ? memory::data_type::s8
                                     : memory::data_type::s32;
}

// With channels, dimension 1, innermost.
memory::desc image(const memory::dims& sizes, memory::data_type type) {
  memory::dims strides(sizes.size());
  strides[1] = 1;
  int64_t step = sizes[1];
  for (size_t d = sizes.size(); d-- > 2; step *= sizes[d]) strides[d] = step;
  strides[0] = step;
  return memory::desc(sizes, type, strides);
}
memory::desc dense(const memory::dims& sizes, memory::data_type type) {
  memory::dims strides(sizes.size());
  int64_t step = 1;
  for (size_t d = sizes.size(); d-- > 0; step *= sizes[d]) strides[d] = step;
  return memory::desc(sizes, type, strides);
}

Tensor buffer(const memory::desc& desc) {
  return empty_cpu({std::max<int64_t>(1, static_cast<int64_t>(desc.get_size()))},
                   ScalarType::UInt8);
}

[[noreturn]] void rethrow(const char* op, const dnnl::error& e) {
  if (e.status == dnnl_out_of_memory)
    fail<ErrorKind::OutOfMemory>(OpName(op), "out of memory for the work space");
  fail<ErrorKind::Runtime>(OpName(op), "the library of products failed: ", e.what());
}

// A primitive, the weight in the layout that it takes, and its work space.
struct Plan {
  dnnl::primitive primitive;
  memory::desc input, output, bias, scratch, weight;
  Tensor packed;
};

// Made for one weight: a plan for each of these.
constexpr size_t kMaxPlans = 64;

}  // namespace

struct Int8Weight::Plans {
  struct Product {
    ScalarType input;
    int64_t rows;
    friend auto operator<=>(const Product&, const Product&) = default;
  };
  ForkSafeMutex mutex;
  std::map<Product, std::shared_ptr<const Plan>> products;
  std::map<Int8Convolution, std::shared_ptr<const Plan>> convolutions;
  std::vector<std::pair<memory::desc, Tensor>> packed;  // shared by plans

  // The weight in another layout.
  Tensor packed_as(const memory::desc& wanted, const memory::desc& given, const Tensor& values,
                   const dnnl::primitive_attr& attributes) {
    for (const auto& [desc, bytes] : packed)
      if (desc == wanted) return bytes;
    const Tensor bytes = buffer(wanted);
    memory from(given, engine(), const_cast<void*>(values.data()));
    memory to(wanted, engine(), bytes.data());
    dnnl::stream stream(engine());
    const dnnl::reorder::primitive_desc how(engine(), given, engine(), wanted, attributes);
    dnnl::reorder(how).execute(stream, from, to);
    stream.wait();
    packed.emplace_back(wanted, bytes);
    return bytes;
  }
};

Int8Weight::Int8Weight(Tensor values, std::vector<float> scales)
    : values_(std::move(values)), scales_(std::move(scales)), plans_(std::make_unique<Plans>()) {
  const int64_t out = values_.size(0), terms = out == 0 ? 0 : values_.numel() / out;
  const int8_t* const w = values_.data_as<int8_t>();
  for (int64_t c = 0; c < out; ++c) {
    int32_t sum = 0;
    for (int64_t i = 0; i < terms; ++i) sum += w[c * terms + i];
    sums_.push_back(sum);
  }
}
Int8Weight::~Int8Weight() = default;

void Int8Weight::multiply(ScalarType input, int64_t rows, const void* x, int32_t* result) const {
  const int64_t in = values_.size(1), out = values_.size(0);
  const auto plan_of = [&](int64_t count) {
    const Plans::Product key{input, count};
    const std::lock_guard lock(plans_->mutex);
    if (const auto found = plans_->products.find(key); found != plans_->products.end())
      return found->second;
    auto plan = std::make_shared<Plan>();
    single_threaded([&] {
      onednn::require_room_for_code();
      plan->input = dense({count, in}, type_of(input));
      plan->output = dense({count, out}, memory::data_type::s32);
      dnnl::primitive_attr attributes;
      attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
      const memory::desc any({in, out}, memory::data_type::s8, memory::format_tag::any);
      const dnnl::matmul::primitive_desc d(dnnl::matmul::desc(plan->input, any, plan->output),
                                           attributes, engine());
      plan->primitive = dnnl::matmul(d);
      plan->weight = d.weights_desc();
      plan->scratch = d.scratchpad_desc();
      // (out, in), seen as (in, out).
      const memory::desc given({in, out}, memory::data_type::s8, memory::dims{1, in});
      plan->packed = plans_->packed_as(plan->weight, given, values_, dnnl::primitive_attr());
    });
    if (plans_->products.size() >= kMaxPlans) plans_->products.clear();
    plans_->products.emplace(key, plan);
    return std::shared_ptr<const Plan>(plan);
  };
  try {
    // By the problem alone; every piece reads all weights.
    const int64_t pieces = std::clamp<int64_t>(rows / 64, 1, 8);
    parallel_chunks(pieces, [&](int64_t p) {
      const int64_t first = rows * p / pieces, count = rows * (p + 1) / pieces - first;
      const std::shared_ptr<const Plan> plan = plan_of(count);
      single_threaded([&] {
        const Tensor scratch = buffer(plan->scratch);
        dnnl::stream stream(engine());
        const auto* const from = static_cast<const uint8_t*>(x) + first * in;
        plan->primitive.execute(
            stream, {{DNNL_ARG_SRC, memory(plan->input, engine(), const_cast<uint8_t*>(from))},
                     {DNNL_ARG_WEIGHTS, memory(plan->weight, engine(), plan->packed.data())},
                     {DNNL_ARG_DST, memory(plan->output, engine(), result + first * out)},
                     {DNNL_ARG_SCRATCHPAD, memory(plan->scratch, engine(), scratch.data())}});
        stream.wait();
      });
    });
  } catch (const dnnl::error& e) {
    rethrow("_quantized_linear", e);
  }
}

bool Int8Weight::convolve(const Int8Convolution& c, const void* input, const float* bias,
                          void* output) const {
  const auto make = [&](const Int8Convolution& call) {
    const ConvGeometry& g = call.geometry;
    auto plan = std::make_shared<Plan>();
    memory::dims in{g.batch, g.in_channels}, out{g.batch, g.out_channels}, w, strides, dilates,
        before, behind;
    if (g.groups == 1)
      w = {g.out_channels, g.in_channels};
    else
      w = {g.groups, g.out_channels / g.groups, g.in_channels / g.groups};
    for (int d = 3 - g.spatial; d < 3; ++d) {
      in.push_back(g.in[d]);
      out.push_back(g.out[d]);
      w.push_back(g.kernel[d]);
      strides.push_back(g.stride[d]);
      dilates.push_back(g.dilation[d] - 1);
      before.push_back(g.padding[d]);
      behind.push_back((g.out[d] - 1) * g.stride[d] + g.dilation[d] * (g.kernel[d] - 1) + 1 -
                       g.in[d] - g.padding[d]);
    }
    plan->input = image(in, type_of(call.input));
    plan->output = image(out, type_of(call.output));
    plan->bias = dense({g.out_channels}, memory::data_type::f32);
    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    std::vector<float> factors;
    for (const float s : scales_)
      factors.push_back(
          static_cast<float>(call.input_scale * static_cast<double>(s) / call.output_scale));
    attributes.set_output_scales(1 << 1, factors);
    if (call.input_zero != 0)
      attributes.set_zero_points(DNNL_ARG_SRC, 0, {static_cast<int32_t>(call.input_zero)});
    if (call.output_zero != 0)
      attributes.set_zero_points(DNNL_ARG_DST, 0, {static_cast<int32_t>(call.output_zero)});
    if (call.relu) {
      dnnl::post_ops after;
      after.append_eltwise(1.0f, dnnl::algorithm::eltwise_relu, 0.0f, 0.0f);
      attributes.set_post_ops(after);
    }
    const memory::desc any(w, memory::data_type::s8, memory::format_tag::any);
    const auto kind = dnnl::prop_kind::forward_inference;
    const auto algorithm = dnnl::algorithm::convolution_direct;
    const auto desc =
        call.bias ? dnnl::convolution_forward::desc(kind, algorithm, plan->input, any, plan->bias,
                                                    plan->output, strides, dilates, before, behind)
                  : dnnl::convolution_forward::desc(kind, algorithm, plan->input, any, plan->output,
                                                    strides, dilates, before, behind);
    try {
      const dnnl::convolution_forward::primitive_desc d(desc, attributes, engine());
      if (std::string_view(d.impl_info_str()).find("ref") != std::string_view::npos) return plan;
      plan->weight = d.weights_desc();
      plan->scratch = d.scratchpad_desc();
      plan->packed = plans_->packed_as(plan->weight, dense(w, memory::data_type::s8), values_,
                                       dnnl::primitive_attr());
      plan->primitive = dnnl::convolution_forward(d);
    } catch (const dnnl::error& e) {
      if (e.status == dnnl_out_of_memory) throw;
    }
    return plan;
  };
  try {
    const ConvGeometry& g = c.geometry;
    const int64_t pieces = g.pieces();
    std::vector<std::shared_ptr<const Plan>> plans;
    {
      const std::lock_guard lock(plans_->mutex);
      for (int64_t p = 0; p < pieces; ++p) {
        Int8Convolution key = c;
        key.geometry = g.piece(p);
        auto& plan = plans_->convolutions[key];
        if (!plan) {
          single_threaded([&] {
            onednn::require_room_for_code();
            plan = make(key);
          });
        }
        if (!plan->primitive) return false;
        plans.push_back(plan);
      }
      if (plans_->convolutions.size() > kMaxPlans) plans_->convolutions.clear();
    }
    // oneDNN adds it to the sums of products, before it scales them.
    std::vector<float> added;
    for (size_t i = 0; bias && i < scales_.size(); ++i)
      added.push_back(static_cast<float>(static_cast<double>(bias[i]) /
                                         (c.input_scale * static_cast<double>(scales_[i]))));
    parallel_chunks(pieces, [&](int64_t p) {
      single_threaded([&] {
        const Plan& plan = *plans[static_cast<size_t>(p)];
        const Tensor scratch = buffer(plan.scratch);
        dnnl::stream stream(engine());
        const auto* const from =
            static_cast<const uint8_t*>(input) + g.first_image(p) * g.in_image();
        auto* const to = static_cast<uint8_t*>(output) + g.first_image(p) * g.out_image();
        std::unordered_map<int, memory> arguments{
            {DNNL_ARG_SRC, memory(plan.input, engine(), const_cast<uint8_t*>(from))},
            {DNNL_ARG_WEIGHTS, memory(plan.weight, engine(), plan.packed.data())},
            {DNNL_ARG_DST, memory(plan.output, engine(), to)},
            {DNNL_ARG_SCRATCHPAD, memory(plan.scratch, engine(), scratch.data())}};
        if (bias) arguments[DNNL_ARG_BIAS] = memory(plan.bias, engine(), added.data());
        plan.primitive.execute(stream, arguments);
        stream.wait();
      });
    });
    return true;
  } catch (const dnnl::error& e) {
    rethrow("_quantized_convolution", e);
  }
}

}  // namespace treadle::cpu
