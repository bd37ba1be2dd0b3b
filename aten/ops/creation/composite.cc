// Factories: new tensors with one value, or like another tensor.
//
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <limits>
#include <utility>

#include "aten/engine/loop_geometry.h"
#include "aten/engine/strides/view_shapes.h"
#include "aten/ops/_fill_.h"
#include "aten/ops/copy_.h"
#include "aten/ops/creation/factory_options.h"
#include "aten/ops/creation/new_memory.h"
#include "aten/ops/empty.h"
#include "aten/ops/empty_like.h"
#include "aten/ops/empty_strided.h"
#include "aten/ops/full.h"
#include "aten/ops/full_like.h"
#include "aten/ops/new_empty.h"
#include "aten/ops/new_empty_strided.h"
#include "aten/ops/new_full.h"
#include "aten/ops/new_ones.h"
#include "aten/ops/new_zeros.h"
#include "aten/ops/ones.h"
#include "aten/ops/ones_like.h"
#include "aten/ops/scalar_tensor.h"
#include "aten/ops/sparse/contents.h"
#include "aten/ops/zeros.h"
#include "aten/ops/zeros_like.h"
#include "core/base/math_switches.h"

namespace treadle::composite {
namespace {

[[gnu::noinline]] Tensor filled(Tensor t) {
  fill_new_memory(t);
  return fresh(std::move(t));
}

[[gnu::always_inline]] inline Tensor unwritten(Tensor&& t) {
  if (!fills_new_memory()) [[likely]]
    return std::move(t);
  return filled(std::move(t));
}

bool is_other(OptLayout layout) { return layout && *layout != Layout::Strided; }

[[gnu::noinline]] Tensor without_entries(const char* op, IntList size, OptDtype dtype,
                                         Layout layout, OptDevice device, OptBool pin_memory) {
  const FactoryOptions options(op, dtype, std::nullopt, device, pin_memory, default_dtype());
  return sparse::without_entries(op, layout, size, options.dtype, options.device);
}

// A new tensor is dense, but not always contiguous.
Tensor filled(const Tensor& t, const Scalar& value) {
  if (t.is_contiguous()) return fresh(aten::_fill_(t, value));
  return fresh(aten::copy_(t, aten::scalar_tensor(value, t.dtype(), std::nullopt, t.device())));
}

}  // namespace

Tensor empty(IntList size, OptDtype dtype, OptLayout layout, OptDevice device, OptBool pin_memory,
             OptFormat memory_format) {
  if (is_other(layout)) return without_entries("empty", size, dtype, *layout, device, pin_memory);
  const FactoryOptions options("empty", dtype, layout, device, pin_memory, default_dtype());
  check<ErrorKind::Runtime>(memory_format != MemoryFormat::Preserve, OpName("empty"),
                            "expected a memory format that has an order, got ",
                            MemoryFormat::Preserve);
  if (!memory_format || *memory_format == MemoryFormat::Contiguous)
    return unwritten(options.empty(size));
  return unwritten(
      options.empty_strided(size, shape::strides_in_format("empty", size, *memory_format)));
}

namespace {

// Strides without gaps for the sizes of `t`, whose dimensions stay in their order in memory.
DimVector dense_strides_in_order_of(const Tensor& t) {
  const DimVector own(t.strides());
  const DimVector order = memory_order(t.sizes(), &own, 1);
  return dense_strides(t.sizes(), order);
}

}  // namespace

Tensor empty_like(const Tensor& self, OptDtype dtype, OptLayout layout, OptDevice device,
                  OptBool pin_memory, OptFormat memory_format) {
  const FactoryOptions options("empty_like", dtype, layout, device, pin_memory, self.dtype(),
                               self.device());
  const MemoryFormat format = memory_format.value_or(MemoryFormat::Preserve);
  if (format == MemoryFormat::Contiguous) return unwritten(options.empty(self.sizes()));
  if (format != MemoryFormat::Preserve) {
    return unwritten(options.empty_strided(
        self.sizes(), shape::strides_in_format("empty_like", self.sizes(), format)));
  }
  if (self.is_contiguous()) return unwritten(options.empty(self.sizes()));
  if (shape::is_dense(self)) return unwritten(options.empty_strided(self.sizes(), self.strides()));
  return unwritten(options.empty_strided(self.sizes(), dense_strides_in_order_of(self)));
}

Tensor empty_strided(IntList size, IntList stride, OptDtype dtype, OptLayout layout,
                     OptDevice device, OptBool pin_memory) {
  const FactoryOptions options("empty_strided", dtype, layout, device, pin_memory, default_dtype());
  return unwritten(options.empty_strided(size, stride));
}

Tensor new_empty(const Tensor& self, IntList size, OptDtype dtype, OptLayout layout,
                 OptDevice device, OptBool pin_memory) {
  return unwritten(
      FactoryOptions("new_empty", dtype, layout, device, pin_memory, self.dtype(), self.device())
          .empty(size));
}

Tensor new_empty_strided(const Tensor& self, IntList size, IntList stride, OptDtype dtype,
                         OptLayout layout, OptDevice device, OptBool pin_memory) {
  const FactoryOptions options("new_empty_strided", dtype, layout, device, pin_memory, self.dtype(),
                               self.device());
  return unwritten(options.empty_strided(size, stride));
}

Tensor new_full(const Tensor& self, IntList size, const Scalar& fill_value, OptDtype dtype,
                OptLayout layout, OptDevice device, OptBool pin_memory) {
  return filled(composite::new_empty(self, size, dtype, layout, device, pin_memory), fill_value);
}

Tensor new_zeros(const Tensor& self, IntList size, OptDtype dtype, OptLayout layout,
                 OptDevice device, OptBool pin_memory) {
  return filled(composite::new_empty(self, size, dtype, layout, device, pin_memory), 0);
}

Tensor new_ones(const Tensor& self, IntList size, OptDtype dtype, OptLayout layout,
                OptDevice device, OptBool pin_memory) {
  return filled(composite::new_empty(self, size, dtype, layout, device, pin_memory), 1);
}

Tensor zeros(IntList size, OptDtype dtype, OptLayout layout, OptDevice device, OptBool pin_memory) {
  if (is_other(layout)) return without_entries("zeros", size, dtype, *layout, device, pin_memory);
  return filled(
      FactoryOptions("zeros", dtype, layout, device, pin_memory, default_dtype()).empty(size), 0);
}

Tensor ones(IntList size, OptDtype dtype, OptLayout layout, OptDevice device, OptBool pin_memory) {
  return filled(
      FactoryOptions("ones", dtype, layout, device, pin_memory, default_dtype()).empty(size), 1);
}

Tensor full(IntList size, const Scalar& fill_value, OptDtype dtype, OptLayout layout,
            OptDevice device, OptBool pin_memory) {
  return filled(
      FactoryOptions("full", dtype, layout, device, pin_memory, fill_value.type()).empty(size),
      fill_value);
}

Tensor zeros_like(const Tensor& self, OptDtype dtype, OptLayout layout, OptDevice device,
                  OptBool pin_memory, OptFormat memory_format) {
  return filled(composite::empty_like(self, dtype, layout, device, pin_memory, memory_format), 0);
}

Tensor ones_like(const Tensor& self, OptDtype dtype, OptLayout layout, OptDevice device,
                 OptBool pin_memory, OptFormat memory_format) {
  return filled(composite::empty_like(self, dtype, layout, device, pin_memory, memory_format), 1);
}

Tensor full_like(const Tensor& self, const Scalar& fill_value, OptDtype dtype, OptLayout layout,
                 OptDevice device, OptBool pin_memory, OptFormat memory_format) {
  return filled(composite::empty_like(self, dtype, layout, device, pin_memory, memory_format),
                fill_value);
}

Tensor scalar_tensor(const Scalar& s, OptDtype dtype, OptLayout layout, OptDevice device,
                     OptBool pin_memory) {
  const FactoryOptions options("scalar_tensor", dtype, layout, device, pin_memory,
                               s.is_complex() ? s.type() : default_dtype());
  const Tensor t = options.empty({});
  if (!t.is_cpu() || is_stored(t.dtype())) return fresh(aten::_fill_(t, s));
  visit_type(AllTypes(), t.dtype(),
             [&]<class T>() { *t.data_as<T>() = s.checked_to<T>("scalar_tensor"); });
  return t;
}

}  // namespace treadle::composite
