// The Python type Generator: a stream of random numbers with a seed and a position that can be
// saved and restored.
//
// SPDX-License-Identifier: Apache-2.0
#include <cstring>
#include <random>

#include "core/device/backend.h"
#include "core/device/generator.h"
#include "python_bindings/csrc/arguments/convert.h"
#include "python_bindings/csrc/module.h"

namespace treadle::python {
namespace {

PyTypeObject* generator_type = nullptr;

struct GeneratorObject {
  PyObject_HEAD Generator generator;
};

const Generator& generator_of(PyObject* self) {
  return reinterpret_cast<GeneratorObject*>(self)->generator;
}

}  // namespace

PyObject* wrap(const Generator& generator) {
  auto* object = PyObject_New(GeneratorObject, generator_type);
  if (!object) throw PythonError{};
  new (&object->generator) Generator(generator);
  return reinterpret_cast<PyObject*>(object);
}

namespace {

PyObject* generator_new(PyTypeObject*, PyObject* args, PyObject* kwargs) {
  return guarded([&] {
    static const char* names[] = {"device", nullptr};
    PyObject* device = nullptr;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O:Generator", const_cast<char**>(names),
                                     &device))
      throw PythonError{};
    check<ErrorKind::Type>(!device || is_device(device), OpName("Generator"),
                           "expected a device, got ", device ? type_text(device) : "");
    return wrap(make_generator(device ? with_index(to_device(device)) : kCPU));
  });
}

void deallocate(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  reinterpret_cast<GeneratorObject*>(self)->generator.~Generator();
  type->tp_free(self);
  Py_DECREF(type);
}

// Negative seeds count from 2^64 down.
uint64_t to_seed(PyObject* o) {
  check<ErrorKind::Type>(is_int(o), OpName("manual_seed"), "expected an int, got ", type_text(o));
  Object number(PyNumber_Index(o));
  Object zero(PyLong_FromLong(0));
  const bool negative = checked(PyObject_RichCompareBool(number.get(), zero.get(), Py_LT)) != 0;
  const uint64_t seed = negative ? static_cast<uint64_t>(PyLong_AsLongLong(number.get()))
                                 : PyLong_AsUnsignedLongLong(number.get());
  if (PyErr_Occurred()) {
    PyErr_Clear();
    fail<ErrorKind::Value>(OpName("manual_seed"), "expected a seed in [-2**63, 2**64), got ",
                           utf8(Object(PyObject_Str(number.get())).get()));
  }
  return seed;
}

PyObject* manual_seed(PyObject* self, PyObject* seed) {
  return guarded([&] {
    generator_of(self)->seed(to_seed(seed));
    return new_ref(self);
  });
}
PyObject* seed(PyObject* self, PyObject*) {
  return guarded([&] {
    std::random_device source;
    const uint64_t value = (static_cast<uint64_t>(source()) << 32) | source();
    generator_of(self)->seed(value);
    return Object(PyLong_FromUnsignedLongLong(value)).release();
  });
}
PyObject* initial_seed(PyObject* self, PyObject*) {
  return PyLong_FromUnsignedLongLong(generator_of(self)->initial_seed());
}
PyObject* device(PyObject* self, void*) {
  return guarded([&] { return python::wrap(generator_of(self)->device()); });
}

// The state is the 16 bytes of seed and position, as a uint8 tensor.
PyObject* get_state(PyObject* self, PyObject*) {
  return guarded([&] {
    const GeneratorImpl::Position position = generator_of(self)->position();
    const Tensor state = empty_cpu({16}, ScalarType::UInt8);
    std::memcpy(state.data(), &position.seed, 8);
    std::memcpy(static_cast<char*>(state.data()) + 8, &position.offset, 8);
    return python::wrap(state);
  });
}
PyObject* set_state(PyObject* self, PyObject* given) {
  return guarded([&] {
    const bool fits = is_tensor(given) && unwrap(given).dtype() == ScalarType::UInt8 &&
                      unwrap(given).is_cpu() && unwrap(given).numel() == 16 &&
                      unwrap(given).is_contiguous();
    check<ErrorKind::Type>(fits, OpName("set_state"),
                           "expected a uint8 tensor of 16 elements, as get_state() gives, got ",
                           is_tensor(given) ? to_string(unwrap(given)) : type_text(given));
    GeneratorImpl::Position position{};
    std::memcpy(&position.seed, unwrap(given).data(), 8);
    std::memcpy(&position.offset, static_cast<char*>(unwrap(given).data()) + 8, 8);
    generator_of(self)->set_position(position);
    return new_ref(self);
  });
}

PyMethodDef methods[] = {
    {"manual_seed", manual_seed, METH_O, "Starts the stream of this seed."},
    {"seed", seed, METH_NOARGS, "Starts the stream of a seed from the system, and returns it."},
    {"initial_seed", initial_seed, METH_NOARGS, "The seed of the stream."},
    {"get_state", get_state, METH_NOARGS, "Seed and position, as a tensor."},
    {"set_state", set_state, METH_O, "Goes back to a state from get_state()."},
    {},
};
PyGetSetDef properties[] = {{"device", device, nullptr, nullptr, nullptr}, {}};

}  // namespace

bool is_generator(PyObject* o) { return Py_IS_TYPE(o, generator_type); }
const Generator& to_generator(PyObject* o) { return generator_of(o); }

void init_generator_type(PyObject* module) {
  PyType_Slot slots[] = {{Py_tp_new, slot(&generator_new)},
                         {Py_tp_dealloc, slot(&deallocate)},
                         {Py_tp_methods, methods},
                         {Py_tp_getset, properties},
                         {}};
  PyType_Spec spec = {"treadle.Generator", sizeof(GeneratorObject), 0, Py_TPFLAGS_DEFAULT, slots};
  generator_type = reinterpret_cast<PyTypeObject*>(Object(PyType_FromSpec(&spec)).release());
  checked(PyModule_AddObjectRef(module, "Generator", reinterpret_cast<PyObject*>(generator_type)));
  checked(PyModule_AddObjectRef(module, "default_generator",
                                Object(wrap(default_generator(kCPU))).get()));
}

}  // namespace treadle::python
