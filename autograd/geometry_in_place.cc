// In-place changes of the geometry or the memory of a tensor that autograd knows. The tensor's
// history continues from its old state.
//
//   y = x * 2;  y.t_();      // y's node takes a gradient of y's new shape to one of the old shape
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/engine/renamed_errors.h"
#include "aten/ops/as_strided.h"
#include "aten/ops/as_strided_.h"
#include "aten/ops/resize_.h"
#include "aten/ops/resize_as_.h"
#include "aten/ops/set_.h"
#include "aten/ops/squeeze.h"
#include "aten/ops/squeeze_.h"
#include "aten/ops/t.h"
#include "aten/ops/t_.h"
#include "aten/ops/transpose.h"
#include "aten/ops/transpose_.h"
#include "aten/ops/unsqueeze.h"
#include "aten/ops/unsqueeze_.h"
#include "autograd/alias.h"
#include "autograd/as_strided_node.h"
#include "autograd/graph/accumulate_grad.h"
#include "autograd/meta.h"
#include "autograd/record.h"
#include "autograd/view.h"
#include "core/threads/quiescence.h"

namespace treadle::autograd {
namespace {

// A view now lies elsewhere in its base, so its node is made anew at its next use.
void outdate(ViewMeta& view) {
  if (!view.has_maker) return;
  if (const AutogradMeta* base = meta_of(view.base)) view.base_history = base->history - 1;
}

// `Op`, called `name`, gives `self` the geometry of the result of the operator `View`, called
// `part`.
template <class Op, class View, class... Args>
Tensor change_geometry(const char* name, const char* part, const Tensor& self,
                       const Args&... args) {
  const bool recorded = records(self);
  check_in_place(name, self, recorded);
  ViewMeta* const as_view = view_of(self);
  // If nothing is recorded, a tensor in the middle of a graph must stay as the graph knows it.
  if (!self.requires_grad() || (!recorded && !as_view && !is_leaf(self)))
    return call_below<Op>(self, args...);
  const Quiescence quiet(name);
  const Tensor view = renamed(name, part, [&] { return call_below<View>(self, args...); });
  const NodePtr node = recorded && !as_view ? as_strided_node(self, view) : NodePtr();
  self.impl()->set_geometry(view.sizes(), view.strides(), view.storage_offset());
  self.impl()->bump_version();
  if (node) rebase_history(self, node);
  if (as_view)
    outdate(*as_view);
  else
    forget_accumulator(self);
  return self;
}

namespace ops = aten::ops;

Tensor as_strided_(const Tensor& self, IntList size, IntList stride,
                   std::optional<int64_t> storage_offset) {
  return change_geometry<ops::as_strided_, ops::as_strided>("as_strided_", "as_strided", self, size,
                                                            stride, storage_offset);
}
Tensor transpose_(const Tensor& self, int64_t dim0, int64_t dim1) {
  return change_geometry<ops::transpose_, ops::transpose_int>("transpose_", "transpose", self, dim0,
                                                              dim1);
}
Tensor t_(const Tensor& self) { return change_geometry<ops::t_, ops::t>("t_", "t", self); }
Tensor squeeze_(const Tensor& self) {
  return change_geometry<ops::squeeze_, ops::squeeze>("squeeze_", "squeeze", self);
}
Tensor squeeze__dim(const Tensor& self, int64_t dim) {
  return change_geometry<ops::squeeze__dim, ops::squeeze_dim>("squeeze_", "squeeze", self, dim);
}
Tensor squeeze__dims(const Tensor& self, IntList dim) {
  return change_geometry<ops::squeeze__dims, ops::squeeze_dims>("squeeze_", "squeeze", self, dim);
}
Tensor unsqueeze_(const Tensor& self, int64_t dim) {
  return change_geometry<ops::unsqueeze_, ops::unsqueeze>("unsqueeze_", "unsqueeze", self, dim);
}

// If nothing is recorded, and never will be, a tensor may require grad and have another size.
template <class Op, class... Args>
Tensor resize(const char* name, const Tensor& self, const Args&... args) {
  require_mode(name, self);
  if (!self.requires_grad() || !self.impl()->is_inference()) return call_below<Op>(self, args...);
  const Tensor alias = alias_without_history(self);
  call_below<Op>(alias, args...);
  const Quiescence quiet(name);
  self.impl()->set_geometry(alias.sizes(), alias.strides(), alias.storage_offset());
  return self;
}
Tensor resize_(const Tensor& self, IntList size, std::optional<MemoryFormat> memory_format) {
  return resize<ops::resize_>("resize_", self, size, memory_format);
}
Tensor resize_as_(const Tensor& self, const Tensor& the_template,
                  std::optional<MemoryFormat> memory_format) {
  return resize<ops::resize_as_>("resize_as_", self, the_template, memory_format);
}

Tensor set_(const Tensor& self, const Tensor& source) {
  require_mode("set_", self);
  call_below<ops::set__source_Tensor>(self, source);
  forget_accumulator(self);
  return self;
}

[[maybe_unused]] const Registration registered[] = {
    register_layer<ops::as_strided_>(Layer::Autograd, &as_strided_),
    register_layer<ops::transpose_>(Layer::Autograd, &transpose_),
    register_layer<ops::t_>(Layer::Autograd, &t_),
    register_layer<ops::squeeze_>(Layer::Autograd, &squeeze_),
    register_layer<ops::squeeze__dim>(Layer::Autograd, &squeeze__dim),
    register_layer<ops::squeeze__dims>(Layer::Autograd, &squeeze__dims),
    register_layer<ops::unsqueeze_>(Layer::Autograd, &unsqueeze_),
    register_layer<ops::resize_>(Layer::Autograd, &resize_),
    register_layer<ops::resize_as_>(Layer::Autograd, &resize_as_),
    register_layer<ops::set__source_Tensor>(Layer::Autograd, &set_),
};

}  // namespace
}  // namespace treadle::autograd
