// Runs operators on the CPU for devices without a kernel for them.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/engine/backends/fallback.h"

#include <unordered_map>

#include "aten/engine/backends/device_copy.h"
#include "core/device/backend.h"
#include "core/dispatch/call_counts.h"
#include "core/dispatch/dispatcher.h"
#include "core/schema/function_schema.h"

namespace treadle {
namespace {

// The CPU copies of a call's tensors: one for each tensor, however often it is an argument.
class Copies {
 public:
  Tensor of(const Tensor& t) {
    if (!t.defined() || t.is_cpu()) return t;
    Tensor& copy = copies_[t.impl()];
    if (!copy.defined()) copy = on_cpu(t);
    return copy;
  }
  Value of(const Value& v) {
    if (v.is<Tensor>()) return Value(of(v.as<Tensor>()));
    if (!v.is<Value::Tensors>()) return v;
    Value::Tensors list;
    for (const Tensor& t : v.as<Value::Tensors>()) list.push_back(of(t));
    return Value(std::move(list));
  }
  void write_back(const Tensor& t) {
    if (t.defined() && !t.is_cpu()) copy_between_devices(t, copies_.at(t.impl()), false);
  }

 private:
  std::unordered_map<TensorImpl*, Tensor> copies_;
};

// A generator of the CPU with the stream of the device's.
Generator lent_generator(const Operator& op, const Generator& given, Device device) {
  Generator source = generator_or_default(given, device);
  check<ErrorKind::Runtime>(source->device().type == device.type, OpName(op.info().base_name),
                            "expected a generator on ", device, ", got one on ", source->device());
  return make_generator(kCPU, std::move(source));
}

void require_fallback(const Operator& op, Device device) {
  check<ErrorKind::NotImplemented>(
      fallback_allowed(device.type), OpName(op.info().base_name),
      "expected a kernel of the device ", name_of(device.type),
      ", got none, and falling back to the cpu is switched off for it");
}

// Results of the CPU's operator, in the outputs that the caller made on the device.
void fill_outputs(const Operator& op, const Stack& results, ArrayRef<Value> outputs) {
  check_internal(results.size() == outputs.size(), "an operator has as many results as outputs");
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Tensor& out = outputs[i].as<Tensor>();
    const Tensor& result = results[i].as<Tensor>();
    check<ErrorKind::Runtime>(out.sizes() == result.sizes(), OpName(op.info().base_name),
                              "expected a result of sizes ", out.sizes(), ", got ", result.sizes());
    copy_between_devices(out, result, false);
  }
}

Value to_device(const Value& v, Device device) {
  if (!v.is<Tensor>() || !v.as<Tensor>().defined()) return v;
  const Tensor& t = v.as<Tensor>();
  const Tensor there = empty_tensor(t.sizes(), t.dtype(), device);
  copy_between_devices(there, t, false);
  return Value(there);
}

}  // namespace

Device device_in(const Stack& stack) {
  for (const Value& v : stack) {
    if (v.is<Tensor>() && v.as<Tensor>().defined() && !v.as<Tensor>().is_cpu())
      return v.as<Tensor>().device();
    if (!v.is<Value::Tensors>()) continue;
    for (const Tensor& t : v.as<Value::Tensors>())
      if (t.defined() && !t.is_cpu()) return t.device();
  }
  return kCPU;
}

void cpu_fallback(const Operator& form, Stack& stack) {
  const Operator& op = *form.entry().op;
  const Device device = device_in(stack);
  require_fallback(form, device);
  count_call(device.type, op, CallRoute::Fallback);
  const schema::FunctionSchema& schema = op.schema();
  const size_t count = schema.arguments.size();
  check_internal(stack.size() >= count, "a boxed call has the operator's arguments");

  Copies copies;
  Stack call;
  for (size_t i = 0; i < count; ++i) {
    if (schema.arguments[i].type.base == schema::BaseType::Generator) {
      const Generator given = stack[i].is_none() ? Generator() : stack[i].as<Generator>();
      call.push_back(Value(lent_generator(op, given, device)));
    } else {
      call.push_back(copies.of(stack[i]));
    }
  }
  {
    // Recording, casting and profiling were done for the call on the device.
    const ExcludeLayers exclude(Layer::Autograd);
    op.call_boxed(call);
  }

  bool writes = false;
  for (size_t i = 0; i < count; ++i) {
    if (!schema.arguments[i].type.writes()) continue;
    writes = true;
    if (stack[i].is<Tensor>()) copies.write_back(stack[i].as<Tensor>());
    if (!stack[i].is<Value::Tensors>()) continue;
    for (const Tensor& t : stack[i].as<Value::Tensors>()) copies.write_back(t);
  }
  if (writes) {
    stack.clear();
    return;
  }
  const ArrayRef<Value> outputs(stack.data() + count, stack.size() - count);
  if (!outputs.empty()) {
    fill_outputs(form, call, outputs);
    stack.clear();
    return;
  }
  Stack results;
  for (const Value& v : call) results.push_back(to_device(v, device));
  stack = std::move(results);
}

}  // namespace treadle
