// Python kernels of generated operators, for a backend's device. The forms of an entry share a
// table of kernels, so the Python function is a kernel of all of them.
//
// SPDX-License-Identifier: Apache-2.0
#include <map>
#include <memory>

#include "aten/ops/copy_.h"
#include "core/device/backend.h"
#include "core/dispatch/dispatcher.h"
#include "python_bindings/csrc/autograd/node_object.h"
#include "python_bindings/csrc/library/defined_operator.h"

namespace treadle::python {
namespace {

// A function as the kernel of an entry on a device, which is given it as the context. Lives for
// ever, as calls may be in it when it is taken back: then it has no function.
struct GeneratedKernel {
  Operator& op;  // the entry's first form
  Object function;
};
// Those that are registered, by table and device. Under the interpreter lock.
std::map<std::pair<const KernelTable*, DeviceType>, GeneratedKernel*>& all_kernels() {
  static auto* const all =
      new std::map<std::pair<const KernelTable*, DeviceType>, GeneratedKernel*>;
  return *all;
}

void call_function(Operator& op, const Object& function, Stack& stack) {
  LibraryOperator& library = LibraryOperator::of(op);
  library.with_objects(stack, [&](Slots slots) { return library.invoke(function.get(), slots); });
}

// Kernels and fallbacks are given the arguments of the entry's first form, and then the outputs to
// fill, where it has some.
void call_and_fill(Operator& op, const Object& function, Stack& stack) {
  const size_t count = LibraryOperator::of(op).schema().arguments.size();
  check_internal(stack.size() >= count, "a boxed call has the operator's arguments");
  const auto outputs = stack.begin() + static_cast<std::ptrdiff_t>(count);
  const Stack given(outputs, stack.end());
  stack.erase(outputs, stack.end());
  call_function(op, function, stack);
  if (given.empty()) return;
  for (size_t i = 0; i < given.size(); ++i) {
    const Tensor& output = given[i].as<Tensor>();
    const Tensor& result = stack[i].as<Tensor>();
    check<ErrorKind::Runtime>(result.sizes() == output.sizes(), OpName(op.info().base_name),
                              "expected the kernel to return a tensor of sizes ", output.sizes(),
                              ", got ", result.sizes());
    aten::copy_(output, result);
  }
  stack.clear();
}

void run_generated(void* context, const Operator&, Stack& stack) {
  in_python([&] {
    const auto& kernel = *static_cast<const GeneratedKernel*>(context);
    const Object function = kernel.function;
    check<ErrorKind::Runtime>(static_cast<bool>(function), OpName(kernel.op.info().base_name),
                              "expected a kernel that stays registered while it is called");
    call_and_fill(kernel.op, function, stack);
  });
}

// A fallback in Python, and the one that it replaced. It lives forever, as kernels do.
struct PythonFallback {
  Object function;
  const BoxedKernel* before = nullptr;
};
std::map<DeviceType, PythonFallback*>& all_fallbacks() {
  static auto* const all = new std::map<DeviceType, PythonFallback*>;
  return *all;
}

void run_fallback(void* context, const Operator& form, Stack& stack) {
  in_python([&] {
    Operator& op = *form.entry().op;
    const Object function = static_cast<const PythonFallback*>(context)->function;
    check<ErrorKind::Runtime>(static_cast<bool>(function), OpName(op.info().base_name),
                              "expected a fallback that stays registered while it is called");
    const Object find = import_attribute("treadle._ops", "overload_named");
    const Object overload(call_python(PyObject_CallFunction, find.get(), "s", op.info().name));
    const Object partial = import_attribute("functools", "partial");
    const Object bound(call_python(PyObject_CallFunctionObjArgs, partial.get(), function.get(),
                                   overload.get(), nullptr));
    call_and_fill(op, bound, stack);
  });
}

}  // namespace

void set_fallback(DeviceType device, PyObject* function, KernelOrigin place) {
  check<ErrorKind::Runtime>(!all_fallbacks().contains(device), OpName("fallback"),
                            "expected one for the ", "device ", name_of(device),
                            ", got a second at ", place.file, ":", place.line);
  Dispatcher& dispatcher = Dispatcher::instance();
  auto* const fallback =
      new PythonFallback{Object::borrow(function), dispatcher.device_fallback(device)};
  dispatcher.deregister_device_fallback(device);
  dispatcher.register_device_fallback(device, {&run_fallback, fallback}, place);
  all_fallbacks()[device] = fallback;
}

void clear_fallback(DeviceType device) {
  const auto found = all_fallbacks().find(device);
  if (found == all_fallbacks().end()) return;
  Dispatcher& dispatcher = Dispatcher::instance();
  dispatcher.deregister_device_fallback(device);
  PythonFallback& fallback = *found->second;
  if (fallback.before)
    dispatcher.register_device_fallback(device, *fallback.before,
                                        {KernelSource::Fallback, "the device's backend", 0, ""});
  all_fallbacks().erase(found);
  fallback.function = Object();
}

void set_generated_kernel(Operator& op, DeviceType device, PyObject* function, KernelOrigin place) {
  const OperatorInfo& info = op.info();
  const auto refuse_unless = [&](bool fits, const auto&... parts) {
    check<ErrorKind::Runtime>(fits, OpName(info.name), "expected ", parts...);
  };
  refuse_unless(backend_of(device) != nullptr,
                "a device of a backend, for which Python can give kernels, got ", name_of(device));
  const EntryInfo& entry = op.entry();
  refuse_unless(op.has_table() && !entry.data_free && entry.kind != OperatorKind::Composite &&
                    entry.kind != OperatorKind::View,
                "an operator with kernels of its own, got one made of others, which has none");
  refuse_unless(entry.op == &op, "the operator's first form, ", entry.op->info().name,
                ", got another: they share their kernels");
  // A refused registration leaves the existing one.
  auto kernel = std::make_unique<GeneratedKernel>(GeneratedKernel{op, Object::borrow(function)});
  Dispatcher::instance().register_boxed(info.name, info.schema, device, Layout::Strided, {},
                                        {&run_generated, kernel.get()}, place);
  all_kernels()[{&op.table(), device}] = kernel.release();
}

void clear_generated_kernel(Operator& op, DeviceType device) {
  const auto found = all_kernels().find({&op.table(), device});
  if (found == all_kernels().end()) return;
  GeneratedKernel& kernel = *found->second;
  all_kernels().erase(found);
  Dispatcher::instance().deregister(op.info().name, device, Layout::Strided);
  kernel.function = Object();
}

}  // namespace treadle::python
