// convolution (plain and transposed) and the gradient of its weight. Floating ones without groups
// are matrix products over the elements under the kernel; the others are summed directly.
//
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "family.h"
#include "generated.h"
#include "kernels.h"
#include "products.h"

namespace treadle_opencl {

namespace plugin = treadle::plugin;
using plugin::DType;
using plugin::Ints;
using plugin::Tensor;

namespace {

constexpr Family kFamily = {
    "convolutions",
#include "../cl/convolutions.cl"
};
constexpr int64_t kMaxElements = 1 << 24;  // of the matrix of elements under the kernel

// As the kernels see it (convolutions.cl).
struct Geometry {
  int64_t batch, in_channels, out_channels, groups;
  int64_t in[3], out[3], kernel_size[3], stride[3], padding[3], dilation[3];

  int64_t in_size() const { return in[0] * in[1] * in[2]; }
  int64_t out_size() const { return out[0] * out[1] * out[2]; }
  int64_t elements() const { return kernel_size[0] * kernel_size[1] * kernel_size[2]; }
};

// The last `count` values at the end of three, the others being `rest`.
void place(int64_t (&to)[3], Ints values, size_t count, int64_t rest) {
  for (size_t d = 0; d < 3; ++d) {
    const size_t missing = 3 - count;
    // One number stands for all dimensions.
    to[d] =
        d < missing ? rest : values[values.size() == 1 ? 0 : values.size() - count + d - missing];
  }
}
Geometry geometry_of(Ints in, Ints out, Ints weight, Ints stride, Ints padding, Ints dilation,
                     int64_t groups) {
  const size_t spatial = weight.size() - 2;
  const bool batched = in.size() == weight.size();
  Geometry g{};
  g.batch = batched ? in[0] : 1;
  g.in_channels = in[batched ? 1 : 0];
  g.out_channels = out[batched ? 1 : 0];
  g.groups = groups;
  const auto last = [&](Ints sizes) { return Ints(sizes.end() - spatial, spatial); };
  place(g.in, last(in), spatial, 1);
  place(g.out, last(out), spatial, 1);
  place(g.kernel_size, last(weight), spatial, 1);
  place(g.stride, stride, spatial, 1);
  place(g.padding, padding, spatial, 0);
  place(g.dilation, dilation, spatial, 1);
  return g;
}

Launch launch_of(Device& device, DType dtype, const char* name, const Geometry& g) {
  return kFamily.launch(device, dtype, name).bytes(&g, sizeof g);
}
bool by_products(const Geometry& g, DType dtype) {
  return plugin::is_floating(dtype) && g.groups == 1 && g.in_size() > 0 && g.elements() > 0;
}
// Images whose matrices are made at a time.
int64_t images_at_once(const Geometry& g) {
  const int64_t each = g.in_channels * g.elements() * g.out_size();
  return std::clamp<int64_t>(kMaxElements / std::max<int64_t>(1, each), 1, g.batch);
}

void forward(const Geometry& g, const Tensor& in, const Tensor& weight, const Tensor& bias,
             const Tensor& out) {
  Device& device = device_of(out);
  if (!by_products(g, out.dtype())) {
    Launch launch = launch_of(device, out.dtype(), "forward", g);
    launch.tensor(in).tensor(weight);
    add_optional(launch, bias, out);
    launch.tensor(out);
    over_elements(launch, device, out.numel(), g.in_channels / g.groups * g.elements());
    return;
  }
  const int64_t depth = g.in_channels * g.elements(), positions = g.out_size();
  const int64_t most = images_at_once(g);
  for (int64_t first = 0; first < g.batch; first += most) {
    const int64_t images = std::min(most, g.batch - first);
    const Tensor matrix = plugin::empty({depth, images * positions}, out.dtype(), out.device());
    Launch launch = launch_of(device, out.dtype(), "unfold_columns", g);
    launch.tensor(in).tensor(matrix).scalar<int64_t>(first).scalar<int64_t>(images);
    launch.over(depth * images);
    multiply(images, g.out_channels, positions, depth, {weight, 0, depth, 1},
             {matrix, positions, images * positions, 1}, out, first * g.out_channels * positions, 1,
             {bias, 0, 1, 0}, bias.defined() ? 1 : 0);
  }
}

// From a tensor with the shape of out to one with the shape of in.
void transposed(const Geometry& g, const Tensor& from, const Tensor& weight, const Tensor& bias,
                const Tensor& to) {
  Device& device = device_of(to);
  if (!by_products(g, to.dtype()) || g.out_size() == 0) {
    Launch launch = launch_of(device, to.dtype(), "transposed", g);
    launch.tensor(from).tensor(weight);
    add_optional(launch, bias, to);
    launch.tensor(to);
    over_elements(launch, device, to.numel(), g.out_channels / g.groups * g.elements());
    return;
  }
  const int64_t rows = g.in_channels * g.elements(), positions = g.out_size();
  const int64_t most = images_at_once(g);
  for (int64_t first = 0; first < g.batch; first += most) {
    const int64_t images = std::min(most, g.batch - first);
    const Tensor matrix = plugin::empty({images, rows, positions}, to.dtype(), to.device());
    multiply(images, rows, positions, g.out_channels, {weight, 0, 1, rows},
             {from, g.out_channels * positions, positions, 1, first * g.out_channels * positions},
             matrix);
    Launch launch = launch_of(device, to.dtype(), "fold_columns", g);
    launch.tensor(matrix);
    add_optional(launch, bias, to);
    launch.tensor(to).scalar<int64_t>(first).scalar<int64_t>(images);
    launch.over(images * g.in_channels);
  }
}

void weight_gradient(const Geometry& g, const Tensor& grad, const Tensor& in, const Tensor& out) {
  Device& device = device_of(out);
  const int64_t positions = g.out_size(), columns = g.in_channels * g.elements();
  if (!by_products(g, out.dtype()) || g.batch == 0 || positions == 0) {
    Launch launch = launch_of(device, out.dtype(), "weight_gradient", g);
    launch.tensor(grad).tensor(in).tensor(out);
    over_elements(launch, device, out.numel(), g.batch * positions);
    return;
  }
  const int64_t most = images_at_once(g);
  for (int64_t first = 0; first < g.batch; first += most) {
    const int64_t images = std::min(most, g.batch - first), depth = images * positions;
    const Tensor matrix = plugin::empty({depth, columns}, out.dtype(), out.device());
    Launch launch = launch_of(device, out.dtype(), "unfold_rows", g);
    launch.tensor(in).tensor(matrix).scalar<int64_t>(first).scalar<int64_t>(images).over(depth);
    // (channel, image, position)
    const Tensor rows = packed(grad.as_strided(
        {g.out_channels, images, positions}, {positions, g.out_channels * positions, 1},
        grad.storage_offset() + first * g.out_channels * positions));
    // The sum over earlier images is the bias of the later ones.
    multiply(1, g.out_channels, columns, depth, {rows, 0, depth, 1}, {matrix, 0, columns, 1}, out,
             0, 1, {first > 0 ? out : Tensor(), 0, columns, 1}, first > 0 ? 1 : 0);
  }
}

void convolution(const Tensor& input, const Tensor& weight, const Tensor& bias, Ints stride,
                 Ints padding, Ints dilation, bool is_transposed, Ints, int64_t groups,
                 const Tensor& out) {
  const DType dtype = wide(out.dtype());
  const Tensor x = packed_as(input, dtype), w = packed_as(weight, dtype);
  const Tensor b = bias.defined() ? packed_as(bias, dtype) : bias;
  if (out.numel() == 0) return;
  const WideResult result(out);
  // A transposed convolution goes from the `out` of its geometry to the `in`.
  if (is_transposed)
    transposed(
        geometry_of(out.sizes(), input.sizes(), weight.sizes(), stride, padding, dilation, groups),
        x, w, b, result.tensor());
  else
    forward(
        geometry_of(input.sizes(), out.sizes(), weight.sizes(), stride, padding, dilation, groups),
        x, w, b, result.tensor());
  result.done();
}

void convolution_grad_weight(const Tensor& grad, const Tensor& input, Ints weight_size, Ints stride,
                             Ints padding, Ints dilation, int64_t groups, const Tensor& out) {
  const DType dtype = wide(out.dtype());
  const Geometry g =
      geometry_of(input.sizes(), grad.sizes(), weight_size, stride, padding, dilation, groups);
  if (out.numel() == 0) return;
  const WideResult result(out);
  weight_gradient(g, packed_as(grad, dtype), packed_as(input, dtype), result.tensor());
  result.done();
}

}  // namespace

void register_convolutions(treadle_device_type type) {
  const DTypes dtypes = floating_and_complex_dtypes();
  plugin::register_kernel<&convolution>(
      "convolution(Tensor input, Tensor weight, Tensor? bias, int[] stride, int[] padding, int[] "
      "dilation, bool transposed, int[] output_padding, int groups) -> Tensor",
      type, dtypes);
  plugin::register_kernel<&convolution_grad_weight>(
      "_convolution_grad_weight(Tensor grad, Tensor input, int[] weight_size, int[] stride, int[] "
      "padding, int[] dilation, int groups) -> Tensor",
      type, dtypes);
}

}  // namespace treadle_opencl
