// Layer::Layout: answers the calls that have a tensor of another layout than strided.
//
// The first such tensor says whose rules hold. A call goes to
//   1. the operator's kernel for that layout (register_layout_kernel);
//   2. the layout's rule for operators of a kind, such as all pointwise ones (set_layout_rule);
//   3. what the operator is made of, if it is a composite;
//   4. the layout's last resort (set_layout_fallback), such as a conversion to strided tensors;
// or it is a NotImplementedError. All of these compute with the strided parts of the tensors, by
// operators, so gradients, devices and dtypes need no code of the layout's own.
//
// A kernel serves the functional form. In place, its result replaces what the tensor is made of.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>

#include "core/dispatch/dispatcher.h"
#include "core/tensor/layout_tensor.h"

namespace treadle {

// The rule of a layout: false if it does not serve the operator, and then `stack` is as it was.
// Arguments are the last values of the stack, as for a BoxedFunction.
using LayoutRule = std::function<bool(const Operator& op, Stack& stack)>;
void set_layout_rule(Layout layout, LayoutRule rule);
// The rule that is asked last, also for calls with out=.
void set_layout_fallback(Layout layout, LayoutRule fallback);

// Registers a function as the operator's kernel for a layout.
//   register_layout_kernel<ops::mm>(Layout::SparseCsr, &mm_sparse);
template <class Op>
Registration register_layout_kernel(Layout layout, typename Op::Signature* function,
                                    SourceLocation at = SourceLocation::here()) {
  const auto run = [](void* context, const Operator&, Stack& stack) {
    BoxedCall<typename Op::Signature>::run(context, stack);
  };
  Dispatcher::instance().register_layout(
      Op::op, layout, BoxedKernel{run, reinterpret_cast<void*>(function), nullptr},
      {KernelSource::DeviceLayout, at.file, at.line, ""});
  return Registration();
}

// The same of a function that takes the operator's arguments from the stack, which several
// operators may share.
void register_boxed_layout_kernel(Operator& op, Layout layout,
                                  void (*function)(const Operator& op, Stack& stack),
                                  SourceLocation at = SourceLocation::here());

// Runs registrations while a library outside of the tree is loaded. An error is kept for the call
// that loads it, which raises it.
//   const auto registered = while_loading([] { low_rank = register_layout("low_rank"); });
template <class F>
Registration while_loading(F&& registrations) {
  try {
    registrations();
  } catch (const Error& error) {
    Dispatcher::instance().record_registration_error(error.what());
  }
  return Registration();
}

// Registers the kernels of a described layout for copies and conversions: clone, detach, to, copy_
// and their kin. They go by the tensor's parts.
void register_copies(Layout layout);
// RuntimeError if `layout` is not that of `self`.
void require_layout(const char* op, const Tensor& self, std::optional<Layout> layout);

// Writes `result` to `self`, a tensor of another layout, in place. RuntimeError if its sizes or its
// layout are others, its dtype does not cast to that of `self`, or `self` is a leaf that requires
// gradients.
void write_layout_tensor(const char* op, const Tensor& self, const Tensor& result);

// Gives a tensor of another layout the sizes and the contents of `result`, a tensor of its layout,
// dtype and device. RuntimeError if `self` requires gradients.
void take_layout_tensor(const char* op, const Tensor& self, const Tensor& result);

// Whether gradients flow to some part.
bool requires_grad_in_parts(const Tensor& t);

}  // namespace treadle
