// convolution, plain or transposed, over up to three dimensions, and the gradient of its weight.
// float runs on oneDNN, other types as matrix products of unfolded inputs, and 16-bit floats
// through float.
//
// The transposed convolution is the input's gradient of the plain one, so there are three
// computations. The batch is computed in pieces. Their weight gradients are added in order.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/ops/convolution/shape.h"

#include <algorithm>
#include <vector>

#include "aten/backend/cpu/work_space.h"
#include "aten/ops/_convolution_grad_weight.h"
#include "aten/ops/contiguous.h"
#include "aten/ops/convolution.h"
#include "aten/ops/convolution/cpu/conv_onednn.h"
#include "aten/ops/convolution/cpu/conv_unfold.h"
#include "aten/ops/copy_.h"
#include "aten/ops/to.h"
#include "core/base/parallel.h"

namespace treadle::cpu {
namespace {

// The geometry of a plain convolution from `input` to `output`. Unbatched tensors have no leading
// dimension.
ConvGeometry geometry(IntList input, IntList weight, IntList output, IntList stride,
                      IntList padding, IntList dilation, int64_t groups) {
  const size_t spatial = weight.size() - 2;
  const size_t i = input.size() - spatial, o = output.size() - spatial;
  ConvGeometry g{};
  g.batch = i == 2 ? input[0] : 1;
  g.in_channels = input[i - 1];
  g.out_channels = output[o - 1];
  g.groups = groups;
  g.spatial = static_cast<int>(spatial);
  g.in = g.out = g.kernel = g.stride = g.dilation = {1, 1, 1};
  for (size_t d = 0; d < spatial; ++d) {
    const size_t at = 3 - spatial + d;
    g.in[at] = input[i + d];
    g.out[at] = output[o + d];
    g.kernel[at] = weight[d + 2];
    g.stride[at] = shape::entry_of(stride, d);
    g.padding[at] = shape::entry_of(padding, d);
    g.dilation[at] = shape::entry_of(dilation, d);
  }
  return g;
}

// Calls f(piece of the geometry, first image, number of the piece) for each piece of the batch, in
// parallel.
template <class F>
void for_pieces(const ConvGeometry& g, F&& f) {
  parallel_chunks(g.pieces(), [&](int64_t p) { f(g.piece(p), g.first_image(p), p); });
}

template <class C>
void forward(const ConvGeometry& g, const C* in, const C* w, const C* bias, C* out) {
  if constexpr (std::is_same_v<C, float>) {
    if (conv_forward_onednn(g, in, w, bias, out)) return;
  }
  for_pieces(g, [&](const ConvGeometry& piece, int64_t n, int64_t) {
    unfolded::forward(piece, in + n * g.in_image(), w, bias, out + n * g.out_image());
  });
}

template <class C>
void grad_input(const ConvGeometry& g, const C* grad, const C* w, C* out) {
  if constexpr (std::is_same_v<C, float>) {
    if (conv_grad_input_onednn(g, grad, w, out)) return;
  }
  for_pieces(g, [&](const ConvGeometry& piece, int64_t n, int64_t) {
    unfolded::grad_input(piece, grad + n * g.out_image(), w, out + n * g.in_image());
  });
}

template <class C>
void grad_weight(const ConvGeometry& g, const C* grad, const C* in, C* out) {
  if constexpr (std::is_same_v<C, float>) {
    if (conv_grad_weight_onednn(g, grad, in, out)) return;
  }
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

// Contiguous, of the type that is computed in.
template <class T>
Tensor operand(const Tensor& t) {
  if (!t.defined()) return t;
  return aten::contiguous(kNarrow<T> ? aten::to(t, ScalarType::Float32) : t);
}

// Adds the bias of each channel to an image (channels, positions).
template <class C>
void add_bias(const C* bias, int64_t images, int64_t channels, int64_t positions, C* out) {
  for (int64_t i = 0; i < images * channels; ++i) {
    for (int64_t p = 0; p < positions; ++p) out[i * positions + p] += bias[i % channels];
  }
}

template <class T>
void convolution_cpu(const Tensor& input, const Tensor& weight, const Tensor& bias, IntList stride,
                     IntList padding, IntList dilation, bool transposed, IntList, int64_t groups,
                     const Tensor& out) {
  using C = compute_type<T>;
  if (out.numel() == 0) return;
  const ConvGeometry g =
      transposed
          ? geometry(out.sizes(), weight.sizes(), input.sizes(), stride, padding, dilation, groups)
          : geometry(input.sizes(), weight.sizes(), out.sizes(), stride, padding, dilation, groups);
  const Tensor in = operand<T>(input), w = operand<T>(weight), b = operand<T>(bias);
  const C* const bias_data = b.defined() ? b.data_as<C>() : nullptr;
  const Tensor wide = kNarrow<T> ? empty_cpu(out.sizes(), scalar_type_of<C>) : out;
  C* const result = wide.data_as<C>();
  const int64_t in_image = transposed ? g.out_image() : g.in_image();
  const int64_t out_image = transposed ? g.in_image() : g.out_image();
  if (in_image == 0) {  // no channels
    std::fill_n(result, out.numel(), C(0));
    if (bias_data)
      add_bias(bias_data, g.batch, transposed ? g.in_channels : g.out_channels,
               transposed ? g.in_positions() : g.out_positions(), result);
  } else if (transposed) {
    grad_input(g, in.data_as<C>(), w.data_as<C>(), result);
    if (bias_data) {
      for_pieces(g, [&](const ConvGeometry& piece, int64_t n, int64_t) {
        add_bias(bias_data, piece.batch, g.in_channels, g.in_positions(), result + n * out_image);
      });
    }
  } else {
    forward(g, in.data_as<C>(), w.data_as<C>(), bias_data, result);
  }
  if constexpr (kNarrow<T>) aten::copy_(out, wide);
}

template <class T>
void convolution_grad_weight_cpu(const Tensor& grad, const Tensor& input, IntList weight_sizes,
                                 IntList stride, IntList padding, IntList dilation, int64_t groups,
                                 const Tensor& out) {
  using C = compute_type<T>;
  const int64_t size = out.numel();
  if (size == 0) return;
  const Tensor wide = kNarrow<T> ? empty_cpu(out.sizes(), scalar_type_of<C>) : out;
  C* const result = wide.data_as<C>();
  if (grad.numel() == 0 || input.numel() == 0) {
    std::fill_n(result, size, C(0));
  } else {
    const ConvGeometry g =
        geometry(input.sizes(), weight_sizes, grad.sizes(), stride, padding, dilation, groups);
    const Tensor gr = operand<T>(grad), in = operand<T>(input);
    grad_weight(g, gr.data_as<C>(), in.data_as<C>(), result);
  }
  if constexpr (kNarrow<T>) aten::copy_(out, wide);
}

const auto convolution_registered = register_kernels<aten::ops::convolution, DeviceType::CPU>(
    []<class T>() { return &convolution_cpu<T>; }, "convolution_cpu");
const auto grad_weight_registered =
    register_kernels<aten::ops::_convolution_grad_weight, DeviceType::CPU>(
        []<class T>() { return &convolution_grad_weight_cpu<T>; }, "convolution_grad_weight_cpu");

}  // namespace
}  // namespace treadle::cpu
