// index_select, gather, embedding and what adds at an index; positions of extremes; triangles.
//
// SPDX-License-Identifier: Apache-2.0
#include "family.h"
#include "kernels.h"

namespace treadle_opencl {

namespace plugin = treadle::plugin;
using plugin::DType;
using plugin::ErrorKind;
using plugin::Ints;
using plugin::Number;
using plugin::Tensor;

namespace {

constexpr Family kFamily = {
    "indexing",
#include "../cl/indexing.cl"
};

// A dtype whose values are the bits of elements of another.
DType bits_of(DType dtype) {
  switch (plugin::item_size(dtype)) {
    case 1:
      return DType::UInt8;
    case 2:
      return DType::UInt16;
    case 4:
      return DType::UInt32;
    case 8:
      return DType::UInt64;
    default:
      return DType::Complex128;
  }
}
void check_index(Device& device, const char* op, int64_t low, int64_t size) {
  const auto fault = device.take_fault();
  plugin::check(fault.mark == 0, ErrorKind::Index, op, ": expected index in [", low, ", ", size,
                "), got index = ", fault.value);
}
Tensor as_index(const Tensor& index) { return packed_as(index, DType::Int64); }

void select_lines(const char* op, const Tensor& self, const Line& line, const Tensor& index,
                  bool negative, const Tensor& out) {
  if (out.numel() == 0) return;
  Device& device = device_of(out);
  const int64_t chosen = index.numel(), lines = line.outer * chosen;
  Launch launch = kFamily.launch(device, bits_of(out.dtype()), "select_lines");
  // An input without elements has no buffer, but then every index is out of range.
  launch.tensor(self.numel() > 0 ? packed(self) : out).tensor(as_index(index)).tensor(out);
  launch.scalar<int64_t>(line.length).scalar<int64_t>(chosen).scalar<int64_t>(line.inner);
  launch.scalar<int32_t>(negative).scalar<int64_t>(lines).buffer(device.fault());
  over_elements(launch, device, lines, line.inner);
  check_index(device, op, negative ? -line.length : 0, line.length);
}
void index_select(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& out) {
  select_lines("index_select", self, Line(self.sizes(), dim), index, true, out);
}
void embedding(const Tensor& weight, const Tensor& indices, int64_t, bool, bool,
               const Tensor& out) {
  select_lines("embedding", weight, Line(weight.sizes(), 0), indices, false, out);
}

// As the kernels see it (indexing.cl).
struct Walk {
  static constexpr int64_t kMax = 16;
  int64_t dims, dim, length, shape[kMax] = {}, self[kMax] = {}, other[kMax] = {};

  Walk(const char* op, const Tensor& index, int64_t along, const Tensor& of) {
    dims = std::max<int64_t>(1, index.dim());
    plugin::check(dims <= kMax, ErrorKind::Value, op, ": expected at most ", kMax,
                  " dimensions on opencl, got ", dims);
    dim = along < 0 ? along + dims : along;
    length = of.dim() == 0 ? 1 : of.size(dim);
    shape[0] = self[0] = 1;
    for (int64_t d = 0; d < index.dim(); ++d) {
      shape[d] = index.size(d);
      self[d] = of.dim() == 0 ? 0 : of.stride(d);
    }
  }
};

void gather(const Tensor& self, int64_t dim, const Tensor& index, bool, const Tensor& out) {
  if (out.numel() == 0) return;
  Device& device = device_of(out);
  const Walk walk("gather", index, dim, self);
  Launch launch = kFamily.launch(device, bits_of(out.dtype()), "gather");
  launch.bytes(&walk, sizeof walk).tensor(self.numel() > 0 ? self : out).tensor(as_index(index));
  launch.tensor(out).scalar<int64_t>(out.numel()).buffer(device.fault());
  over_elements(launch, device, out.numel());
  check_index(device, "gather", -walk.length, walk.length);
}

void scatter_add(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src,
                 const Tensor& out) {
  if (out.numel() == 0) return;
  const WideResult result(out);
  copy_elements(self, result.tensor());
  if (index.numel() > 0) {
    Device& device = device_of(out);
    Walk walk("scatter_add", index, dim, result.tensor());
    const Tensor source = widened(src);
    for (int64_t d = 0; d < source.dim(); ++d) walk.other[d] = source.stride(d);
    const int64_t lines = index.numel() / walk.shape[walk.dim];
    Launch launch = kFamily.launch(device, wide(out.dtype()), "scatter_add");
    launch.bytes(&walk, sizeof walk).tensor(as_index(index)).tensor(source).tensor(result.tensor());
    launch.scalar<int64_t>(lines).buffer(device.fault());
    over_elements(launch, device, lines, walk.shape[walk.dim]);
    check_index(device, "scatter_add", -walk.length, walk.length);
  }
  result.done();
}

// Adds lines of `source` to those of `result` that the index says.
void add_lines(const char* op, const Tensor& index, const Tensor& source, const Line& line,
               const Number& alpha, bool negative, int64_t skipped, const Tensor& result) {
  if (index.numel() == 0 || source.numel() == 0) return;
  Device& device = device_of(result);
  const int64_t chosen = index.numel(), columns = line.outer * line.inner;
  Launch launch = kFamily.launch(device, result.dtype(), "add_lines");
  launch.tensor(as_index(index)).tensor(widened(source)).tensor(result);
  add_value(launch, alpha, result.dtype());
  launch.scalar<int64_t>(line.length).scalar<int64_t>(chosen).scalar<int64_t>(line.inner);
  launch.scalar<int32_t>(negative).scalar<int64_t>(skipped).scalar<int64_t>(columns);
  launch.buffer(device.fault());
  over_elements(launch, device, columns, chosen);
  check_index(device, op, negative ? -line.length : 0, line.length);
}
void index_add(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source,
               const Number& alpha, const Tensor& out) {
  if (out.numel() == 0) return;
  const WideResult result(out);
  copy_elements(self, result.tensor());
  add_lines("index_add", index, source, Line(self.sizes(), dim), alpha, true, INT64_MIN,
            result.tensor());
  result.done();
}

// Every element 0.
void clear(const Tensor& t) {
  if (t.numel() > 0) fill(t, 0);
}
void embedding_dense_backward(const Tensor& grad, const Tensor& indices, int64_t rows,
                              int64_t padding, bool by_frequency, const Tensor& out) {
  const WideResult result(out);
  clear(result.tensor());
  Line line(out.sizes(), 0);
  line.length = rows;
  const int64_t skipped = padding < 0 ? INT64_MIN : padding;
  add_lines("embedding_dense_backward", indices, grad, line, 1, false, skipped, result.tensor());
  if (by_frequency && out.numel() > 0 && indices.numel() > 0) {
    // Each row over the number of times it was used; unused ones are 0.
    const Tensor ones = plugin::empty({indices.numel(), 1}, DType::Int64, out.device());
    const Tensor counts = plugin::empty({rows, 1}, DType::Int64, out.device());
    fill(ones, 1);
    clear(counts);
    Line each = line;
    each.inner = 1;
    add_lines("embedding_dense_backward", indices, ones, each, 1, false, skipped, counts);
    const Tensor used = plugin::call("aten::clamp_min", counts, Number(1));
    copy_elements(plugin::call("aten::div.Tensor", result.tensor(), used), result.tensor());
  }
  result.done();
}

// ---- positions of extremes ----

void extreme(const Tensor& self, const Line& line, bool smallest, const Tensor& values,
             const Tensor& indices) {
  if (indices.numel() == 0) return;
  Device& device = device_of(indices);
  const int64_t lines = line.outer * line.inner;
  const Tensor result = values.defined() && wide(values.dtype()) != values.dtype()
                            ? plugin::empty(values.sizes(), wide(values.dtype()), values.device())
                            : values;
  Launch launch = kFamily.launch(device, wide(self.dtype()), "extreme");
  launch.tensor(widened(self));
  add_optional(launch, result, indices);
  launch.tensor(indices).scalar<int64_t>(line.length).scalar<int64_t>(line.inner);
  launch.scalar<int32_t>(smallest).scalar<int64_t>(lines);
  over_elements(launch, device, lines, line.length);
  if (values.defined() && result.dtype() != values.dtype()) copy_elements(result, values);
}
template <bool smallest>
void arg_extreme(const Tensor& self, const std::optional<int64_t>& dim, bool, const Tensor& out) {
  Line line(self.sizes(), dim.value_or(0));
  if (!dim) {
    line = Line({}, 0);
    line.length = self.numel();
  }
  extreme(self, line, smallest, Tensor(), out);
}
template <bool smallest>
void extreme_along(const Tensor& self, int64_t dim, bool, const Tensor& values,
                   const Tensor& indices) {
  extreme(self, Line(self.sizes(), dim), smallest, values, indices);
}

template <bool upper>
void triangle(const Tensor& self, int64_t diagonal, const Tensor& out) {
  if (out.numel() == 0) return;
  Device& device = device_of(out);
  Launch launch = kFamily.launch(device, bits_of(out.dtype()), "triangle");
  launch.tensor(packed(self)).tensor(out).scalar<int64_t>(out.size(-2));
  launch.scalar<int64_t>(out.size(-1)).scalar<int64_t>(diagonal).scalar<int32_t>(upper);
  launch.scalar<int64_t>(out.numel());
  over_elements(launch, device, out.numel());
}

}  // namespace

void register_indexing(treadle_device_type type) {
  plugin::register_kernel<&index_select>(
      "index_select(Tensor self, int dim, Tensor index) -> Tensor", type);
  plugin::register_kernel<&gather>(
      "gather(Tensor self, int dim, Tensor index, *, bool sparse_grad=False) -> Tensor", type);
  plugin::register_kernel<&embedding>(
      "embedding(Tensor weight, Tensor indices, int padding_idx=-1, bool scale_grad_by_freq=False, "
      "bool sparse=False) -> Tensor",
      type);
  plugin::register_kernel<&scatter_add>(
      "scatter_add(Tensor self, int dim, Tensor index, Tensor src) -> Tensor", type);
  plugin::register_kernel<&index_add>(
      "index_add(Tensor self, int dim, Tensor index, Tensor source, *, Scalar alpha=1) -> Tensor",
      type);
  plugin::register_kernel<&embedding_dense_backward>(
      "embedding_dense_backward(Tensor grad_output, Tensor indices, int num_weights, int "
      "padding_idx, bool scale_grad_by_freq) -> Tensor",
      type, floating_and_complex_dtypes());
  plugin::register_kernel<&arg_extreme<false>>(
      "argmax(Tensor self, int? dim=None, bool keepdim=False) -> Tensor", type,
      real_and_bool_dtypes());
  plugin::register_kernel<&arg_extreme<true>>(
      "argmin(Tensor self, int? dim=None, bool keepdim=False) -> Tensor", type,
      real_and_bool_dtypes());
  plugin::register_kernel<&extreme_along<false>>(
      "max.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)", type,
      real_and_bool_dtypes());
  plugin::register_kernel<&extreme_along<true>>(
      "min.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)", type,
      real_and_bool_dtypes());
  plugin::register_kernel<&triangle<false>>("tril(Tensor self, int diagonal=0) -> Tensor", type);
  plugin::register_kernel<&triangle<true>>("triu(Tensor self, int diagonal=0) -> Tensor", type);
}

}  // namespace treadle_opencl
