// Pooling with the largest value and with the average, sliding and adaptive, and their gradients.
//
// SPDX-License-Identifier: Apache-2.0
#include "family.h"
#include "kernels.h"

namespace treadle_opencl {

namespace plugin = treadle::plugin;
using plugin::DType;
using plugin::Ints;
using plugin::Tensor;

namespace {

constexpr Family kFamily = {
    "pools",
#include "../cl/pools.cl"
};

// As the kernels see it (pools.cl).
struct Pooling {
  int64_t in[3] = {1, 1, 1}, out[3] = {1, 1, 1}, size[3] = {1, 1, 1}, stride[3] = {1, 1, 1};
  int64_t padding[3] = {0, 0, 0}, dilation[3] = {1, 1, 1};
  int64_t adaptive = 0, count_padding = 0, divisor = 0;

  // For planes whose last `spatial` dimensions are pooled.
  Pooling(Ints input, Ints output, size_t spatial) {
    for (size_t d = 0; d < spatial; ++d) {
      in[3 - spatial + d] = input[input.size() - spatial + d];
      out[3 - spatial + d] = output[output.size() - spatial + d];
    }
  }
  int64_t in_size() const { return in[0] * in[1] * in[2]; }
  int64_t out_size() const { return out[0] * out[1] * out[2]; }
};

// One number stands for all dimensions; none for what `otherwise` says.
void place(int64_t (&to)[3], Ints values, size_t spatial, Ints otherwise = {}) {
  const Ints from = values.empty() ? otherwise : values;
  for (size_t d = 0; d < spatial && !from.empty(); ++d)
    to[3 - spatial + d] = from[from.size() == 1 ? 0 : d];
}
Pooling sliding(Ints input, Ints output, Ints size, Ints stride, Ints padding, Ints dilation) {
  Pooling g(input, output, size.size());
  place(g.size, size, size.size());
  place(g.stride, stride, size.size(), size);
  place(g.padding, padding, size.size());
  place(g.dilation, dilation, size.size());
  return g;
}
Pooling adaptive(Ints input, Ints output, size_t spatial) {
  Pooling g(input, output, spatial);
  g.adaptive = 1;
  return g;
}

void largest(const Tensor& self, const Pooling& g, const Tensor& out, const Tensor& indices) {
  if (out.numel() == 0) return;
  Device& device = device_of(out);
  const WideResult values(out);
  Launch launch = kFamily.launch(device, wide(out.dtype()), "largest");
  launch.bytes(&g, sizeof g).tensor(widened(self)).tensor(values.tensor()).tensor(indices);
  launch.scalar<int64_t>(out.numel());
  over_elements(launch, device, out.numel(), g.size[0] * g.size[1] * g.size[2]);
  values.done();
}
void max_pool(const Tensor& self, Ints size, Ints stride, Ints padding, Ints dilation, bool,
              const Tensor& out, const Tensor& indices) {
  largest(self, sliding(self.sizes(), out.sizes(), size, stride, padding, dilation), out, indices);
}
template <size_t spatial>
void adaptive_max_pool(const Tensor& self, Ints, const Tensor& out, const Tensor& indices) {
  largest(self, adaptive(self.sizes(), out.sizes(), spatial), out, indices);
}

void max_pool_backward(const Tensor& grad, const Tensor& indices, Ints input_size, int64_t spatial,
                       const Tensor& out) {
  if (out.numel() == 0) return;
  const Pooling g(input_size, grad.sizes(), static_cast<size_t>(spatial));
  Device& device = device_of(out);
  const WideResult result(out);
  const int64_t planes = out.numel() / g.in_size();
  Launch launch = kFamily.launch(device, wide(out.dtype()), "spread");
  launch.tensor(widened(grad)).tensor(packed(indices)).tensor(result.tensor());
  launch.scalar<int64_t>(g.out_size()).scalar<int64_t>(g.in_size()).scalar<int64_t>(planes);
  launch.buffer(device.fault()).over(planes);
  const auto fault = device.take_fault();
  plugin::check(fault.mark == 0, plugin::ErrorKind::Index,
                "_max_pool_backward: expected indices in [0, ", g.in_size(), "), got ",
                fault.value);
  result.done();
}

void average(const Tensor& self, Pooling g, const Tensor& out) {
  if (out.numel() == 0) return;
  Device& device = device_of(out);
  const WideResult result(out);
  Launch launch = kFamily.launch(device, wide(out.dtype()), "average");
  launch.bytes(&g, sizeof g).tensor(widened(self)).tensor(result.tensor());
  launch.scalar<int64_t>(out.numel());
  over_elements(launch, device, out.numel(), g.size[0] * g.size[1] * g.size[2]);
  result.done();
}
void average_gradient(const Tensor& grad, const Pooling& g, const Tensor& out) {
  if (out.numel() == 0) return;
  Device& device = device_of(out);
  const WideResult result(out);
  const int64_t planes = out.numel() / g.in_size();
  Launch launch = kFamily.launch(device, wide(out.dtype()), "average_gradient");
  launch.bytes(&g, sizeof g).tensor(widened(grad)).tensor(result.tensor());
  launch.scalar<int64_t>(planes).over(planes);
  result.done();
}
Pooling averaging(Ints input, Ints output, Ints size, Ints stride, Ints padding, bool count_padding,
                  std::optional<int64_t> divisor) {
  Pooling g = sliding(input, output, size, stride, padding, {});
  g.count_padding = count_padding;
  g.divisor = divisor.value_or(0);
  return g;
}
void avg_pool1d(const Tensor& self, Ints size, Ints stride, Ints padding, bool, bool count_padding,
                const Tensor& out) {
  average(self,
          averaging(self.sizes(), out.sizes(), size, stride, padding, count_padding, std::nullopt),
          out);
}
void avg_pool(const Tensor& self, Ints size, Ints stride, Ints padding, bool, bool count_padding,
              const std::optional<int64_t>& divisor, const Tensor& out) {
  average(self, averaging(self.sizes(), out.sizes(), size, stride, padding, count_padding, divisor),
          out);
}
void avg_pool_backward(const Tensor& grad, Ints input_size, Ints size, Ints stride, Ints padding,
                       bool, bool count_padding, const std::optional<int64_t>& divisor,
                       const Tensor& out) {
  average_gradient(
      grad, averaging(input_size, grad.sizes(), size, stride, padding, count_padding, divisor),
      out);
}
template <size_t spatial>
void adaptive_avg_pool(const Tensor& self, Ints, const Tensor& out) {
  average(self, adaptive(self.sizes(), out.sizes(), spatial), out);
}
void adaptive_avg_pool_backward(const Tensor& grad, Ints input_size, int64_t spatial,
                                const Tensor& out) {
  average_gradient(grad, adaptive(input_size, grad.sizes(), static_cast<size_t>(spatial)), out);
}

template <int spatial>
void register_of(treadle_device_type type) {
  const std::string d = std::to_string(spatial);
  plugin::register_kernel<&max_pool>(
      ("max_pool" + d + "d_with_indices(Tensor self, int[" + d + "] kernel_size, int[" + d +
       "] stride=[], int[" + d + "] padding=0, int[" + d +
       "] dilation=1, bool ceil_mode=False) -> (Tensor values, Tensor indices)")
          .c_str(),
      type, real_dtypes());
  plugin::register_kernel<&adaptive_max_pool<spatial>>(
      ("adaptive_max_pool" + d + "d(Tensor self, int[" + d +
       "] output_size) -> (Tensor values, Tensor indices)")
          .c_str(),
      type, real_dtypes());
  plugin::register_kernel<&adaptive_avg_pool<spatial>>(
      ("adaptive_avg_pool" + d + "d(Tensor self, int[" + d + "] output_size) -> Tensor").c_str(),
      type, floating_dtypes());
  if constexpr (spatial > 1)
    plugin::register_kernel<&avg_pool>(
        ("avg_pool" + d + "d(Tensor self, int[" + d + "] kernel_size, int[" + d +
         "] stride=[], int[" + d +
         "] padding=0, bool ceil_mode=False, bool count_include_pad=True, int? "
         "divisor_override=None) -> Tensor")
            .c_str(),
        type, floating_dtypes());
}

}  // namespace

void register_pools(treadle_device_type type) {
  register_of<1>(type);
  register_of<2>(type);
  register_of<3>(type);
  plugin::register_kernel<&avg_pool1d>(
      "avg_pool1d(Tensor self, int[1] kernel_size, int[1] stride=[], int[1] padding=0, bool "
      "ceil_mode=False, bool count_include_pad=True) -> Tensor",
      type, floating_dtypes());
  plugin::register_kernel<&max_pool_backward>(
      "_max_pool_backward(Tensor grad, Tensor indices, int[] input_size, int spatial) -> Tensor",
      type, floating_dtypes());
  plugin::register_kernel<&avg_pool_backward>(
      "_avg_pool_backward(Tensor grad, int[] input_size, int[] kernel_size, int[] stride, int[] "
      "padding, bool ceil_mode, bool count_include_pad, int? divisor_override) -> Tensor",
      type, floating_dtypes());
  plugin::register_kernel<&adaptive_avg_pool_backward>(
      "_adaptive_avg_pool_backward(Tensor grad, int[] input_size, int spatial) -> Tensor", type,
      floating_dtypes());
}

}  // namespace treadle_opencl
