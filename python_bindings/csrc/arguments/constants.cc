// The types dtype, layout and memory_format, and their objects under the names of the API (float32,
// strided, ...).
//
// SPDX-License-Identifier: Apache-2.0
#include "python_bindings/csrc/arguments/constants.h"
#include "python_bindings/csrc/package_name.h"

#include <array>

#include "python_bindings/csrc/tensors/tensor_object.h"

namespace treadle::python {

PyTypeObject* dtype_type = nullptr;
PyTypeObject* layout_type = nullptr;
PyTypeObject* memory_format_type = nullptr;

void init_device(PyObject* module);  // device_object.cc
void init_size(PyObject* module);    // size_object.cc

namespace {

std::array<PyObject*, kMaxDtypes> dtypes{};
std::array<PyObject*, kMaxLayouts> layouts{};
std::array<PyObject*, 4> memory_formats{};

ScalarType value_of(PyObject* self) { return reinterpret_cast<DtypeObject*>(self)->value; }

PyObject* dtype_repr(PyObject* self) {
  return guarded([&] { return unicode(in_package(name_of(value_of(self)))).release(); });
}
// Pickled by name. One that a program registered is found by a function.
PyObject* by_name(const char* function, std::string_view name) {
  const Object find = import_attribute("treadle._rebuild", function);
  return call_python(Py_BuildValue, "O(N)", find.get(), unicode(name).release());
}
PyObject* dtype_reduce(PyObject* self, PyObject*) {
  return guarded([&] {
    const ScalarType type = value_of(self);
    return is_outside(type) ? by_name("dtype_named", name_of(type))
                            : unicode(name_of(type)).release();
  });
}
PyObject* dtype_to_real(PyObject* self, PyObject*) { return wrap(to_real(value_of(self))); }
PyObject* dtype_to_complex(PyObject* self, PyObject*) {
  const ScalarType type = value_of(self);
  if (type == ScalarType::Float16) return wrap(ScalarType::Complex32);
  if (type == ScalarType::BFloat16) return wrap(ScalarType::BComplex32);
  return wrap(is_complex(type) ? type : to_complex(type));
}
PyObject* dtype_itemsize(PyObject* self, void*) {
  return PyLong_FromLongLong(item_size(value_of(self)));
}
PyObject* dtype_is_floating(PyObject* self, void*) { return to_bool(is_floating(value_of(self))); }
PyObject* dtype_is_complex(PyObject* self, void*) { return to_bool(is_complex(value_of(self))); }
PyObject* dtype_is_signed(PyObject* self, void*) { return to_bool(is_signed(value_of(self))); }

PyMethodDef dtype_methods[] = {
    {"__reduce__", dtype_reduce, METH_NOARGS, nullptr},
    {"to_real", dtype_to_real, METH_NOARGS, "The dtype of the real part."},
    {"to_complex", dtype_to_complex, METH_NOARGS, "The complex dtype with parts of this one."},
    {},
};
PyGetSetDef dtype_properties[] = {
    {"itemsize", dtype_itemsize, nullptr, "Bytes of one element.", nullptr},
    {"is_floating_point", dtype_is_floating, nullptr, nullptr, nullptr},
    {"is_complex", dtype_is_complex, nullptr, nullptr, nullptr},
    {"is_signed", dtype_is_signed, nullptr, nullptr, nullptr},
    {},
};

PyObject* layout_repr(PyObject* self) {
  return guarded([&] {
    return unicode(in_package(name_of(reinterpret_cast<LayoutObject*>(self)->value))).release();
  });
}
PyObject* layout_reduce(PyObject* self, PyObject*) {
  return guarded([&] {
    const Layout layout = reinterpret_cast<LayoutObject*>(self)->value;
    return layout > Layout::Jagged ? by_name("layout_named", name_of(layout))
                                   : unicode(name_of(layout)).release();
  });
}
PyMethodDef layout_methods[] = {{"__reduce__", layout_reduce, METH_NOARGS, nullptr}, {}};

constexpr std::array<const char*, 4> kFormatNames = {"contiguous_format", "preserve_format",
                                                     "channels_last", "channels_last_3d"};
const char* format_name(PyObject* self) {
  return kFormatNames[static_cast<size_t>(reinterpret_cast<MemoryFormatObject*>(self)->value)];
}
PyObject* format_repr(PyObject* self) {
  return guarded([&] { return unicode(in_package(format_name(self))).release(); });
}
PyObject* format_reduce(PyObject* self, PyObject*) {
  return PyUnicode_FromString(format_name(self));
}
PyMethodDef format_methods[] = {{"__reduce__", format_reduce, METH_NOARGS, nullptr}, {}};

PyTypeObject* make_type(PyObject* module, const char* name, int size, PyType_Slot* slots) {
  const std::string full = std::string("treadle.") + name;
  static std::vector<std::string> names;  // a type keeps a pointer to its name
  names.reserve(8);
  names.push_back(full);
  PyType_Spec spec = {names.back().c_str(), size, 0,
                      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};
  Object type(PyType_FromSpec(&spec));
  checked(PyModule_AddObjectRef(module, name, type.get()));
  return reinterpret_cast<PyTypeObject*>(type.release());
}

template <class T, class V>
PyObject* make_value(PyTypeObject* type, V value) {
  T* object = PyObject_New(T, type);
  if (!object) throw PythonError{};
  object->value = value;
  return reinterpret_cast<PyObject*>(object);
}

void add_dtypes(PyObject* module) {
  constexpr std::pair<const char*, ScalarType> kAliases[] = {
      {"float", ScalarType::Float32},    {"double", ScalarType::Float64},
      {"half", ScalarType::Float16},     {"short", ScalarType::Int16},
      {"int", ScalarType::Int32},        {"long", ScalarType::Int64},
      {"cfloat", ScalarType::Complex64}, {"cdouble", ScalarType::Complex128},
      {"chalf", ScalarType::Complex32},
  };
  for (int i = 0; i < kNumDtypes; ++i) {
    const auto type = static_cast<ScalarType>(i);
    dtypes[static_cast<size_t>(i)] = make_value<DtypeObject>(dtype_type, type);
    checked(PyModule_AddObjectRef(module, std::string(name_of(type)).c_str(),
                                  dtypes[static_cast<size_t>(i)]));
  }
  for (const auto& [name, type] : kAliases) {
    checked(PyModule_AddObjectRef(module, name, dtypes[static_cast<size_t>(type)]));
  }
}

}  // namespace

PyObject* wrap(ScalarType value) {
  PyObject*& object = dtypes[static_cast<size_t>(value)];
  if (!object) object = make_value<DtypeObject>(dtype_type, value);
  return new_ref(object);
}
PyObject* wrap(MemoryFormat value) { return new_ref(memory_formats[static_cast<size_t>(value)]); }
PyObject* wrap(Layout value) {
  PyObject*& object = layouts[static_cast<size_t>(value)];
  if (!object) object = make_value<LayoutObject>(layout_type, value);
  return new_ref(object);
}

std::optional<ScalarType> as_dtype(PyObject* object) {
  if (Py_IS_TYPE(object, dtype_type)) return value_of(object);
  if (object == reinterpret_cast<PyObject*>(&PyFloat_Type)) return ScalarType::Float64;
  if (object == reinterpret_cast<PyObject*>(&PyLong_Type)) return ScalarType::Int64;
  if (object == reinterpret_cast<PyObject*>(&PyBool_Type)) return ScalarType::Bool;
  if (object == reinterpret_cast<PyObject*>(&PyComplex_Type)) return ScalarType::Complex128;
  return std::nullopt;
}

void init_constants(PyObject* module) {
  PyType_Slot dtype_slots[] = {{Py_tp_repr, slot(&dtype_repr)},
                               {Py_tp_methods, dtype_methods},
                               {Py_tp_getset, dtype_properties},
                               {}};
  dtype_type = make_type(module, "dtype", sizeof(DtypeObject), dtype_slots);
  PyType_Slot layout_slots[] = {
      {Py_tp_repr, slot(&layout_repr)}, {Py_tp_methods, layout_methods}, {}};
  layout_type = make_type(module, "layout", sizeof(LayoutObject), layout_slots);
  PyType_Slot format_slots[] = {
      {Py_tp_repr, slot(&format_repr)}, {Py_tp_methods, format_methods}, {}};
  memory_format_type = make_type(module, "memory_format", sizeof(MemoryFormatObject), format_slots);

  add_dtypes(module);
  for (int i = 0; i < num_layouts(); ++i) {
    const auto value = static_cast<Layout>(i);
    const std::string name(name_of(value));
    checked(PyModule_AddObjectRef(module, name.c_str(), Object(wrap(value)).get()));
  }
  for (size_t i = 0; i < memory_formats.size(); ++i) {
    memory_formats[i] =
        make_value<MemoryFormatObject>(memory_format_type, static_cast<MemoryFormat>(i));
    checked(PyModule_AddObjectRef(module, kFormatNames[i], memory_formats[i]));
  }
  init_device(module);
  init_size(module);
}

}  // namespace treadle::python
