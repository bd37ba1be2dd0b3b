// Calls of tvm-ffi functions, from Python and as kernels of operators.
//
// SPDX-License-Identifier: Apache-2.0
#include "python_bindings/csrc/exchange/tvm_ffi.h"

#include <dlfcn.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <vector>

#include "aten/engine/overlap.h"
#include "core/dispatch/dispatcher.h"
#include "plugin/host/boundary.h"
#include "python_bindings/csrc/arguments/casters.h"
#include "python_bindings/csrc/arguments/convert.h"
#include "python_bindings/csrc/binding.h"
#include "python_bindings/csrc/exchange/tvm_ffi_arguments.h"
#include "python_bindings/csrc/library/defined_operator.h"
#include "python_bindings/csrc/module.h"
#include "python_bindings/csrc/tensors/tensor_object.h"

namespace py = pybind11;

namespace treadle::python {
namespace tvm_ffi {
namespace {

std::string_view text_of(const ByteArray& text) { return {text.data, text.size}; }

Any invoke(const Function& function, const Arguments& arguments) {
  Any result;
  const int status = function.call(nullptr, arguments.data(), arguments.size(), &result);
  if (status != 0) [[unlikely]]
    raise_error(function, status);
  return result;
}

void release(const Function& function, const Any& result) {
  if (result.type_index >= kObjects && function.release) function.release(result.as.pointer);
}

// A function of libtvm_ffi: of the one that the library is linked with, else of one that is loaded.
template <class F>
void find(void* library, const char* name, F& found) {
  void* symbol = dlsym(library, name);
  if (!symbol) symbol = dlsym(RTLD_DEFAULT, name);
  found = reinterpret_cast<F>(symbol);
}

void find_runtime(void* library, Function& f) {
  find(library, "TVMFFIErrorMoveFromRaised", f.move_error);
  find(library, "TVMFFIObjectDecRef", f.release);
  find(library, "TVMFFITensorToDLPackVersioned", f.to_dlpack);
  find(library, "TVMFFITensorFromDLPackVersioned", f.from_dlpack);
  find(library, "TVMFFIFunctionCall", f.call_object);
  int (*find_global)(const ByteArray* name, void** function) = nullptr;
  find(library, "TVMFFIFunctionGetGlobal", find_global);
  const std::string_view array = "ffi.Array";
  const ByteArray name{array.data(), array.size()};
  if (!find_global || !f.call_object || find_global(&name, &f.make_array) != 0)
    f.make_array = nullptr;
}

}  // namespace

// By the kind that the error names.
void raise_error(const Function& function, int status) {
  const OpName op(function.name);
  void* object = nullptr;
  if (function.move_error) function.move_error(&object);
  if (!object)
    fail<ErrorKind::Runtime>(op, "expected the kernel to return 0, got ", status,
                             ", without the text of an error");
  const auto* error = static_cast<const Error*>(object);
  const std::string kind(text_of(error->kind)), message(text_of(error->message));
  if (function.release) function.release(object);
  if (kind == "ValueError") fail<ErrorKind::Value>(op, message);
  if (kind == "TypeError") fail<ErrorKind::Type>(op, message);
  if (kind == "IndexError") fail<ErrorKind::Index>(op, message);
  if (kind == "NotImplementedError") fail<ErrorKind::NotImplemented>(op, message);
  fail<ErrorKind::Runtime>(op, message);
}

std::shared_ptr<const Function> load(const std::string& path, const std::string& name) {
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    const char* const why = dlerror();
    fail<ErrorKind::Runtime>(OpName("tvm_ffi"),
                             "expected a library that can be loaded, got: ", why ? why : path);
  }
  auto function = std::make_shared<Function>();
  function->name = name;
  function->call = reinterpret_cast<SafeCall>(dlsym(library, ("__tvm_ffi_" + name).c_str()));
  check<ErrorKind::Value>(function->call != nullptr, OpName("tvm_ffi"), "expected a function '",
                          name, "', the symbol __tvm_ffi_", name, ", in ", path, ", got none");
  find_runtime(library, *function);
  return function;  // the library stays loaded: calls may be in it
}

void call(const Function& function, ArrayRef<BorrowedValue> values) {
  Arguments arguments(function);
  for (const BorrowedValue& v : values) {
    const size_t n = v.count;
    switch (v.tag) {
      case BorrowedValue::kNone:
        arguments.add(Any());
        break;
      case BorrowedValue::kTensor:
        static_assert(sizeof(Tensor) == sizeof(TensorImpl*));
        arguments.add(reinterpret_cast<const Tensor&>(v.as.tensor));
        break;
      case BorrowedValue::kBool:
        arguments.add(any(v.as.integer != 0));
        break;
      case BorrowedValue::kInt:
        arguments.add(any(v.as.integer));
        break;
      case BorrowedValue::kFloat:
        arguments.add(any(v.as.number));
        break;
      case BorrowedValue::kText:
        arguments.add(arguments.text({v.as.text, n}));
        break;
      case BorrowedValue::kInts:
        arguments.add(arguments.list(IntList(v.as.integers, n)));
        break;
      case BorrowedValue::kFloats:
        arguments.add(arguments.list(DoubleList(v.as.numbers, n)));
        break;
      case BorrowedValue::kBools:
        arguments.add(arguments.list(ArrayRef<bool>(v.as.bools, n)));
        break;
      case BorrowedValue::kTensors:
        arguments.add(arguments.list(TensorList(reinterpret_cast<const Tensor*>(v.as.tensors), n)));
        break;
      case BorrowedValue::kScalarType:
        arguments.add(arguments.dtype(static_cast<ScalarType>(v.as.scalar_type)));
        break;
      case BorrowedValue::kDevice:
        arguments.add(arguments.device(
            {static_cast<DeviceType>(v.as.device.type), static_cast<int8_t>(v.as.device.index)}));
        break;
      default:
        fail<ErrorKind::Type>(OpName(function.name),
                              "expected arguments that are tensors, numbers, texts, dtypes, "
                              "devices, None or lists of these, which a tvm-ffi kernel can be "
                              "given, got another");
    }
  }
  release(function, invoke(function, arguments));
}

}  // namespace tvm_ffi

namespace {

using tvm_ffi::Function;

constexpr const char* kCapsule = "treadle.tvm_ffi.function";

const std::shared_ptr<const Function>& function_of(PyObject* capsule) {
  auto* const held = PyCapsule_GetPointer(capsule, kCapsule);
  if (!held) throw PythonError{};
  return *static_cast<const std::shared_ptr<const Function>*>(held);
}

// The value of an argument that is no tensor, or of an element of a list.
tvm_ffi::Any value_of(const Function& function, tvm_ffi::Arguments& arguments, PyObject* value) {
  if (value == Py_None) return {};
  if (is_tensor(value)) return arguments.tensor_object(unwrap(value));
  if (is_bool(value)) return tvm_ffi::any(to_boolean(value));
  if (is_int(value)) return tvm_ffi::any(to_int(function.name.c_str(), value));
  if (is_real(value)) return tvm_ffi::any(to_double(function.name.c_str(), value));
  if (PyUnicode_Check(value)) return arguments.text(utf8(value));
  if (PyList_Check(value) || PyTuple_Check(value)) {
    std::vector<tvm_ffi::Any> elements;
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(value); ++i)
      elements.push_back(value_of(function, arguments, PySequence_Fast_GET_ITEM(value, i)));
    return arguments.list(elements);
  }
  if (const auto dtype = as_dtype(value)) return arguments.dtype(*dtype);
  if (is_device(value)) return arguments.device(to_device(value));
  fail<ErrorKind::Type>(OpName(function.name),
                        "expected tensors, numbers, texts, dtypes, devices, None or lists of "
                        "these, got ",
                        type_text(value));
}

// The work that the argument stands for is the result: see kWorthReleasing.
int64_t add_object(const Function& function, tvm_ffi::Arguments& arguments, PyObject* value) {
  if (!is_tensor(value)) {
    arguments.add(value_of(function, arguments, value));
    return 0;
  }
  const Tensor& t = unwrap(value);
  arguments.add(t);
  return work(t);
}

// A result as a Python object; takes over its reference.
PyObject* object_of(const Function& function, const tvm_ffi::Any& result) {
  switch (result.type_index) {
    case tvm_ffi::kNone:
      return none();
    case tvm_ffi::kInt:
      return Object(PyLong_FromLongLong(result.as.integer)).release();
    case tvm_ffi::kBool:
      return to_bool(result.as.integer != 0);
    case tvm_ffi::kFloat:
      return Object(PyFloat_FromDouble(result.as.number)).release();
    default:
      break;
  }
  if (result.type_index == tvm_ffi::kTensor && function.to_dlpack) {
    DLManagedTensorVersioned* managed = nullptr;
    const int status = function.to_dlpack(result.as.pointer, &managed);
    tvm_ffi::release(function, result);
    if (status != 0) tvm_ffi::raise_error(function, status);
    return wrap(take_versioned(managed));
  }
  tvm_ffi::release(function, result);
  fail<ErrorKind::Type>(OpName(function.name),
                        "expected it to return None, a number or a tensor, got type number ",
                        int64_t{result.type_index});
}

// function(*args, out=None): `out` is a tensor, or a list of tensors, given after the others.
PyObject* call_function(PyObject* self, PyObject* const* values, Py_ssize_t count,
                        PyObject* names) {
  return guarded([&] {
    const Function& function = *function_of(self);
    tvm_ffi::Arguments arguments(function);
    std::vector<Tensor> written;  // a list may change while the call runs
    int64_t amount = 0;
    for (Py_ssize_t i = 0; i < count; ++i) amount += add_object(function, arguments, values[i]);
    const Py_ssize_t named_count = names ? PyTuple_GET_SIZE(names) : 0;
    for (Py_ssize_t i = 0; i < named_count; ++i) {
      PyObject* const name = PyTuple_GET_ITEM(names, i);
      check<ErrorKind::Type>(utf8(name) == "out", OpName(function.name),
                             "expected no argument by name but out, got ", utf8(name));
      PyObject* const out = values[count + i];
      const bool several = PyList_Check(out) || PyTuple_Check(out);
      const Py_ssize_t outputs = several ? PySequence_Fast_GET_SIZE(out) : 1;
      for (Py_ssize_t k = 0; k < outputs; ++k) {
        PyObject* const item = several ? PySequence_Fast_GET_ITEM(out, k) : out;
        amount += add_object(function, arguments, item);
        if (!is_tensor(item)) continue;
        const Tensor& t = written.emplace_back(unwrap(item));
        require_writable(function.name.c_str(), t);
      }
    }
    tvm_ffi::Any result;
    const auto invoke = [&] {
      return function.call(nullptr, arguments.data(), arguments.size(), &result);
    };
    const int status = amount > kWorthReleasing ? without_gil(invoke) : invoke();
    for (const Tensor& t : written) t.impl()->bump_version();
    if (status != 0) tvm_ffi::raise_error(function, status);
    return object_of(function, result);
  });
}

PyMethodDef call_method = {
    "tvm_ffi_function", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(&call_function)),
    METH_FASTCALL | METH_KEYWORDS,
    "function(*args, out=None)\n--\n\nCalls the function; `out` tensors come after the others."};

py::object make_function(const std::string& path, const std::string& name) {
  auto held = std::make_unique<std::shared_ptr<const Function>>(tvm_ffi::load(path, name));
  const Object capsule(PyCapsule_New(held.get(), kCapsule, [](PyObject* c) {
    delete static_cast<std::shared_ptr<const Function>*>(PyCapsule_GetPointer(c, kCapsule));
  }));
  held.release();
  return py::reinterpret_steal<py::object>(
      Object(PyCFunction_New(&call_method, capsule.get())).release());
}

// ---- kernels of operators

struct TvmFfiKernel {
  std::shared_ptr<const Function> function;
  std::string file, name;
};

void fill(void* context, const Operator&, ArrayRef<BorrowedValue> values) {
  tvm_ffi::call(*static_cast<const TvmFfiKernel*>(context)->function, values);
}

void fill_from_stack(void* context, const Operator& op, Stack& stack) {
  const plugin::BorrowedValues values(stack);
  static_assert(sizeof(treadle_value) == sizeof(BorrowedValue));
  fill(context, op, {reinterpret_cast<const BorrowedValue*>(values.data()), values.size()});
  stack.clear();
}

void set_kernel(const std::string& name, const std::string& device, const py::object& function,
                const py::list& dtypes, const std::string& kernel_name, const std::string& file,
                int line) {
  Operator& op = Dispatcher::instance().at(name);
  const OperatorInfo& info = op.info();
  const EntryInfo& entry = op.entry();
  check<ErrorKind::Runtime>(
      op.has_table() && entry.op == &op && !entry.data_free &&
          entry.kind != OperatorKind::Composite && entry.kind != OperatorKind::View &&
          entry.kind != OperatorKind::Returns,
      OpName(info.name), "expected an operator whose kernel fills its results, got another");
  std::vector<ScalarType> types;
  for (const py::handle dtype : dtypes) types.push_back(dtype.cast<ScalarType>());
  // Lives for ever: calls may be in it.
  auto* const kernel =
      new TvmFfiKernel{function_of(PyCFunction_GetSelf(function.ptr())), file, kernel_name};
  Dispatcher::instance().register_boxed(
      info.name, info.schema, device_type_of(device), Layout::Strided, types,
      {&fill_from_stack, kernel, &fill},
      {KernelSource::Exact, kernel->file.c_str(), line, kernel->name.c_str()});
}

void clear_kernel(const std::string& name, const std::string& device) {
  Dispatcher::instance().deregister(name, device_type_of(device), Layout::Strided);
}

}  // namespace

void init_tvm_ffi(PyObject* module) {
  py::module_ m = py::reinterpret_borrow<py::module_>(module);
  m.def("_tvm_ffi_function", &make_function);
  m.def("_tvm_ffi_set_kernel", &set_kernel);
  m.def("_tvm_ffi_clear_kernel", &clear_kernel);
}

}  // namespace treadle::python
