// SPDX-License-Identifier: Apache-2.0
#include "aten/ops/quantized/cpu/int8_products.h"

#include <algorithm>
#include <utility>

#include "aten/ops/convolution/cpu/packed_plans.h"

namespace treadle::cpu {
namespace {

using dnnl::memory;
using onednn::engine;

memory::data_type type_of(ScalarType dtype) {
  return dtype == ScalarType::UInt8  ? memory::data_type::u8
         : dtype == ScalarType::Int8 ? memory::data_type::s8
                                     : memory::data_type::s32;
}

}  // namespace

namespace {
struct Product {
  ScalarType input;
  int64_t rows;
  friend auto operator<=>(const Product&, const Product&) = default;
};
}  // namespace

struct Int8Weight::Plans {
  onednn::PackedPlans<Product> products;
  onednn::PackedPlans<Int8Convolution> convolutions;
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
  const auto make = [&](const Product& product) {
    auto plan = std::make_shared<onednn::PackedPlan>();
    plan->input = onednn::contiguous({product.rows, in}, type_of(input));
    plan->output = onednn::contiguous({product.rows, out}, memory::data_type::s32);
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
    plan->packed = plans_->products.packed(plan->weight, given, values_);
    return std::shared_ptr<const onednn::PackedPlan>(plan);
  };
  try {
    // By the problem alone; every piece reads all weights.
    const int64_t pieces = std::clamp<int64_t>(rows / 64, 1, 8);
    parallel_chunks(pieces, [&](int64_t p) {
      const int64_t first = rows * p / pieces, count = rows * (p + 1) / pieces - first;
      const auto plan = plans_->products.find({input, count}, make);
      single_threaded([&] {
        onednn::execute(*plan, static_cast<const uint8_t*>(x) + first * in, nullptr,
                        result + first * out);
      });
    });
  } catch (const dnnl::error& e) {
    onednn::rethrow("_quantized_linear", e);
  }
}

bool Int8Weight::convolve(const Int8Convolution& c, const void* input, const float* bias,
                          void* output) const {
  const auto make = [&](const Int8Convolution& call) {
    const onednn::ConvSizes sizes(call.geometry);
    onednn::PackedPlan orders;
    orders.input = onednn::channels_innermost(sizes.in, 1, type_of(call.input));
    orders.output = onednn::channels_innermost(sizes.out, 1, type_of(call.output));
    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    std::vector<float> factors;
    for (const float s : scales_)
      factors.push_back(
          static_cast<float>(call.input_scale * static_cast<double>(s) / call.output_scale));
    attributes.set_output_scales(1 << 1, factors);
    if (call.input_zero != 0)
      attributes.set_zero_points(DNNL_ARG_SRC, 0, {static_cast<int32_t>(call.input_zero)});
    if (call.relu) {
      dnnl::post_ops after;
      const float greatest = call.output == ScalarType::UInt8 ? 255.0f : 127.0f;
      after.append_eltwise(1.0f, dnnl::algorithm::eltwise_clip,
                           static_cast<float>(call.output_zero), greatest);
      attributes.set_post_ops(after);
    }
    return onednn::forward_plan(plans_->convolutions, call, std::move(orders),
                                memory::data_type::s8, attributes, values_);
  };
  // oneDNN writes behind its memory for some images where a convolution of 1 x 1 has zero points.
  // Their share of an element is the same for a whole channel, unless padding is read. So it
  // is part of the bias, which is added to the sums of products before they are scaled.
  Int8Convolution plain = c;
  const auto& padding = c.geometry.padding;
  const bool padded = std::any_of(padding.begin(), padding.end(), [](int64_t p) { return p > 0; });
  if (!padded) plain.input_zero = 0;
  if (!c.relu) plain.output_zero = 0;
  plain.bias = bias || c.output_zero != 0 || (c.input_zero != 0 && !padded);
  std::vector<float> added;
  for (size_t i = 0; plain.bias && i < scales_.size(); ++i) {
    const double scale = c.input_scale * static_cast<double>(scales_[i]);
    double sum = (bias ? static_cast<double>(bias[i]) : 0) / scale;
    sum += static_cast<double>(c.output_zero) * c.output_scale / scale;
    if (!padded) sum -= static_cast<double>(c.input_zero) * static_cast<double>(sums_[i]);
    added.push_back(static_cast<float>(sum));
  }
  try {
    return onednn::convolve(plans_->convolutions, plain, 1, input,
                            plain.bias ? added.data() : nullptr, output, make);
  } catch (const dnnl::error& e) {
    onednn::rethrow("_quantized_convolution", e);
  }
}

}  // namespace treadle::cpu
