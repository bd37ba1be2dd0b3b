// Operators that move values: copies, conversions between dtypes and devices, fills, and reads of
// one value.
//
// SPDX-License-Identifier: Apache-2.0

#include <utility>

#include "aten/engine/backends/device_copy.h"
#include "aten/engine/copy.h"
#include "aten/engine/overlap.h"
#include "aten/engine/strides/memory_format.h"
#include "aten/engine/strides/view_shapes.h"
#include "aten/ops/_fill_.h"
#include "aten/ops/_local_scalar_dense.h"
#include "aten/ops/_to_copy.h"
#include "aten/ops/clone.h"
#include "aten/ops/contiguous.h"
#include "aten/ops/copy_.h"
#include "aten/ops/creation/factory_options.h"
#include "aten/ops/empty_like.h"
#include "aten/ops/expand.h"
#include "aten/ops/fill.h"
#include "aten/ops/fill_.h"
#include "aten/ops/item.h"
#include "aten/ops/narrow.h"
#include "aten/ops/scalar_tensor.h"
#include "aten/ops/to.h"
#include "aten/ops/type_as.h"
#include "aten/ops/zero_.h"
#include "core/dispatch/operator.h"

namespace treadle::composite {
namespace {

bool broadcasts_to(IntList from, IntList to) {
  if (from.size() > to.size()) return false;
  const size_t lead = to.size() - from.size();
  for (size_t d = 0; d < from.size(); ++d) {
    if (from[d] != 1 && from[d] != to[lead + d]) return false;
  }
  return true;
}

// Whether the memory layout of `t` is that of `format`. Strides where a size is 1 do not count.
bool in_format(const char* op, const Tensor& t, std::optional<MemoryFormat> format) {
  if (!format || *format == MemoryFormat::Preserve) return true;
  if (*format == MemoryFormat::Contiguous) return t.is_contiguous();
  const DimVector wanted = shape::strides_in_format(op, t.sizes(), *format);
  for (size_t d = 0; d < wanted.size(); ++d) {
    if (t.sizes()[d] != 1 && t.strides()[d] != wanted[d]) return false;
  }
  return true;
}

// As in_format, with the strides of all dimensions.
bool is_laid_out(const char* op, const Tensor& t, std::optional<MemoryFormat> format) {
  if (!format || *format == MemoryFormat::Preserve) return true;
  return in_format(op, t, format) && shape::format_of(t) == *format;
}

bool same_device(Device wanted, Device has) {
  return wanted.type == has.type && (wanted.index < 0 || wanted.index == has.index);
}

}  // namespace

Tensor copy_(const Tensor& self, const Tensor& src, bool non_blocking) {
  if (self.is_same(src)) return self;
  check<ErrorKind::Runtime>(broadcasts_to(src.sizes(), self.sizes()), OpName("copy_"),
                            "expected src that broadcasts to sizes ", self.sizes(),
                            ", got src of sizes ", src.sizes());
  require_writable("copy_", self);
  if (!self.is_meta()) {
    check<ErrorKind::NotImplemented>(!src.is_meta(), OpName("copy_"),
                                     "expected src with values, got one on the meta device");
    if (self.is_cpu() && src.is_cpu())
      copy_strided(self, src);
    else
      copy_between_devices(self, src, non_blocking);
  }
  self.impl()->bump_version();
  return self;
}

Tensor clone(const Tensor& self, std::optional<MemoryFormat> memory_format) {
  const Tensor copy =
      aten::empty_like(self, std::nullopt, std::nullopt, std::nullopt, std::nullopt, memory_format);
  return fresh(aten::copy_(copy, self));
}

Tensor contiguous(const Tensor& self, MemoryFormat memory_format) {
  check<ErrorKind::Runtime>(memory_format != MemoryFormat::Preserve, OpName("contiguous"),
                            "expected a memory format that has an order, got ", memory_format);
  return in_format("contiguous", self, memory_format) ? self : aten::clone(self, memory_format);
}

Tensor _to_copy(const Tensor& self, std::optional<ScalarType> dtype, std::optional<Layout> layout,
                std::optional<Device> device, std::optional<bool> pin_memory, bool non_blocking,
                std::optional<MemoryFormat> memory_format) {
  return fresh(aten::copy_(aten::empty_like(self, dtype, layout, device, pin_memory, memory_format),
                           self, non_blocking));
}

Tensor to(const Tensor& self, std::optional<ScalarType> dtype, std::optional<Layout> layout,
          std::optional<Device> device, std::optional<bool> pin_memory, bool non_blocking,
          bool copy, std::optional<MemoryFormat> memory_format) {
  const bool unchanged = !copy && (!dtype || *dtype == self.dtype()) &&
                         (!device || same_device(*device, self.device())) &&
                         (!layout || *layout == self.layout()) &&
                         is_laid_out("to", self, memory_format);
  if (unchanged) return self;
  return aten::_to_copy(self, dtype, layout, device, pin_memory, non_blocking, memory_format);
}

Tensor to(const Tensor& self, ScalarType dtype, bool non_blocking, bool copy,
          std::optional<MemoryFormat> memory_format) {
  return composite::to(self, std::optional(dtype), std::nullopt, std::nullopt, std::nullopt,
                       non_blocking, copy, memory_format);
}

Tensor to(const Tensor& self, Device device, ScalarType dtype, bool non_blocking, bool copy,
          std::optional<MemoryFormat> memory_format) {
  return composite::to(self, std::optional(dtype), std::nullopt, std::optional(device),
                       std::nullopt, non_blocking, copy, memory_format);
}

Tensor to(const Tensor& self, const Tensor& other, bool non_blocking, bool copy,
          std::optional<MemoryFormat> memory_format) {
  return composite::to(self, std::optional(other.dtype()), std::nullopt,
                       std::optional(other.device()), std::nullopt, non_blocking, copy,
                       memory_format);
}

Tensor type_as(const Tensor& self, const Tensor& other) {
  return composite::to(self, other, false, false, std::nullopt);
}

namespace {

// A view of one of each group of elements that are one in memory.
Tensor without_repeats(const Tensor& self) {
  Tensor view = self;
  for (int64_t d = 0; d < self.dim(); ++d) {
    if (self.strides()[d] == 0 && self.sizes()[d] > 1) view = aten::narrow(view, d, 0, 1);
  }
  return view;
}

}  // namespace

Tensor fill_(const Tensor& self, const Scalar& value) {
  if (self.is_contiguous()) return aten::_fill_(self, value);
  if (has_internal_overlap(self)) {
    aten::fill_(without_repeats(self), value);
    return self;
  }
  require_writable("fill_", self);
  return aten::copy_(self, aten::scalar_tensor(value, self.dtype(), std::nullopt, self.device()));
}

Tensor fill_(const Tensor& self, const Tensor& value) {
  if (!has_internal_overlap(self)) return aten::copy_(self, value);
  aten::copy_(without_repeats(self), value);
  return self;
}

namespace {

// The tensor that `fill` writes over: for a tensor that requires grad a copy, whose gradient is
// then zero.
Tensor written_over(const Tensor& self) {
  return grad_enabled() && self.requires_grad() ? aten::clone(self) : aten::empty_like(self);
}

}  // namespace

Tensor fill(const Tensor& self, const Scalar& value) {
  return fresh(aten::fill_(written_over(self), value));
}
Tensor fill(const Tensor& self, const Tensor& value) {
  return fresh(aten::fill_(written_over(self), value));
}

Tensor zero_(const Tensor& self) { return aten::fill_(self, Scalar(0)); }

Scalar item(const Tensor& self) { return aten::_local_scalar_dense(self); }

}  // namespace treadle::composite
