// conv2d and its gradients: float on oneDNN, double by unfolding into matrix products, 16-bit
// floats through float.
//
// The batch is split into pieces by its size alone; the weight gradients of the pieces are added in
// order.
#include <algorithm>
#include <vector>

#include "aten/cpu/conv_onednn.h"
#include "aten/cpu/gemm.h"
#include "aten/ops/contiguous.h"
#include "aten/ops/conv2d.h"
#include "aten/ops/conv2d_grad_input.h"
#include "aten/ops/conv2d_grad_weight.h"
#include "aten/ops/to.h"
#include "core/parallel.h"

namespace treadle::cpu {
namespace {

constexpr int64_t kMaxPieces = 8;

ConvGeometry geometry(IntList input, IntList weight, IntList output, IntList stride,
                      IntList padding, IntList dilation, int64_t groups) {
  const size_t i = input.size() - 3,
               o = output.size() - 3;  // unbatched tensors have no leading dimension
  return {i ? input[0] : 1,
          input[i],
          input[i + 1],
          input[i + 2],
          output[o],
          output[o + 1],
          output[o + 2],
          weight[2],
          weight[3],
          {stride[0], stride[1]},
          {padding[0], padding[1]},
          {dilation[0], dilation[1]},
          groups};
}

// Calls f(piece of the geometry, first image) for each piece of the batch, in parallel.
template <class F>
int64_t for_pieces(const ConvGeometry& g, F&& f) {
  const int64_t pieces = std::min(kMaxPieces, g.batch);
  parallel_chunks(pieces, [&](int64_t p) {
    const int64_t begin = g.batch * p / pieces, end = g.batch * (p + 1) / pieces;
    ConvGeometry piece = g;
    piece.batch = end - begin;
    f(piece, begin, p);
  });
  return pieces;
}

int64_t in_image(const ConvGeometry& g) { return g.in_channels * g.in_height * g.in_width; }
int64_t out_image(const ConvGeometry& g) { return g.out_channels * g.out_height * g.out_width; }
int64_t weight_size(const ConvGeometry& g) {
  return g.out_channels * (g.in_channels / g.groups) * g.kernel_height * g.kernel_width;
}

// Unfolding: column (c, i, j) of the matrix holds the pixels that kernel element (c, i, j) meets at
// each output position. `visit(column index, output position, input index)` runs for each pair
// inside the image.
template <class F>
void unfold(const ConvGeometry& g, int64_t channels, F&& visit) {
  for (int64_t c = 0; c < channels; ++c) {
    for (int64_t i = 0; i < g.kernel_height; ++i) {
      for (int64_t j = 0; j < g.kernel_width; ++j) {
        const int64_t row = (c * g.kernel_height + i) * g.kernel_width + j;
        for (int64_t y = 0; y < g.out_height; ++y) {
          const int64_t in_y = y * g.stride[0] - g.padding[0] + i * g.dilation[0];
          if (in_y < 0 || in_y >= g.in_height) continue;
          for (int64_t x = 0; x < g.out_width; ++x) {
            const int64_t in_x = x * g.stride[1] - g.padding[1] + j * g.dilation[1];
            if (in_x < 0 || in_x >= g.in_width) continue;
            visit(row, y * g.out_width + x, (c * g.in_height + in_y) * g.in_width + in_x);
          }
        }
      }
    }
  }
}

struct Unfolded {
  int64_t channels, filters, rows, positions;  // per group
};
Unfolded per_group(const ConvGeometry& g) {
  const int64_t channels = g.in_channels / g.groups;
  return {channels, g.out_channels / g.groups, channels * g.kernel_height * g.kernel_width,
          g.out_height * g.out_width};
}

void forward(const ConvGeometry& g, const float* in, const float* w, const float* b, float* out) {
  conv_forward_onednn(g, in, w, b, out);
}
void grad_input(const ConvGeometry& g, const float* grad, const float* w, float* out) {
  conv_grad_input_onednn(g, grad, w, out);
}
void grad_weight(const ConvGeometry& g, const float* grad, const float* in, float* out) {
  conv_grad_weight_onednn(g, grad, in, out);
}

void forward(const ConvGeometry& g, const double* in, const double* w, const double* b,
             double* out) {
  const Unfolded u = per_group(g);
  std::vector<double> columns(static_cast<size_t>(u.rows * u.positions));
  for (int64_t n = 0; n < g.batch; ++n) {
    for (int64_t q = 0; q < g.groups; ++q) {
      const double* image = in + n * in_image(g) + q * u.channels * g.in_height * g.in_width;
      double* result = out + n * out_image(g) + q * u.filters * u.positions;
      std::fill(columns.begin(), columns.end(), 0.0);
      unfold(g, u.channels, [&](int64_t row, int64_t at, int64_t from) {
        columns[row * u.positions + at] = image[from];
      });
      for (int64_t f = 0; f < u.filters; ++f) {
        std::fill_n(result + f * u.positions, u.positions, b ? b[q * u.filters + f] : 0.0);
      }
      gemm<double>({w + q * u.filters * u.rows, u.filters, u.rows, u.rows, 1},
                   {columns.data(), u.rows, u.positions, u.positions, 1}, result, u.positions, 1.0,
                   1.0);
    }
  }
}

void grad_input(const ConvGeometry& g, const double* grad, const double* w, double* out) {
  const Unfolded u = per_group(g);
  std::vector<double> columns(static_cast<size_t>(u.rows * u.positions));
  std::fill_n(out, g.batch * in_image(g), 0.0);
  for (int64_t n = 0; n < g.batch; ++n) {
    for (int64_t q = 0; q < g.groups; ++q) {
      double* image = out + n * in_image(g) + q * u.channels * g.in_height * g.in_width;
      gemm<double>({w + q * u.filters * u.rows, u.rows, u.filters, 1, u.rows},
                   {grad + n * out_image(g) + q * u.filters * u.positions, u.filters, u.positions,
                    u.positions, 1},
                   columns.data(), u.positions, 1.0, 0.0);
      unfold(g, u.channels, [&](int64_t row, int64_t at, int64_t to) {
        image[to] += columns[row * u.positions + at];
      });
    }
  }
}

void grad_weight(const ConvGeometry& g, const double* grad, const double* in, double* out) {
  const Unfolded u = per_group(g);
  std::vector<double> columns(static_cast<size_t>(u.rows * u.positions));
  std::fill_n(out, weight_size(g), 0.0);
  for (int64_t n = 0; n < g.batch; ++n) {
    for (int64_t q = 0; q < g.groups; ++q) {
      const double* image = in + n * in_image(g) + q * u.channels * g.in_height * g.in_width;
      std::fill(columns.begin(), columns.end(), 0.0);
      unfold(g, u.channels, [&](int64_t row, int64_t at, int64_t from) {
        columns[row * u.positions + at] = image[from];
      });
      gemm<double>({grad + n * out_image(g) + q * u.filters * u.positions, u.filters, u.positions,
                    u.positions, 1},
                   {columns.data(), u.positions, u.rows, 1, u.positions},
                   out + q * u.filters * u.rows, u.rows, 1.0, 1.0);
    }
  }
}

template <class T>
constexpr bool kNarrow = std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>;

template <class T>
void narrow_into(const std::vector<float>& from, const Tensor& out) {
  std::copy(from.begin(), from.end(), out.data_as<T>());
}

// Contiguous, of type C; converted from the 16-bit floats.
template <class T>
Tensor operand(const Tensor& t) {
  if (!t.defined()) return t;
  return aten::contiguous(kNarrow<T> ? aten::to(t, ScalarType::Float32) : t);
}

template <class T>
void conv2d_cpu(const Tensor& input, const Tensor& weight, const Tensor& bias, IntList stride,
                IntList padding, IntList dilation, int64_t groups, const Tensor& out) {
  using C = compute_type<T>;
  if (out.numel() == 0) return;
  const ConvGeometry g =
      geometry(input.sizes(), weight.sizes(), out.sizes(), stride, padding, dilation, groups);
  const Tensor in = operand<T>(input), w = operand<T>(weight), b = operand<T>(bias);
  std::vector<C> wide(kNarrow<T> ? static_cast<size_t>(out.numel()) : 0);
  C* const result = kNarrow<T> ? wide.data() : static_cast<C*>(out.data());
  if (g.in_channels == 0) {
    for (int64_t i = 0; i < out.numel(); ++i) {
      result[i] =
          b.defined() ? b.data_as<C>()[i / (g.out_height * g.out_width) % g.out_channels] : C(0);
    }
  } else {
    for_pieces(g, [&](const ConvGeometry& piece, int64_t n, int64_t) {
      forward(piece, in.data_as<C>() + n * in_image(g), w.data_as<C>(),
              b.defined() ? b.data_as<C>() : nullptr, result + n * out_image(g));
    });
  }
  if constexpr (kNarrow<T>) narrow_into<T>(wide, out);
}

template <class T>
void conv2d_grad_input_cpu(const Tensor& grad, const Tensor& weight, IntList input_size,
                           IntList stride, IntList padding, IntList dilation, int64_t groups,
                           const Tensor& out) {
  using C = compute_type<T>;
  if (out.numel() == 0) return;
  const ConvGeometry g =
      geometry(input_size, weight.sizes(), grad.sizes(), stride, padding, dilation, groups);
  const Tensor gr = operand<T>(grad), w = operand<T>(weight);
  std::vector<C> wide(kNarrow<T> ? static_cast<size_t>(out.numel()) : 0);
  C* const result = kNarrow<T> ? wide.data() : static_cast<C*>(out.data());
  if (grad.numel() == 0) {
    std::fill_n(result, out.numel(), C(0));
  } else {
    for_pieces(g, [&](const ConvGeometry& piece, int64_t n, int64_t) {
      grad_input(piece, gr.data_as<C>() + n * out_image(g), w.data_as<C>(),
                 result + n * in_image(g));
    });
  }
  if constexpr (kNarrow<T>) narrow_into<T>(wide, out);
}

template <class T>
void conv2d_grad_weight_cpu(const Tensor& grad, const Tensor& input, IntList weight_sizes,
                            IntList stride, IntList padding, IntList dilation, int64_t groups,
                            const Tensor& out) {
  using C = compute_type<T>;
  const int64_t size = out.numel();
  if (size == 0) return;
  std::vector<C> total(static_cast<size_t>(size), C(0));
  if (grad.numel() != 0) {
    const ConvGeometry g =
        geometry(input.sizes(), weight_sizes, grad.sizes(), stride, padding, dilation, groups);
    const Tensor gr = operand<T>(grad), in = operand<T>(input);
    std::vector<C> partial(static_cast<size_t>(size * std::min(kMaxPieces, g.batch)));
    const int64_t pieces = for_pieces(g, [&](const ConvGeometry& piece, int64_t n, int64_t p) {
      grad_weight(piece, gr.data_as<C>() + n * out_image(g), in.data_as<C>() + n * in_image(g),
                  partial.data() + p * size);
    });
    for (int64_t p = 0; p < pieces; ++p) {
      for (int64_t i = 0; i < size; ++i) total[i] += partial[p * size + i];
    }
  }
  std::copy(total.begin(), total.end(), out.data_as<T>());
}

const auto forward_registered = register_kernels<aten::ops::conv2d, DeviceType::CPU>(
    []<class T>() { return &conv2d_cpu<T>; }, "conv2d_cpu");
const auto grad_input_registered = register_kernels<aten::ops::conv2d_grad_input, DeviceType::CPU>(
    []<class T>() { return &conv2d_grad_input_cpu<T>; }, "conv2d_grad_input_cpu");
const auto grad_weight_registered =
    register_kernels<aten::ops::conv2d_grad_weight, DeviceType::CPU>(
        []<class T>() { return &conv2d_grad_weight_cpu<T>; }, "conv2d_grad_weight_cpu");

}  // namespace
}  // namespace treadle::cpu
