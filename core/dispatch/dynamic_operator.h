// DynamicOperator: an operator that is defined while the program runs, by the text of its schema.
//
//   DynamicOperator& scale = DynamicOperator::define("my_ns::scale(Tensor x, float by) -> Tensor",
//                                                    place);
//   scale.set_kernel(DeviceType::CPU, {&scale_cpu, context}, place);
//   Dispatcher::instance().at("my_ns::scale").call_boxed(stack);
//
// To the dispatcher and to layers it is like a generated operator. Its kernels take boxed
// arguments. Arguments and results are checked against the schema.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <string_view>
#include <vector>

#include "core/dispatch/operator.h"
#include "core/schema/function_schema.h"

namespace treadle {

class DynamicOperator final : public Operator {
 public:
  // Defines an operator and makes it known to the dispatcher. RuntimeError for a schema that the
  // grammar refuses, that names no namespace, or that has a type no boxed call can carry, and for
  // a name that is taken (naming both places).
  static DynamicOperator& define(std::string_view schema, KernelOrigin place);
  // Frees the name. The object stays, as calls may be in it, and is never used again.
  void undefine();
  // Null for an operator that was generated.
  static DynamicOperator* of(Operator& op);
  static const DynamicOperator* of(const Operator& op);

  const schema::FunctionSchema& schema() const { return schema_; }
  const KernelOrigin& place() const { return place_; }

  // The kernel for tensors on a device; RuntimeError when there is one, naming both places. The
  // contexts of kernels live for as long as the program: calls may be in one when it is taken back.
  void set_kernel(DeviceType device, BoxedKernel kernel, KernelOrigin place);
  void clear_kernel(DeviceType device);
  // The kernel for devices without one of their own. A composite one is made of operators that
  // have derivatives, so that autograd looks into it.
  void set_default_kernel(BoxedKernel kernel, bool composite, KernelOrigin place);
  void clear_default_kernel();
  // The kernel of Layer::Autograd or Layer::Autocast. It reaches the operator's by call_kernel(),
  // or by a call with the layer excluded.
  void set_layer_kernel(Layer layer, BoxedKernel kernel, KernelOrigin place);
  void clear_layer_kernel(Layer layer);

  // Whether the call with this stack goes to a composite kernel.
  bool is_composite(const Stack& stack) const;
  // Below autograd: calls the kernel for the arguments on the stack, whose results take their
  // place, or what takes it over on Layer::Dispatch. NotImplementedError where there is none,
  // RuntimeError for results that the schema does not have.
  void call_kernel(Stack& stack) const;
  // The same below all layers.
  void run_kernel(Stack& stack) const;
  // The device whose kernel a call with these arguments takes: the first tensor's that is not on
  // the CPU; without tensors an argument's of type Device.
  static Device device_of(const Stack& stack);

  // The function on Layer::Autograd for operators that say nothing about derivatives; set once, by
  // the bindings.
  static void set_default_autograd(BoxedFunction function);

 private:
  struct Data;
  explicit DynamicOperator(std::unique_ptr<Data> data);
  static void call(const Operator& op, Stack& stack);

  static void run_layer(const Operator& op, Layer layer, Stack& stack);
  template <Layer layer>
  static void layer_entry(const Operator& op, Stack& stack) {
    run_layer(op, layer, stack);
  }
  static const BoxedKernel* entry_of(Layer layer) {
    return layer == Layer::Autograd ? &boxed_kernel<&layer_entry<Layer::Autograd>>
                                    : &boxed_kernel<&layer_entry<Layer::Autocast>>;
  }
  void check_arguments(const Stack& stack) const;
  void check_results(const Stack& stack, const std::vector<Tensor>& written) const;
  [[noreturn]] void fail_without_kernel(Device device) const;
  std::vector<Tensor> written_tensors(const Stack& stack) const;
  const BoxedKernel* keep(BoxedKernel kernel);

  std::unique_ptr<Data> data_;
  const schema::FunctionSchema& schema_;
  const KernelOrigin& place_;
  std::array<std::atomic<const BoxedKernel*>, kNumLayers> layer_kernels_{};
  std::atomic<const BoxedKernel*> default_kernel_{nullptr};
  std::atomic<bool> composite_{false};
};

// Whether the value can be an argument, or a result, of the type.
bool fits_type(const Value& value, const schema::Type& type);

}  // namespace treadle
