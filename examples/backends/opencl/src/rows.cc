// Softmax, batch and layer normalisation, negative log likelihood, and their gradients.
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
    "rows",
#include "../cl/rows.cl"
};

// ---- softmax ----

template <bool logarithm>
void softmax(const Tensor& self, int64_t dim, bool, const Tensor& out) {
  if (out.numel() == 0) return;
  Device& device = device_of(out);
  const DType dtype = wide(out.dtype());
  const WideResult result(out);
  const Line line(out.sizes(), dim);
  Launch launch = kFamily.launch(device, dtype, "softmax");
  launch.tensor(packed_as(self, dtype)).tensor(result.tensor()).scalar<int64_t>(line.length);
  launch.scalar<int64_t>(line.inner).scalar<int32_t>(logarithm);
  launch.scalar<int64_t>(line.outer * line.inner).over(line.outer * line.inner);
  result.done();
}
template <bool logarithm>
void softmax_backward(const Tensor& grad, const Tensor& output, int64_t dim, DType,
                      const Tensor& out) {
  if (out.numel() == 0) return;
  Device& device = device_of(out);
  const DType dtype = wide(out.dtype());
  const WideResult result(out);
  const Line line(out.sizes(), dim);
  Launch launch = kFamily.launch(device, dtype, "softmax_gradient");
  launch.tensor(packed_as(grad, dtype)).tensor(packed_as(output, dtype)).tensor(result.tensor());
  launch.scalar<int64_t>(line.length).scalar<int64_t>(line.inner).scalar<int32_t>(logarithm);
  launch.scalar<int64_t>(line.outer * line.inner).over(line.outer * line.inner);
  result.done();
}

// ---- normalisation ----

// input as (batch, channels, plane).
struct Channels {
  int64_t batch, channels, plane = 1;
  explicit Channels(Ints sizes) : batch(sizes[0]), channels(sizes[1]) {
    for (size_t d = 2; d < sizes.size(); ++d) plane *= sizes[d];
  }
  void add(Launch& launch) const {
    launch.scalar<int64_t>(batch).scalar<int64_t>(channels).scalar<int64_t>(plane);
  }
};

void batch_norm_train(const Tensor& input, const Tensor& weight, const Tensor& bias, double eps,
                      const Tensor& out, const Tensor& mean, const Tensor& var) {
  const Channels s(input.sizes());
  if (s.channels == 0) return;
  Device& device = device_of(out);
  const DType dtype = wide(input.dtype());
  const Tensor x = widened(input);
  const WideResult result(out);
  Launch launch = kFamily.launch(device, dtype, "batch_norm");
  launch.tensor(x);
  add_optional(launch, widened(weight), x);
  add_optional(launch, widened(bias), x);
  add_value(launch, eps, dtype);
  launch.tensor(result.tensor()).tensor(mean).tensor(var);
  s.add(launch);
  launch.over(s.channels);
  result.done();
}
void batch_norm_backward(const Tensor& grad, const Tensor& input, const Tensor& weight,
                         const Tensor& mean, const Tensor& var, double eps,
                         const Tensor& grad_input, const Tensor& grad_weight,
                         const Tensor& grad_bias) {
  const Channels s(input.sizes());
  if (s.channels == 0) return;
  Device& device = device_of(input);
  const DType dtype = wide(input.dtype());
  const Tensor x = widened(input);
  const WideResult gx(grad_input), gw(grad_weight), gb(grad_bias);
  Launch launch = kFamily.launch(device, dtype, "batch_norm_gradient");
  launch.tensor(widened(grad)).tensor(x);
  add_optional(launch, widened(weight), x);
  launch.tensor(packed(mean)).tensor(packed(var));
  add_value(launch, eps, dtype);
  launch.tensor(gx.tensor()).tensor(gw.tensor()).tensor(gb.tensor());
  s.add(launch);
  launch.over(s.channels);
  gx.done();
  gw.done();
  gb.done();
}

int64_t length_of(Ints normalized) {
  int64_t length = 1;
  for (const int64_t n : normalized) length *= n;
  return length;
}
void layer_norm(const Tensor& input, Ints normalized, const Tensor& weight, const Tensor& bias,
                double eps, const Tensor& out, const Tensor& mean, const Tensor& rstd) {
  const int64_t length = length_of(normalized), rows = mean.numel();
  if (rows == 0) return;
  Device& device = device_of(out);
  const DType dtype = wide(input.dtype());
  const Tensor x = widened(input);
  const WideResult result(out);
  // Without elements there still are means, of nothing; any buffer stands for the input.
  const Tensor& known = x.numel() > 0 ? x : mean;
  Launch launch = kFamily.launch(device, dtype, "layer_norm");
  launch.tensor(known);
  add_optional(launch, length > 0 ? widened(weight) : Tensor(), known);
  add_optional(launch, length > 0 ? widened(bias) : Tensor(), known);
  add_value(launch, eps, dtype);
  launch.tensor(x.numel() > 0 ? result.tensor() : mean).tensor(mean).tensor(rstd);
  launch.scalar<int64_t>(length).scalar<int64_t>(rows).over(rows);
  result.done();
}
void layer_norm_backward(const Tensor& grad, const Tensor& input, Ints normalized,
                         const Tensor& mean, const Tensor& rstd, const Tensor& weight,
                         const Tensor& grad_input, const Tensor& grad_weight,
                         const Tensor& grad_bias) {
  const int64_t length = length_of(normalized), rows = mean.numel();
  if (length == 0) return;
  Device& device = device_of(input);
  const DType dtype = wide(input.dtype());
  const Tensor x = widened(input), g = widened(grad), mu = packed(mean), scale = packed(rstd);
  const WideResult gx(grad_input), gw(grad_weight), gb(grad_bias);
  if (rows > 0) {
    Launch launch = kFamily.launch(device, dtype, "layer_norm_gradient");
    launch.tensor(g).tensor(x).tensor(mu).tensor(scale);
    add_optional(launch, widened(weight), x);
    launch.tensor(gx.tensor()).scalar<int64_t>(length).scalar<int64_t>(rows).over(rows);
    gx.done();
  }
  // Without rows the sums are of nothing; any buffer stands for the input.
  const Tensor& any = gw.tensor();
  Launch launch = kFamily.launch(device, dtype, "layer_norm_parameters");
  launch.tensor(rows > 0 ? g : any).tensor(rows > 0 ? x : any);
  launch.tensor(rows > 0 ? mu : any).tensor(rows > 0 ? scale : any);
  launch.tensor(gw.tensor()).tensor(gb.tensor());
  launch.scalar<int64_t>(length).scalar<int64_t>(rows).over(length);
  gw.done();
  gb.done();
}

// ---- negative log likelihood ----

void check_target(Device& device, int64_t classes, int64_t ignored) {
  const auto fault = device.take_fault();
  plugin::check(fault.mark == 0, plugin::ErrorKind::Index, "nll_loss: expected target in [0, ",
                classes, ") or ignore_index = ", ignored, ", got ", fault.value);
}
void nll_loss_forward(const Tensor& self, const Tensor& target, const Tensor& weight,
                      int64_t reduction, int64_t ignored, const Tensor& output,
                      const Tensor& total_weight) {
  Device& device = device_of(total_weight);
  const DType dtype = wide(self.dtype());
  const int64_t samples = self.size(0), classes = self.size(1);
  const WideResult result(output), total(total_weight);
  // Without samples nothing is read; any buffer stands for what is empty.
  const auto or_any = [&](const Tensor& t) { return t.numel() > 0 ? t : total.tensor(); };
  const Tensor x = or_any(widened(self));
  Launch launch = kFamily.launch(device, dtype, "nll");
  launch.tensor(x).tensor(or_any(packed_as(target, DType::Int64)));
  add_optional(launch, weight.defined() && weight.numel() > 0 ? widened(weight) : Tensor(), x);
  launch.scalar<int64_t>(reduction).scalar<int64_t>(ignored).tensor(or_any(result.tensor()));
  launch.tensor(total.tensor()).scalar<int64_t>(samples).scalar<int64_t>(classes);
  launch.buffer(device.fault()).over(1);
  check_target(device, classes, ignored);
  result.done();
  total.done();
}
void nll_loss_backward(const Tensor& grad, const Tensor& self, const Tensor& target,
                       const Tensor& weight, int64_t reduction, int64_t ignored,
                       const Tensor& total_weight, const Tensor& out) {
  if (out.numel() == 0) return;
  Device& device = device_of(out);
  const DType dtype = wide(self.dtype());
  const int64_t samples = self.size(0), classes = self.size(1);
  const WideResult result(out);
  const Tensor g = widened(grad);
  Launch launch = kFamily.launch(device, dtype, "nll_gradient");
  launch.tensor(g).tensor(packed_as(target, DType::Int64));
  add_optional(launch, widened(weight), g);
  launch.scalar<int64_t>(reduction).scalar<int64_t>(ignored).tensor(widened(total_weight));
  launch.tensor(result.tensor()).scalar<int64_t>(samples).scalar<int64_t>(classes);
  launch.buffer(device.fault()).over(samples);
  check_target(device, classes, ignored);
  result.done();
}

}  // namespace

void register_rows(treadle_device_type type) {
  const auto floating = floating_dtypes();
  plugin::register_kernel<&softmax<false>>(
      "_softmax(Tensor self, int dim, bool half_to_float) -> Tensor", type, floating);
  plugin::register_kernel<&softmax<true>>(
      "_log_softmax(Tensor self, int dim, bool half_to_float) -> Tensor", type, floating);
  plugin::register_kernel<&softmax_backward<false>>(
      "_softmax_backward_data(Tensor grad_output, Tensor output, int dim, ScalarType input_dtype) "
      "-> Tensor",
      type, floating);
  plugin::register_kernel<&softmax_backward<true>>(
      "_log_softmax_backward_data(Tensor grad_output, Tensor output, int dim, ScalarType "
      "input_dtype) -> Tensor",
      type, floating);
  plugin::register_kernel<&batch_norm_train>(
      "_batch_norm_train(Tensor input, Tensor? weight, Tensor? bias, float eps) -> (Tensor output, "
      "Tensor mean, Tensor var)",
      type, floating);
  plugin::register_kernel<&batch_norm_backward>(
      "_batch_norm_backward(Tensor grad, Tensor input, Tensor? weight, Tensor mean, Tensor var, "
      "float eps) -> (Tensor grad_input, Tensor grad_weight, Tensor grad_bias)",
      type, floating);
  plugin::register_kernel<&layer_norm>(
      "native_layer_norm(Tensor input, int[] normalized_shape, Tensor? weight, Tensor? bias, float "
      "eps) -> (Tensor output, Tensor mean, Tensor rstd)",
      type, floating);
  plugin::register_kernel<&layer_norm_backward>(
      "_layer_norm_backward(Tensor grad, Tensor input, int[] normalized_shape, Tensor mean, Tensor "
      "rstd, Tensor? weight) -> (Tensor grad_input, Tensor grad_weight, Tensor grad_bias)",
      type, floating);
  plugin::register_kernel<&nll_loss_forward>(
      "nll_loss_forward(Tensor self, Tensor target, Tensor? weight, int reduction, int "
      "ignore_index) -> (Tensor output, Tensor total_weight)",
      type, floating);
  plugin::register_kernel<&nll_loss_backward>(
      "nll_loss_backward(Tensor grad, Tensor self, Tensor target, Tensor? weight, int reduction, "
      "int ignore_index, Tensor total_weight) -> Tensor",
      type, floating);
}

}  // namespace treadle_opencl
