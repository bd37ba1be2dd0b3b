#include "aten/shape/conv.h"

namespace treadle::shape {
namespace {

struct Params {
  IntList stride, padding, dilation;
  int64_t groups;
};

// Sizes (N, O, H', W') of the output for an input of sizes `in` (N, C, H, W).
DimVector output_sizes(const char* op, IntList in, IntList weight, const Params& p) {
  check<ErrorKind::Runtime>(
      weight.size() == 4, op,
      ": expected weight with 4 dimensions (out, in / groups, height, width), got shape ", weight);
  check<ErrorKind::Runtime>(p.groups > 0 && weight[0] % p.groups == 0, op,
                            ": expected the output channels to be a multiple of groups = ",
                            p.groups, ", got ", weight[0]);
  check<ErrorKind::Runtime>(
      in[1] % p.groups == 0 && in[1] / p.groups == weight[1], op, ": expected input with ",
      weight[1] > INT64_MAX / p.groups ? weight[1] : weight[1] * p.groups,
      " channels (weight shape ", weight, ", groups = ", p.groups, "), got ", in[1]);
  return {in[0], weight[0],
          conv_length(op, in[2], weight[2], p.stride[0], p.padding[0], p.dilation[0]),
          conv_length(op, in[3], weight[3], p.stride[1], p.padding[1], p.dilation[1])};
}

void same_dtype(const char* op, const char* a, const Tensor& x, const char* b, const Tensor& y) {
  check<ErrorKind::Runtime>(x.dtype() == y.dtype(), op, ": expected ", a, " and ", b,
                            " of one dtype, got ", x.dtype(), " and ", y.dtype());
}

// (C, H, W) as (1, C, H, W).
DimVector batched(const char* op, const char* what, IntList sizes) {
  check<ErrorKind::Runtime>(
      sizes.size() == 3 || sizes.size() == 4, op, ": expected ", what,
      " with 3 or 4 dimensions ([batch,] channels, height, width), got shape ", sizes);
  DimVector out(sizes);
  if (out.size() == 3) out.insert(0, 1);
  return out;
}

}  // namespace

int64_t conv_length(const char* op, int64_t input, int64_t kernel, int64_t stride, int64_t padding,
                    int64_t dilation) {
  int64_t span, padded;
  const bool overflow = __builtin_mul_overflow(dilation, kernel - 1, &span) ||
                        __builtin_add_overflow(span, 1, &span) ||
                        __builtin_mul_overflow(padding, 2, &padded) ||
                        __builtin_add_overflow(padded, input, &padded);
  check<ErrorKind::Runtime>(!overflow, op, ": expected sizes below 2^63, got padding = ", padding,
                            ", dilation = ", dilation, ", kernel size = ", kernel);
  check<ErrorKind::Runtime>(kernel > 0 && span <= padded, op,
                            ": expected a kernel that fits into the padded input, got kernel size ",
                            kernel, " (dilation ", dilation, ") and padded input size ", padded);
  return (padded - span) / stride + 1;
}

TensorSpec conv(const char* op, const Tensor& input, const Tensor& weight, const Tensor& bias,
                IntList stride, IntList padding, IntList dilation, int64_t groups) {
  const DimVector in = batched(op, "input", input.sizes());
  same_dtype(op, "input", input, "weight", weight);
  DimVector out = output_sizes(op, in, weight.sizes(), {stride, padding, dilation, groups});
  if (bias.defined()) {
    same_dtype(op, "input", input, "bias", bias);
    check<ErrorKind::Runtime>(bias.dim() == 1 && bias.sizes()[0] == out[1], op,
                              ": expected bias of shape (", out[1], ",), got ", bias.sizes());
  }
  if (input.dim() == 3) out.erase(0);
  return {out, input.dtype(), input.device()};
}

TensorSpec conv_grad_input(const char* op, const Tensor& grad, const Tensor& weight,
                           IntList input_size, IntList stride, IntList padding, IntList dilation,
                           int64_t groups) {
  checked_numel(input_size);
  const DimVector in = batched(op, "input_size", input_size);
  same_dtype(op, "grad", grad, "weight", weight);
  DimVector out = output_sizes(op, in, weight.sizes(), {stride, padding, dilation, groups});
  if (input_size.size() == 3) out.erase(0);
  check<ErrorKind::Runtime>(grad.sizes() == IntList(out), op, ": expected grad of shape ", out,
                            ", got ", grad.sizes());
  return {input_size, grad.dtype(), grad.device()};
}

TensorSpec conv_grad_weight(const char* op, const Tensor& grad, const Tensor& input,
                            IntList weight_size, IntList stride, IntList padding, IntList dilation,
                            int64_t groups) {
  checked_numel(weight_size);
  const DimVector in = batched(op, "input", input.sizes());
  same_dtype(op, "grad", grad, "input", input);
  DimVector out = output_sizes(op, in, weight_size, {stride, padding, dilation, groups});
  if (input.dim() == 3) out.erase(0);
  check<ErrorKind::Runtime>(grad.sizes() == IntList(out), op, ": expected grad of shape ", out,
                            ", got ", grad.sizes());
  return {weight_size, grad.dtype(), grad.device()};
}

}  // namespace treadle::shape
