// The path from a call of an operator that was defined at run time to its kernel, and the checks
// before and after it.
//
// SPDX-License-Identifier: Apache-2.0
#include "core/dispatch/dynamic_operator.h"

#include <algorithm>
#include <bit>
#include <deque>
#include <mutex>
#include <optional>
#include <vector>

#include "core/base/fork_safe_mutex.h"
#include "core/dispatch/dispatcher.h"

namespace treadle {
namespace {

using schema::BaseType;
using schema::Type;

std::atomic<BoxedFunction> default_autograd{nullptr};

// "plugin.py:4"; what is no file has no line.
std::string at_text(const char* file, int line) {
  return line ? str(file, ":", line) : std::string(file);
}
std::string at_text(const KernelOrigin& place) { return at_text(place.file, place.line); }

// Whether there is a kind of Value for the type.
bool is_carried(const Type& type) {
  switch (type.base) {
    case BaseType::Tensor:
    case BaseType::Scalar:
    case BaseType::Int:
    case BaseType::SymInt:
    case BaseType::Float:
    case BaseType::SymFloat:
    case BaseType::Bool:
    case BaseType::SymBool:
      return true;
    case BaseType::Str:
    case BaseType::ScalarType:
    case BaseType::Layout:
    case BaseType::Device:
    case BaseType::MemoryFormat:
    case BaseType::Generator:
      return !type.list;
    default:
      return false;
  }
}

bool fits_list(const Value& value, const Type& type) {
  size_t length = 0;
  switch (type.base) {
    case BaseType::Tensor: {
      if (!value.is<Value::Tensors>()) return false;
      const Value::Tensors& list = value.as<Value::Tensors>();
      if (!type.element_optional &&
          !std::all_of(list.begin(), list.end(), [](const Tensor& t) { return t.defined(); }))
        return false;
      length = list.size();
      break;
    }
    case BaseType::Int:
    case BaseType::SymInt:
      if (!value.is<Value::Ints>()) return false;
      length = value.as<Value::Ints>().size();
      break;
    case BaseType::Float:
    case BaseType::SymFloat:
      if (!value.is<Value::Doubles>()) return false;
      length = value.as<Value::Doubles>().size();
      break;
    case BaseType::Bool:
    case BaseType::SymBool:
      if (!value.is<Value::Bools>()) return false;
      length = value.as<Value::Bools>().size();
      break;
    case BaseType::Scalar:
      if (!value.is<Value::Scalars>()) return false;
      length = value.as<Value::Scalars>().size();
      break;
    default:
      return false;
  }
  return !type.list_size || length == static_cast<size_t>(*type.list_size);
}

std::string value_text(const Value& value) {
  const auto count = [&](const auto& list) { return str(" of length ", list.size()); };
  std::string text(value.type_name());
  if (value.is<Value::Ints>()) text += count(value.as<Value::Ints>());
  if (value.is<Value::Tensors>()) text += count(value.as<Value::Tensors>());
  return text;
}

template <class F>
void each_tensor(const Value& value, F&& f) {
  if (value.is<Tensor>()) {
    f(value.as<Tensor>());
  } else if (value.is<Value::Tensors>()) {
    for (const Tensor& t : value.as<Value::Tensors>()) f(t);
  }
}

LayerMask layers_in(const Stack& stack) {
  LayerMask mask = 0;
  for (const Value& value : stack) each_tensor(value, [&](const Tensor& t) { mask |= t.layers(); });
  return mask;
}

// How the written sets of a schema make an operator one that works in place or into `out`.
Form form_of(const schema::FunctionSchema& s) {
  for (const schema::Argument& a : s.arguments) {
    if (a.type.writes()) return a.kwarg_only ? Form::Out : Form::InPlace;
  }
  return Form::Functional;
}

}  // namespace

bool fits_type(const Value& value, const Type& type) {
  if (value.is_none()) return type.optional;
  if (type.list) return fits_list(value, type);
  switch (type.base) {
    case BaseType::Tensor:
      return value.is<Tensor>();
    case BaseType::Scalar:
      return value.is<Scalar>();
    case BaseType::Int:
    case BaseType::SymInt:
      return value.is<int64_t>();
    case BaseType::Float:
    case BaseType::SymFloat:
      return value.is<double>();
    case BaseType::Bool:
    case BaseType::SymBool:
      return value.is<bool>();
    case BaseType::Str:
      return value.is<std::string>();
    case BaseType::ScalarType:
      return value.is<ScalarType>();
    case BaseType::Layout:
      return value.is<Layout>();
    case BaseType::Device:
      return value.is<Device>();
    case BaseType::MemoryFormat:
      return value.is<MemoryFormat>();
    case BaseType::Generator:
      return value.is<Generator>();
    default:
      return false;
  }
}

// The operator's constant data, and the kernels that were ever set: calls may be in any of them.
struct DynamicOperator::Data {
  schema::FunctionSchema schema;
  std::string name, base_name, text, file;
  int line = 0;
  KernelOrigin place, default_place;
  std::array<KernelOrigin, kNumLayers> layer_places{};
  std::deque<std::string> files;  // of the places of kernels
  EntryInfo entry{};
  OperatorInfo info{};
  KernelTable table;
  ForkSafeMutex mutex;
  std::deque<BoxedKernel> kernels;
  std::array<std::optional<KernelOrigin>, kMaxDeviceTypes> device_places{};

  KernelOrigin kept(KernelOrigin place) {
    place.file = files.emplace_back(place.file ? place.file : "").c_str();
    place.name = "";
    return place;
  }
};

DynamicOperator::DynamicOperator(std::unique_ptr<Data> data)
    : Operator(&data->info, &data->table, &DynamicOperator::call, 0),
      data_(std::move(data)),
      schema_(data_->schema),
      place_(data_->place) {
  data_->entry.op = this;
  set_schema(schema_);
}

DynamicOperator& DynamicOperator::define(std::string_view text, KernelOrigin place) {
  auto data = std::make_unique<Data>();
  try {
    data->schema = schema::parse_schema(text);
  } catch (const schema::SchemaError& error) {
    fail<ErrorKind::Runtime>(OpName("define"),
                             "expected the schema of an operator, got one with an error:\n",
                             error.what());
  }
  const schema::FunctionSchema& s = data->schema;
  data->text = schema::print(s);
  check<ErrorKind::Runtime>(!s.name.ns.empty(), OpName("define"),
                            "expected a schema that names a namespace, as my_ns::", s.name.base,
                            ", got\n  ", data->text);
  const auto check_type = [&](const Type& type, std::string_view what) {
    check<ErrorKind::Runtime>(is_carried(type), OpName("define"),
                              "expected types that a call at run time can ", "carry, got ",
                              schema::print(type), " for ", what, " of\n  ", data->text);
  };
  for (const schema::Argument& a : s.arguments) check_type(a.type, "argument '" + a.name + "'");
  for (const schema::Return& r : s.returns) check_type(r.type, "a result");
  data->name = schema::print(s.name);
  data->base_name = s.name.ns + "::" + s.name.base;
  data->file = place.file ? place.file : "";
  data->line = place.line;
  data->place = {KernelSource::DeviceLayout, data->file.c_str(), data->line, ""};
  data->entry = {.op = nullptr,
                 .kind = OperatorKind::Returns,
                 .file = data->file.c_str(),
                 .line_place = &data->line};
  data->info = {.name = data->name.c_str(),
                .base_name = data->base_name.c_str(),
                .schema = data->text.c_str(),
                .entry = &data->entry,
                .form = form_of(s)};
  std::unique_ptr<DynamicOperator> made(new DynamicOperator(std::move(data)));
  if (const Operator* other = Dispatcher::instance().find(made->info().name)) {
    fail<ErrorKind::Runtime>(OpName("define"), "expected a new name of an operator, got ",
                             made->info().name, " at ", at_text(made->place_),
                             "\nit is defined already at ",
                             at_text(other->entry().file, other->entry().line()));
  }
  const KernelOrigin derived{KernelSource::Generated, made->place_.file, made->place_.line, ""};
  made->set_layer(Layer::Autograd, nullptr, entry_of(Layer::Autograd), derived);
  Dispatcher::instance().add_operator(*made);
  return *made.release();  // lives for ever: see undefine()
}

void DynamicOperator::undefine() {
  static auto* const mutex = new ForkSafeMutex;
  static auto* undefined = new std::vector<DynamicOperator*>;
  Dispatcher::instance().remove_operator(*this);
  const std::lock_guard lock(*mutex);
  undefined->push_back(this);
}

const DynamicOperator* DynamicOperator::of(const Operator& op) {
  return op.is_called_by(&DynamicOperator::call) ? static_cast<const DynamicOperator*>(&op)
                                                 : nullptr;
}
DynamicOperator* DynamicOperator::of(Operator& op) {
  return const_cast<DynamicOperator*>(of(static_cast<const Operator&>(op)));
}

// ---- kernels ------------------------------------------------------------------------------------

const BoxedKernel* DynamicOperator::keep(BoxedKernel kernel) {
  check<ErrorKind::Value>(kernel.function != nullptr, OpName(info().name),
                          "expected a kernel to register, got none");
  return &data_->kernels.emplace_back(kernel);
}

void DynamicOperator::set_kernel(DeviceType device, BoxedKernel kernel, KernelOrigin place) {
  const size_t d = static_cast<size_t>(device);
  const std::lock_guard lock(data_->mutex);
  check<ErrorKind::Runtime>(!data_->device_places[d], OpName(info().name),
                            "expected one kernel for the device ", name_of(device),
                            ", got a second at ", at_text(place), "\nthe first is at ",
                            data_->device_places[d] ? at_text(*data_->device_places[d]) : "");
  Dispatcher::instance().register_boxed(info().name, info().schema, device, Layout::Strided, {},
                                        kernel, place);
  data_->device_places[d] = data_->kept(place);
}

void DynamicOperator::clear_kernel(DeviceType device) {
  const std::lock_guard lock(data_->mutex);
  const size_t d = static_cast<size_t>(device);
  if (!data_->device_places[d]) return;
  data_->device_places[d].reset();
  if (Dispatcher::instance().find(info().name) == this)
    Dispatcher::instance().deregister(info().name, device, Layout::Strided);
}

void DynamicOperator::set_default_kernel(BoxedKernel kernel, bool composite, KernelOrigin place) {
  const std::lock_guard lock(data_->mutex);
  check<ErrorKind::Runtime>(!default_kernel_.load(), OpName(info().name),
                            "expected one kernel for all devices, got a second at ", at_text(place),
                            "\nthe first is at ", at_text(data_->default_place));
  data_->default_place = data_->kept(place);
  composite_.store(composite);
  default_kernel_.store(keep(kernel), std::memory_order_release);
}

void DynamicOperator::clear_default_kernel() { default_kernel_.store(nullptr); }

void DynamicOperator::set_layer_kernel(Layer layer, BoxedKernel kernel, KernelOrigin place) {
  const std::lock_guard lock(data_->mutex);
  auto& slot = layer_kernels_[static_cast<size_t>(layer)];
  check<ErrorKind::Runtime>(!slot.load(), OpName(info().name),
                            "expected one function for the layer ", name_of(layer),
                            ", got a second at ", at_text(place), "\nthe first is at ",
                            at_text(data_->layer_places[static_cast<size_t>(layer)]));
  data_->layer_places[static_cast<size_t>(layer)] = place = data_->kept(place);
  slot.store(keep(kernel), std::memory_order_release);
  // The entry of a layer stays there, and looks for the kernel at each call.
  if (layers() & layer_bit(layer)) return;
  set_layer(layer, nullptr, entry_of(layer), place);
}

void DynamicOperator::clear_layer_kernel(Layer layer) {
  layer_kernels_[static_cast<size_t>(layer)].store(nullptr);
}

void DynamicOperator::set_default_autograd(BoxedFunction function) {
  default_autograd.store(function);
}

// ---- calls --------------------------------------------------------------------------------------

Device DynamicOperator::device_of(const Stack& stack) {
  Device found = kCPU;
  for (const Value& value : stack) {
    each_tensor(value, [&](const Tensor& t) {
      if (found.is_cpu() && t.defined()) found = t.device();
    });
  }
  if (!found.is_cpu()) return found;
  // An operator that makes a tensor is told where.
  bool tensors = false;
  for (const Value& value : stack) each_tensor(value, [&](const Tensor&) { tensors = true; });
  for (const Value& value : stack) {
    if (!tensors && value.is<Device>()) return value.as<Device>();
  }
  return found;
}

std::vector<Tensor> DynamicOperator::written_tensors(const Stack& stack) const {
  std::vector<Tensor> written;
  for (size_t i = 0; i < schema_.arguments.size(); ++i) {
    if (!schema_.arguments[i].type.writes()) continue;
    each_tensor(stack[i], [&](const Tensor& t) {
      if (t.defined()) written.push_back(t);
    });
  }
  return written;
}

void DynamicOperator::check_arguments(const Stack& stack) const {
  const size_t n = schema_.arguments.size();
  check<ErrorKind::Runtime>(stack.size() == n, OpName(info().base_name), "expected ", n,
                            " arguments, got ", stack.size(), " for\n  ", info().schema);
  for (size_t i = 0; i < n; ++i) {
    const schema::Argument& a = schema_.arguments[i];
    if (fits_type(stack[i], a.type)) [[likely]]
      continue;
    fail<ErrorKind::Runtime>(OpName(info().base_name), "expected ", a.name, " to be ",
                             schema::print(a.type), ", got ", value_text(stack[i]));
  }
}

void DynamicOperator::check_results(const Stack& stack, const std::vector<Tensor>& written) const {
  const size_t n = schema_.returns.size();
  check<ErrorKind::Runtime>(stack.size() == n, OpName(info().base_name),
                            "expected the kernel to return ", n, n == 1 ? " result" : " results",
                            ", got ", stack.size(), "\n  ", info().schema);
  for (size_t i = 0; i < n; ++i) {
    const Type& type = schema_.returns[i].type;
    if (!fits_type(stack[i], type)) [[unlikely]] {
      fail<ErrorKind::Runtime>(OpName(info().base_name), "expected the kernel to return ",
                               schema::print(type), " as result ", i, ", got ",
                               value_text(stack[i]), "\n  ", info().schema);
    }
    if (!type.writes() || !stack[i].is<Tensor>()) continue;
    const bool known = std::any_of(written.begin(), written.end(), [&](const Tensor& t) {
      return t.is_same(stack[i].as<Tensor>());
    });
    check<ErrorKind::Runtime>(known, OpName(info().base_name),
                              "expected the kernel to return the tensor it was given to write, "
                              "got another one\n  ",
                              info().schema);
  }
}

namespace {

// The dtype by which the table is asked: of the first tensor.
ScalarType dtype_of(const Stack& stack) {
  std::optional<ScalarType> found;
  for (const Value& value : stack) {
    each_tensor(value, [&](const Tensor& t) {
      if (!found && t.defined()) found = t.dtype();
    });
  }
  return found.value_or(ScalarType::Float32);
}

const BoxedKernel* cell_of(const Operator& op, Device device, ScalarType dtype) {
  const KernelRow* row = op.table().row(device.type, Layout::Strided);
  return row && !is_stored(dtype) ? row->boxed[static_cast<size_t>(dtype)] : nullptr;
}

}  // namespace

bool DynamicOperator::is_composite(const Stack& stack) const {
  return composite_.load() && default_kernel_.load() &&
         !cell_of(*this, device_of(stack), dtype_of(stack));
}

void DynamicOperator::fail_without_kernel(Device device) const {
  std::string known;
  for (int d = 0; d < num_device_types(); ++d) {
    if (!table().row(static_cast<DeviceType>(d), Layout::Strided) ||
        !cell_of(*this, {static_cast<DeviceType>(d), -1}, ScalarType::Float32))
      continue;
    known += str(known.empty() ? "" : ", ", name_of(static_cast<DeviceType>(d)));
  }
  fail<ErrorKind::NotImplemented>(
      OpName(info().base_name), "expected a kernel for the device ", name_of(device.type),
      ", got none\nkernels exist for: ", known.empty() ? "no device" : known);
}

void DynamicOperator::call_kernel(Stack& stack) const {
  if (active_layers(layers_in(stack)) & layer_bit(Layer::Dispatch))
    (*layer_boxed(Layer::Dispatch))(*this, stack);
  else
    run_kernel(stack);
}

void DynamicOperator::run_kernel(Stack& stack) const {
  const Device device = device_of(stack);
  const ScalarType dtype = dtype_of(stack);
  const std::vector<Tensor> written = written_tensors(stack);
  if (const BoxedKernel* boxed = cell_of(*this, device, dtype)) {
    (*boxed)(*this, stack);
  } else if (const BoxedKernel* kernel = default_kernel_.load(std::memory_order_acquire)) {
    (*kernel)(*this, stack);
  } else if (const BoxedKernel* fallback = Dispatcher::instance().device_fallback(device.type)) {
    (*fallback)(*this, stack);
  } else {
    fail_without_kernel(device);
  }
  check_results(stack, written);
  for (const Tensor& t : written) t.impl()->bump_version();
}

void DynamicOperator::run_layer(const Operator& op, Layer layer, Stack& stack) {
  const auto& self = static_cast<const DynamicOperator&>(op);
  const auto l = static_cast<size_t>(layer);
  if (const BoxedKernel* kernel = self.layer_kernels_[l].load(std::memory_order_acquire)) {
    (*kernel)(op, stack);
    return;
  }
  const BoxedFunction otherwise = layer == Layer::Autograd ? default_autograd.load() : nullptr;
  if (otherwise && !self.is_composite(stack)) {
    otherwise(op, stack);
    return;
  }
  if (layer == Layer::Autograd) {
    self.call_kernel(stack);
    return;
  }
  const ExcludeLayers below(layer);
  self.call_boxed(stack);
}

void DynamicOperator::call(const Operator& op, Stack& stack) {
  const auto& self = static_cast<const DynamicOperator&>(op);
  self.check_arguments(stack);
  LayerMask tensors = layers_in(stack);
  // A function of the operator's own sees every call, also those that record nothing.
  if (self.layer_kernels_[static_cast<size_t>(Layer::Autograd)].load(std::memory_order_acquire))
    tensors |= layer_bit(Layer::Autograd);
  const LayerMask active = self.active_layers(tensors);
  if (!active) {
    self.run_kernel(stack);
    return;
  }
  (*self.layer_boxed(static_cast<Layer>(std::countr_zero(active))))(op, stack);
}

}  // namespace treadle
