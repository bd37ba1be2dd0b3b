// Operators that change the geometry of a tensor itself, not its values.
//
// The change counts as a change of values, because a tensor that was saved for backward is no
// longer the same. Tensors with a history come through autograd/geometry_in_place.cc.
//
// SPDX-License-Identifier: Apache-2.0

#include "aten/engine/layouts.h"
#include "aten/engine/named_errors.h"
#include "aten/engine/renamed_errors.h"
#include "aten/engine/strides/view_shapes.h"
#include "aten/ops/as_strided_.h"
#include "aten/ops/creation/new_memory.h"
#include "aten/ops/resize_.h"
#include "aten/ops/resize_as_.h"
#include "aten/ops/resize_as_sparse_.h"
#include "aten/ops/set_.h"
#include "aten/ops/squeeze.h"
#include "aten/ops/squeeze_.h"
#include "aten/ops/t.h"
#include "aten/ops/t_.h"
#include "aten/ops/transpose.h"
#include "aten/ops/transpose_.h"
#include "aten/ops/unsqueeze.h"
#include "aten/ops/unsqueeze_.h"
#include "core/threads/quiescence.h"

namespace treadle::composite {
namespace {

void require_plain(const char* op, const Tensor& self) {
  check<ErrorKind::Runtime>(!self.requires_grad(), OpName(op),
                            "expected a tensor that does not require grad, got one that does");
}

// Takes the geometry of the view from `view_of_self`, which is called when no other thread can
// change `self` any more.
template <class F>
Tensor take_geometry(const char* op, const Tensor& self, F&& view_of_self) {
  require_plain(op, self);
  const Quiescence quiet(op);
  const Tensor view = view_of_self();
  self.impl()->set_geometry(view.sizes(), view.strides(), view.storage_offset());
  self.impl()->bump_version();
  return self;
}

// After the change of storage: the count is the storage's own, and may be any. It must be above all
// that the tensor had.
void raise_version_above(const Tensor& self, uint32_t before) {
  self.impl()->bump_version();
  if (self.version() <= before) self.storage()->version() = before + 1;
}

}  // namespace

Tensor as_strided_(const Tensor& self, IntList size, IntList stride,
                   std::optional<int64_t> storage_offset) {
  return take_geometry("as_strided_", self, [&] {
    const int64_t offset = storage_offset.value_or(self.storage_offset());
    return named("as_strided_", [&] { return alias_with_geometry(self, size, stride, offset); });
  });
}

Tensor transpose_(const Tensor& self, int64_t dim0, int64_t dim1) {
  if (!self.is_strided()) {
    take_layout_tensor("transpose_", self, aten::transpose(self, dim0, dim1));
    return self;
  }
  return take_geometry("transpose_", self, [&] {
    return renamed("transpose_", "transpose", [&] { return views::transpose(self, dim0, dim1); });
  });
}
Tensor t_(const Tensor& self) {
  if (!self.is_strided()) {
    take_layout_tensor("t_", self, aten::t(self));
    return self;
  }
  return take_geometry("t_", self,
                       [&] { return self.dim() < 2 ? self : views::transpose(self, 0, 1); });
}
Tensor squeeze_(const Tensor& self) {
  return take_geometry("squeeze_", self, [&] { return views::squeeze(self); });
}
Tensor squeeze_(const Tensor& self, int64_t dim) {
  return take_geometry("squeeze_", self, [&] {
    return renamed("squeeze_", "squeeze", [&] { return views::squeeze(self, dim); });
  });
}
Tensor squeeze_(const Tensor& self, IntList dim) {
  return take_geometry("squeeze_", self, [&] {
    return renamed("squeeze_", "squeeze", [&] { return views::squeeze(self, dim); });
  });
}
Tensor unsqueeze_(const Tensor& self, int64_t dim) {
  return take_geometry("unsqueeze_", self, [&] {
    return renamed("unsqueeze_", "unsqueeze", [&] { return views::unsqueeze(self, dim); });
  });
}

Tensor resize_(const Tensor& self, IntList size, std::optional<MemoryFormat> memory_format) {
  require_plain("resize_", self);
  if (!self.is_strided() && self.sizes() == size) return self;
  check<ErrorKind::NotImplemented>(
      self.is_strided(), OpName("resize_"), "expected a strided tensor, got one of layout ",
      name_of(self.layout()),
      self.layout() == Layout::SparseCoo ? "; call sparse_resize_()" : "; call to_dense()");
  if (!memory_format && self.sizes() == size && !self.is_contiguous()) return self;
  const DimVector strides =
      shape::strides_in_format("resize_", size, memory_format.value_or(MemoryFormat::Contiguous));
  const auto needed = [&] {
    const int64_t item = self.element_size();
    const int64_t bytes = named("resize_", [&] { return checked_numel(size, item); }) * item;
    int64_t sum;
    check<ErrorKind::Runtime>(
        !__builtin_add_overflow(bytes, self.storage_offset() * item, &sum), OpName("resize_"),
        "expected sizes whose bytes can be counted in 63 bits, got size = ", size);
    return bytes > 0 ? static_cast<size_t>(sum) : size_t{0};
  };
  const auto moves = [&] { return self.sizes() != size || self.strides() != IntList(strides); };
  if (needed() <= self.storage()->nbytes() && !moves()) return self;
  size_t had;
  {
    const Quiescence quiet("resize_");
    // Another thread may have changed the tensor until now.
    had = self.storage()->nbytes();
    if (const size_t bytes = needed(); bytes > had)
      named("resize_", [&] { self.storage()->resize(bytes); });
    if (moves()) {
      self.impl()->set_geometry(size, strides, self.storage_offset());
      self.impl()->bump_version();
    }
  }
  if (fills_new_memory()) fill_new_memory(self, had);
  return self;
}

Tensor resize_as_(const Tensor& self, const Tensor& the_template,
                  std::optional<MemoryFormat> memory_format) {
  if (!self.is_strided() && self.layout() == the_template.layout())
    return aten::resize_as_sparse_(self, the_template);
  if (memory_format == MemoryFormat::Preserve) {
    const int64_t rank = the_template.dim();
    memory_format = MemoryFormat::Contiguous;
    if ((rank == 4 || rank == 5) && !the_template.is_contiguous()) {
      const auto last = rank == 4 ? MemoryFormat::ChannelsLast : MemoryFormat::ChannelsLast3d;
      if (the_template.strides() ==
          IntList(shape::strides_in_format("resize_as_", the_template.sizes(), last)))
        memory_format = last;
    }
  }
  const DimVector size(the_template.sizes());  // another thread may change those of the template
  return composite::resize_(self, size, memory_format);
}

Tensor set_(const Tensor& self, const Tensor& source) {
  // The memory of a tensor that requires grad may change where nothing is recorded.
  if (grad_enabled()) require_plain("set_", self);
  check<ErrorKind::Runtime>(self.dtype() == source.dtype() && self.device() == source.device(),
                            OpName("set_"), "expected a source of ", self.dtype(), " on ",
                            self.device(), ", got ", source.dtype(), " on ", source.device());
  const Quiescence quiet("set_");
  const uint32_t before = self.version();
  check<ErrorKind::NotImplemented>(self.is_strided() && source.is_strided(), OpName("set_"),
                                   "expected strided tensors, got layouts ", name_of(self.layout()),
                                   " and ", name_of(source.layout()));
  self.impl()->set_storage(source.storage(), source.dtype());
  raise_version_above(self, before);
  self.impl()->set_geometry(source.sizes(), source.strides(), source.storage_offset());
  return self;
}

}  // namespace treadle::composite
