// The fallback of Layer::Layout for all operators, and copies of tensors of any layout.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/engine/layouts.h"

#include <array>
#include <atomic>
#include <utility>

#include "aten/engine/promotion.h"
#include "aten/ops/_to_copy.h"
#include "aten/ops/alias.h"
#include "aten/ops/clone.h"
#include "aten/ops/contiguous.h"
#include "aten/ops/copy_.h"
#include "aten/ops/detach.h"
#include "aten/ops/to.h"
#include "aten/ops/to_dense.h"
#include "aten/ops/type_as.h"
#include "core/schema/function_schema.h"
#include "core/threads/quiescence.h"

namespace treadle {
namespace {

// A rule that was replaced stays, as calls may be in it.
using Rules = std::array<std::atomic<const LayoutRule*>, kMaxLayouts>;
Rules rules, fallbacks;

bool served_by(const Rules& of_layouts, Layout layout, const Operator& op, Stack& stack) {
  const LayoutRule* const rule =
      of_layouts[static_cast<size_t>(layout)].load(std::memory_order_acquire);
  return rule != nullptr && (*rule)(op, stack);
}
void set(Rules& of_layouts, Layout layout, LayoutRule rule) {
  const LayoutRule* const kept = rule ? new LayoutRule(std::move(rule)) : nullptr;
  of_layouts[static_cast<size_t>(layout)].store(kept, std::memory_order_release);
}

const Tensor* first_of_layout(const Value& v) {
  if (v.is<Tensor>()) {
    const Tensor& t = v.as<Tensor>();
    return t.defined() && !t.is_strided() ? &t : nullptr;
  }
  if (v.is<Value::Tensors>()) {
    for (const Tensor& t : v.as<Value::Tensors>())
      if (t.defined() && !t.is_strided()) return &t;
  }
  return nullptr;
}

// Calls the functional form, and writes the result to the first argument.
void call_in_place(const Operator& op, Stack& stack, size_t first) {
  const Tensor self = stack[first].as<Tensor>();
  op.entry().op->call_boxed(stack);
  const Tensor result = stack[first].as<Tensor>();
  const char* const name = op.info().base_name;
  if (self.is_strided())
    aten::copy_(self, result.is_strided() ? result : aten::to_dense(result));
  else
    write_layout_tensor(name, self, result);
  stack[first] = Value(self);
}

void by_layout(const Operator& op, Stack& stack) {
  const size_t count = op.schema().arguments.size();
  const size_t first = detail::first_argument(stack, count);
  const Tensor* found = nullptr;
  for (size_t i = first; i < stack.size() && !found; ++i) found = first_of_layout(stack[i]);
  check_internal(found != nullptr, "a tensor of another layout");
  const Tensor t = *found;
  const auto called = [&](const Operator& served) {
    if (served.has_table()) {
      if (const KernelRow* row = served.table().layout_row(t.device().type, t.layout())) {
        // A row has no cells for dtypes that are only stored; a kernel of a layout serves all.
        const ScalarType cell = is_stored(t.dtype()) ? ScalarType::Float32 : t.dtype();
        if (const BoxedKernel* kernel = row->boxed[static_cast<size_t>(cell)]) {
          (*kernel)(served, stack);
          return true;
        }
      }
    }
    return served_by(rules, t.layout(), served, stack);
  };
  const Operator& functional = *op.entry().op;
  const bool is_made_of_others = op.info().parts != nullptr;
  if (op.info().form == Form::Functional || &functional == &op) {
    if (called(op)) return;
  } else if (op.info().form == Form::InPlace && !is_made_of_others) {
    call_in_place(op, stack, first);
    return;
  }
  if (is_made_of_others) {
    op.info().parts(op, stack);
    return;
  }
  if (served_by(fallbacks, t.layout(), op, stack)) return;
  fail<ErrorKind::NotImplemented>(
      OpName(op.info().base_name),
      op.info().form == Form::Out ? "expected no out= for tensors of layout "
                                  : "expected strided tensors, got one of layout ",
      name_of(t.layout()), op.info().form == Form::Out ? ", got one" : "; call to_dense()");
}

[[maybe_unused]] const Registration registered = [] {
  Dispatcher::instance().register_layer_fallback(
      Layer::Layout, boxed_kernel<&by_layout>,
      {KernelSource::Fallback, __FILE__, __LINE__, "by_layout"}, Dispatcher::Wraps::All);
  return Registration();
}();

}  // namespace

void set_layout_rule(Layout layout, LayoutRule rule) { set(rules, layout, std::move(rule)); }
void set_layout_fallback(Layout layout, LayoutRule fallback) {
  set(fallbacks, layout, std::move(fallback));
}

bool requires_grad_in_parts(const Tensor& t) { return values_of(t).requires_grad(); }

void write_layout_tensor(const char* op, const Tensor& self, const Tensor& result) {
  check<ErrorKind::Runtime>(result.layout() == self.layout() && result.sizes() == self.sizes(),
                            OpName(op), "expected a result of layout ", name_of(self.layout()),
                            " and shape ", self.sizes(), ", got layout ", name_of(result.layout()),
                            " and shape ", result.sizes());
  const Tensor values = values_of(self);
  check<ErrorKind::Runtime>(!grad_enabled() || !values.impl()->autograd_meta() ||
                                !values.impl()->autograd_meta()->is_recorded_leaf(),
                            OpName(op), "expected no leaf that requires grad, got one");
  check<ErrorKind::Runtime>(can_cast(result.dtype(), self.dtype()), OpName(op),
                            "expected a result that casts to ", self.dtype(), ", got ",
                            result.dtype());
  const Tensor cast = with_values(result, aten::to(values_of(result), self.dtype()));
  static_cast<LayoutTensorImpl*>(self.impl())->take(*contents_of(cast));
}

void take_layout_tensor(const char* op, const Tensor& self, const Tensor& result) {
  check<ErrorKind::Runtime>(result.layout() == self.layout(), OpName(op),
                            "expected a result of layout ", name_of(self.layout()), ", got one of ",
                            name_of(result.layout()));
  check<ErrorKind::Runtime>(!requires_grad_in_parts(self), OpName(op),
                            "expected a tensor that does not require grad, got one that does");
  const Quiescence quiet(op);
  self.impl()->set_contiguous_sizes(result.sizes());
  static_cast<LayoutTensorImpl*>(self.impl())->take(*contents_of(result));
}

// ---- copies, conversions and moves between devices: those of the parts ----

namespace {

Tensor clone(const Tensor& self, std::optional<MemoryFormat>) {
  return with_parts(self, [](const Tensor& part, bool) { return aten::clone(part); });
}
Tensor detach(const Tensor& self) {
  return with_parts(self, [](const Tensor& part, bool) { return aten::detach(part); });
}
Tensor alias(const Tensor& self) {
  return with_parts(self, [](const Tensor& part, bool) { return part; });
}
Tensor contiguous(const Tensor& self, MemoryFormat) { return self; }

Tensor converted(const Tensor& self, std::optional<ScalarType> dtype, std::optional<Device> device,
                 bool copy) {
  const ScalarType to_dtype = dtype.value_or(self.dtype());
  // A device without an index stands for the current one, which an empty tensor there has.
  const Device to_device = device ? empty_tensor({0}, to_dtype, *device).device() : self.device();
  if (!copy && to_dtype == self.dtype() && to_device == self.device()) return self;
  return with_parts(self, [&](const Tensor& part, bool is_values) {
    const bool converts =
        is_values || (part.dtype() == self.dtype() && !is_integral(part.dtype(), true));
    return aten::to(part, to_device, converts ? to_dtype : part.dtype(), false, copy);
  });
}

Tensor to_copy(const Tensor& self, std::optional<ScalarType> dtype, std::optional<Layout> layout,
               std::optional<Device> device, std::optional<bool>, bool,
               std::optional<MemoryFormat>) {
  require_layout("to", self, layout);
  return converted(self, dtype, device, true);
}
Tensor to_layout(const Tensor& self, std::optional<ScalarType> dtype, std::optional<Layout> layout,
                 std::optional<Device> device, std::optional<bool>, bool, bool copy,
                 std::optional<MemoryFormat>) {
  require_layout("to", self, layout);
  return converted(self, dtype, device, copy);
}
Tensor to_dtype(const Tensor& self, ScalarType dtype, bool, bool copy,
                std::optional<MemoryFormat>) {
  return converted(self, dtype, std::nullopt, copy);
}
Tensor to_device(const Tensor& self, Device device, ScalarType dtype, bool, bool copy,
                 std::optional<MemoryFormat>) {
  return converted(self, dtype, device, copy);
}
Tensor to_other(const Tensor& self, const Tensor& other, bool, bool copy,
                std::optional<MemoryFormat>) {
  if (!self.is_strided()) return converted(self, other.dtype(), other.device(), copy);
  return aten::to(self, other.device(), other.dtype(), false, copy);
}
Tensor type_as(const Tensor& self, const Tensor& other) {
  return to_other(self, other, false, false, std::nullopt);
}

Tensor copy(const Tensor& self, const Tensor& src, bool) {
  check<ErrorKind::Runtime>(self.layout() == src.layout() && self.sizes() == src.sizes(),
                            OpName("copy_"), "expected a tensor of layout ", name_of(self.layout()),
                            " and shape ", self.sizes(), ", got ", name_of(src.layout()),
                            " of shape ", src.sizes());
  const Tensor there = aten::to(src, self.device(), src.dtype(), false, true);
  write_layout_tensor("copy_", self, there);
  return self;
}

}  // namespace

void require_layout(const char* op, const Tensor& self, std::optional<Layout> layout) {
  check<ErrorKind::Runtime>(!layout || *layout == self.layout(), OpName(op), "expected the layout ",
                            name_of(self.layout()), " of the tensor, got ",
                            name_of(layout.value_or(self.layout())),
                            "; call to_dense() or to_sparse()");
}

void register_boxed_layout_kernel(Operator& op, Layout layout,
                                  void (*function)(const Operator& op, Stack& stack),
                                  SourceLocation at) {
  const auto run = [](void* context, const Operator& called, Stack& stack) {
    reinterpret_cast<void (*)(const Operator&, Stack&)>(context)(called, stack);
  };
  Dispatcher::instance().register_layout(
      op, layout, BoxedKernel{run, reinterpret_cast<void*>(function), nullptr},
      {KernelSource::DeviceLayout, at.file, at.line, ""});
}

void register_copies(Layout layout) {
  namespace ops = aten::ops;
  register_layout_kernel<ops::clone>(layout, &clone);
  register_layout_kernel<ops::detach>(layout, &detach);
  register_layout_kernel<ops::alias>(layout, &alias);
  register_layout_kernel<ops::contiguous>(layout, &contiguous);
  register_layout_kernel<ops::_to_copy>(layout, &to_copy);
  register_layout_kernel<ops::to_dtype_layout>(layout, &to_layout);
  register_layout_kernel<ops::to_dtype>(layout, &to_dtype);
  register_layout_kernel<ops::to_device>(layout, &to_device);
  register_layout_kernel<ops::to_other>(layout, &to_other);
  register_layout_kernel<ops::type_as>(layout, &type_as);
  register_layout_kernel<ops::copy_>(layout, &copy);
}

}  // namespace treadle
