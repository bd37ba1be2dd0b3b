// The call of an extension's kernel, and its registration for a device, all devices, or a layer.
//
// SPDX-License-Identifier: Apache-2.0
#include "stable_abi/kernels.h"

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <mutex>

#include "aten/engine/named_errors.h"
#include "aten/ops/copy_.h"
#include "core/base/fork_safe_mutex.h"
#include "core/device/backend.h"
#include "core/dispatch/dispatcher.h"
#include "stable_abi/stack.h"

namespace treadle::stable_abi {
namespace {

constexpr size_t kInline = 16;  // as many values as most operators have at most

// The error of a kernel. Extensions for older versions do not ask why a function of the ABI failed;
// the reason is told all the same.
Error error_of(const Operator& op, std::string text, uint64_t errors_before) {
  if (error_count() != errors_before && text.find(last_error()) == std::string::npos)
    text += "\n" + last_error();
  return Error(ErrorKind::Runtime, OpName(op.info().base_name), std::move(text));
}

// Calls the kernel with the values of a stack that has the operator's arguments, and puts its
// results there.
void call(const Operator& op, StableKernel kernel, Stack& stack) {
  const schema::FunctionSchema& schema = op.schema();
  const size_t inputs = schema.arguments.size(), outputs = schema.returns.size();
  check_internal(stack.size() == inputs, "a boxed call has the operator's arguments");
  StableIValue room[kInline];
  std::unique_ptr<StableIValue[]> more;
  StableIValue* values = room;
  if (std::max(inputs, outputs) > kInline) {
    more.reset(new StableIValue[std::max(inputs, outputs)]);
    values = more.get();
  }
  const std::string_view name = op.info().base_name;
  named(name, [&] { to_stable(stack, schema.arguments, values); });
  const uint64_t errors = error_count();
  try {
    kernel(values, inputs, outputs);
  } catch (const Error&) {
    throw;
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& error) {
    throw error_of(op, error.what(), errors);
  } catch (...) {
    fail<ErrorKind::Runtime>(OpName(op.info().base_name),
                             "expected a kernel that throws std::exception, got another exception");
  }
  stack.clear();
  named(name, [&] { adopt_values(values, schema.returns, stack); });
}

void run(void* context, const Operator& op, Stack& stack) {
  call(op, reinterpret_cast<StableKernel>(context), stack);
}

BoxedKernel boxed(StableKernel kernel) { return {&run, reinterpret_cast<void*>(kernel)}; }

// ---- operators of the library itself, for devices of backends

// The stack has the arguments of the entry's first form, and then the outputs to fill, if it has
// some.
void run_generated(void* context, const Operator& form, Stack& stack) {
  const Operator& op = *form.entry().op;
  const auto outputs = stack.begin() + static_cast<std::ptrdiff_t>(op.schema().arguments.size());
  const Stack given(outputs, stack.end());
  stack.erase(outputs, stack.end());
  call(op, reinterpret_cast<StableKernel>(context), stack);
  if (given.empty()) return;
  for (size_t i = 0; i < given.size(); ++i) {
    const Tensor &output = given[i].as<Tensor>(), &result = stack[i].as<Tensor>();
    check<ErrorKind::Runtime>(result.sizes() == output.sizes(), OpName(op.info().base_name),
                              "expected the kernel to return a tensor of sizes ", output.sizes(),
                              ", got ", result.sizes());
    aten::copy_(output, result);
  }
  stack.clear();
}

std::function<void()> register_generated(Operator& op, const Key& key, StableKernel kernel,
                                         const KernelOrigin& place) {
  const EntryInfo& entry = op.entry();
  const bool fits = key.kind == KeyKind::Device && backend_of(key.device) && op.has_table() &&
                    entry.kind != OperatorKind::Composite && entry.kind != OperatorKind::View &&
                    entry.op == &op;
  check<ErrorKind::Runtime>(fits, OpName(op.info().name),
                            "expected a kernel of an operator's first form for a device of a "
                            "backend, got one at ",
                            place.file, ":", place.line);
  Dispatcher::instance().register_boxed(op.info().name, op.info().schema, key.device,
                                        Layout::Strided, {},
                                        {&run_generated, reinterpret_cast<void*>(kernel)}, place);
  return [name = std::string(op.info().name), device = key.device] {
    Dispatcher::instance().deregister(name, device, Layout::Strided);
  };
}

// ---- layers

// The functions of an operator on a layer: by device, and for all. Lives for ever.
struct LayerKernel {
  Layer layer;
  std::array<std::atomic<StableKernel>, kMaxDeviceTypes> by_device{};
  std::atomic<StableKernel> everywhere{nullptr};
};
struct LayerKernels {
  ForkSafeMutex mutex;
  std::map<std::pair<const Operator*, Layer>, LayerKernel*> all;
};
LayerKernels& layer_kernels() {
  static auto* const kernels = new LayerKernels;
  return *kernels;
}

void run_layer(void* context, const Operator& op, Stack& stack) {
  const auto& kernel = *static_cast<const LayerKernel*>(context);
  const auto device = static_cast<size_t>(DynamicOperator::device_of(stack).type);
  StableKernel function = kernel.by_device[device].load();
  if (!function) function = kernel.everywhere.load();
  if (function) {
    call(op, function, stack);
    return;
  }
  const ExcludeLayers below(kernel.layer);
  op.call_boxed(stack);
}

std::function<void()> register_on_layer(DynamicOperator& op, const Key& key, StableKernel function,
                                        const KernelOrigin& place) {
  const Layer layer = key.kind == KeyKind::Autograd ? Layer::Autograd : Layer::Autocast;
  LayerKernels& kernels = layer_kernels();
  const std::lock_guard lock(kernels.mutex);
  LayerKernel*& known = kernels.all[{&op, layer}];
  if (!known) {
    auto made = std::make_unique<LayerKernel>();
    made->layer = layer;
    op.set_layer_kernel(layer, {&run_layer, made.get()}, place);
    known = made.release();
  }
  auto* const slot =
      key.every_device ? &known->everywhere : &known->by_device[static_cast<size_t>(key.device)];
  check<ErrorKind::Runtime>(!slot->load(), OpName(op.info().name),
                            "expected one function for the layer ", name_of(layer),
                            ", got a second at ", place.file, ":", place.line);
  slot->store(function);
  return [slot] { slot->store(nullptr); };
}

}  // namespace

std::function<void()> register_kernel(Operator& op, const Key& key, StableKernel kernel,
                                      const KernelOrigin& place) {
  DynamicOperator* const dynamic = DynamicOperator::of(op);
  if (!dynamic) return register_generated(op, key, kernel, place);
  switch (key.kind) {
    case KeyKind::Device:
      dynamic->set_kernel(key.device, boxed(kernel), place);
      return [dynamic, device = key.device] { dynamic->clear_kernel(device); };
    case KeyKind::Composite:
    case KeyKind::Default:
      dynamic->set_default_kernel(boxed(kernel), key.kind == KeyKind::Composite, place);
      return [dynamic] { dynamic->clear_default_kernel(); };
    case KeyKind::Autograd:
    case KeyKind::Autocast:
      return register_on_layer(*dynamic, key, kernel, place);
    case KeyKind::Elsewhere:
      break;
  }
  return [] {};
}

}  // namespace treadle::stable_abi
