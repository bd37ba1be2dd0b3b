// SPDX-License-Identifier: Apache-2.0
#include "aten/ops/blocked/cpu/packed_weight.h"

#include "aten/ops/convolution/cpu/packed_plans.h"

namespace treadle::cpu {
namespace {

using dnnl::memory;

memory::desc in_blocks(const memory::dims& sizes, int64_t block) {
  using Tag = memory::format_tag;
  if (block == sizes[1]) return onednn::channels_innermost(sizes, 1, memory::data_type::f32);
  if (block == 1) return onednn::contiguous(sizes, memory::data_type::f32);
  static constexpr Tag kOf8[] = {Tag::nCw8c, Tag::nChw8c, Tag::nCdhw8c};
  return memory::desc(sizes, memory::data_type::f32, kOf8[sizes.size() - 3]);
}

}  // namespace

int64_t register_block() {
  // With AVX-512 oneDNN's fastest kernels take channels innermost; before, blocks of 8.
  static const bool wide = dnnl::get_effective_cpu_isa() >= dnnl::cpu_isa::avx512_core;
  return wide ? 0 : 8;
}

struct PackedWeight::Plans : onednn::PackedPlans<PackedCall> {};

PackedWeight::PackedWeight(Tensor weight)
    : weight_(std::move(weight)), plans_(std::make_unique<Plans>()) {}
PackedWeight::~PackedWeight() = default;

bool PackedWeight::convolve(const PackedCall& call, const float* input, const float* bias,
                            float* output) const {
  const auto make = [&](const PackedCall& piece) {
    const onednn::ConvSizes sizes(piece.geometry);
    onednn::PackedPlan orders;
    orders.input = in_blocks(sizes.in, piece.in_block);
    orders.output = in_blocks(sizes.out, piece.out_block);
    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    if (piece.relu) {
      dnnl::post_ops after;
      after.append_eltwise(1.0f, dnnl::algorithm::eltwise_relu, 0.0f, 0.0f);
      attributes.set_post_ops(after);
    }
    return onednn::forward_plan(*plans_, piece, std::move(orders), memory::data_type::f32,
                                attributes, weight_);
  };
  try {
    return onednn::convolve(*plans_, call, sizeof(float), input, bias, output, make);
  } catch (const dnnl::error& e) {
    onednn::rethrow("convolution", e);
  }
}

}  // namespace treadle::cpu
