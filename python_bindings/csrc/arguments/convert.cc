// The conversions of convert.h.
//
// SPDX-License-Identifier: Apache-2.0
#include "python_bindings/csrc/arguments/convert.h"

#include "aten/engine/backends/device_copy.h"
#include "aten/engine/named_errors.h"
#include "aten/engine/resolve.h"
#include "aten/ops/_local_scalar_dense.h"
#include "aten/ops/item.h"
#include "python_bindings/csrc/binding.h"
#include "python_bindings/csrc/exchange/numpy_exchange.h"

namespace treadle::python {
namespace {

constinit Kept numpy_name;

// A class of NumPy's, or null while NumPy has not been imported: no object can be of that class
// then.
PyTypeObject* numpy_class(const char* name, PyTypeObject*& cache) {
  if (cache) return cache;
  PyObject* const key = numpy_name.get([] { return unicode("numpy"); });
  Object module = Object::maybe(PyImport_GetModule(key));
  if (!module) {
    PyErr_Clear();
    return nullptr;
  }
  Object found = Object::maybe(PyObject_GetAttrString(module.get(), name));
  if (!found || !PyType_Check(found.get())) {
    PyErr_Clear();  // NumPy itself is still being imported
    return nullptr;
  }
  cache = reinterpret_cast<PyTypeObject*>(found.release());
  return cache;
}

// Objects of Python's own classes are the usual ones, and need no look at NumPy.
bool is_of_python(PyObject* o) {
  const PyTypeObject* const type = Py_TYPE(o);
  return type == &PyLong_Type || type == &PySlice_Type || type == &PyFloat_Type ||
         type == &PyTuple_Type || type == &PyList_Type || type == &PyUnicode_Type ||
         type == &PyBool_Type || type == &PyDict_Type;
}

bool is_numpy(PyObject* o, const char* name, PyTypeObject*& cache) {
  if (is_of_python(o)) return false;
  PyTypeObject* type = numpy_class(name, cache);
  return type && PyType_IsSubtype(Py_TYPE(o), type);
}

[[noreturn]] void overflow(const char* op, PyObject* o) {
  PyErr_Clear();
  PyErr_Format(PyExc_OverflowError, "%s: expected an int that fits 64 bits, got %.100S", op, o);
  throw PythonError{};
}

int64_t long_value(const char* op, PyObject* o) {
  int over = 0;
  const long long value = PyLong_AsLongLongAndOverflow(o, &over);
  if (over) overflow(op, o);
  if (value == -1 && PyErr_Occurred()) throw PythonError{};
  return value;
}

// An int of 64 bits, with or without a sign.
Scalar long_scalar(const char* op, PyObject* o) {
  int over = 0;
  const long long value = PyLong_AsLongLongAndOverflow(o, &over);
  if (over > 0) {
    const unsigned long long bits = PyLong_AsUnsignedLongLong(o);
    if (bits != static_cast<unsigned long long>(-1) || !PyErr_Occurred())
      return Scalar(static_cast<uint64_t>(bits));
  }
  if (over) overflow(op, o);
  if (value == -1 && PyErr_Occurred()) throw PythonError{};
  return Scalar(static_cast<int64_t>(value));
}

}  // namespace

bool is_numpy_scalar(PyObject* o) {
  static PyTypeObject* cache = nullptr;
  return is_numpy(o, "generic", cache);
}
bool is_numpy_array(PyObject* o) {
  static PyTypeObject* cache = nullptr;
  return is_numpy(o, "ndarray", cache);
}

bool is_number_slow(PyObject* o) {
  if (PyLong_Check(o) || PyFloat_Check(o) || PyComplex_Check(o)) return true;
  if (is_tensor(o) || PyUnicode_Check(o) || PyTuple_Check(o) || PyList_Check(o)) return false;
  return is_numpy_scalar(o) && !PyBytes_Check(o);
}

bool is_int(PyObject* o) {
  if (PyLong_CheckExact(o)) return true;
  if (!PyIndex_Check(o) || PyBool_Check(o) || is_tensor(o)) return false;
  if (!is_numpy_array(o)) return true;
  // Among arrays, only those of one integer without a dimension.
  PyObject* number = PyNumber_Index(o);
  if (!number) PyErr_Clear();
  Py_XDECREF(number);
  return number != nullptr;
}

bool is_bool(PyObject* o) {
  static PyTypeObject* cache = nullptr;
  // The one name that every NumPy has: `numpy.bool` is not there, or is Python's, before 2.0.
  return PyBool_Check(o) || (!is_tensor(o) && is_numpy(o, "bool_", cache));
}

bool is_real(PyObject* o) {
  if (PyFloat_Check(o) || PyLong_Check(o)) return true;
  return !PyComplex_Check(o) && is_number(o) && Py_TYPE(o)->tp_as_number &&
         Py_TYPE(o)->tp_as_number->nb_float;
}

bool is_number_tensor(const Tensor& t) { return t.dim() == 0 && !t.requires_grad(); }

int64_t to_int(const char* op, PyObject* o) {
  if (PyLong_CheckExact(o)) return long_value(op, o);
  if (is_tensor(o)) {
    const Tensor& t = unwrap(o);
    check<ErrorKind::Type>(is_integral(t.dtype(), false), OpName(op),
                           "expected an int, got a tensor of dtype ", t.dtype());
    return element(op, t).to<int64_t>();
  }
  check<ErrorKind::Type>(is_int(o), OpName(op), "expected an int, got ", type_text(o));
  return long_value(op, Object(PyNumber_Index(o)).get());
}

double to_double(const char* op, PyObject* o) {
  if (PyFloat_Check(o)) return PyFloat_AS_DOUBLE(o);
  if (is_tensor(o)) {
    const Scalar value = element(op, unwrap(o));
    check<ErrorKind::Type>(!value.is_complex(), OpName(op),
                           "expected a float, got a complex tensor");
    return value.to<double>();
  }
  check<ErrorKind::Type>(is_real(o), OpName(op), "expected a float, got ", type_text(o));
  const double value = PyFloat_AsDouble(o);
  if (value == -1.0 && PyErr_Occurred()) {
    if (!PyErr_ExceptionMatches(PyExc_OverflowError)) throw PythonError{};
    PyErr_Clear();
    fail<ErrorKind::Value>(OpName(op),
                           "expected a number within a float's range, got an int too large");
  }
  return value;
}

bool to_boolean(PyObject* o) {
  if (is_tensor(o)) return element("bool", unwrap(o)).to<bool>();
  return checked(PyObject_IsTrue(o)) != 0;
}

Scalar to_scalar(const char* op, PyObject* o) {
  if (PyLong_CheckExact(o)) return long_scalar(op, o);  // before a look at base classes
  if (PyFloat_Check(o)) return Scalar(PyFloat_AS_DOUBLE(o));
  if (PyBool_Check(o)) return Scalar(o == Py_True);
  if (PyLong_Check(o)) return long_scalar(op, o);
  if (PyComplex_Check(o))
    return Scalar(std::complex<double>(PyComplex_RealAsDouble(o), PyComplex_ImagAsDouble(o)));
  if (is_tensor(o)) return element(op, unwrap(o));
  check<ErrorKind::Type>(is_number(o), OpName(op), "expected a number, got ", type_text(o));
  Object item(call_python(PyObject_CallMethod, o, "item", nullptr));
  check<ErrorKind::Type>(!is_numpy_scalar(item.get()) || PyFloat_Check(item.get()), OpName(op),
                         "expected a number, got ", type_text(o));
  return to_scalar(op, item.get());
}

Scalar element(const char* op, const Tensor& t) {
  check<ErrorKind::Runtime>(t.numel() == 1, OpName(op), "expected a tensor with one element, got ",
                            t);
  if (!t.is_strided()) [[unlikely]]
    return aten::item(t);
  if (t.is_taken_over()) [[unlikely]] {
    const ExcludeLayers below(Layer::Autograd);
    return aten::_local_scalar_dense(t);
  }
  check<ErrorKind::NotImplemented>(!t.is_meta(), OpName(op),
                                   "expected a tensor with data, got one on the meta device");
  const Tensor here = readable(t.is_cpu() ? t : run([&] { return on_cpu(t); }, t));
  const void* const data = named(op, [&] { return here.data(); });
  Scalar value;
  visit_type(AllTypes(), here.dtype(),
             [&]<class T>() { value = Scalar(element_value(*static_cast<const T*>(data))); });
  return value;
}

PyObject* wrap(const Scalar& value) {
  switch (value.kind()) {
    case Scalar::Kind::Bool:
      return to_bool(value.to<bool>());
    case Scalar::Kind::Int:
      return Object(value.exceeds_int64() ? PyLong_FromUnsignedLongLong(value.to<uint64_t>())
                                          : PyLong_FromLongLong(value.to<int64_t>()))
          .release();
    case Scalar::Kind::Double:
      return Object(PyFloat_FromDouble(value.to<double>())).release();
    case Scalar::Kind::Complex:
      break;
  }
  const auto c = value.to<std::complex<double>>();
  return Object(PyComplex_FromDoubles(c.real(), c.imag())).release();
}

Tensor number_tensor(const Scalar& value) {
  // As wide as the kind allows, so that no digit is lost. Only the kind takes part in promotion.
  const ScalarType dtype = value.is_floating()  ? ScalarType::Float64
                           : value.is_complex() ? ScalarType::Complex128
                                                : value.type();
  Tensor t = empty_cpu({}, dtype);
  visit_type(AllTypes(), dtype, [&]<class T>() { *static_cast<T*>(t.data()) = value.to<T>(); });
  t.impl()->set_wrapped_number(true);
  return t;
}

Tensor operand_tensor(const char* op, PyObject* o) {
  if (is_tensor(o)) return unwrap(o);
  if (is_number(o)) return number_tensor(to_scalar(op, o));
  if (is_numpy_array(o)) return tensor_from_numpy(o, false);
  return Tensor();
}

std::string type_text(PyObject* o) {
  if (o == Py_None) return "None";
  if (is_tensor(o)) return is_exact_tensor(o) ? "Tensor" : Py_TYPE(o)->tp_name;
  const bool tuple = PyTuple_Check(o);
  if (!tuple && !PyList_Check(o)) {
    const std::string_view name = Py_TYPE(o)->tp_name;
    const size_t dot = name.rfind('.');
    return std::string(dot == std::string_view::npos || is_numpy_scalar(o) || is_numpy_array(o)
                           ? name
                           : name.substr(dot + 1));
  }
  std::string text = tuple ? "tuple of (" : "list of [";
  const Py_ssize_t n = PySequence_Fast_GET_SIZE(o);
  for (Py_ssize_t i = 0; i < n && i < 4; ++i) {
    if (i) text += ", ";
    PyObject* item = PySequence_Fast_GET_ITEM(o, i);
    text += PyTuple_Check(item) ? "tuple" : PyList_Check(item) ? "list" : type_text(item);
  }
  if (n > 4) text += ", ...";
  return text + (tuple ? ")" : "]");
}

}  // namespace treadle::python
