// The tables by which the module finds generated bindings, and the functions that run a call and
// return its result.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <tuple>
#include <vector>

#include "python_bindings/csrc/arguments/arg_parser.h"

namespace treadle::python {

using BindingFunction = PyObject* (*)(PyObject* object, PyObject* const* arguments,
                                      Py_ssize_t count, PyObject* names);

// One Python name. `method` and `function` are null if it is not bound so.
struct Binding {
  const char* name;
  const char* module;  // "" for treadle._C, "nn" for treadle._C._nn
  BindingFunction method;
  BindingFunction function;
  Function* signatures;
  const char* const* operators;  // the operator behind each signature: "aten::add.Tensor"
  const char* doc;
};
struct BindingShard {
  const Binding* bindings;
  size_t count;
};
// Made by the generator (binding_shards.cc).
extern const BindingShard* const binding_shards[];
extern const size_t binding_shard_count;

// A module's functions are called with the module as their object.
template <BindingFunction function>
PyObject* as_function(PyObject*, PyObject* const* arguments, Py_ssize_t count, PyObject* names) {
  return function(nullptr, arguments, count, names);
}

// The binding of a Python name, for calls by the language's own syntax (a + b). Its functions are
// null if there is none.
const Binding& find_binding(std::string_view name);
// The module that has the function whose calls `function` parses; null if there is none.
Object home_of(const Function& function);
// The operator that a call of this binding would reach. `object` is null for a function.
const char* resolve_operator(const Binding& binding, PyObject* object, PyObject* args,
                             PyObject* kwargs);
// Calls an operator on a tensor by its Python name. RuntimeError if the library has none of that
// name.
PyObject* call_operator(const char* name, PyObject* self,
                        std::initializer_list<PyObject*> arguments = {});

void add_generated_methods(std::vector<PyMethodDef>& methods);
void add_generated_functions(PyObject* module);
// Functions of a library outside of Treadle. The shard must live as long as the program.
void add_library_functions(PyObject* module, const BindingShard& shard);

// Letting other threads run costs about as much as adding two small tensors. So a call does it only
// for much work: this many elements in its arguments, or requested by size; or for any work on a
// device that may make the caller wait.
inline constexpr int64_t kWorthReleasing = 32768;
inline constexpr int64_t kMuchWork = kWorthReleasing + 1;
inline int64_t work(Device d) { return d.is_cpu() || d.is_meta() ? 0 : kMuchWork; }
inline int64_t work(const std::optional<Device>& d) { return d ? work(*d) : 0; }
// The count saturates at this limit, so its sums do not overflow.
[[gnu::always_inline]] inline int64_t work(const Tensor& t) {
  if (!t.defined()) return 0;
  if (t.numel() > kWorthReleasing) return kMuchWork;
  return t.is_cpu() ? t.numel() : std::max(t.numel(), work(t.device()));
}
inline int64_t work(const std::vector<Tensor>& list) {
  int64_t sum = 0;
  for (const Tensor& t : list) sum += work(t);
  return sum;
}
inline int64_t work(const DimVector& sizes) {
  int64_t product = 1;
  for (const int64_t n : sizes) {
    if (n > kWorthReleasing) return kMuchWork;
    product = product > kWorthReleasing ? product : product * (n > 0 ? n : 1);
  }
  return product;
}
template <class T>
constexpr int64_t work(const T&) {
  return 0;
}

template <class F, class... Args>
auto run(F&& f, const Args&... args) {
  if ((int64_t{0} + ... + work(args)) > kWorthReleasing) {
    ReleaseGil released;
    return f();
  }
  return f();
}

// Results.
inline PyObject* wrap(bool v) { return to_bool(v); }
inline PyObject* wrap(int64_t v) { return Object(PyLong_FromLongLong(v)).release(); }
inline PyObject* wrap(double v) { return Object(PyFloat_FromDouble(v)).release(); }
PyObject* wrap(const std::vector<Tensor>& list);
template <class... Ts, size_t... I>
PyObject* wrap_items(Object sequence, std::tuple<Ts...>&& values, std::index_sequence<I...>,
                     bool named) {
  const auto set = [&](size_t i, PyObject* item) {
    if (named)
      PyStructSequence_SET_ITEM(sequence.get(), static_cast<Py_ssize_t>(i), item);
    else
      PyTuple_SET_ITEM(sequence.get(), static_cast<Py_ssize_t>(i), item);
  };
  (set(I, wrap(std::get<I>(std::move(values)))), ...);
  return sequence.release();
}
template <class... Ts>
PyObject* wrap(std::tuple<Ts...>&& values) {
  return wrap_items(Object(PyTuple_New(sizeof...(Ts))), std::move(values),
                    std::index_sequence_for<Ts...>(), false);
}

// A result with named parts: treadle.return_types.max(values=..., indices=...).
class NamedResult {
 public:
  // `fields` ends with null. A name with dots belongs to a library: "my_ops.return_types.topk".
  NamedResult(const char* name, const char* const* fields)
      : name_(name), fields_(fields), next_(first_) {
    first_ = this;
  }
  template <class... Ts>
  PyObject* wrap(std::tuple<Ts...>&& values) {
    return wrap_items(Object(PyStructSequence_New(type())), std::move(values),
                      std::index_sequence_for<Ts...>(), true);
  }
  // Every type by its name, so that pickles find them.
  static PyObject* all_types();
  // Makes the module `name` ("my_ops.return_types") of the types of a library, and adds it to the
  // library's module.
  static void add_types(PyObject* module, const std::string& name);

 private:
  PyTypeObject* type();

  const char* name_;
  const char* const* fields_;
  NamedResult* next_;
  PyTypeObject* type_ = nullptr;
  static NamedResult* first_;  // of all types, of every library
};

// The effect of `requires_grad=` of a function that makes tensors; defined in autograd_tensor.cc.
Tensor with_requires_grad(Tensor tensor, bool requires_grad);

}  // namespace treadle::python
