// Methods that give a tensor's values in another form: to(), float(), item(), tolist(), numpy(),
// DLPack.
//
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>

#include "aten/engine/named_errors.h"
#include "aten/engine/resolve.h"
#include "aten/ops/detach.h"
#include "aten/ops/to.h"
#include "python_bindings/csrc/arguments/arg_parser.h"
#include "python_bindings/csrc/binding.h"
#include "python_bindings/csrc/dispatch/overrides.h"
#include "python_bindings/csrc/exchange/dlpack.h"
#include "python_bindings/csrc/exchange/numpy_exchange.h"
#include "python_bindings/csrc/package_name.h"
#include "python_bindings/csrc/tensors/construct.h"
#include "python_bindings/csrc/tensors/methods.h"

namespace treadle::python {
namespace {

constexpr uint8_t kOptional = kNullable | kDefault;

// ---- to ----

const Param to_device_params[] = {
    {"self", Kind::Tensor},
    {"device", Kind::Device, kOptional, 0, "None"},
    {"dtype", Kind::Dtype, kOptional, 0, "None"},
    {"non_blocking", Kind::Bool, kDefault, 0, "False"},
    {"copy", Kind::Bool, kDefault, 0, "False"},
    {"memory_format", Kind::MemoryFormat, kOptional | kKeyword, 0, "None"},
};
const Param to_dtype_params[] = {
    {"self", Kind::Tensor},
    {"dtype", Kind::Dtype},
    {"non_blocking", Kind::Bool, kDefault, 0, "False"},
    {"copy", Kind::Bool, kDefault, 0, "False"},
    {"memory_format", Kind::MemoryFormat, kOptional | kKeyword, 0, "None"},
};
const Param to_other_params[] = {
    {"self", Kind::Tensor},
    {"other", Kind::Tensor},
    {"non_blocking", Kind::Bool, kDefault, 0, "False"},
    {"copy", Kind::Bool, kDefault, 0, "False"},
    {"memory_format", Kind::MemoryFormat, kOptional | kKeyword, 0, "None"},
};
const Signature to_signatures[] = {{to_device_params, 6, 5, 0, false},
                                   {to_dtype_params, 5, 4, 0, false},
                                   {to_other_params, 5, 4, 0, false}};
Function to_function = {"to", to_signatures, 3};

PyObject* to(PyObject* self, PyObject* const* arguments, Py_ssize_t count, PyObject* names) {
  return guarded(
      [&] {
        Call<6> call(to_function, self, arguments, count, names);
        if (call.overridden()) return call.result();
        const Tensor& t = call.tensor(0);
        std::optional<Device> device;
        std::optional<ScalarType> dtype;
        size_t rest = 2;
        if (call.overload() == 0) {
          device = call.maybe_device(1);
          dtype = call.maybe_dtype(2);
          rest = 3;
        } else if (call.overload() == 1) {
          dtype = call.dtype(1);
        } else {
          device = call.tensor(1).device();
          dtype = call.tensor(1).dtype();
        }
        const bool non_blocking = call.boolean(rest), copy = call.boolean(rest + 1);
        const auto format = call.maybe_memory_format(rest + 2);
        if (!copy && !format && dtype.value_or(t.dtype()) == t.dtype() &&
            device.value_or(t.device()) == t.device())
          return wrap(t);
        return wrap(run(
            [&] {
              return aten::to(t, dtype, std::nullopt, device, std::nullopt, non_blocking, copy,
                              format);
            },
            t, device));
      },
      "to");
}

const Param format_params[] = {
    {"self", Kind::Tensor},
    {"memory_format", Kind::MemoryFormat, kOptional | kKeyword, 0, "None"},
};
const Signature format_signature[] = {{format_params, 2, 1, 0, false}};

Tensor converted(const Tensor& t, std::optional<ScalarType> dtype, std::optional<Device> device,
                 std::optional<MemoryFormat> format, bool non_blocking = false) {
  if (!format && !non_blocking) return convert_to(t, dtype, device);
  return aten::to(t, dtype, std::nullopt, device, std::nullopt, non_blocking, false, format);
}

// x.float(), x.long(), ...: one function for each dtype.
template <MethodName name, ScalarType dtype>
PyObject* as_dtype_method(PyObject* self, PyObject* const* arguments, Py_ssize_t count,
                          PyObject* names) {
  static Function function = {name.text, format_signature, 1};
  return guarded(
      [&] {
        Call<2> call(function, self, arguments, count, names);
        if (call.overridden()) return call.result();
        return wrap(converted(call.tensor(0), dtype, std::nullopt, call.maybe_memory_format(1)));
      },
      name.text);
}
template <MethodName name, ScalarType dtype>
PyMethodDef dtype_method(const char* doc) {
  return fast_method(name.text, &as_dtype_method<name, dtype>, doc);
}

PyObject* cpu(PyObject* self, PyObject* const* arguments, Py_ssize_t count, PyObject* names) {
  static Function function = {"cpu", format_signature, 1};
  return guarded(
      [&] {
        Call<2> call(function, self, arguments, count, names);
        if (call.overridden()) return call.result();
        return wrap(converted(call.tensor(0), std::nullopt, kCPU, call.maybe_memory_format(1)));
      },
      "cpu");
}

const Param cuda_params[] = {
    {"self", Kind::Tensor},
    {"device", Kind::Device, kOptional, 0, "None"},
    {"non_blocking", Kind::Bool, kDefault, 0, "False"},
    {"memory_format", Kind::MemoryFormat, kOptional | kKeyword, 0, "None"},
};
const Signature cuda_signature[] = {{cuda_params, 4, 3, 0, false}};
Function cuda_function = {"cuda", cuda_signature, 1};

PyObject* cuda(PyObject* self, PyObject* const* arguments, Py_ssize_t count, PyObject* names) {
  return guarded(
      [&] {
        Call<4> call(cuda_function, self, arguments, count, names);
        if (call.overridden()) return call.result();
        return wrap(converted(call.tensor(0), std::nullopt,
                              call.maybe_device(1).value_or(device_from_string("cuda")),
                              call.maybe_memory_format(3), call.boolean(2)));
      },
      "cuda");
}

// The name of the tensor type of each dtype: FloatTensor.
constexpr std::array<const char*, kNumDtypes> kTypeNames = {"Bool",
                                                            "Byte",
                                                            "UInt16",
                                                            "UInt32",
                                                            "UInt64",
                                                            "Char",
                                                            "Short",
                                                            "Int",
                                                            "Long",
                                                            "Half",
                                                            "BFloat16",
                                                            "Float",
                                                            "Double",
                                                            "ComplexFloat",
                                                            "ComplexDouble",
                                                            "Float8_e4m3fn",
                                                            "Float8_e5m2",
                                                            "Float8_e4m3fnuz",
                                                            "Float8_e5m2fnuz",
                                                            "Float8_e8m0fnu",
                                                            "Float4_e2m1fn_x2",
                                                            "ComplexHalf",
                                                            "BComplex32",
                                                            "QInt8",
                                                            "QUInt8",
                                                            "QInt32",
                                                            "QUInt4x2",
                                                            "QUInt2x4"};
std::string_view type_name_of(ScalarType dtype) {
  return is_outside(dtype) ? name_of(dtype) : kTypeNames[static_cast<size_t>(dtype)];
}

// x.type() is the type's name; x.type(dtype) converts.
PyObject* type(PyObject* self, PyObject* args) {
  return guarded([&]() -> PyObject* {
    const Tensor& t = unwrap(self);
    PyObject* wanted = Py_None;
    if (!PyArg_ParseTuple(args, "|O:type", &wanted)) throw PythonError{};
    if (overridden(self)) return call_override_of_method(self, "type", wanted);
    if (wanted == Py_None) {
      const std::string place = t.is_cpu() ? "" : str(name_of(t.device().type), ".");
      const char* const kind = t.layout() == Layout::SparseCoo ? "sparse." : "";
      return unicode(in_package(str(place, kind, type_name_of(t.dtype()), "Tensor"))).release();
    }
    std::optional<ScalarType> dtype = as_dtype(wanted);
    if (!dtype && PyUnicode_Check(wanted)) {
      const Object place_of_type =
          import_attribute("treadle._tensor.legacy_types", "place_of_type");
      const Object named(call_python(PyObject_CallOneArg, place_of_type.get(), wanted));
      return wrap(convert_to(t, as_dtype(PyTuple_GET_ITEM(named.get(), 0)),
                             to_device(PyTuple_GET_ITEM(named.get(), 1))));
    }
    check<ErrorKind::Type>(dtype.has_value(), OpName("type"), "expected a dtype, got ",
                           type_text(wanted));
    return wrap(convert_to(t, *dtype, std::nullopt));
  });
}

// ---- Python values ----

PyObject* item(PyObject* self, PyObject*) {
  return guarded([&] { return wrap(element("item", unwrap(self))); });
}

void require_strided_values(const char* op, const Tensor& t) {
  check<ErrorKind::Type>(t.is_strided(), OpName(op),
                         "expected a strided tensor, got one of layout ", name_of(t.layout()),
                         "; call to_dense()");
}

template <class T>
Object nested_list(const T* data, IntList sizes, IntList strides) {
  if (sizes.empty()) return Object(wrap(Scalar(element_value(*data))));
  Object list(PyList_New(sizes[0]));
  for (int64_t i = 0; i < sizes[0]; ++i) {
    PyList_SET_ITEM(list.get(), i,
                    nested_list(data + i * strides[0], sizes.slice(1), strides.slice(1)).release());
  }
  return list;
}

PyObject* tolist(PyObject* self, PyObject*) {
  return guarded([&] {
    const Tensor& t = unwrap(self);
    require_strided_values("tolist", t);
    check<ErrorKind::NotImplemented>(!t.is_meta(), OpName("tolist"),
                                     "expected a tensor with data, got one on the meta device");
    const Tensor values = readable(convert_to(t, std::nullopt, kCPU));
    named("tolist", [&] { values.impl()->storage_data(); });  // raises if it is too small
    Object list;
    visit_type(AllTypes(), values.dtype(), [&]<class T>() {
      list = nested_list(values.data_as<const T>(), values.sizes(), values.strides());
    });
    return list.release();
  });
}

// ---- NumPy and DLPack ----

const Param numpy_params[] = {{"self", Kind::Tensor},
                              {"force", Kind::Bool, kDefault | kKeyword, 0, "False"}};
const Signature numpy_signature[] = {{numpy_params, 2, 1, 0, false}};
Function numpy_function = {"numpy", numpy_signature, 1};

PyObject* numpy(PyObject* self, PyObject* const* arguments, Py_ssize_t count, PyObject* names) {
  return guarded([&] {
    Call<2> call(numpy_function, self, arguments, count, names);
    if (call.overridden()) return call.result();
    const bool force = call.boolean(1);
    const Tensor& t = call.tensor(0);
    if (!force) return tensor_to_numpy(t, false);
    const Tensor here = convert_to(aten::detach(t), std::nullopt, kCPU);
    return tensor_to_numpy(is_stored(here.dtype()) ? here : resolved(here), true);
  });
}

const Param array_params[] = {
    {"self", Kind::Tensor},
    {"dtype", Kind::Any, kOptional, 0, "None"},
    {"copy", Kind::Bool, kOptional | kKeyword, 0, "None"},
};
const Signature array_signature[] = {{array_params, 3, 2, 0, false}};
Function array_function = {"__array__", array_signature, 1};

PyObject* array(PyObject* self, PyObject* const* arguments, Py_ssize_t count, PyObject* names) {
  return guarded([&]() -> PyObject* {
    Call<3> call(array_function, self, arguments, count, names);
    if (call.overridden()) return call.result();
    Object shared(tensor_to_numpy(call.tensor(0), false));
    const std::optional<bool> asked = call.maybe_boolean(2);
    const bool copy = asked.value_or(false);
    if (call.has(1)) {
      Object keywords(Py_BuildValue("{s:O}", "copy", copy ? Py_True : Py_False));
      Object astype = attribute(shared.get(), "astype");
      Object args(PyTuple_Pack(1, call.object(1)));
      Object result(call_python(PyObject_Call, astype.get(), args.get(), keywords.get()));
      const bool copied = result.get() != shared.get();
      check<ErrorKind::Value>(
          !asked || copy || !copied, OpName("__array__"), "expected dtype ", call.tensor(0).dtype(),
          " with copy=False, as another needs a copy, got ",
          utf8(Object(PyObject_Str(attribute(result.get(), "dtype").get())).get()));
      return result.release();
    }
    return copy ? Object(call_python(PyObject_CallMethod, shared.get(), "copy", nullptr)).release()
                : shared.release();
  });
}

const Param dlpack_params[] = {
    {"self", Kind::Tensor},
    {"stream", Kind::Any, kDefault | kKeyword, 0, "None"},
    {"max_version", Kind::Any, kDefault | kKeyword, 0, "None"},
    {"dl_device", Kind::Any, kDefault | kKeyword, 0, "None"},
    {"copy", Kind::Bool, kOptional | kKeyword, 0, "None"},
};
const Signature dlpack_signature[] = {{dlpack_params, 5, 1, 0, false}};
Function dlpack_function = {"__dlpack__", dlpack_signature, 1};

PyObject* dlpack(PyObject* self, PyObject* const* arguments, Py_ssize_t count, PyObject* names) {
  return guarded([&] {
    Call<5> call(dlpack_function, self, arguments, count, names);
    if (call.overridden()) return call.result();
    check<ErrorKind::Value>(!call.has(1), OpName("__dlpack__"),
                            "expected stream = None on the cpu, got ",
                            call.has(1) ? type_text(call.object(1)) : "");
    const auto pair = [&](size_t at, const char* name) {
      PyObject* value = call.object(at);
      check<ErrorKind::Type>(PyTuple_Check(value) && PyTuple_GET_SIZE(value) == 2,
                             OpName("__dlpack__"), "expected ", name, " to be a pair of ints, got ",
                             type_text(value));
      return std::pair{to_int("__dlpack__", PyTuple_GET_ITEM(value, 0)),
                       to_int("__dlpack__", PyTuple_GET_ITEM(value, 1))};
    };
    const Tensor& self = call.tensor(0);
    const std::optional<bool> copy = call.maybe_boolean(4);
    bool moves = false;
    if (call.has(3)) {
      const auto [type, id] = pair(3, "dl_device");
      if (type != 1 || id != 0)
        refuse_export(str("expected dl_device (1, 0), the cpu, got (", type, ", ", id, ")"));
      moves = !self.is_cpu();
      if (moves && copy == false)
        refuse_export(
            str("expected a tensor on the cpu where copy is False, got one on ", self.device()));
    }
    // The version that the consumer knows, at most that of this library.
    std::optional<DLPackVersion> version;
    if (call.has(2)) {
      const auto [major, minor] = pair(2, "max_version");
      if (major > 1)
        version = kDLPackVersion;
      else if (major == 1)
        version = {1, static_cast<uint32_t>(std::clamp<int64_t>(minor, 0, kDLPackVersion.minor))};
    }
    const bool copies = copy.value_or(false) || moves;
    const std::optional<Device> device = moves ? std::optional(kCPU) : std::nullopt;
    return tensor_to_dlpack(copies ? convert_to(self, std::nullopt, device, true) : self, version,
                            copies);
  });
}

PyObject* dlpack_device(PyObject* self, PyObject*) {
  return guarded([&] {
    const Tensor& t = unwrap(self);
    check<ErrorKind::NotImplemented>(t.is_cpu(), OpName("__dlpack_device__"),
                                     "expected a tensor on the cpu, got one on ", t.device());
    return Object(Py_BuildValue("(ii)", 1, 0)).release();
  });
}

}  // namespace

void add_conversion_methods(std::vector<PyMethodDef>& methods) {
  methods.insert(
      methods.end(),
      {
          fast_method("to", &to,
                      "to($self, *args, **kwargs)\n--\n\nThis tensor with another dtype or on "
                      "another device: "
                      "to(dtype), to(device, dtype), to(other)."),
          fast_method("cpu", &cpu, "This tensor on the CPU."),
          fast_method("cuda", &cuda, "This tensor on a CUDA device."),
          dtype_method<"bool", ScalarType::Bool>("to(bool)"),
          dtype_method<"byte", ScalarType::UInt8>("to(uint8)"),
          dtype_method<"char", ScalarType::Int8>("to(int8)"),
          dtype_method<"short", ScalarType::Int16>("to(int16)"),
          dtype_method<"int", ScalarType::Int32>("to(int32)"),
          dtype_method<"long", ScalarType::Int64>("to(int64)"),
          dtype_method<"half", ScalarType::Float16>("to(float16)"),
          dtype_method<"bfloat16", ScalarType::BFloat16>("to(bfloat16)"),
          dtype_method<"float", ScalarType::Float32>("to(float32)"),
          dtype_method<"double", ScalarType::Float64>("to(float64)"),
          dtype_method<"chalf", ScalarType::Complex32>("to(complex32)"),
          dtype_method<"cfloat", ScalarType::Complex64>("to(complex64)"),
          dtype_method<"cdouble", ScalarType::Complex128>("to(complex128)"),
          {"type", type, METH_VARARGS,
           "The name of the tensor's type, or the tensor as another dtype."},
          without_arguments<"item", &item>("The one element, as a Python number."),
          without_arguments<"tolist", &tolist>("The elements as nested lists of Python numbers."),
          fast_method(
              "numpy", &numpy,
              "numpy($self, *, force=False)\n--\n\nA NumPy array over the tensor's memory."),
          fast_method("__array__", &array, "What numpy.asarray() calls."),
          fast_method("__dlpack__", &dlpack, "A DLPack capsule over the tensor's memory."),
          {"__dlpack_device__", dlpack_device, METH_NOARGS,
           "The kind and number of the tensor's device, in DLPack's terms."},
      });
}

}  // namespace treadle::python
