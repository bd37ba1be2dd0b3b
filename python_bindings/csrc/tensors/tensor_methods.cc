// Methods that describe a tensor: size(), stride(), is_contiguous(). Copying, pickling and
// formatting are written in Python.
//
// SPDX-License-Identifier: Apache-2.0
#include "python_bindings/csrc/arguments/arg_parser.h"
#include "python_bindings/csrc/dispatch/overrides.h"
#include "python_bindings/csrc/tensors/methods.h"
#include "python_bindings/csrc/tensors/storage_object.h"

namespace treadle::python {
namespace {

const Param dim_params[] = {{"self", Kind::Tensor},
                            {"dim", Kind::Int, kNullable | kDefault, 0, "None"}};
const Signature dim_signature[] = {{dim_params, 2, 2, 0, false}};

PyObject* size(PyObject* self, PyObject* const* arguments, Py_ssize_t count, PyObject* names) {
  static Function function = {"size", dim_signature, 1};
  return guarded([&] {
    Call<2> call(function, self, arguments, count, names);
    if (call.overridden()) return call.result();
    const Tensor& t = call.tensor(0);
    return call.has(1) ? PyLong_FromLongLong(t.size(call.integer(1))) : wrap_size(t.sizes());
  });
}

PyObject* stride(PyObject* self, PyObject* const* arguments, Py_ssize_t count, PyObject* names) {
  static Function function = {"stride", dim_signature, 1};
  return guarded([&] {
    Call<2> call(function, self, arguments, count, names);
    if (call.overridden()) return call.result();
    const Tensor& t = call.tensor(0);
    check<ErrorKind::Runtime>(t.is_strided(), OpName("stride"),
                              "expected a strided tensor, got one of layout ", name_of(t.layout()));
    return call.has(1) ? PyLong_FromLongLong(t.stride(call.integer(1))) : wrap_ints(t.strides());
  });
}

// Strides of dense memory where the channels, dimension 1, vary fastest.
bool is_channels_last(const Tensor& t, int64_t rank) {
  if (t.dim() != rank) return false;
  int64_t expected = 1;
  const auto matches = [&](size_t d) {
    const bool ok = t.sizes()[d] == 1 || t.strides()[d] == expected;
    expected *= t.sizes()[d];
    return ok;
  };
  bool ok = matches(1);
  for (size_t d = static_cast<size_t>(rank) - 1; d >= 2; --d) ok = ok && matches(d);
  return ok && matches(0);
}

const Param contiguous_params[] = {
    {"self", Kind::Tensor},
    {"memory_format", Kind::MemoryFormat, kDefault | kKeyword, 0, "contiguous_format"}};
const Signature contiguous_signature[] = {{contiguous_params, 2, 1, 0, false}};
Function contiguous_function = {"is_contiguous", contiguous_signature, 1};

PyObject* is_contiguous(PyObject* self, PyObject* const* arguments, Py_ssize_t count,
                        PyObject* names) {
  return guarded([&]() -> PyObject* {
    Call<2> call(contiguous_function, self, arguments, count, names);
    if (call.overridden()) return call.result();
    const Tensor& t = call.tensor(0);
    if (!t.is_strided()) return to_bool(false);
    switch (call.memory_format(1, MemoryFormat::Contiguous)) {
      case MemoryFormat::ChannelsLast:
        return to_bool(is_channels_last(t, 4));
      case MemoryFormat::ChannelsLast3d:
        return to_bool(is_channels_last(t, 5));
      default:
        return to_bool(t.is_contiguous());
    }
  });
}

// Properties without arguments: one function each, made from a getter.
template <class F>
PyObject* ask(PyObject* self, PyObject*) {
  return guarded([&]() -> PyObject* { return F{}(unwrap(self)); });
}
template <MethodName name, class F>
PyMethodDef property_method(F, const char* doc) {
  return without_arguments<name, &ask<F>>(doc);
}

const auto dim = [](const Tensor& t) { return PyLong_FromLongLong(t.dim()); };
const auto numel = [](const Tensor& t) { return PyLong_FromLongLong(t.numel()); };
const auto storage_offset = [](const Tensor& t) { return PyLong_FromLongLong(t.storage_offset()); };
const auto element_size = [](const Tensor& t) { return PyLong_FromLongLong(t.element_size()); };
const auto data_ptr = [](const Tensor& t) {
  check<ErrorKind::Runtime>(t.is_strided(), OpName("data_ptr"),
                            "expected a strided tensor, got one of layout ", name_of(t.layout()));
  const bool none = t.is_meta() || t.numel() == 0 || !t.impl()->is_inside();
  if (none) return PyLong_FromVoidPtr(nullptr);
  t.storage()->set_told();
  return PyLong_FromVoidPtr(t.data());
};
const auto get_device = [](const Tensor& t) { return PyLong_FromLong(t.device().index); };
const auto is_floating_point = [](const Tensor& t) { return to_bool(t.is_floating_point()); };
const auto is_complex_dtype = [](const Tensor& t) { return to_bool(t.is_complex()); };
const auto is_signed_dtype = [](const Tensor& t) { return to_bool(is_signed(t.dtype())); };
const auto is_inference = [](const Tensor& t) { return to_bool(t.impl()->is_inference()); };
const auto never = [](const Tensor&) { return to_bool(false); };
const auto untyped_storage = [](const Tensor& t) {
  check<ErrorKind::NotImplemented>(t.is_strided(), OpName("untyped_storage"),
                                   "expected a strided tensor, got one of layout ",
                                   name_of(t.layout()));
  return wrap(t.storage());
};

PyObject* is_same_size(PyObject* self, PyObject* other) {
  return guarded([&] {
    check<ErrorKind::Type>(is_tensor(other), OpName("is_same_size"), "expected a tensor, got ",
                           type_text(other));
    return to_bool(unwrap(self).sizes() == unwrap(other).sizes());
  });
}
PyObject* is_set_to(PyObject* self, PyObject* other) {
  return guarded([&] {
    check<ErrorKind::Type>(is_tensor(other), OpName("is_set_to"), "expected a tensor, got ",
                           type_text(other));
    const Tensor &a = unwrap(self), &b = unwrap(other);
    return to_bool(a.storage() == b.storage() && a.storage_offset() == b.storage_offset() &&
                   a.sizes() == b.sizes() && a.strides() == b.strides());
  });
}

// Calls a function of the package written in Python.
PyObject* call_function(const char* module, const char* name,
                        std::initializer_list<PyObject*> arguments) {
  Object function = import_attribute(module, name);
  return Object(call_python(PyObject_Vectorcall, function.get(), arguments.begin(),
                            arguments.size(), nullptr))
      .release();
}

// Attributes that were set on the object travel with it.
PyObject* reduce_ex(PyObject* self, PyObject*) {
  return guarded([&] {
    Object reduced(call_function("treadle._rebuild", "reduce_tensor", {self}));
    PyObject* attributes = reinterpret_cast<TensorObject*>(self)->dict;
    if (!attributes || PyDict_GET_SIZE(attributes) == 0 || PyTuple_GET_SIZE(reduced.get()) != 2)
      return reduced.release();
    return Object(PyTuple_Pack(3, PyTuple_GET_ITEM(reduced.get(), 0),
                               PyTuple_GET_ITEM(reduced.get(), 1), attributes))
        .release();
  });
}
PyObject* deepcopy(PyObject* self, PyObject* memo) {
  return guarded([&] {
    return call_function("treadle._rebuild", "deepcopy_tensor", {self, memo});
  });
}

// A tensor of one number formats as the number does.
PyObject* format(PyObject* self, PyObject* spec) {
  return guarded([&]() -> PyObject* {
    check<ErrorKind::Type>(PyUnicode_Check(spec), OpName("__format__"), "expected a str, got ",
                           Py_TYPE(spec)->tp_name);
    const Tensor& t = unwrap(self);
    if (t.dim() == 0 && !t.is_meta()) {
      Object value(wrap(element("format", t)));
      return Object(PyObject_Format(value.get(), spec)).release();
    }
    Object text(PyObject_Str(self));
    return Object(PyObject_Format(text.get(), spec)).release();
  });
}

}  // namespace

void add_tensor_methods(std::vector<PyMethodDef>& methods) {
  methods.insert(
      methods.end(),
      {
          fast_method("size", &size,
                      "size($self, dim=None)\n--\n\nThe sizes, or the size of one dimension."),
          fast_method(
              "stride", &stride,
              "stride($self, dim=None)\n--\n\nSteps between neighbours in memory, in elements."),
          fast_method("is_contiguous", &is_contiguous,
                      "Whether the elements lie in order in memory."),
          property_method<"dim">(dim, "The number of dimensions."),
          property_method<"ndimension">(dim, "The number of dimensions."),
          property_method<"numel">(numel, "The number of elements."),
          property_method<"nelement">(numel, "The number of elements."),
          property_method<"storage_offset">(
              storage_offset, "Where the first element is in the storage, in elements."),
          property_method<"element_size">(element_size, "Bytes of one element."),
          property_method<"data_ptr">(data_ptr, "Address of the first element."),
          property_method<"get_device">(get_device, "The number of the device; -1 on the CPU."),
          property_method<"is_floating_point">(is_floating_point,
                                               "Whether the dtype is a floating one."),
          property_method<"is_complex">(is_complex_dtype, "Whether the dtype is a complex one."),
          property_method<"is_signed">(is_signed_dtype, "Whether the dtype has negative values."),
          property_method<"is_inference">(is_inference,
                                          "Whether the tensor was made in inference mode."),
          property_method<"is_pinned">(never, "Whether the memory is page-locked."),
          property_method<"untyped_storage">(untyped_storage,
                                             "The bytes under the tensor, which views share."),
          with_argument<"is_same_size", &is_same_size>(
              "Whether the other tensor has the same sizes."),
          with_argument<"is_set_to", &is_set_to>(
              "Whether the other tensor is the same part of the same storage."),
          with_argument<"__reduce_ex__", &reduce_ex>(nullptr),
          with_argument<"__deepcopy__", &deepcopy>(nullptr),
          with_argument<"__format__", &format>(nullptr),
      });
}

}  // namespace treadle::python
