// The functions that make tensors from Python data, tensor(), as_tensor(), from_numpy() and so on,
// and the class's own constructor: Tensor(2, 3), Tensor([1, 2]).
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/engine/strides/view_shapes.h"
#include "autograd/alias.h"
#include "autograd/meta.h"
#include "python_bindings/csrc/arguments/arg_parser.h"
#include "python_bindings/csrc/binding.h"
#include "python_bindings/csrc/dispatch/dispatch_modes.h"
#include "python_bindings/csrc/exchange/dlpack.h"
#include "python_bindings/csrc/exchange/numpy_exchange.h"
#include "python_bindings/csrc/tensors/construct.h"
#include "python_bindings/csrc/tensors/methods.h"

namespace treadle::python {
namespace {

constexpr uint8_t kOptional = kNullable | kDefault;

const Param tensor_params[] = {
    {"data", Kind::Any},
    {"dtype", Kind::Dtype, kOptional | kKeyword, 0, "None"},
    {"device", Kind::Device, kOptional | kKeyword, 0, "None"},
    {"requires_grad", Kind::Bool, kDefault | kKeyword, 0, "False"},
    {"pin_memory", Kind::Bool, kDefault | kKeyword, 0, "False"},
};
const Signature tensor_signature[] = {{tensor_params, 5, 1, -1, true}};
Function tensor_function = {"tensor", tensor_signature, 1};

PyObject* tensor(PyObject*, PyObject* const* arguments, Py_ssize_t count, PyObject* names) {
  return guarded([&] {
    Call<5> call(tensor_function, nullptr, arguments, count, names);
    if (call.overridden()) return call.result();
    const Device device = call.device_of_new(2).value_or(
        is_tensor(call.object(0)) ? unwrap(call.object(0)).device() : kCPU);
    Tensor made = tensor_from_data(call.object(0), call.maybe_dtype(1), device);
    if (call.boolean(4)) {
      const Object unpinned(wrap(made));
      made = unwrap(
          Object(call_python(PyObject_CallMethod, unpinned.get(), "pin_memory", nullptr)).get());
    }
    return wrap(with_requires_grad(made, call.boolean(3)));
  });
}

const Param as_tensor_params[] = {
    {"data", Kind::Any},
    {"dtype", Kind::Dtype, kOptional, 0, "None"},
    {"device", Kind::Device, kOptional, 0, "None"},
};
const Signature as_tensor_signature[] = {{as_tensor_params, 3, 3, -1, true}};
Function as_tensor_function = {"as_tensor", as_tensor_signature, 1};

// Whether an object lends its memory: it is a buffer or a capsule, and no number or array.
bool lends_memory(PyObject* data) {
  if (PyCapsule_CheckExact(data)) return true;
  return !is_tensor(data) && !is_numpy_array(data) && !is_number(data) &&
         PyObject_CheckBuffer(data) != 0;
}

// A tensor over lent memory; a dtype says how its bytes are to be read.
Tensor over_lent_memory(PyObject* data, std::optional<ScalarType> dtype) {
  if (PyCapsule_CheckExact(data)) return tensor_from_dlpack(data);
  if (dtype) return tensor_from_buffer(data, *dtype, -1, 0);
  const Object view(PyMemoryView_FromObject(data));
  const Object numpy(PyImport_ImportModule("numpy"));
  const Object array(call_python(PyObject_CallMethod, numpy.get(), "asarray", "O", view.get()));
  return tensor_from_numpy(array.get(), true);
}

// Shares memory where it can.
Tensor share(PyObject* data, std::optional<ScalarType> dtype, std::optional<Device> device) {
  if (is_tensor(data)) return convert_to(unwrap(data), dtype, device);
  if (is_numpy_array(data)) return convert_to(tensor_from_numpy(data, true), dtype, device);
  return tensor_from_data(data, dtype, device.value_or(kCPU));
}

PyObject* as_tensor(PyObject*, PyObject* const* arguments, Py_ssize_t count, PyObject* names) {
  return guarded([&] {
    Call<3> call(as_tensor_function, nullptr, arguments, count, names);
    if (call.overridden()) return call.result();
    return wrap(share(call.object(0), call.maybe_dtype(1), call.device_of_new(2)));
  });
}

const Param asarray_params[] = {
    {"obj", Kind::Any},
    {"dtype", Kind::Dtype, kOptional | kKeyword, 0, "None"},
    {"device", Kind::Device, kOptional | kKeyword, 0, "None"},
    {"copy", Kind::Bool, kOptional | kKeyword, 0, "None"},
    {"requires_grad", Kind::Bool, kDefault | kKeyword, 0, "False"},
};
const Signature asarray_signature[] = {{asarray_params, 5, 1, -1, true}};
Function asarray_function = {"asarray", asarray_signature, 1};

PyObject* asarray(PyObject*, PyObject* const* arguments, Py_ssize_t count, PyObject* names) {
  return guarded([&] {
    Call<5> call(asarray_function, nullptr, arguments, count, names);
    if (call.overridden()) return call.result();
    PyObject* object = call.object(0);
    const auto dtype = call.maybe_dtype(1);
    const auto device = call.device_of_new(2);
    const auto copy = call.maybe_boolean(3);
    if (lends_memory(object)) {
      const Tensor lent = over_lent_memory(object, dtype);
      const Tensor taken = convert_to(lent, dtype, device, copy.value_or(false));
      check<ErrorKind::Value>(copy.value_or(true) || taken.is_same(lent), OpName("asarray"),
                              "expected data that needs no copy, as copy=False asks");
      return wrap(call.boolean(4) ? with_requires_grad(taken, true) : taken);
    }
    const bool shareable = is_tensor(object) || is_numpy_array(object);
    const Tensor result = copy.value_or(false)
                              ? tensor_from_data(object, dtype, device.value_or(kCPU))
                              : share(object, dtype, device);
    if (copy && !*copy) {
      const bool shared =
          shareable &&
          result.dtype() ==
              (is_tensor(object) ? unwrap(object) : tensor_from_numpy(object, false)).dtype();
      check<ErrorKind::Value>(shared, OpName("asarray"),
                              "expected data that needs no copy, as copy=False asks");
    }
    return wrap(call.boolean(4) ? with_requires_grad(result, true) : result);
  });
}

PyObject* from_numpy(PyObject*, PyObject* array) {
  return guarded([&] {
    if (!is_numpy_array(array))
      fail<ErrorKind::Type>(OpName("from_numpy"), "expected a NumPy array, got ", type_text(array));
    return wrap(tensor_from_numpy(array, true));
  });
}

const Param frombuffer_params[] = {
    {"buffer", Kind::Any},
    {"dtype", Kind::Dtype, kKeyword},
    {"count", Kind::Int, kDefault | kKeyword, 0, "-1"},
    {"offset", Kind::Int, kDefault | kKeyword, 0, "0"},
    {"requires_grad", Kind::Bool, kDefault | kKeyword, 0, "False"},
};
const Signature frombuffer_signature[] = {{frombuffer_params, 5, 1, -1, true}};
Function frombuffer_function = {"frombuffer", frombuffer_signature, 1};

PyObject* frombuffer(PyObject*, PyObject* const* arguments, Py_ssize_t count, PyObject* names) {
  return guarded([&] {
    Call<5> call(frombuffer_function, nullptr, arguments, count, names);
    if (call.overridden()) return call.result();
    Tensor t =
        tensor_from_buffer(call.object(0), call.dtype(1), call.integer(2, -1), call.integer(3, 0));
    return wrap(with_requires_grad(std::move(t), call.boolean(4)));
  });
}

PyObject* from_dlpack(PyObject*, PyObject* source) {
  return guarded([&] { return wrap(tensor_from_dlpack(source)); });
}

const Param subclass_params[] = {
    {"cls", Kind::Any},
    {"data", Kind::Tensor},
    {"requires_grad", Kind::Bool, kDefault, 0, "False"},
};
const Signature subclass_signature[] = {{subclass_params, 3, 3, -1, true}};
Function subclass_function = {"_make_subclass", subclass_signature, 1};

// A tensor that has no object yet, over the same elements.
Tensor fresh_alias(const Tensor& t) { return autograd::alias_without_history(t); }

PyTypeObject* subclass_of_tensor(const char* op, PyObject* cls) {
  const bool fits =
      PyType_Check(cls) && PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(cls), tensor_type);
  check<ErrorKind::Type>(
      fits, OpName(op), "expected cls to be a subclass of Tensor, got ",
      PyType_Check(cls) ? reinterpret_cast<PyTypeObject*>(cls)->tp_name : type_text(cls));
  return reinterpret_cast<PyTypeObject*>(cls);
}

// The alias of a tensor whose class takes over operators is already of that class.
PyObject* as_object_of(const char* op, PyTypeObject* type, const Tensor& t) {
  if (!t.impl()->python().object()) return wrap_as(type, t);
  Object object(wrap(t));
  check<ErrorKind::Runtime>(PyType_IsSubtype(Py_TYPE(object.get()), type), OpName(op),
                            "expected data that can be a ", type->tp_name,
                            ", got one whose class answers for it with a ",
                            Py_TYPE(object.get())->tp_name);
  return object.release();
}

PyObject* make_subclass(PyObject*, PyObject* const* arguments, Py_ssize_t count, PyObject* names) {
  return guarded([&] {
    Call<3> call(subclass_function, nullptr, arguments, count, names);
    PyTypeObject* type = subclass_of_tensor("_make_subclass", call.object(0));
    const Tensor data = fresh_alias(call.tensor(1));
    if (call.boolean(2)) autograd::set_requires_grad(data, true);
    return as_object_of("_make_subclass", type, data);
  });
}

const Param wrapper_params[] = {
    {"cls", Kind::Any},
    {"size", Kind::IntList},
    {"strides", Kind::IntList, kOptional | kKeyword, 0, "None"},
    {"storage_offset", Kind::Int, kOptional | kKeyword, 0, "None"},
    {"memory_format", Kind::MemoryFormat, kOptional | kKeyword, 0, "None"},
    {"dtype", Kind::Dtype, kOptional | kKeyword, 0, "None"},
    {"layout", Kind::Any, kOptional | kKeyword, 0, "strided"},
    {"device", Kind::Device, kOptional | kKeyword, 0, "None"},
    {"pin_memory", Kind::Bool, kDefault | kKeyword, 0, "False"},
    {"requires_grad", Kind::Bool, kDefault | kKeyword, 0, "False"},
    {"dispatch_sizes_strides_policy", Kind::Str, kOptional | kKeyword, 0, "None"},
    {"dispatch_device", Kind::Bool, kDefault | kKeyword, 0, "False"},
    {"dispatch_layout", Kind::Bool, kDefault | kKeyword, 0, "False"},
    {"_extra_dispatch_keys", Kind::Any, kOptional | kKeyword, 0, "None"},
    {"storage_size", Kind::Int, kOptional | kKeyword, 0, "None"},
};
const Signature wrapper_signature[] = {{wrapper_params, 15, 2, -1, true}};
Function wrapper_function = {"_make_wrapper_subclass", wrapper_signature, 1};

// Arguments with a request that a tensor without memory cannot satisfy here.
void refuse_of_wrapper(const char* op, const Call<15>& call) {
  PyObject* layout = call.object(6);
  const bool strided =
      !call.has(6) || (Py_IS_TYPE(layout, layout_type) && call.layout(6) == Layout::Strided);
  check<ErrorKind::NotImplemented>(
      strided, OpName(op),
      "expected layout = strided, as sparse tensors are no tensors of one memory, got ",
      strided ? "" : utf8(Object(PyObject_Str(layout)).get()));
  check<ErrorKind::Runtime>(!call.boolean(8), OpName(op),
                            "expected pin_memory = False, as there is no memory, got True");
  check<ErrorKind::NotImplemented>(
      !call.has(10), OpName(op),
      "expected dispatch_sizes_strides_policy = None, as sizes and strides are those that are "
      "given here, got ",
      call.has(10) ? utf8(call.object(10)) : "");
  check<ErrorKind::NotImplemented>(
      !call.boolean(11) && !call.boolean(12), OpName(op), "expected ",
      call.boolean(11) ? "dispatch_device" : "dispatch_layout",
      " = False, as device and layout are those that are given here, got True");
  check<ErrorKind::NotImplemented>(!call.has(13), OpName(op),
                                   "expected _extra_dispatch_keys = None, as layers of a tensor "
                                   "follow from what it is, got ",
                                   call.has(13) ? type_text(call.object(13)) : "");
}

DimVector strides_of_wrapper(const char* op, const Call<15>& call, const DimVector& sizes) {
  if (!call.has(2)) {
    const MemoryFormat format = call.maybe_memory_format(4).value_or(MemoryFormat::Contiguous);
    return format == MemoryFormat::Contiguous || format == MemoryFormat::Preserve
               ? contiguous_strides(sizes)
               : shape::strides_in_format(op, sizes, format);
  }
  const DimVector strides = call.ints(2);
  check<ErrorKind::Value>(!call.has(4), OpName(op), "expected strides or memory_format, got both");
  check<ErrorKind::Runtime>(strides.size() == sizes.size(), OpName(op),
                            "expected as many strides as sizes, got size = ", IntList(sizes),
                            " and strides = ", IntList(strides));
  for (const int64_t stride : strides) {
    check<ErrorKind::Runtime>(stride >= 0, OpName(op),
                              "expected strides >= 0, got strides = ", IntList(strides));
  }
  return strides;
}

// The number of bytes from the start of a storage to the end of a geometry.
int64_t bytes_reached(const char* op, IntList sizes, IntList strides, int64_t offset,
                      int64_t item) {
  int64_t last = offset, bytes = 0;
  bool fits = true;
  if (checked_numel(sizes, item) == 0) return 0;
  for (size_t d = 0; d < sizes.size(); ++d) {
    int64_t span;
    fits = fits && !__builtin_mul_overflow(sizes[d] - 1, strides[d], &span) &&
           !__builtin_add_overflow(last, span, &last);
  }
  fits = fits && !__builtin_add_overflow(last, int64_t{1}, &last) &&
         !__builtin_mul_overflow(last, item, &bytes);
  check<ErrorKind::Runtime>(fits, OpName(op),
                            "expected a geometry whose bytes can be counted in 63 bits, got "
                            "size = ",
                            sizes, ", strides = ", strides, ", storage_offset = ", offset);
  return bytes;
}

PyObject* make_wrapper_subclass(PyObject*, PyObject* const* arguments, Py_ssize_t count,
                                PyObject* names) {
  static constexpr const char* op = "_make_wrapper_subclass";
  return guarded(
      [&] {
        Call<15> call(wrapper_function, nullptr, arguments, count, names);
        if (call.overridden()) return call.result();
        PyTypeObject* type = subclass_of_tensor(op, call.object(0));
        check<ErrorKind::Type>(
            class_dispatches(type), OpName(op),
            "expected a class with __torch_dispatch__, which answers for its tensors, got ",
            type->tp_name);
        refuse_of_wrapper(op, call);
        const DimVector sizes = call.ints(1);
        const ScalarType dtype = call.maybe_dtype(5).value_or(default_dtype());
        const Device device = call.device_of_new(7).value_or(kCPU);
        const int64_t item = item_size(dtype);
        checked_numel(sizes, item);
        const DimVector strides = strides_of_wrapper(op, call, sizes);
        const int64_t offset = call.maybe_integer(3).value_or(0);
        check<ErrorKind::Runtime>(offset >= 0, OpName(op), "expected storage_offset >= 0, got ",
                                  offset);
        const int64_t bytes =
            call.maybe_integer(14).value_or(bytes_reached(op, sizes, strides, offset, item));
        check<ErrorKind::Runtime>(bytes >= 0, OpName(op), "expected storage_size >= 0, got ",
                                  bytes);
        Storage storage = device.is_meta()
                              ? make_intrusive<StorageImpl>(static_cast<size_t>(bytes), device)
                              : StorageImpl::without_memory(static_cast<size_t>(bytes), device);
        const Tensor made(
            make_intrusive<TensorImpl>(std::move(storage), dtype, sizes, strides, offset));
        if (call.boolean(9)) autograd::set_requires_grad(made, true);
        return wrap_as(type, made);
      },
      op);
}

const Param new_tensor_params[] = {
    {"self", Kind::Tensor},
    {"data", Kind::Any},
    {"dtype", Kind::Dtype, kOptional | kKeyword, 0, "None"},
    {"device", Kind::Device, kOptional | kKeyword, 0, "None"},
    {"requires_grad", Kind::Bool, kDefault | kKeyword, 0, "False"},
};
const Signature new_tensor_signature[] = {{new_tensor_params, 5, 2, 0, false}};
Function new_tensor_function = {"new_tensor", new_tensor_signature, 1};

PyObject* new_tensor(PyObject* self, PyObject* const* arguments, Py_ssize_t count,
                     PyObject* names) {
  return guarded([&] {
    Call<5> call(new_tensor_function, self, arguments, count, names);
    if (call.overridden()) return call.result();
    const Tensor& like = call.tensor(0);
    Tensor t = tensor_from_data(call.object(1), call.maybe_dtype(2).value_or(like.dtype()),
                                call.maybe_device(3).value_or(like.device()));
    return wrap(with_requires_grad(std::move(t), call.boolean(4)));
  });
}

// Tensor(), Tensor(sizes...), Tensor(data), in `dtype`.
Tensor construct(PyObject* args, ScalarType dtype, Device device) {
  const Py_ssize_t n = PyTuple_GET_SIZE(args);
  if (n == 0) return run([&] { return empty_tensor({0}, dtype, device); }, device);
  PyObject* first = PyTuple_GET_ITEM(args, 0);
  if (n == 1 && is_tensor(first)) return fresh_alias(convert_to(unwrap(first), dtype, device));
  const bool sizes = Py_IS_TYPE(first, size_type);
  if (n == 1 && !sizes && !is_int(first)) return tensor_from_data(first, dtype, device);
  DimVector shape;
  if (sizes) {
    detail::read_ints("Tensor", first, 0, shape);
  } else {
    for (Py_ssize_t i = 0; i < n; ++i) shape.push_back(to_int("Tensor", PyTuple_GET_ITEM(args, i)));
  }
  return run([&] { return empty_tensor(shape, dtype, device); }, device);
}

PyObject* new_like(PyObject* self, PyObject* args, PyObject* kwargs) {
  return guarded([&] {
    static const char* names[] = {"size", nullptr};
    const Tensor& like = unwrap(self);
    if (!kwargs || PyDict_GET_SIZE(kwargs) == 0)
      return wrap(construct(args, like.dtype(), like.device()));
    PyObject* size = nullptr;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|$O:new", const_cast<char**>(names), &size))
      throw PythonError{};
    DimVector shape;
    detail::read_ints("new", size, 0, shape);
    return wrap(
        run([&] { return empty_tensor(shape, like.dtype(), like.device()); }, like.device()));
  });
}

}  // namespace

PyObject* new_tensor_object(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  return guarded([&] {
    Device device = kCPU;
    if (kwargs && PyDict_GET_SIZE(kwargs) && type == tensor_type) {
      PyObject* given = PyDict_GetItemString(kwargs, "device");
      check<ErrorKind::Type>(
          given && PyDict_GET_SIZE(kwargs) == 1 && is_device(given), OpName("Tensor"),
          "expected no keyword arguments but device; use treadle.tensor(data, dtype=...)");
      device = to_device(given);
    }
    // A tensor is not converted. Data of other types may be.
    const bool from_tensor = PyTuple_GET_SIZE(args) == 1 && is_tensor(PyTuple_GET_ITEM(args, 0));
    Tensor t = from_tensor ? fresh_alias(unwrap(PyTuple_GET_ITEM(args, 0)))
                           : construct(args, default_dtype(), device);
    return type == tensor_type ? wrap(std::move(t)) : wrap_as(type, std::move(t));
  });
}

void add_construct_functions(std::vector<PyMethodDef>& functions) {
  functions.insert(
      functions.end(),
      {
          fast_method("tensor", &tensor,
                      "tensor(data, *, dtype=None, device=None, requires_grad=False, "
                      "pin_memory=False)\n--\n\nA new tensor with a copy of "
                      "`data`: a number, nested lists of numbers, a NumPy array or a tensor."),
          fast_method("as_tensor", &as_tensor,
                      "as_tensor(data, dtype=None, device=None)\n--\n\nAs tensor(), but sharing "
                      "the memory of an array or a tensor where "
                      "dtype and device allow."),
          fast_method("asarray", &asarray,
                      "asarray(obj, *, dtype=None, device=None, copy=None, "
                      "requires_grad=False)\n--\n\nA tensor from any data; shares "
                      "memory unless `copy`."),
          {"from_numpy", from_numpy, METH_O,
           "from_numpy(ndarray)\n--\n\nA tensor over the memory of a NumPy array."},
          fast_method("frombuffer", &frombuffer,
                      "frombuffer(buffer, *, dtype, count=-1, offset=0, "
                      "requires_grad=False)\n--\n\nA tensor of one dimension over the "
                      "memory of an object with the buffer protocol."),
          {"from_dlpack", from_dlpack, METH_O,
           "from_dlpack(ext_tensor)\n--\n\nA tensor over the memory of another library's, through "
           "DLPack."},
      });
}

void add_construct_methods(std::vector<PyMethodDef>& methods) {
  methods.insert(methods.end(),
                 {
                     fast_method("_make_subclass", &make_subclass,
                                 "_make_subclass(cls, data, requires_grad=False)\n--\n\nAn object "
                                 "of a subclass over the elements of `data`.",
                                 METH_STATIC),
                     fast_method("_make_wrapper_subclass", &make_wrapper_subclass,
                                 "_make_wrapper_subclass(cls, size, *, strides=None, "
                                 "storage_offset=None, memory_format=None, dtype=None, "
                                 "layout=strided, device=None, pin_memory=False, "
                                 "requires_grad=False, dispatch_sizes_strides_policy=None, "
                                 "dispatch_device=False, dispatch_layout=False, "
                                 "_extra_dispatch_keys=None, storage_size=None)\n--\n\nA tensor "
                                 "of a class with __torch_dispatch__ that has a geometry and no "
                                 "memory: the class answers for it.",
                                 METH_STATIC),
                     fast_method("new_tensor", &new_tensor,
                                 "new_tensor($self, data, *, dtype=None, device=None, "
                                 "requires_grad=False)\n--\n\nA new tensor with a copy of "
                                 "`data`, by default of this tensor's dtype and device."),
                     {"new", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(&new_like)),
                      METH_VARARGS | METH_KEYWORDS,
                      "A new tensor of this dtype and device, from sizes or data."},
                 });
}

}  // namespace treadle::python
