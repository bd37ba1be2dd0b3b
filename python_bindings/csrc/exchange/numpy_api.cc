// NumPy's table of functions, and the numbers of its element types.
//
// SPDX-License-Identifier: Apache-2.0
#include "python_bindings/csrc/exchange/numpy_api.h"

#include <array>
#include <utility>

namespace treadle::python::numpy {
namespace {

// NumPy's numbers name C's types, of which two can have the same size.
constexpr std::pair<int, ScalarType> kTypes[] = {
    {0, ScalarType::Bool},     {1, ScalarType::Int8},       {2, ScalarType::UInt8},
    {3, ScalarType::Int16},    {4, ScalarType::UInt16},     {5, ScalarType::Int32},
    {6, ScalarType::UInt32},   {7, ScalarType::Int64},      {8, ScalarType::UInt64},
    {9, ScalarType::Int64},    {10, ScalarType::UInt64},    {11, ScalarType::Float32},
    {12, ScalarType::Float64}, {14, ScalarType::Complex64}, {15, ScalarType::Complex128},
    {23, ScalarType::Float16},
};
static_assert(sizeof(int) == 4 && sizeof(long) == 8 && sizeof(long long) == 8);

struct Functions {
  PyTypeObject* array_type;
  PyObject* (*descriptor)(int number);
  // Takes over the reference to the descriptor.
  PyObject* (*new_array)(PyTypeObject* type, PyObject* descriptor, int dimensions,
                         const Py_ssize_t* sizes, const Py_ssize_t* strides, void* data, int flags,
                         PyObject* object);
  int (*set_base)(PyObject* array, PyObject* base);  // takes over the reference to the base
};

Functions read_table() {
  Object module = Object::maybe(PyImport_ImportModule("numpy._core.multiarray"));
  if (!module) {  // NumPy 1
    PyErr_Clear();
    module = Object(PyImport_ImportModule("numpy.core.multiarray"));
  }
  const Object capsule(PyObject_GetAttrString(module.get(), "_ARRAY_API"));
  auto** table = static_cast<void**>(PyCapsule_GetPointer(capsule.get(), nullptr));
  if (!table) throw PythonError{};
  Functions functions;
  functions.array_type = static_cast<PyTypeObject*>(table[2]);
  functions.descriptor = reinterpret_cast<decltype(functions.descriptor)>(table[45]);
  functions.new_array = reinterpret_cast<decltype(functions.new_array)>(table[94]);
  functions.set_base = reinterpret_cast<decltype(functions.set_base)>(table[282]);
  return functions;
}

// Read by the first that asks. Reading runs Python code, and so may pass the interpreter lock on: a
// thread must not wait for another's initialization of a static variable then.
const Functions& table() {
  static const Functions* known = nullptr;
  if (!known) {
    const Functions functions = read_table();
    if (!known) known = new Functions(functions);  // never destroyed
  }
  return *known;
}

}  // namespace

void ensure_imported() { table(); }

std::optional<int> number_of(ScalarType dtype) {
  static constexpr auto kNumbers = [] {
    std::array<int, kNumScalarTypes> numbers{};
    numbers.fill(-1);
    for (const auto& [number, type] : kTypes) {
      int& first = numbers[static_cast<size_t>(type)];
      if (first < 0) first = number;
    }
    return numbers;
  }();
  const auto type = static_cast<size_t>(dtype);
  if (type >= kNumbers.size() || kNumbers[type] < 0) return std::nullopt;
  return kNumbers[type];
}

std::optional<ScalarType> dtype_of(const Dtype& dtype) {
  static constexpr auto kDtypes = [] {
    std::array<std::optional<ScalarType>, 24> dtypes{};
    for (const auto& [number, type] : kTypes) dtypes[static_cast<size_t>(number)] = type;
    return dtypes;
  }();
  if (dtype.byte_order != '=' && dtype.byte_order != '|') return std::nullopt;
  const auto number = static_cast<size_t>(dtype.number);
  return number < kDtypes.size() ? kDtypes[number] : std::nullopt;
}

PyObject* make_array(int number, IntList sizes, IntList strides, void* data, bool writable,
                     PyObject* owner) {
  static_assert(sizeof(Py_ssize_t) == sizeof(int64_t));
  Object kept(owner);
  const Functions& functions = table();
  PyObject* descriptor = functions.descriptor(number);
  if (!descriptor) throw PythonError{};
  Object array(functions.new_array(functions.array_type, descriptor, static_cast<int>(sizes.size()),
                                   sizes.data(), strides.data(), data, writable ? kWritable : 0,
                                   nullptr));
  if (functions.set_base(array.get(), kept.release()) < 0) throw PythonError{};
  return array.release();
}

}  // namespace treadle::python::numpy
