// The type device: device("cpu"), device("cuda", 1), device("cuda:1").
//
// SPDX-License-Identifier: Apache-2.0
#include <charconv>
#include <optional>

#include "core/device/backend.h"
#include "python_bindings/csrc/arguments/constants.h"

namespace treadle::python {

PyTypeObject* device_type = nullptr;

namespace {

Device value_of(PyObject* self) { return reinterpret_cast<DeviceObject*>(self)->value; }

// The number in "cpu:3", which programs write as for other devices; there is one CPU.
std::optional<int8_t> cpu_number(std::string_view name) {
  if (!name.starts_with("cpu:")) return std::nullopt;
  int8_t number = -1;
  const auto [end, error] = std::from_chars(name.data() + 4, name.data() + name.size(), number);
  const bool whole = error == std::errc() && end == name.data() + name.size() && number >= 0;
  return whole ? std::optional(number) : std::nullopt;
}

PyObject* device_new(PyTypeObject*, PyObject* args, PyObject* kwargs) {
  return guarded([&]() -> PyObject* {
    static const char* names[] = {"type", "index", nullptr};
    PyObject* type = nullptr;
    PyObject* index = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|O:device", const_cast<char**>(names), &type,
                                     &index))
      throw PythonError{};
    check<ErrorKind::Type>(is_device(type), OpName("device"),
                           "expected a device, its name or an index, got ", Py_TYPE(type)->tp_name);
    Device device = Py_IS_TYPE(type, device_type) ? value_of(type) : to_device(type);
    // The object keeps the number that a program gave, which the CPU of a tensor does not have.
    if (device.is_cpu() && PyUnicode_Check(type))
      device.index = cpu_number(utf8(type)).value_or(-1);
    if (index != Py_None) {
      check<ErrorKind::Runtime>(device.index < 0, OpName("device"),
                                "expected no index where the name has one, got both");
      const long number = PyLong_AsLong(index);
      if (number == -1 && PyErr_Occurred()) throw PythonError{};
      check<ErrorKind::Runtime>(number >= 0 && number < 127, OpName("device"),
                                "expected an index in [0, 127), got ", int64_t{number});
      if (device.is_cpu())
        device.index = static_cast<int8_t>(number);
      else
        device = device_from_string(str(name_of(device.type), ":", int64_t{number}));
    }
    return wrap(device);
  });
}

PyObject* device_repr(PyObject* self) {
  return guarded([&] {
    const Device d = value_of(self);
    std::string text = str("device(type='", name_of(d.type), "'");
    if (d.index >= 0) text += str(", index=", int64_t{d.index});
    return unicode(text + ")").release();
  });
}
PyObject* device_str(PyObject* self) {
  return guarded([&] { return unicode(to_string(value_of(self))).release(); });
}
Py_hash_t device_hash(PyObject* self) {
  const Device d = value_of(self);
  return (static_cast<Py_hash_t>(d.type) << 8) + d.index + 1;
}
PyObject* device_compare(PyObject* a, PyObject* b, int op) {
  if (!Py_IS_TYPE(b, device_type) || (op != Py_EQ && op != Py_NE)) Py_RETURN_NOTIMPLEMENTED;
  return to_bool((value_of(a) == value_of(b)) == (op == Py_EQ));
}
PyObject* device_get_type(PyObject* self, void*) {
  return guarded([&] { return unicode(name_of(value_of(self).type)).release(); });
}
PyObject* device_get_index(PyObject* self, void*) {
  const int index = value_of(self).index;
  return index < 0 ? none() : PyLong_FromLong(index);
}
PyObject* device_reduce(PyObject* self, PyObject*) {
  return guarded(
      [&] { return Object(Py_BuildValue("O(N)", device_type, device_str(self))).release(); });
}

PyMethodDef methods[] = {{"__reduce__", device_reduce, METH_NOARGS, nullptr}, {}};
PyGetSetDef properties[] = {
    {"type", device_get_type, nullptr, "\"cpu\", \"meta\", ...", nullptr},
    {"index", device_get_index, nullptr, "The number of the device; None for the current one.",
     nullptr},
    {},
};

}  // namespace

PyObject* wrap(Device value) {
  DeviceObject* object = PyObject_New(DeviceObject, device_type);
  if (!object) throw PythonError{};
  object->value = value;
  return reinterpret_cast<PyObject*>(object);
}

bool is_device(PyObject* object) {
  return Py_IS_TYPE(object, device_type) || PyUnicode_Check(object) ||
         (PyLong_Check(object) && !PyBool_Check(object));
}

Device to_device(PyObject* object) {
  if (Py_IS_TYPE(object, device_type)) {
    const Device device = value_of(object);
    return device.is_cpu() ? kCPU : device;
  }
  if (PyUnicode_Check(object))
    return cpu_number(utf8(object)) ? kCPU : device_from_string(utf8(object));
  // A number alone means a device other than the CPU: one of the only kind that is present.
  const std::vector<DeviceType> there = backends();
  const std::string_view kind = there.size() == 1 ? name_of(there[0]) : "cuda";
  return device_from_string(str(kind, ":", utf8(Object(PyObject_Str(object)).get())));
}

void init_device(PyObject* module) {
  PyType_Slot slots[] = {
      {Py_tp_new, slot(&device_new)},
      {Py_tp_repr, slot(&device_repr)},
      {Py_tp_str, slot(&device_str)},
      {Py_tp_hash, slot(&device_hash)},
      {Py_tp_richcompare, slot(&device_compare)},
      {Py_tp_methods, methods},
      {Py_tp_getset, properties},
      {},
  };
  PyType_Spec spec = {"treadle.device", sizeof(DeviceObject), 0, Py_TPFLAGS_DEFAULT, slots};
  device_type = reinterpret_cast<PyTypeObject*>(Object(PyType_FromSpec(&spec)).release());
  checked(PyModule_AddObjectRef(module, "device", reinterpret_cast<PyObject*>(device_type)));
}

}  // namespace treadle::python
