// The path from a Python call to the kernel of an operator without a generated binding.
//
// SPDX-License-Identifier: Apache-2.0
#include "python_bindings/csrc/library/defined_operator.h"

#include <algorithm>
#include <map>

#include "core/dispatch/dispatcher.h"
#include "python_bindings/csrc/autograd/node_object.h"
#include "python_bindings/csrc/binding.h"

namespace treadle::python {
namespace {

constexpr size_t kInline = 16;  // as many arguments as most operators have at most

// Room for the slots of one call.
class SlotRoom {
 public:
  explicit SlotRoom(size_t count) {
    if (count > kInline) [[unlikely]]
      more_.resize(count);
  }
  PyObject** data() { return more_.empty() ? room_ : more_.data(); }

 private:
  PyObject* room_[kInline];
  std::vector<PyObject*> more_;
};

// References that last as long as a call.
class Held {
 public:
  Held() = default;
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;
  ~Held() {
    for (size_t i = 0; i < count_; ++i) Py_DECREF(room_[i]);
  }
  PyObject* keep(Object object) {
    if (count_ < kInline) return room_[count_++] = object.release();
    return more_.emplace_back(std::move(object)).get();
  }

 private:
  PyObject* room_[kInline];
  size_t count_ = 0;
  std::vector<Object> more_;
};

// Parsing reports a misfit as a TypeError. A call by an operator's full name raises RuntimeError.
int parse_call(Function& function, const detail::Arguments& arguments, PyObject** slots) {
  try {
    return detail::parse(function, arguments, slots);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::Type) throw;
    throw Error(ErrorKind::Runtime, OpName(error.op()), error.message());
  }
}

// While a Python kernel runs, the profiler sees the calls that it makes.
class SeenByProfiler {
 public:
  SeenByProfiler() : saved_(layer_state().excluded) {
    layer_state().excluded &= static_cast<LayerMask>(~layer_bit(Layer::Profiler));
  }
  ~SeenByProfiler() { layer_state().excluded = saved_; }
  SeenByProfiler(const SeenByProfiler&) = delete;
  SeenByProfiler& operator=(const SeenByProfiler&) = delete;

 private:
  LayerMask saved_;
};

// A kernel in Python as the operator's own kernels are: called with a stack.
void run_python_kernel(void* context, const Operator& op, Stack& stack) {
  const auto& kernel = *static_cast<PythonKernel*>(context);
  in_python([&] {
    check<ErrorKind::Runtime>(kernel.function != nullptr, OpName(op.info().base_name),
                              "expected a kernel that stays registered while it is called");
    const SeenByProfiler seen;
    const Object function = Object::borrow(kernel.function);
    kernel.owner->with_objects(
        stack, [&](Slots slots) { return kernel.owner->invoke(function.get(), slots); });
  });
}

// The function of FALLTHROUGH on a layer.
void run_below(void*, const Operator& op, Stack& stack) {
  DynamicOperator::of(op)->call_kernel(stack);
}

void take_back(PythonKernel*& kernel) {
  if (!kernel) return;
  Py_CLEAR(kernel->function);
  kernel = nullptr;
}

}  // namespace

// ---- what an operator is made of

LibraryOperator& LibraryOperator::of(Operator& op) {
  static auto* const all = new std::map<const Operator*, std::unique_ptr<LibraryOperator>>;
  if (const auto found = all->find(&op); found != all->end()) return *found->second;
  std::unique_ptr<LibraryOperator> made(new LibraryOperator(op));
  // Another thread may have made it meanwhile. That one is kept then.
  return *all->try_emplace(&op, std::move(made)).first->second;
}

LibraryOperator& LibraryOperator::named(const std::string& name) {
  return of(Dispatcher::instance().at(name));
}

LibraryOperator::LibraryOperator(Operator& op)
    : op_(op), dynamic_(DynamicOperator::of(op)), schema_(op.schema()) {
  const auto n = static_cast<uint32_t>(schema_.arguments.size());
  arguments_.resize(n);
  params_.reserve(n);
  uint8_t positional = 0;
  for (uint32_t i = 0; i < n; ++i) {
    const schema::Argument& a = schema_.arguments[i];
    ArgumentPart& part = arguments_[i];
    part.type = a.type;
    part.is_tensor = a.type.is_tensor() && !a.type.list;
    part.is_list = a.type.is_tensor() && a.type.list;
    part.written = a.type.writes();
    part.plain = part.is_tensor || a.type.base == schema::BaseType::Str;
    writes_ |= part.written;
    if (a.default_value) {
      part.default_text = a.default_value->text;
      part.default_value = python::default_value(a);
      part.default_object = to_python(part.default_value);
    }
    if (a.type.is_tensor()) tensors_.push_back(i);
    params_.push_back(param_of(a, part.default_text.c_str(), dynamic_ != nullptr));
    positional = static_cast<uint8_t>(positional + !a.kwarg_only);
  }
  simple_result_ = schema_.returns.size() == 1 && schema_.returns[0].type.is_tensor() &&
                   !schema_.returns[0].type.list && !schema_.returns[0].type.optional;
  signature_ = {params_.data(), static_cast<uint8_t>(n), positional, -1, true};
  function_ = {op_.info().base_name, &signature_, 1};
  const schema::OperatorName& name = schema_.name;
  node_name_ = str("GeneratedBackwardFor_", name.ns, "_", name.base, "_",
                   name.overload.empty() ? "default" : name.overload, "Backward");
}

template <class F>
void LibraryOperator::each_tensor(Slots slots, F&& f) const {
  for (const uint32_t i : tensors_) {
    PyObject* o = slots[i];
    if (!o || o == Py_None) continue;
    if (arguments_[i].is_tensor) {
      if (is_tensor(o)) f(i, unwrap(o));
      continue;
    }
    for (Py_ssize_t k = 0; k < PySequence_Fast_GET_SIZE(o); ++k) {
      PyObject* item = PySequence_Fast_GET_ITEM(o, k);
      if (is_tensor(item)) f(i, unwrap(item));
    }
  }
}

// Like DynamicOperator::device_of().
LibraryOperator::Subject LibraryOperator::subject_of(Slots slots) const {
  Subject s;
  each_tensor(slots, [&](uint32_t, const Tensor& t) {
    s.layers |= t.layers();
    s.any = true;
    if (s.device.is_cpu()) s.device = t.device();
  });
  if (!s.any) [[unlikely]] {
    for (size_t i = 0; i < arguments_.size(); ++i) {
      PyObject* o = slots[i] ? slots[i] : default_object(i);
      if (o && params_[i].kind == Kind::Device && o != Py_None) s.device = to_device(o);
    }
  }
  return s;
}

// ---- calls

PyObject* LibraryOperator::call(PyObject* const* values, Py_ssize_t count, PyObject* names) {
  SlotRoom room(params_.size() + 1);
  const detail::Arguments arguments{nullptr, values, count, names};
  PyObject** slots = room.data();
  if (parse_call(function_, arguments, slots) == detail::kOverridden) return slots[0];
  if (params_.empty() || slots[0] != detail::spread()) [[likely]]
    return call_with(slots);
  // A list given as separate arguments.
  Object list(PyList_New(count));
  for (Py_ssize_t i = 0; i < count; ++i) PyList_SET_ITEM(list.get(), i, new_ref(values[i]));
  slots[0] = list.get();
  return call_with(slots);
}

PyObject* LibraryOperator::call_with(Slots slots) {
  if (!dynamic_) return call_boxed(slots).release();
  const Subject subject = subject_of(slots);
  LayerMask tensors = subject.layers;
  if (autograd_) tensors |= layer_bit(Layer::Autograd);
  const LayerMask active = op_.active_layers(tensors);
  PythonKernel* kernel = python_kernel(subject.device.type);
  const bool only_autograd = !(active & ~layer_bit(Layer::Autograd));
  if (!kernel || !only_autograd) [[unlikely]] {
    if (!(only_autograd && active && autograd_)) return call_boxed(slots).release();
  }
  if (active) {
    if (autograd_) return invoke(Object::borrow(autograd_->function).get(), slots).release();
    const bool composite = composite_ && kernel == default_kernel_ && !has_formula_;
    if (!composite && !no_autograd_ && grad_enabled() && !inference_enabled()) {
      bool records = false;
      each_tensor(slots, [&](uint32_t, const Tensor& t) { records |= t.requires_grad(); });
      if (records && has_formula_) return differentiate(slots).release();
      if (records) return call_boxed(slots).release();
    }
  }
  return run(*kernel, slots).release();
}

PythonKernel* LibraryOperator::python_kernel(DeviceType device) const {
  PythonKernel* own = kernels_[static_cast<size_t>(device)];
  if (own || !default_kernel_) return own;
  // A kernel in another language hides the default one.
  const KernelRow* row = op_.table().row(device, Layout::Strided);
  return row && row->boxed[0] ? nullptr : default_kernel_;
}

Object LibraryOperator::run(PythonKernel& kernel, Slots slots) const {
  Object result = invoke(Object::borrow(kernel.function).get(), slots);
  if (writes_) {
    each_tensor(slots, [&](uint32_t i, const Tensor& t) {
      if (arguments_[i].written) t.impl()->bump_version();
    });
  }
  return result;
}

Object LibraryOperator::call_kernel(Slots slots) {
  const Subject subject = subject_of(slots);
  PythonKernel* kernel = python_kernel(subject.device.type);
  if (kernel && !(op_.active_layers(subject.layers) & layer_bit(Layer::Dispatch))) [[likely]]
    return run(*kernel, slots);
  Stack stack = to_stack(slots);
  dynamic_->call_kernel(stack);
  return from_stack(stack);
}

Object LibraryOperator::call_boxed(Slots slots) const {
  Stack stack = to_stack(slots);
  int64_t size = 0;
  each_tensor(slots, [&](uint32_t, const Tensor& t) { size += work(t); });
  if (size > kWorthReleasing) {
    const ReleaseGil released;
    op_.call_boxed(stack);
  } else {
    op_.call_boxed(stack);
  }
  return from_stack(stack);
}

Stack LibraryOperator::to_stack(Slots slots) const {
  Stack stack;
  stack.reserve(arguments_.size() + 1);
  for (size_t i = 0; i < arguments_.size(); ++i) {
    stack.push_back(slots[i] ? to_value(name(), arguments_[i].type, slots[i])
                             : arguments_[i].default_value);
  }
  return stack;
}

Object LibraryOperator::from_stack(const Stack& results) const {
  if (results.size() == 1) return to_python(results[0]);
  if (results.empty()) return Object(none());
  Object tuple(PyTuple_New(static_cast<Py_ssize_t>(results.size())));
  for (size_t i = 0; i < results.size(); ++i)
    PyTuple_SET_ITEM(tuple.get(), static_cast<Py_ssize_t>(i), to_python(results[i]).release());
  return tuple;
}

// A boxed call gives every argument. A Python function may not know those with defaults.
void LibraryOperator::leave_out_defaults(PyObject** slots) const {
  const size_t positional = signature_.positional;
  const auto is_default = [&](size_t i) {
    PyObject* otherwise = default_object(i);
    if (!otherwise || (is_tensor(slots[i]) || arguments_[i].is_list)) return false;
    return checked(PyObject_RichCompareBool(slots[i], otherwise, Py_EQ)) != 0;
  };
  for (size_t i = positional; i < arguments_.size(); ++i) {
    if (is_default(i)) slots[i] = nullptr;
  }
  for (size_t i = positional; i > 0 && is_default(i - 1); --i) slots[i - 1] = nullptr;
}

void LibraryOperator::results_to_stack(const Object& result, Stack& stack) const {
  const size_t n = schema_.returns.size();
  stack.clear();
  for (size_t i = 0; i < n; ++i) {
    PyObject* item =
        n == 1 ? result.get() : PySequence_Fast_GET_ITEM(result.get(), static_cast<Py_ssize_t>(i));
    stack.push_back(to_value(name(), schema_.returns[i].type, item));
  }
}

// ---- calls that Python takes over

const LibraryOperator::Shown& LibraryOperator::shown() {
  if (!shown_.op) {
    const Object find = import_attribute("treadle._ops", "overload_shown");
    Object overload(call_python(PyObject_CallOneArg, find.get(), unicode(op_.info().name).get()));
    LibraryOperator& op = named(std::string(utf8(attribute(overload.get(), "_name").get())));
    shown_ = {&op, std::move(overload)};
  }
  return shown_;
}

Stack LibraryOperator::arguments_of(const LibraryOperator& other, const Stack& arguments) const {
  if (&other == this) return arguments;
  Stack own;
  for (size_t i = 0; i < arguments_.size(); ++i) {
    const auto& theirs = other.schema_.arguments;
    const auto same = std::find_if(theirs.begin(), theirs.end(), [&](const schema::Argument& a) {
      return a.name == schema_.arguments[i].name;
    });
    own.push_back(same == theirs.end() ? arguments_[i].default_value
                                       : arguments[static_cast<size_t>(same - theirs.begin())]);
  }
  return own;
}

LibraryOperator::PythonCall LibraryOperator::python_call(const Stack& arguments) const {
  check_internal(arguments.size() == arguments_.size(), "a call with too many arguments");
  const ExcludeLayers below(Layer::Dispatch);  // handlers must not see the reads here
  // Among several numbers one has to stay a tensor.
  const bool beside = std::any_of(arguments.begin(), arguments.end(), [](const Value& v) {
    return v.is<Value::Tensors>() ||
           (v.is<Tensor>() && !v.as<Tensor>().impl()->is_wrapped_number());
  });
  std::vector<Object> objects;
  std::vector<PyObject*> slots;
  for (const Value& v : arguments) {
    const bool number = beside && v.is<Tensor>() && v.as<Tensor>().impl()->is_wrapped_number();
    objects.push_back(number ? Object(wrap(element(name(), v.as<Tensor>()))) : to_python(v));
    slots.push_back(objects.back().get());
  }
  leave_out_defaults(slots.data());
  size_t count = positional();
  while (count > 0 && !slots[count - 1]) --count;
  PythonCall call{Object(PyTuple_New(static_cast<Py_ssize_t>(count))), Object(PyDict_New())};
  for (size_t i = 0; i < count; ++i)
    PyTuple_SET_ITEM(call.args.get(), static_cast<Py_ssize_t>(i), new_ref(objects[i].get()));
  for (size_t i = positional(); i < slots.size(); ++i) {
    if (slots[i]) checked(PyDict_SetItemString(call.kwargs.get(), params_[i].name, slots[i]));
  }
  return call;
}

Stack LibraryOperator::results_of(PyObject* result, const Stack& arguments, const char* who) const {
  const size_t n = schema_.returns.size();
  const auto wrong = [&](const auto& expected, const auto&... got) {
    fail<ErrorKind::Runtime>(OpName(name()), "expected ", who, " to return ", expected, ", got ",
                             got..., "\n  ", op_.info().schema);
  };
  size_t written = 0;
  const auto next_written = [&] {
    while (!arguments_[written].written) ++written;
    return arguments[written++];
  };
  const bool list = PyTuple_Check(result) || PyList_Check(result);
  const size_t count = list ? static_cast<size_t>(PySequence_Fast_GET_SIZE(result)) : 1;
  Stack results;
  for (size_t i = 0; i < n; ++i) {
    const schema::Type& type = schema_.returns[i].type;
    if (type.writes()) {
      results.push_back(next_written());
      continue;
    }
    if (n > 1 && !list) wrong(str("a tuple of ", n, " results"), type_text(result));
    if (n > 1 && count != n) wrong(str("a tuple of ", n, " results"), count);
    PyObject* item = n == 1 ? result : PySequence_Fast_GET_ITEM(result, static_cast<Py_ssize_t>(i));
    // Among several tensors some may be absent: gradients that were not requested.
    const bool absent = n > 1 && item == Py_None && type.is_tensor() && !type.list;
    if (!absent && !fits_result(type, item)) {
      if (n == 1)
        wrong(schema::print(type), type_text(item));
      else
        wrong(schema::print(type), type_text(item), " as result ", i);
    }
    results.push_back(to_value(name(), type, item));
  }
  return results;
}

// ---- kernels in Python

Object LibraryOperator::invoke(PyObject* function, Slots slots) const {
  const size_t n = arguments_.size(), positional = signature_.positional;
  SlotRoom room(n + 1);
  Held held;
  PyObject** values = room.data() + 1;  // the slot before them is the interpreter's
  const auto given = [&](size_t i) -> PyObject* {
    if (!slots[i]) return default_object(i);
    if (arguments_[i].plain) [[likely]]
      return slots[i];
    return held.keep(as_schema_says(name(), arguments_[i].type, slots[i]));
  };
  // Arguments omitted at the end are left to the function, which may have its own defaults.
  size_t count = positional;
  while (count > 0 && !slots[count - 1]) --count;
  for (size_t i = 0; i < count; ++i) values[i] = given(i);
  size_t named = 0;
  for (size_t i = positional; i < n; ++i) named += slots[i] != nullptr;
  Object names;
  if (named > 0) {
    names = Object(PyTuple_New(static_cast<Py_ssize_t>(named)));
    for (size_t i = positional, at = 0; i < n; ++i) {
      if (!slots[i]) continue;
      values[count + at] = given(i);
      PyTuple_SET_ITEM(names.get(), static_cast<Py_ssize_t>(at++),
                       unicode(schema_.arguments[i].name).release());
    }
  }
  Object result(call_python(PyObject_Vectorcall, function, values,
                            count | PY_VECTORCALL_ARGUMENTS_OFFSET, names.get()));
  if (!simple_result_ || !is_exact_tensor(result.get())) check_result(result.get());
  if (results_apart_) check_apart(result.get(), slots);
  return result;
}

void LibraryOperator::check_result(PyObject* result) const {
  const size_t n = schema_.returns.size();
  const auto wrong = [&](const auto&... parts) {
    fail<ErrorKind::Runtime>(OpName(name()), "expected the kernel to return ", parts..., "\n  ",
                             op_.info().schema);
  };
  if (n == 0) {
    if (result != Py_None) wrong("None, got ", type_text(result));
    return;
  }
  if (n == 1) {
    const schema::Type& type = schema_.returns[0].type;
    if (!fits_result(type, result)) wrong(schema::print(type), ", got ", type_text(result));
    return;
  }
  if (!PyTuple_Check(result) && !PyList_Check(result))
    wrong("a tuple of ", n, " results, got ", type_text(result));
  const auto count = static_cast<size_t>(PySequence_Fast_GET_SIZE(result));
  if (count != n) wrong("a tuple of ", n, " results, got ", count);
  for (size_t i = 0; i < n; ++i) {
    const schema::Type& type = schema_.returns[i].type;
    PyObject* item = PySequence_Fast_GET_ITEM(result, static_cast<Py_ssize_t>(i));
    if (!fits_result(type, item))
      wrong(schema::print(type), " as result ", i, ", got ", type_text(item));
  }
}

namespace {

template <class F>
void each_result(PyObject* result, F&& f) {
  if (is_tensor(result)) {
    f(unwrap(result));
  } else if (PyTuple_Check(result) || PyList_Check(result)) {
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(result); ++i)
      each_result(PySequence_Fast_GET_ITEM(result, i), f);
  }
}

}  // namespace

void LibraryOperator::check_apart(PyObject* result, Slots slots) const {
  std::vector<const Tensor*> results;
  each_result(result, [&](const Tensor& t) { results.push_back(&t); });
  const auto apart = [&](const Tensor& a, const Tensor& b, const char* what) {
    check<ErrorKind::Runtime>(a.storage().get() != b.storage().get(), OpName(name()),
                              "expected results in memory of their own, got one that shares "
                              "its memory with ",
                              what, "\nreturn a clone of it");
  };
  for (size_t i = 0; i < results.size(); ++i) {
    each_tensor(slots, [&](uint32_t, const Tensor& t) { apart(*results[i], t, "an argument"); });
    for (size_t k = 0; k < i; ++k) apart(*results[i], *results[k], "another");
  }
}

// ---- registration

void LibraryOperator::set_kernel(DeviceType device, PyObject* function, KernelOrigin place) {
  auto kernel = std::make_unique<PythonKernel>(PythonKernel{this, nullptr});
  dynamic_->set_kernel(device, {&run_python_kernel, kernel.get()}, place);
  kernel->function = new_ref(function);
  kernels_[static_cast<size_t>(device)] = kernel.release();
}
void LibraryOperator::clear_kernel(DeviceType device) {
  dynamic_->clear_kernel(device);
  take_back(kernels_[static_cast<size_t>(device)]);
}

void LibraryOperator::set_default_kernel(PyObject* function, bool composite, KernelOrigin place) {
  auto kernel = std::make_unique<PythonKernel>(PythonKernel{this, nullptr});
  dynamic_->set_default_kernel({&run_python_kernel, kernel.get()}, composite, place);
  kernel->function = new_ref(function);
  default_kernel_ = kernel.release();
  composite_ = composite;
}
void LibraryOperator::clear_default_kernel() {
  dynamic_->clear_default_kernel();
  take_back(default_kernel_);
}

void LibraryOperator::set_formula(PyObject* backward, PyObject* setup_context, bool replace,
                                  KernelOrigin place) {
  if (!has_formula_ || !replace)
    dynamic_->set_layer_kernel(Layer::Autograd, {&run_formula, this}, place);
  has_formula_ = true;
  backward_ = Object::borrow(backward);
  setup_context_ = Object::borrow(setup_context);
}

void LibraryOperator::set_layer_function(Layer layer, PyObject* function, KernelOrigin place) {
  const bool autograd = layer == Layer::Autograd;
  if (function == Py_None) {
    dynamic_->set_layer_kernel(layer, {&run_below, nullptr}, place);
    if (autograd) no_autograd_ = true;
    return;
  }
  auto kernel = std::make_unique<PythonKernel>(PythonKernel{this, nullptr});
  dynamic_->set_layer_kernel(layer, {&run_python_kernel, kernel.get()}, place);
  kernel->function = new_ref(function);
  (autograd ? autograd_ : autocast_) = kernel.release();
}

void LibraryOperator::clear_layer_function(Layer layer) {
  dynamic_->clear_layer_kernel(layer);
  if (layer == Layer::Autograd) {
    take_back(autograd_);
    no_autograd_ = has_formula_ = false;
    backward_ = setup_context_ = Object();
  } else {
    take_back(autocast_);
  }
}

const char* LibraryOperator::autograd_kind() const {
  if (has_formula_) return backward_.get() == Py_None ? "" : "formula";
  if (autograd_) return "function";
  if (no_autograd_) return "none";
  return composite_ && default_kernel_ ? "composite" : "";
}

void LibraryOperator::undefine() {
  dynamic_->undefine();
  shown_ = {};
  for (int d = 0; d < kMaxDeviceTypes; ++d) clear_kernel(static_cast<DeviceType>(d));
  clear_default_kernel();
  clear_layer_function(Layer::Autograd);
  clear_layer_function(Layer::Autocast);
}

// ---- overloads

void LibraryPacket::set_overloads(std::vector<LibraryOperator*> overloads) {
  overloads_ = std::move(overloads);
  signatures_.clear();
  for (const LibraryOperator* op : overloads_) signatures_.push_back(op->signature());
  delete[] function_.names;
  function_ = {name_.c_str(), signatures_.data(), static_cast<uint8_t>(signatures_.size())};
  function_.object = object_;
}

PyObject* LibraryPacket::call(PyObject* const* values, Py_ssize_t count, PyObject* names) {
  if (overloads_.size() == 1) return overloads_[0]->call(values, count, names);
  size_t most = 1;
  for (const Signature& s : signatures_) most = std::max<size_t>(most, s.count);
  SlotRoom room(most);
  const detail::Arguments arguments{nullptr, values, count, names};
  const int which = parse_call(function_, arguments, room.data());
  if (which == detail::kOverridden) return room.data()[0];
  return overloads_[static_cast<size_t>(which)]->call(values, count, names);
}

}  // namespace treadle::python
