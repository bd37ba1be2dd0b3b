// convolution, plain or transposed, over up to three dimensions, and the gradient of its weight.
// float runs on oneDNN, as bfloat16 does where the processor multiplies it; other types run as
// matrix products of unfolded inputs, and other 16-bit floats through float. oneDNN takes images of
// any memory format, the matrix products contiguous ones.
//
// The transposed convolution is the input's gradient of the plain one, so there are three
// computations. The batch is computed in pieces. Their weight gradients are added in order.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/ops/convolution/shape.h"

#include <algorithm>
#include <vector>

#include "aten/backend/cpu/gemm_loops.h"
#include "aten/backend/cpu/work_space.h"
#include "aten/engine/strides/memory_format.h"
#include "aten/ops/_convolution_grad_weight.h"
#include "aten/ops/contiguous.h"
#include "aten/ops/convolution.h"
#include "aten/ops/convolution/cpu/conv_onednn.h"
#include "aten/ops/convolution/cpu/conv_small_images.h"
#include "aten/ops/convolution/cpu/conv_unfold.h"
#include "aten/ops/copy_.h"
#include "aten/ops/to.h"
#include "core/threads/parallel.h"

namespace treadle::cpu {
namespace {

using shape::format_of;

// Calls f(piece of the geometry, first image, number of the piece) for each piece of the batch, in
// parallel.
template <class F>
void for_pieces(const ConvGeometry& g, F&& f) {
  parallel_chunks(g.pieces(), [&](int64_t p) { f(g.piece(p), g.first_image(p), p); });
}

template <class C>
void forward(const ConvGeometry& g, const C* in, const C* w, const C* bias, C* out) {
  for_pieces(g, [&](const ConvGeometry& piece, int64_t n, int64_t) {
    unfolded::forward(piece, in + n * g.in_image(), w, bias, out + n * g.out_image());
  });
}

template <class C>
void grad_input(const ConvGeometry& g, const C* grad, const C* w, C* out) {
  for_pieces(g, [&](const ConvGeometry& piece, int64_t n, int64_t) {
    unfolded::grad_input(piece, grad + n * g.out_image(), w, out + n * g.in_image());
  });
}

template <class C>
void grad_weight(const ConvGeometry& g, const C* grad, const C* in, C* out) {
  const int64_t size = g.weight_elements();
  const WorkSpace<C> partial(size * g.pieces());
  for_pieces(g, [&](const ConvGeometry& piece, int64_t n, int64_t p) {
    unfolded::grad_weight(piece, grad + n * g.out_image(), in + n * g.in_image(),
                          partial.data() + p * size);
  });
  std::fill_n(out, size, C(0));
  for (int64_t p = 0; p < g.pieces(); ++p) {
    for (int64_t i = 0; i < size; ++i) out[i] += partial[p * size + i];
  }
}

template <class T>
constexpr bool kNarrow = std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>;

// Whether oneDNN computes in the type of the elements itself.
template <class T>
bool is_native() {
  if constexpr (std::is_same_v<T, BFloat16>)
    return simd::pair_loops() != nullptr;
  else
    return std::is_same_v<T, float>;
}

// In a memory format, of the type that is computed in or as given.
template <class T>
Tensor operand(const Tensor& t, MemoryFormat format, bool as_given = false) {
  if (!t.defined()) return t;
  return aten::contiguous(kNarrow<T> && !as_given ? aten::to(t, ScalarType::Float32) : t, format);
}

// Fills `out` by compute(result, as_given): of `out` itself where oneDNN computes in its type (or
// of floats, with `float_result`), else of floats with the strides of `out`. Where that returns
// false, with nothing written, by compute_contiguous(result), of a contiguous result.
template <class T, class F, class G>
void into(const Tensor& out, bool float_result, F&& compute, G&& compute_contiguous) {
  using C = compute_type<T>;
  Tensor result = out;
  if constexpr (std::is_same_v<C, float>) {
    const auto computed = [&](bool as_float, bool as_given) {
      const Tensor to =
          as_float ? empty_strided_tensor(out.sizes(), out.strides(), ScalarType::Float32, kCPU)
                   : out;
      if (!compute(to, as_given)) return false;
      if (as_float) aten::copy_(out, to);
      return true;
    };
    if (is_native<T>() && computed(float_result, true)) return;
    if (kNarrow<T> && computed(true, false)) return;
  }
  if (kNarrow<T> || !out.is_contiguous()) result = empty_cpu(out.sizes(), scalar_type_of<C>);
  compute_contiguous(result);
  if (!result.is_same(out)) aten::copy_(out, result);
}

// Adds the bias of each channel to images (channels, positions) or, with channels innermost,
// (positions, channels).
template <class C>
void add_bias(const C* bias, int64_t images, int64_t channels, int64_t positions, bool innermost,
              C* out) {
  if (innermost) {
    for (int64_t p = 0; p < images * positions; ++p) {
      for (int64_t c = 0; c < channels; ++c) out[p * channels + c] += bias[c];
    }
    return;
  }
  for (int64_t i = 0; i < images * channels; ++i) {
    for (int64_t p = 0; p < positions; ++p) out[i * positions + p] += bias[i % channels];
  }
}

template <class C>
void add_bias_to_input(const ConvGeometry& g, const C* bias, C* out) {
  if (!bias) return;
  for_pieces(g, [&](const ConvGeometry& piece, int64_t n, int64_t) {
    add_bias(bias, piece.batch, g.in_channels, g.in_positions(), g.channels_last,
             out + n * g.in_image());
  });
}

template <class T>
void convolution_cpu(const Tensor& input, const Tensor& weight, const Tensor& bias, IntList stride,
                     IntList padding, IntList dilation, bool transposed, IntList, int64_t groups,
                     const Tensor& out) {
  using C = compute_type<T>;
  if (out.numel() == 0) return;
  const ConvGeometry plain = transposed ? conv_geometry(out.sizes(), weight.sizes(), input.sizes(),
                                                        stride, padding, dilation, groups)
                                        : conv_geometry(input.sizes(), weight.sizes(), out.sizes(),
                                                        stride, padding, dilation, groups);
  const bool no_channels = (transposed ? plain.out_image() : plain.in_image()) == 0;
  const Tensor b = operand<T>(bias, MemoryFormat::Contiguous);
  const C* const bias_data = b.defined() ? b.data_as<C>() : nullptr;
  const auto on_onednn = [&](const Tensor& result, bool as_given) {
    if constexpr (std::is_same_v<C, float>) {
      if (no_channels || (as_given && kNarrow<T> && transposed && bias_data)) return false;
      const MemoryFormat of_images = format_of(out), of_weight = format_of(weight);
      ConvGeometry g = plain;
      g.channels_last = of_images != MemoryFormat::Contiguous;
      g.weight_last = of_weight != MemoryFormat::Contiguous;
      g.is_bfloat16 = as_given && kNarrow<T>;
      const Tensor in = operand<T>(input, of_images, as_given);
      const Tensor w = operand<T>(weight, of_weight, as_given);
      if (!transposed && is_of_small_images(g)) {
        conv_forward_small_images(g, in.data_as<float>(), w.data_as<float>(), bias_data,
                                  result.data_as<float>());
        return true;
      }
      if (!transposed) return conv_forward_onednn(g, in.data(), w.data(), bias_data, result.data());
      if (!conv_grad_input_onednn(g, in.data(), w.data(), result.data())) return false;
      if (bias_data) add_bias_to_input(g, bias_data, result.data_as<float>());
      return true;
    }
    return false;
  };
  into<T>(out, /*float_result=*/false, on_onednn, [&](const Tensor& result) {
    const ConvGeometry& g = plain;
    C* const to = result.data_as<C>();
    if (no_channels) {
      std::fill_n(to, out.numel(), C(0));
      if (bias_data)
        add_bias(bias_data, g.batch, transposed ? g.in_channels : g.out_channels,
                 transposed ? g.in_positions() : g.out_positions(), false, to);
      return;
    }
    const Tensor in = operand<T>(input, MemoryFormat::Contiguous);
    const Tensor w = operand<T>(weight, MemoryFormat::Contiguous);
    if (!transposed) return forward(g, in.data_as<C>(), w.data_as<C>(), bias_data, to);
    grad_input(g, in.data_as<C>(), w.data_as<C>(), to);
    add_bias_to_input(g, bias_data, to);
  });
}

template <class T>
void convolution_grad_weight_cpu(const Tensor& grad, const Tensor& input, IntList weight_sizes,
                                 IntList stride, IntList padding, IntList dilation, int64_t groups,
                                 const Tensor& out) {
  using C = compute_type<T>;
  if (out.numel() == 0) return;
  if (grad.numel() == 0 || input.numel() == 0)
    return static_cast<void>(std::fill_n(out.data_as<T>(), out.numel(), T(0)));
  const ConvGeometry plain =
      conv_geometry(input.sizes(), weight_sizes, grad.sizes(), stride, padding, dilation, groups);
  const auto on_onednn = [&](const Tensor& result, bool as_given) {
    if constexpr (std::is_same_v<C, float>) {
      const MemoryFormat of_images =
          shape::convolution_format(grad, input, weight_sizes.size() - 2);
      ConvGeometry g = plain;
      g.channels_last = of_images != MemoryFormat::Contiguous;
      g.weight_last = format_of(out) != MemoryFormat::Contiguous;
      g.is_bfloat16 = as_given && kNarrow<T>;
      const Tensor gr = operand<T>(grad, of_images, as_given);
      const Tensor in = operand<T>(input, of_images, as_given);
      return conv_grad_weight_onednn(g, gr.data(), in.data(), result.data_as<float>());
    }
    return false;
  };
  into<T>(out, /*float_result=*/kNarrow<T>, on_onednn, [&](const Tensor& result) {
    const Tensor gr = operand<T>(grad, MemoryFormat::Contiguous);
    const Tensor in = operand<T>(input, MemoryFormat::Contiguous);
    grad_weight(plain, gr.data_as<C>(), in.data_as<C>(), result.data_as<C>());
  });
}

const auto convolution_registered = register_kernels<aten::ops::convolution, DeviceType::CPU>(
    []<class T>() { return &convolution_cpu<T>; }, "convolution_cpu");
const auto grad_weight_registered =
    register_kernels<aten::ops::_convolution_grad_weight, DeviceType::CPU>(
        []<class T>() { return &convolution_grad_weight_cpu<T>; }, "convolution_grad_weight_cpu");

}  // namespace
}  // namespace treadle::cpu
