// Kernels in Python for operators that were generated, for a backend's device. The forms of an
// entry share a table of kernels, so one boxed kernel stands in it, which looks for the function.
#include <map>

#include "aten/ops/copy_.h"
#include "aten/ops/resize_.h"
#include "core/dispatcher.h"
#include "python_bindings/csrc/library_operator.h"
#include "python_bindings/csrc/node_object.h"

namespace treadle::python {
namespace {

// The functions for one table and device, by the operator's full name. Under the interpreter lock.
using ByName = std::map<std::string, Object>;
std::map<std::pair<const KernelTable*, DeviceType>, ByName>& all_functions() {
  static auto* const all = new std::map<std::pair<const KernelTable*, DeviceType>, ByName>;
  return *all;
}

void call_function(Operator& op, const Object& function, Stack& stack) {
  LibraryOperator& library = LibraryOperator::of(op);
  library.with_objects(stack, [&](Slots slots) { return library.invoke(function.get(), slots); });
}

// Calls the functional form and copies its results to where they belong.
void call_functional(const Operator& op, Operator& functional, const Object& function,
                     Stack& stack) {
  const schema::FunctionSchema& wanted =
      LibraryOperator::of(Dispatcher::instance().at(op.info().name)).schema();
  std::vector<Tensor> written;
  Stack arguments;
  for (size_t i = 0; i < wanted.arguments.size(); ++i) {
    const schema::Argument& a = wanted.arguments[i];
    if (a.type.writes()) written.push_back(stack[i].as<Tensor>());
    if (!a.type.writes() || !a.kwarg_only) arguments.push_back(stack[i]);
  }
  call_function(functional, function, arguments);
  stack.clear();
  for (size_t i = 0; i < written.size() && i < arguments.size(); ++i) {
    const Tensor result = arguments[i].as<Tensor>();
    if (op.info().form == Form::Out && written[i].sizes() != result.sizes())
      aten::resize_(written[i], result.sizes());
    aten::copy_(written[i], result);
    stack.push_back(written[i]);
  }
}

void run_generated(const Operator& op, Stack& stack) {
  in_python([&] {
    const DeviceType device = DynamicOperator::device_of(stack).type;
    const ByName& functions = all_functions()[{&op.table(), device}];
    Dispatcher& dispatcher = Dispatcher::instance();
    if (const auto own = functions.find(op.info().name); own != functions.end()) {
      const Object function = own->second;
      call_function(dispatcher.at(op.info().name), function, stack);
      return;
    }
    const auto functional = functions.find(op.info().entry);
    check<ErrorKind::NotImplemented>(functional != functions.end(), op.info().name,
                                     ": expected a kernel for the device ", name_of(device),
                                     ", got one for another form of the operator only");
    const Object function = functional->second;
    call_functional(op, dispatcher.at(op.info().entry), function, stack);
  });
}

std::map<DeviceType, Object>& all_fallbacks() {
  static auto* const all = new std::map<DeviceType, Object>;
  return *all;
}

void run_fallback(const Operator& op, Stack& stack) {
  in_python([&] {
    const Object function = all_fallbacks()[DynamicOperator::device_of(stack).type];
    check<ErrorKind::Runtime>(static_cast<bool>(function), op.info().name,
                              ": expected a fallback that stays registered while it is called");
    const Object find = import_attribute("treadle._ops", "overload_named");
    const Object overload(PyObject_CallFunction(find.get(), "s", op.info().name));
    const Object partial = import_attribute("functools", "partial");
    const Object bound(
        PyObject_CallFunctionObjArgs(partial.get(), function.get(), overload.get(), nullptr));
    call_function(Dispatcher::instance().at(op.info().name), bound, stack);
  });
}

}  // namespace

void set_fallback(DeviceType device, PyObject* function, KernelPlace place) {
  Dispatcher::instance().register_device_fallback(device, &run_fallback, place);
  all_fallbacks()[device] = Object::borrow(function);
}

void clear_fallback(DeviceType device) {
  Dispatcher::instance().deregister_device_fallback(device);
  all_fallbacks().erase(device);
}

void set_generated_kernel(Operator& op, DeviceType device, PyObject* function, KernelPlace place) {
  const OperatorInfo& info = op.info();
  check<ErrorKind::Runtime>(
      op.has_table() && !info.data_free && info.kind != OperatorKind::Composite &&
          info.kind != OperatorKind::View,
      info.name,
      ": expected an operator with kernels of its own, got one made of others, which has none");
  ByName& functions = all_functions()[{&op.table(), device}];
  check<ErrorKind::Runtime>(!functions.contains(info.name), info.name,
                            ": expected one kernel for the device ", name_of(device),
                            ", got a second at ", place.file, ":", place.line);
  if (functions.empty()) {
    Dispatcher::instance().register_boxed(info.name, info.schema, device, Layout::Strided, {},
                                          &run_generated, place);
  }
  functions.emplace(info.name, Object::borrow(function));
}

void clear_generated_kernel(Operator& op, DeviceType device) {
  ByName& functions = all_functions()[{&op.table(), device}];
  if (functions.erase(op.info().name) == 0 || !functions.empty()) return;
  Dispatcher::instance().deregister(op.info().name, device, Layout::Strided);
}

}  // namespace treadle::python
