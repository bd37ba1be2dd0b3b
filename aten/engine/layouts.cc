// The fallback of Layer::Layout for all operators.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/engine/layouts.h"

#include <array>
#include <atomic>

#include "aten/engine/promotion.h"
#include "aten/ops/copy_.h"
#include "aten/ops/to.h"
#include "core/schema/function_schema.h"

namespace treadle {
namespace {

std::array<std::atomic<LayoutRule>, kMaxLayouts> rules;

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
    aten::copy_(self, result);
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
        if (const BoxedKernel* kernel = row->boxed[static_cast<size_t>(t.dtype())]) {
          (*kernel)(served, stack);
          return true;
        }
      }
    }
    const LayoutRule rule = rules[static_cast<size_t>(t.layout())].load(std::memory_order_acquire);
    return rule != nullptr && rule(served, stack);
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

void set_layout_rule(Layout layout, LayoutRule rule) {
  rules[static_cast<size_t>(layout)].store(rule, std::memory_order_release);
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

}  // namespace treadle
