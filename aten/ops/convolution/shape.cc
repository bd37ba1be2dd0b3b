// Sizes of convolutions, with messages that name the setting that does not fit.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/ops/convolution/shape.h"

#include "aten/engine/strides/memory_format.h"

namespace treadle::shape {
namespace {

struct Window {
  IntList stride, padding, dilation;
};

void same_dtype(const char* op, const char* a, const Tensor& x, const char* b, const Tensor& y) {
  check<ErrorKind::Runtime>(x.dtype() == y.dtype(), OpName(op), "expected ", a, " and ", b,
                            " of one dtype, got ", x.dtype(), " and ", y.dtype());
}

// The number of spatial dimensions of a convolution with this weight.
size_t spatial_dims(const char* op, IntList weight) {
  check<ErrorKind::Runtime>(weight.size() >= 3 && weight.size() <= 5, OpName(op),
                            "expected weight with 3 to 5 dimensions, two for channels and the "
                            "rest for the kernel, got shape ",
                            weight);
  return weight.size() - 2;
}

void check_list(const char* op, const char* what, IntList list, size_t spatial) {
  check<ErrorKind::Value>(list.size() == spatial || list.size() == 1, OpName(op), "expected ", what,
                          " to have ", spatial, " entries, got ", list);
}

void check_lists(const char* op, const Window& w, size_t spatial) {
  check_list(op, "stride", w.stride, spatial);
  check_list(op, "padding", w.padding, spatial);
  check_list(op, "dilation", w.dilation, spatial);
}

// (C, spatial...) as (1, C, spatial...).
DimVector batched(const char* op, const char* what, IntList sizes, size_t spatial) {
  check<ErrorKind::Runtime>(sizes.size() == spatial + 1 || sizes.size() == spatial + 2, OpName(op),
                            "expected ", what, " with ", spatial + 1, " or ", spatial + 2,
                            " dimensions ([batch,] channels and ", spatial, " more), got shape ",
                            sizes);
  DimVector out(sizes);
  if (out.size() == spatial + 1) out.insert(0, 1);
  return out;
}

void check_channels(const char* op, IntList in, IntList weight, bool transposed, int64_t groups) {
  check<ErrorKind::Runtime>(groups > 0 && weight[0] % groups == 0, OpName(op), "expected the ",
                            transposed ? "input" : "output",
                            " channels of weight to be a multiple of groups = ", groups, ", got ",
                            weight[0]);
  if (transposed) {
    check<ErrorKind::Runtime>(in[1] == weight[0], OpName(op), "expected input with ", weight[0],
                              " channels (weight shape ", weight, "), got ", in[1]);
    return;
  }
  check<ErrorKind::Runtime>(
      in[1] % groups == 0 && in[1] / groups == weight[1], OpName(op), "expected input with ",
      weight[1] > INT64_MAX / groups ? weight[1] : weight[1] * groups, " channels (weight shape ",
      weight, ", groups = ", groups, "), got ", in[1]);
}

// dilation * (kernel - 1) + 1, and the padded size; both stay below 2^62.
struct Reach {
  int64_t span, padding;
};
Reach reach(const char* op, int64_t input, int64_t kernel, int64_t padding, int64_t dilation) {
  Reach r{0, 0};
  int64_t padded = 0;
  const bool overflow = __builtin_mul_overflow(dilation, kernel - 1, &r.span) ||
                        __builtin_mul_overflow(padding, 2, &r.padding) ||
                        __builtin_add_overflow(r.padding, input, &padded) ||
                        r.span >= INT64_MAX / 4 || padded >= INT64_MAX / 4;
  check<ErrorKind::Runtime>(!overflow, OpName(op),
                            "expected sizes below 2^61, got padding = ", padding,
                            ", dilation = ", dilation, ", kernel size = ", kernel);
  check<ErrorKind::Runtime>(kernel > 0, OpName(op),
                            "expected a kernel of at least one element, got ", kernel);
  ++r.span;
  return r;
}

int64_t transposed_length(const char* op, int64_t input, int64_t kernel, int64_t stride,
                          int64_t padding, int64_t dilation, int64_t output_padding) {
  const Reach r = reach(op, input, kernel, padding, dilation);
  check<ErrorKind::Runtime>(
      output_padding < std::max(stride, dilation), OpName(op),
      "expected output_padding below stride or dilation, got output_padding = ", output_padding,
      ", stride = ", stride, ", dilation = ", dilation);
  check<ErrorKind::Runtime>(input > 0, OpName(op), "expected spatial sizes of at least 1, got ",
                            input);
  int64_t length = 0;
  const bool overflow = __builtin_mul_overflow(input - 1, stride, &length) ||
                        __builtin_add_overflow(length, r.span, &length) ||
                        __builtin_add_overflow(length, output_padding, &length) ||
                        length >= INT64_MAX / 4;
  check<ErrorKind::Runtime>(!overflow, OpName(op),
                            "expected sizes below 2^61, got stride = ", stride,
                            ", output_padding = ", output_padding, ", input size = ", input);
  check<ErrorKind::Runtime>(length >= r.padding, OpName(op),
                            "expected padding that leaves a part of the output, got padding = ",
                            padding, " for an output of size ", length, " before padding");
  return length - r.padding;
}

}  // namespace

int64_t convolved_length(const char* op, int64_t input, int64_t kernel, int64_t stride,
                         int64_t padding, int64_t dilation) {
  const Reach r = reach(op, input, kernel, padding, dilation);
  check<ErrorKind::Runtime>(r.span <= input + r.padding, OpName(op),
                            "expected a kernel that fits into the padded input, got kernel size ",
                            kernel, " (dilation ", dilation, ") and padded input size ",
                            input + r.padding);
  return (input + r.padding - r.span) / stride + 1;
}

namespace {

// (N, O, spatial...) of the convolution of an input (N, C, spatial...).
DimVector convolved_sizes(const char* op, IntList in, IntList weight, const Window& w,
                          int64_t groups) {
  check_channels(op, in, weight, false, groups);
  DimVector out{in[0], weight[0]};
  for (size_t d = 0; d < weight.size() - 2; ++d) {
    out.push_back(convolved_length(op, in[d + 2], weight[d + 2], entry_of(w.stride, d),
                                   entry_of(w.padding, d), entry_of(w.dilation, d)));
  }
  return out;
}

}  // namespace

MemoryFormat convolution_format(const Tensor& image, const Tensor& other, size_t spatial) {
  const MemoryFormat first = kept_format(image, spatial);
  const bool batched = image.sizes().size() == spatial + 2;
  return batched && first == MemoryFormat::Contiguous ? kept_format(other, spatial) : first;
}

TensorSpec convolution(const char* op, const Tensor& input, const Tensor& weight,
                       const Tensor& bias, IntList stride, IntList padding, IntList dilation,
                       bool transposed, IntList output_padding, int64_t groups) {
  const IntList w = weight.sizes();
  const size_t spatial = spatial_dims(op, w);
  const Window window{stride, padding, dilation};
  check_lists(op, window, spatial);
  const DimVector in = batched(op, "input", input.sizes(), spatial);
  same_dtype(op, "input", input, "weight", weight);
  DimVector out;
  if (transposed) {
    check_list(op, "output_padding", output_padding, spatial);
    check_channels(op, in, w, true, groups);
    int64_t channels = 0;
    check<ErrorKind::Runtime>(!__builtin_mul_overflow(w[1], groups, &channels), OpName(op),
                              "expected fewer than 2^63 output channels, got ", w[1],
                              " in each of ", groups, " groups");
    out = {in[0], channels};
    for (size_t d = 0; d < spatial; ++d) {
      out.push_back(transposed_length(op, in[d + 2], w[d + 2], entry_of(stride, d),
                                      entry_of(padding, d), entry_of(dilation, d),
                                      entry_of(output_padding, d)));
    }
  } else {
    out = convolved_sizes(op, in, w, window, groups);
  }
  if (bias.defined()) {
    same_dtype(op, "input", input, "bias", bias);
    check<ErrorKind::Runtime>(bias.dim() == 1 && bias.sizes()[0] == out[1], OpName(op),
                              "expected bias of shape (", out[1], ",), got ", bias.sizes());
  }
  if (input.sizes().size() == spatial + 1) out.erase(0);
  return {out, input.dtype(), input.device(), convolution_format(input, weight, spatial)};
}

TensorSpec convolution_grad_weight(const char* op, const Tensor& grad, const Tensor& input,
                                   IntList weight_size, IntList stride, IntList padding,
                                   IntList dilation, int64_t groups) {
  checked_numel(weight_size);
  const size_t spatial = spatial_dims(op, weight_size);
  const Window window{stride, padding, dilation};
  check_lists(op, window, spatial);
  const DimVector in = batched(op, "input", input.sizes(), spatial);
  const DimVector given = batched(op, "grad", grad.sizes(), spatial);
  same_dtype(op, "grad", grad, "input", input);
  const DimVector out = convolved_sizes(op, in, weight_size, window, groups);
  bool fits = grad.dim() == input.dim() && given[0] == out[0] && given[1] == out[1];
  for (size_t d = 2; d < out.size(); ++d) fits = fits && given[d] <= out[d];
  check<ErrorKind::Runtime>(fits, OpName(op), "expected grad of shape ", out, ", got ",
                            grad.sizes());
  return {weight_size, grad.dtype(), grad.device(), convolution_format(grad, input, spatial)};
}

}  // namespace treadle::shape
