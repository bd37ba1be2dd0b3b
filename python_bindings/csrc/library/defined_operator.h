// LibraryOperator: a Python handle of an operator without a generated binding. The operator was
// defined at run time (treadle.library), or is called by its full name
// (treadle.ops.aten.add.Tensor).
//
// A call whose kernel is a Python function, with no layer in between, passes its argument objects
// on without boxing.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/dispatch/dynamic_operator.h"
#include "python_bindings/csrc/library/library_values.h"

namespace treadle::python {

class LibraryOperator;

// A kernel in Python. It lives as long as the program. Its function lives until the kernel is
// unregistered.
struct PythonKernel {
  LibraryOperator* owner;
  PyObject* function;
};

// The objects of a call, one for each argument; null for an omitted one. Borrowed.
using Slots = PyObject* const*;

class LibraryOperator {
 public:
  // The handle of an operator, made at its first use.
  static LibraryOperator& of(Operator& op);
  static LibraryOperator& named(const std::string& name);  // RuntimeError for an unknown one

  const Operator& op() const { return op_; }
  DynamicOperator* dynamic() const { return dynamic_; }  // null for a generated operator
  const schema::FunctionSchema& schema() const { return schema_; }
  const std::vector<Param>& params() const { return params_; }
  const Signature& signature() const { return signature_; }
  const char* name() const { return op_.info().base_name; }

  // The call by Python's protocol; RuntimeError if the arguments do not fit.
  PyObject* call(PyObject* const* values, Py_ssize_t count, PyObject* names);
  // The same after the arguments were matched with the parameters.
  PyObject* call_with(Slots slots);
  // Below all layers.
  Object call_kernel(Slots slots);

  // ---- what is registered from Python; all under the interpreter lock
  void set_kernel(DeviceType device, PyObject* function, KernelOrigin place);
  void clear_kernel(DeviceType device);
  void set_default_kernel(PyObject* function, bool composite, KernelOrigin place);
  void clear_default_kernel();
  // backward(ctx, *grads), null if there is none, and setup_context(ctx=, inputs=, output=).
  // `replace`: the new one replaces an existing one instead of being rejected.
  void set_formula(PyObject* backward, PyObject* setup_context, bool replace, KernelOrigin place);
  // The function that is called in place of the kernel on Layer::Autograd or Layer::Autocast; None:
  // no function.
  void set_layer_function(Layer layer, PyObject* function, KernelOrigin place);
  void clear_layer_function(Layer layer);
  bool has_autocast() const { return autocast_ != nullptr; }
  // "formula", "function", "none" (declared so), "composite" or "".
  const char* autograd_kind() const;
  // Refuses results that share memory with arguments or with each other.
  void set_results_apart() { results_apart_ = true; }
  void set_object(PyObject* object) { function_.object = object; }
  PyObject* object() const { return function_.object; }
  // The operator that modes receive in place of this one (for most operators this one itself), and
  // its member of treadle.ops.
  struct Shown {
    LibraryOperator* op = nullptr;
    Object overload;
  };
  const Shown& shown();
  // Unregisters everything and frees the name.
  void undefine();

  // ---- for kernels and derivatives
  // Calls a Python kernel and checks its result.
  Object invoke(PyObject* function, Slots slots) const;
  Stack to_stack(Slots slots) const;
  Object from_stack(const Stack& results) const;
  // The arguments on the stack in the form of a Python call. Trailing and keyword arguments that
  // equal their defaults are omitted. A tensor that stands for a number becomes the number again.
  struct PythonCall {
    Object args, kwargs;
  };
  PythonCall python_call(const Stack& arguments) const;
  // The arguments of `other`, which has the same arguments by name, on the stack of this one.
  Stack arguments_of(const LibraryOperator& other, const Stack& arguments) const;
  // What `who`, such as __torch_dispatch__ of a class, returned, as results. Arguments that the
  // operator writes are returned themselves. RuntimeError for a result that the schema does not
  // have.
  Stack results_of(PyObject* result, const Stack& arguments, const char* who) const;
  // Calls `f` with slots made of the values on the stack, and replaces them with its results.
  template <class F>
  void with_objects(Stack& stack, F&& f) const {
    std::vector<Object> objects;
    std::vector<PyObject*> slots;
    for (const Value& v : stack) slots.push_back(objects.emplace_back(to_python(v)).get());
    leave_out_defaults(slots.data());
    results_to_stack(f(slots.data()), stack);
  }
  PyObject* default_object(size_t i) const { return arguments_[i].default_object.get(); }
  size_t positional() const { return signature_.positional; }

 private:
  friend class FormulaNode;
  struct ArgumentPart {
    schema::Type type;
    std::string default_text;
    Object default_object;  // where it has a default
    Value default_value;
    bool is_tensor = false, is_list = false, written = false, plain = false;
  };
  // The facts about a call's arguments, from one pass over its tensors.
  struct Subject {
    LayerMask layers = 0;
    Device device = kCPU;
    bool requires_grad = false;
    bool any = false;
  };

  explicit LibraryOperator(Operator& op);
  template <class F>
  void each_tensor(Slots slots, F&& f) const;
  Subject subject_of(Slots slots) const;
  PythonKernel* python_kernel(DeviceType device) const;
  Object run(PythonKernel& kernel, Slots slots) const;
  Object call_boxed(Slots slots) const;
  void leave_out_defaults(PyObject** slots) const;
  void check_result(PyObject* result) const;
  void check_apart(PyObject* result, Slots slots) const;
  void results_to_stack(const Object& result, Stack& stack) const;
  Object differentiate(Slots slots);
  static void run_formula(void* context, const Operator& op, Stack& stack);

  Operator& op_;
  DynamicOperator* dynamic_;
  const schema::FunctionSchema& schema_;
  std::vector<ArgumentPart> arguments_;
  std::vector<Param> params_;
  Signature signature_{};
  Function function_{};
  std::vector<uint32_t> tensors_;  // which arguments are or hold tensors
  bool writes_ = false, results_apart_ = false;
  bool simple_result_ = false;  // one tensor

  std::array<PythonKernel*, kMaxDeviceTypes> kernels_{};
  PythonKernel* default_kernel_ = nullptr;
  PythonKernel* autograd_ = nullptr;  // in place of a formula
  PythonKernel* autocast_ = nullptr;
  bool composite_ = false, no_autograd_ = false, has_formula_ = false;
  Object backward_, setup_context_;
  std::string node_name_;
  Shown shown_;
};

// The overloads of one name. A call goes to the first that fits.
class LibraryPacket {
 public:
  explicit LibraryPacket(std::string name) : name_(std::move(name)) {}
  void set_overloads(std::vector<LibraryOperator*> overloads);
  PyObject* call(PyObject* const* values, Py_ssize_t count, PyObject* names);
  void set_object(PyObject* object) { object_ = object; }

 private:
  std::string name_;
  PyObject* object_ = nullptr;
  std::vector<LibraryOperator*> overloads_;
  std::vector<Signature> signatures_;
  Function function_{};
};

// Python kernels of generated operators, for devices whose backend has none: library_kernels.cc.
// The function implements the operator's first form; the others are derived from it.
// RuntimeError for an unknown name, with the known ones.
DeviceType device_type_of(const std::string& name);
void set_generated_kernel(Operator& op, DeviceType device, PyObject* function, KernelOrigin place);
void clear_generated_kernel(Operator& op, DeviceType device);
// function(operator, *args, **kwargs) for every operator without a kernel for the device.
void set_fallback(DeviceType device, PyObject* function, KernelOrigin place);
void clear_fallback(DeviceType device);

void init_library_objects(PyObject* module);  // library_object.cc

}  // namespace treadle::python
