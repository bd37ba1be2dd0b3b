// Linear maps, convolutions, sums and products of quantized tensors. A weight of int8 whose zero
// points are 0, on the CPU, is multiplied in whole numbers; what that kernel does not take is
// computed in float32.
//
// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "aten/engine/layouts.h"
#include "aten/engine/strides/memory_format.h"
#include "aten/ops/_quantized_add.h"
#include "aten/ops/_quantized_cat.h"
#include "aten/ops/_quantized_convolution.h"
#include "aten/ops/_quantized_linear.h"
#include "aten/ops/_quantized_linear_dynamic.h"
#include "aten/ops/_quantized_mul.h"
#include "aten/ops/add.h"
#include "aten/ops/cat.h"
#include "aten/ops/contiguous.h"
#include "aten/ops/convolution.h"
#include "aten/ops/convolution/shape.h"
#include "aten/ops/expand.h"
#include "aten/ops/linear.h"
#include "aten/ops/mul.h"
#include "aten/ops/permute.h"
#include "aten/ops/quantized/contents.h"
#include "aten/ops/quantized/cpu/int8_products.h"
#include "aten/ops/quantized/cpu/rescale.h"
#include "aten/ops/quantized/parameters.h"
#include "aten/ops/relu.h"
#include "aten/ops/squeeze.h"
#include "aten/ops/to.h"
#include "aten/ops/unsqueeze.h"

namespace treadle::composite {
namespace {

using namespace quantized;  // NOLINT

// Sums of so many products of 8 bits fit 32 bits.
constexpr int64_t kMaxTerms = 65536;

const void* data_of(const Tensor& t) { return t.data(); }

// ---- the weight ----

struct Prepared {
  Prepared(std::shared_ptr<const LayoutContents> of, uint32_t v, const Tensor& values,
           std::vector<float> scales)
      : contents(std::move(of)), version(v), weight(values, std::move(scales)) {}
  std::shared_ptr<const LayoutContents> contents;
  uint32_t version;
  cpu::Int8Weight weight;
};

// Null for a weight that the kernels do not take.
std::shared_ptr<const Prepared> prepared(const Tensor& weight) {
  auto& impl = static_cast<LayoutTensorImpl&>(*weight.impl());
  const auto contents = impl.contents();
  const Tensor& values = contents->parts[0];
  const auto version = static_cast<uint32_t>(values.version());
  if (auto known = std::static_pointer_cast<const Prepared>(impl.prepared());
      known && known->contents == contents && known->version == version)
    return known;
  const Affine affine = affine_of("_quantized_linear", weight);
  if (!values.is_cpu() || values.dtype() != ScalarType::Int8 || values.dim() < 2 ||
      values.numel() == 0 || affine.axis > 0 || values.numel() / values.size(0) > kMaxTerms)
    return nullptr;
  const Tensor scales = aten::contiguous(affine.scales);
  const Tensor zeros = aten::contiguous(affine.zero_points);
  std::vector<float> each;
  for (int64_t c = 0; c < values.size(0); ++c) {
    const int64_t i = affine.per_channel() ? c : 0;
    if (zeros.data_as<int64_t>()[i] != 0) return nullptr;
    each.push_back(static_cast<float>(scales.data_as<double>()[i]));
  }
  auto made = std::make_shared<const Prepared>(contents, version, aten::contiguous(values),
                                               std::move(each));
  impl.prepare(made);
  return made;
}

bool of_eight_bits(const Affine& affine) {
  return affine.values.is_cpu() && !affine.per_channel() &&
         (affine.values.dtype() == ScalarType::UInt8 || affine.values.dtype() == ScalarType::Int8);
}

Tensor bias_of(const char* op, const Tensor& bias, int64_t channels, Device device) {
  if (!bias.defined()) return bias;
  check<ErrorKind::Runtime>(bias.sizes() == IntList({channels}) && bias.is_strided(), OpName(op),
                            "expected a bias of shape (", channels, "), got shape ", bias.sizes());
  check<ErrorKind::Runtime>(bias.device() == device, OpName(op), "expected a bias on ", device,
                            ", got ", bias.device());
  return aten::contiguous(aten::to(bias, ScalarType::Float32));
}

Tensor rectified(const Tensor& t, bool relu) { return relu ? aten::relu(t) : t; }

void require_scale(const char* op, double scale) {
  check<ErrorKind::Runtime>(std::isfinite(scale) && scale > 0, OpName(op),
                            "expected a positive scale, got ", scale);
}

// ---- linear ----

void require_linear(const char* op, const Tensor& input, const Tensor& weight) {
  check<ErrorKind::Runtime>(weight.dim() == 2 && input.dim() > 0, OpName(op),
                            "expected input (..., k) and weight (n, k), got shapes ", input.sizes(),
                            " and ", weight.sizes());
  check<ErrorKind::Runtime>(input.size(-1) == weight.size(1), OpName(op), "expected input of ",
                            weight.size(1), " features, got shape ", input.sizes());
  check<ErrorKind::Runtime>(input.device() == weight.device(), OpName(op), "expected input on ",
                            weight.device(), ", got ", input.device());
}

DimVector with_features(const Tensor& input, const Tensor& weight) {
  DimVector sizes(input.sizes());
  sizes.back() = weight.size(0);
  return sizes;
}

// input @ weight.T of whole numbers, as real numbers times `factor` plus `added`, into `out`.
void multiply(const Affine& input, const Prepared& p, double factor, const float* added,
              int64_t output_zero, bool relu, const Tensor& out) {
  const Tensor x = aten::contiguous(input.values);
  const cpu::Int8Weight& weight = p.weight;
  const auto columns = static_cast<int64_t>(weight.scales().size());
  const int64_t rows = columns == 0 ? 0 : out.numel() / columns;
  if (rows == 0) return;
  const Tensor sums = empty_cpu({rows, columns}, ScalarType::Int32);
  weight.multiply(x.dtype(), rows, data_of(x), sums.data_as<int32_t>());
  std::vector<float> factors;
  for (const float s : weight.scales())
    factors.push_back(static_cast<float>(static_cast<double>(s) * factor));
  cpu::rescale({weight.sums().data(), factors.data(), added, input.zero_point(), output_zero, relu},
               rows, columns, sums.data_as<int32_t>(), out);
}

}  // namespace

Tensor _quantized_linear(const Tensor& input, const Tensor& weight, const Tensor& bias,
                         double scale, int64_t zero_point, bool relu) {
  constexpr const char* kOp = "_quantized_linear";
  const Affine x = per_tensor(kOp, input), w = affine_of(kOp, weight);
  require_linear(kOp, input, weight);
  const Tensor b = bias_of(kOp, bias, weight.size(0), input.device());
  const auto p = of_eight_bits(x) ? prepared(weight) : nullptr;
  if (!p) {
    const Tensor real = aten::linear(dequantized(x), dequantized(w), b);
    return quantized::quantized(kOp, rectified(real, relu), scale, zero_point, x.values.dtype());
  }
  const Tensor out =
      tensor_of(kOp, empty_cpu(with_features(input, weight), x.values.dtype()), scale, zero_point);
  std::vector<float> added;
  for (int64_t c = 0; b.defined() && c < b.numel(); ++c)
    added.push_back(static_cast<float>(static_cast<double>(b.data_as<float>()[c]) / scale));
  multiply(x, *p, x.scale() / scale, b.defined() ? added.data() : nullptr, zero_point, relu,
           values_of(out));
  return out;
}

Tensor _quantized_linear_dynamic(const Tensor& input, const Tensor& weight, const Tensor& bias,
                                 bool relu, bool reduce_range) {
  constexpr const char* kOp = "_quantized_linear_dynamic";
  const Affine w = affine_of(kOp, weight);
  check<ErrorKind::Runtime>(input.is_strided() && is_floating(input.dtype()), OpName(kOp),
                            "expected a strided input of real numbers, got a ",
                            name_of(input.layout()), " one of ", input.dtype());
  require_linear(kOp, input, weight);
  const Tensor b = bias_of(kOp, bias, weight.size(0), input.device());
  const Parameters chosen = chosen_parameters(kOp, input, 0, reduce_range ? 127 : 255);
  const Affine x = affine_of(
      kOp, quantized::quantized(kOp, input, chosen.scale, chosen.zero_point, ScalarType::UInt8));
  const auto p = of_eight_bits(x) ? prepared(weight) : nullptr;
  if (!p) return rectified(aten::linear(dequantized(x), dequantized(w), b), relu);
  const Tensor out = empty_cpu(with_features(input, weight), ScalarType::Float32);
  multiply(x, *p, chosen.scale, b.defined() ? b.data_as<float>() : nullptr, 0, relu, out);
  return out;
}

// ---- convolution ----

Tensor _quantized_convolution(const Tensor& input, const Tensor& weight, const Tensor& bias,
                              IntList stride, IntList padding, IntList dilation, int64_t groups,
                              double scale, int64_t zero_point, bool relu) {
  constexpr const char* kOp = "_quantized_convolution";
  const Affine x = per_tensor(kOp, input), w = affine_of(kOp, weight);
  require_scale(kOp, scale);
  const Tensor b = bias_of(kOp, bias, weight.dim() > 0 ? weight.size(0) : 0, input.device());
  // Checks the shapes.
  const auto shaped = [](const Tensor& t) {
    return empty_tensor(t.sizes(), ScalarType::Float32, kMeta);
  };
  const TensorSpec spec = shape::convolution(
      kOp, shaped(x.values), shaped(w.values), Tensor(), stride, padding, dilation, false,
      DimVector(weight.dim() > 2 ? static_cast<size_t>(weight.dim() - 2) : 1, 0), groups);
  if (const auto p = of_eight_bits(x) ? prepared(weight) : nullptr; p && input.numel() > 0) {
    const int64_t rank = weight.dim();
    const bool batched = input.dim() == rank;
    const Tensor images = batched ? x.values : aten::unsqueeze(x.values, 0);
    const Tensor from = aten::contiguous(shape::channels_innermost(images));
    DimVector sizes(spec.sizes);
    if (!batched) sizes.insert(0, 1);
    DimVector last{sizes[0]};
    for (size_t d = 2; d < sizes.size(); ++d) last.push_back(sizes[d]);
    last.push_back(sizes[1]);
    const Tensor to = empty_cpu(last, x.values.dtype());
    const cpu::Int8Convolution call{cpu::conv_geometry(images.sizes(), weight.sizes(), sizes,
                                                       stride, padding, dilation, groups),
                                    x.values.dtype(),
                                    x.values.dtype(),
                                    x.scale(),
                                    scale,
                                    x.zero_point(),
                                    zero_point,
                                    relu,
                                    b.defined()};
    const Tensor out = tensor_of(kOp, to, scale, zero_point);  // checks the numbers
    if (to.numel() == 0 ||
        p->weight.convolve(call, data_of(from), b.defined() ? b.data_as<float>() : nullptr,
                           to.data())) {
      DimVector order{0, rank - 1};
      for (int64_t d = 1; d + 1 < rank; ++d) order.push_back(d);
      Affine result = affine_of(kOp, out);
      result.values = aten::permute(to, order);
      if (!batched) result.values = aten::squeeze(result.values, 0);
      return tensor_of(result);
    }
  }
  const Tensor real =
      aten::convolution(dequantized(x), dequantized(w), b, stride, padding, dilation, false,
                        DimVector(static_cast<size_t>(weight.dim() - 2), 0), groups);
  return quantized::quantized(kOp, rectified(real, relu), scale, zero_point, x.values.dtype());
}

// ---- sums, products, joins ----

namespace {

bool same_places(const Tensor& a, const Tensor& b) {
  return a.sizes() == b.sizes() && a.strides() == b.strides() && a.dtype() == b.dtype() &&
         shape::channels_innermost(a).is_contiguous() ==
             shape::channels_innermost(b).is_contiguous();
}

Tensor combined(const char* op, bool multiplied, const Tensor& self, const Tensor& other,
                double scale, int64_t zero_point, bool relu) {
  const Affine a = per_tensor(op, self), b = per_tensor(op, other);
  require_scale(op, scale);
  const Tensor &x = a.values, &y = b.values;
  const bool dense =
      x.is_contiguous() || (x.dim() >= 3 && shape::channels_innermost(x).is_contiguous());
  if (of_eight_bits(a) && of_eight_bits(b) && dense && same_places(x, y)) {
    const Tensor values = empty_strided_tensor(x.sizes(), x.strides(), x.dtype(), kCPU);
    const Tensor out = tensor_of(op, values, scale, zero_point);
    if (x.numel() > 0)
      cpu::add_or_multiply(multiplied, {data_of(x), a.scale(), a.zero_point()},
                           {data_of(y), b.scale(), b.zero_point()}, scale, zero_point, relu,
                           values);
    return out;
  }
  const Tensor u = dequantized(a), v = dequantized(b);
  const Tensor real = multiplied ? aten::mul(u, v) : aten::add(u, v);
  return quantized::quantized(op, rectified(real, relu), scale, zero_point, x.dtype());
}

}  // namespace

Tensor _quantized_add(const Tensor& self, const Tensor& other, double scale, int64_t zero_point,
                      bool relu) {
  return combined("_quantized_add", false, self, other, scale, zero_point, relu);
}
Tensor _quantized_mul(const Tensor& self, const Tensor& other, double scale, int64_t zero_point,
                      bool relu) {
  return combined("_quantized_mul", true, self, other, scale, zero_point, relu);
}

Tensor _quantized_cat(TensorList tensors, int64_t dim, double scale, int64_t zero_point) {
  constexpr const char* kOp = "_quantized_cat";
  check<ErrorKind::Runtime>(!tensors.empty(), OpName(kOp), "expected tensors, got none");
  const Affine first = per_tensor(kOp, tensors[0]);
  std::vector<Tensor> values, reals;
  bool same = true;
  for (const Tensor& t : tensors) {
    const Affine affine = per_tensor(kOp, t);
    check<ErrorKind::Runtime>(affine.values.dtype() == first.values.dtype(), OpName(kOp),
                              "expected quantized tensors of one dtype, got ", first.values.dtype(),
                              " and ", affine.values.dtype());
    same = same && affine.scale() == scale && affine.zero_point() == zero_point;
    values.push_back(affine.values);
  }
  if (same) return tensor_of(kOp, aten::cat(values, dim), scale, zero_point);
  for (const Tensor& t : tensors) reals.push_back(dequantized(per_tensor(kOp, t)));
  return quantized::quantized(kOp, aten::cat(reals, dim), scale, zero_point, first.values.dtype());
}

}  // namespace treadle::composite
