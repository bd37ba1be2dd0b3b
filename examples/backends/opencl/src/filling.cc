// _fill_, _linear_ (arange), _linspace_, and random numbers: the same as on the CPU for the same
// seed, those of the normal distribution up to rounding.
//
// SPDX-License-Identifier: Apache-2.0
#include "family.h"
#include "kernels.h"

namespace treadle_opencl {

namespace plugin = treadle::plugin;
using plugin::DType;
using plugin::ErrorKind;
using plugin::Generator;
using plugin::Number;
using plugin::Tensor;

namespace {

constexpr const char* kText =
#include "../cl/filling.cl"
    ;

std::string source_of(DType dtype) {
  const auto raw = static_cast<treadle_dtype>(dtype);
  std::string text = element_prelude(raw);
  text += "#define STORE_PAIR(p, i, v) ((p)[i] = " + converted("(v)", TREADLE_COMPLEX128, raw) +
          ")\n#define STORE_LONG(p, i, v) ((p)[i] = " + converted("(v)", TREADLE_INT64, raw) +
          ")\n";
  // As many bits as the dtype holds, so that nothing rounds to 1.
  if (dtype == DType::Float64) {
    text +=
        "#define UNIT(k) ((double)(random_pair(key, counter, k) >> 11) * 0x1p-53)\n"
        "#define OPEN_UNIT(k) (((double)(long)(random_pair(key, counter, k) >> 12) + 0.5) * "
        "0x1p-52)\n";
  } else if (plugin::is_floating(dtype)) {
    const char* bits = dtype == DType::Float16 ? "11" : dtype == DType::BFloat16 ? "8" : "24";
    text += std::string("#define UNIT(k) ((float)(random_word(key, counter, k) >> (32 - ") + bits +
            ")) * 0x1p-" + bits +
            "f)\n#define OPEN_UNIT(k) (((float)(random_word(key, counter, k) >> 9) + 0.5f) * "
            "0x1p-23f)\n";
  }
  return text + kText;
}
Launch launch_of(Device& device, const Tensor& self, const char* kernel) {
  const DType dtype = self.dtype();
  Launch launch(device, device.kernel("filling " + std::to_string(static_cast<int>(dtype)), kernel,
                                      [&] { return source_of(dtype); }));
  launch.tensor(self);
  return launch;
}
void over_all(Launch& launch, const Tensor& self) {
  launch.scalar<int64_t>(self.numel());
  over_elements(launch, device_of(self), self.numel());
}

void fill_number(const Tensor& self, const Number& value) {
  if (self.numel() > 0) fill(self, value);
}

void add_pair(Launch& launch, std::complex<double> value) {
  const double parts[2] = {value.real(), value.imag()};
  launch.bytes(parts, sizeof parts);
}
void linear(const Tensor& self, const Number& start, const Number& step) {
  if (self.numel() == 0) return;
  const bool whole = !plugin::is_floating(self.dtype()) && !plugin::is_complex(self.dtype()) &&
                     !start.is_floating() && !start.is_complex() && !step.is_floating() &&
                     !step.is_complex();
  Launch launch = launch_of(device_of(self), self, whole ? "whole_sequence" : "sequence");
  if (whole) {
    launch.scalar<int64_t>(start.to<int64_t>()).scalar<int64_t>(step.to<int64_t>());
  } else {
    add_pair(launch, start.to<std::complex<double>>());
    add_pair(launch, step.to<std::complex<double>>());
    add_pair(launch, 0);
    launch.scalar<int32_t>(0);
  }
  over_all(launch, self);
}
void linspace(const Tensor& self, const Number& start, const Number& end) {
  const int64_t n = self.numel();
  if (n == 0) return;
  const auto first = start.to<std::complex<double>>(), last = end.to<std::complex<double>>();
  Launch launch = launch_of(device_of(self), self, "sequence");
  add_pair(launch, first);
  add_pair(launch, n > 1 ? (last - first) / static_cast<double>(n - 1) : 0);
  add_pair(launch, last);
  launch.scalar<int32_t>(1);
  over_all(launch, self);
}

// Counters for `numbers` numbers of which a block has `each`.
void add_counters(Launch& launch, const Generator& generator, const Tensor& self, int64_t each) {
  const int64_t blocks = (self.numel() + each - 1) / each;
  const auto at = plugin::reserve_random(generator, self.device(), static_cast<uint64_t>(blocks));
  launch.scalar<uint64_t>(at.seed).scalar<uint64_t>(at.offset);
}
int64_t per_block(const Tensor& self) { return self.dtype() == DType::Float64 ? 2 : 4; }

void uniform(const Tensor& self, double from, double to, const Generator& generator) {
  if (self.numel() == 0) return;
  Launch launch = launch_of(device_of(self), self, "uniform_numbers");
  add_counters(launch, generator, self, per_block(self));
  add_value(launch, from, wide(self.dtype()));
  add_value(launch, to, wide(self.dtype()));
  over_all(launch, self);
}
void normal(const Tensor& self, double mean, double deviation, const Generator& generator) {
  if (self.numel() == 0) return;
  Launch launch = launch_of(device_of(self), self, "normal_numbers");
  // Numbers come in pairs.
  add_counters(launch, generator, self, per_block(self));
  add_value(launch, mean, wide(self.dtype()));
  add_value(launch, deviation, wide(self.dtype()));
  over_all(launch, self);
}
void bernoulli(const Tensor& self, double p, const Generator& generator) {
  if (self.numel() == 0) return;
  Launch launch = launch_of(device_of(self), self, "yes_or_no");
  add_counters(launch, generator, self, 4);
  const auto yes_words = static_cast<int64_t>(p * 4294967296.0);
  if (yes_words == 0) return fill(self, 0);
  launch.scalar<uint32_t>(static_cast<uint32_t>(yes_words - 1));
  over_all(launch, self);
}
void random_range(const Tensor& self, int64_t low, int64_t high, const Generator& generator) {
  if (self.numel() == 0) return;
  Launch launch = launch_of(device_of(self), self, "in_range");
  add_counters(launch, generator, self, 2);
  launch.scalar<int64_t>(low);
  launch.scalar<uint64_t>(static_cast<uint64_t>(high) - static_cast<uint64_t>(low) + 1);
  over_all(launch, self);
}

// ---- joining: copies into parts of the result ----

// Copies `from` to the part of `out` that starts at `first` along a dimension.
void copy_to_part(const Tensor& from, const Tensor& out, int64_t dim, int64_t first) {
  if (from.numel() == 0) return;
  const Tensor part =
      out.as_strided(from.sizes(), out.strides(), out.storage_offset() + first * out.stride(dim));
  copy_elements(from, part);
}
void cat(const std::vector<Tensor>& tensors, int64_t dim, plugin::Ints, const Tensor& out) {
  int64_t first = 0;
  for (const Tensor& t : tensors) {
    // An empty tensor of one dimension goes with any others.
    if (t.dim() != out.dim()) continue;
    copy_to_part(t, out, dim, first);
    first += t.size(dim);
  }
}
void stack(const std::vector<Tensor>& tensors, int64_t dim, const Tensor& out) {
  if (dim < 0) dim += out.dim();
  std::vector<int64_t> strides(out.strides().begin(), out.strides().end());
  const int64_t step = strides[static_cast<size_t>(dim)];
  strides.erase(strides.begin() + dim);
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (tensors[i].numel() == 0) continue;
    copy_elements(tensors[i],
                  out.as_strided(tensors[i].sizes(), strides,
                                 out.storage_offset() + static_cast<int64_t>(i) * step));
  }
}

}  // namespace

void register_filling(treadle_device_type type) {
  const auto floating = floating_dtypes();
  plugin::register_kernel<&fill_number>("_fill_(Tensor(a!) self, Scalar value) -> Tensor(a!)",
                                        type);
  plugin::register_kernel<&linear>(
      "_linear_(Tensor(a!) self, Scalar start, Scalar step) -> Tensor(a!)", type);
  plugin::register_kernel<&linspace>(
      "_linspace_(Tensor(a!) self, Scalar start, Scalar end) -> Tensor(a!)", type);
  plugin::register_kernel<&uniform>(
      "uniform_(Tensor(a!) self, float from=0, float to=1, *, Generator? generator=None) -> "
      "Tensor(a!)",
      type, floating);
  plugin::register_kernel<&normal>(
      "normal_(Tensor(a!) self, float mean=0, float std=1, *, Generator? generator=None) -> "
      "Tensor(a!)",
      type, floating);
  plugin::register_kernel<&bernoulli>(
      "bernoulli_.float(Tensor(a!) self, float p=0.5, *, Generator? generator=None) -> Tensor(a!)",
      type, real_and_bool_dtypes());
  plugin::register_kernel<&random_range>(
      "_random_range_(Tensor(a!) self, int low, int high, *, Generator? generator=None) -> "
      "Tensor(a!)",
      type, real_and_bool_dtypes());
  plugin::register_kernel<&cat>("_cat(Tensor[] tensors, int dim, int[] lengths) -> Tensor", type);
  plugin::register_kernel<&stack>("_stack(Tensor[] tensors, int dim=0) -> Tensor", type);
}

}  // namespace treadle_opencl
