// tensor([[1, 2], [3, 4]]): finds the shape and dtype from the nested lists first, then writes the
// numbers.
//
// SPDX-License-Identifier: Apache-2.0
#include "python_bindings/csrc/tensors/construct.h"

#include "aten/engine/resolve.h"
#include "aten/engine/stored_types.h"
#include "aten/ops/clone.h"
#include "aten/ops/copy_.h"
#include "aten/ops/reshape.h"
#include "aten/ops/to.h"
#include "python_bindings/csrc/arguments/constants.h"
#include "python_bindings/csrc/arguments/convert.h"
#include "python_bindings/csrc/binding.h"
#include "python_bindings/csrc/exchange/numpy_exchange.h"
#include "python_bindings/csrc/tensors/storage_object.h"

namespace treadle::python {
namespace {

constexpr size_t kMaxDims = 64;

// Strings are sequences of strings for ever; they and mappings are not data.
bool is_sequence(PyObject* o) {
  if (PyList_CheckExact(o) || PyTuple_CheckExact(o)) return true;
  return PySequence_Check(o) && !PyUnicode_Check(o) && !PyBytes_Check(o) && !PyByteArray_Check(o) &&
         !PyDict_Check(o);
}
// Data with a shape and dtype of its own.
bool is_array(PyObject* o) { return is_tensor(o) || is_numpy_array(o) || is_numpy_scalar(o); }
// Arrays of foreign byte order and with elements at odd addresses cannot be shared, but they can be
// copied.
Tensor array_tensor(PyObject* o) {
  if (is_tensor(o)) return unwrap(o);
  if (!is_numpy_array(o)) return tensor_from_numpy(o, false);
  const Object dtype = attribute(o, "dtype");
  const bool native = attribute(dtype.get(), "isnative").get() == Py_True;
  const bool aligned = attribute(attribute(o, "flags").get(), "aligned").get() == Py_True;
  if (native && aligned) return tensor_from_numpy(o, false);
  const Object native_dtype(
      call_python(PyObject_CallMethod, dtype.get(), "newbyteorder", "s", "="));
  const Object copy(call_python(PyObject_CallMethod, o, "astype", "O", native_dtype.get()));
  return tensor_from_numpy(copy.get(), false);
}

// Whether an array within lists stands for a number, whatever its dimensions.
bool is_one_number(PyObject* o, const Tensor& t) { return is_tensor(o) && t.numel() == 1; }

// Reads shape and dtype of nested data, checking that every list of a level has the same length.
class Inference {
 public:
  explicit Inference(PyObject* data) { visit(data, 0); }
  const DimVector& sizes() const { return sizes_; }
  ScalarType dtype() const { return dtype_ ? *dtype_ : default_dtype(); }

 private:
  void visit(PyObject* o, size_t depth) {
    if (PyFloat_CheckExact(o) || PyLong_CheckExact(o)) {
      leaf(depth);
      combine(PyFloat_CheckExact(o) ? default_dtype() : ScalarType::Int64);
    } else if (PyFloat_Check(o) && is_numpy_scalar(o)) {  // a float64 is a Python float, too
      leaf(depth);
      combine(ScalarType::Float64);
    } else if (is_array(o)) {
      const Tensor t = array_tensor(o);
      if (!is_one_number(o, t))
        for (const int64_t n : t.sizes()) level(depth++, n);
      leaf(depth);
      combine(t.dtype());
    } else if (is_number(o)) {
      leaf(depth);
      combine(PyBool_Check(o)      ? ScalarType::Bool
              : PyFloat_Check(o)   ? default_dtype()
              : PyComplex_Check(o) ? to_complex(default_dtype())
                                   : ScalarType::Int64);
    } else if (is_sequence(o)) {
      visit_sequence(o, depth);
    } else {
      fail<ErrorKind::Type>(OpName("tensor"),
                            "expected numbers, lists of numbers, arrays or tensors, got ",
                            type_text(o));
    }
  }

  void visit_sequence(PyObject* o, size_t depth) {
    const Within here{o, within_};
    for (const Within* outer = within_; outer; outer = outer->up)
      check<ErrorKind::Type>(outer->list != o, OpName("tensor"),
                             "expected lists that end, got one that "
                             "contains itself");
    within_ = &here;
    visit_items(o, depth);
    within_ = here.up;
  }

  void visit_items(PyObject* o, size_t depth) {
    Object items(PySequence_Fast(o, "expected a sequence"));
    level(depth, PySequence_Fast_GET_SIZE(items.get()));
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items.get()); ++i) {
      Object item = Object::borrow(PySequence_Fast_GET_ITEM(items.get(), i));
      visit(item.get(), depth + 1);
    }
    if (PySequence_Fast_GET_SIZE(items.get()) == 0) leaf(depth + 1);
  }

  // A list of `size` items at `depth`.
  void level(size_t depth, int64_t size) {
    check<ErrorKind::Value>(depth < kMaxDims, OpName("tensor"), "expected at most ", kMaxDims,
                            " nested lists");
    if (depth == sizes_.size() && !complete_) sizes_.push_back(size);
    check<ErrorKind::Value>(depth < sizes_.size(), OpName("tensor"),
                            "expected a number at dimension ", depth, ", got a list of length ",
                            size);
    check<ErrorKind::Value>(sizes_[depth] == size, OpName("tensor"), "expected a list of length ",
                            sizes_[depth], " at dimension ", depth, ", got length ", size);
  }
  // A number, or the end of an empty list, below `depth` lists. The first one says how deep the
  // data is.
  void leaf(size_t depth) {
    complete_ = true;
    check<ErrorKind::Value>(depth == sizes_.size(), OpName("tensor"),
                            "expected a list at dimension ", depth, ", got a number");
  }
  void combine(ScalarType dtype) { dtype_ = dtype_ ? promote_types(*dtype_, dtype) : dtype; }

  // The lists around the current item, the innermost first.
  struct Within {
    PyObject* list;
    const Within* up;
  };
  const Within* within_ = nullptr;
  DimVector sizes_;
  bool complete_ = false;
  std::optional<ScalarType> dtype_;
};

bool is_beyond_int64(PyObject* o) {
  int overflow = 0;
  PyLong_AsLongLongAndOverflow(o, &overflow);
  return overflow != 0;
}

template <class T>
T number_as(PyObject* o) {
  if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double>) {
    if (PyFloat_CheckExact(o)) return static_cast<T>(PyFloat_AS_DOUBLE(o));
    if (PyLong_CheckExact(o) && is_beyond_int64(o)) {
      const double value = PyLong_AsDouble(o);
      if (value == -1 && PyErr_Occurred()) throw PythonError{};
      return static_cast<T>(value);
    }
  }
  if constexpr (std::is_same_v<T, bool>) {
    if (PyLong_CheckExact(o) && is_beyond_int64(o)) return true;
  }
  if constexpr (!is_complex_type<T>) {
    // A float in an integer tensor loses its fraction, as with int(). Infinities and NaN have no
    // integer value.
    const Scalar value = to_scalar("tensor", o);
    return value.checked_to<T>("tensor");
  } else {
    return to_scalar("tensor", o).to<T>();
  }
}

// Writes nested data of known shape in row-major order. Lists that changed since their shape was
// read are an error.
template <class T>
class Writer {
 public:
  explicit Writer(const Tensor& out) : out_(out), next_(out.data_as<T>()) {}
  void write(PyObject* o, size_t depth) {
    const IntList sizes = out_.sizes();
    if (is_array(o)) {
      const Tensor t = array_tensor(o);
      const bool number = depth == sizes.size() && t.numel() == 1;
      return write_array(number ? aten::reshape(t, IntList()) : t, depth);
    }
    if (depth == sizes.size()) {
      *next_++ = number_as<T>(o);
      return;
    }
    check<ErrorKind::Runtime>(is_sequence(o), OpName("tensor"),
                              "expected the data to stay as it is while it is read");
    Object items(PySequence_Fast(o, "expected a sequence"));
    for (int64_t i = 0; i < sizes[depth]; ++i) {
      check<ErrorKind::Runtime>(PySequence_Fast_GET_SIZE(items.get()) == sizes[depth],
                                OpName("tensor"),
                                "expected the data to stay as it is while it is read");
      Object item = Object::borrow(PySequence_Fast_GET_ITEM(items.get(), i));
      write(item.get(), depth + 1);
    }
  }

 private:
  void write_array(const Tensor& source, size_t depth) {
    const IntList rest = out_.sizes().slice(depth);
    check<ErrorKind::Runtime>(source.sizes() == rest, OpName("tensor"),
                              "expected the data to stay as it is while it is read");
    const NoGrad no_grad;
    const Tensor part =
        alias_with_geometry(out_, rest, contiguous_strides(rest), next_ - out_.data_as<T>());
    run([&] { aten::copy_(part, source); }, source);
    next_ += source.numel();
  }

  const Tensor& out_;
  T* next_;
};

Tensor detached_copy(const Tensor& t, std::optional<ScalarType> dtype, Device device) {
  const NoGrad no_grad;
  const Tensor converted = convert_to(t, dtype, device, true);
  return converted.is_same(t) ? run([&] { return aten::clone(t); }, t) : converted;
}

}  // namespace

Tensor convert_to(const Tensor& t, std::optional<ScalarType> dtype, std::optional<Device> device,
                  bool copy) {
  const ScalarType wanted = dtype.value_or(t.dtype());
  const Device target = device.value_or(t.device());
  if (!copy && wanted == t.dtype() && target == t.device()) return t;
  return run(
      [&] {
        return aten::to(t, wanted, std::nullopt, target, std::nullopt, false, copy, std::nullopt);
      },
      t, target);
}

namespace {

// A tensor over a storage's memory, which the two share; nothing for data of another kind. A
// storage of bytes counts as one of integers if no dtype is given, as programs expect.
Tensor over_storage(PyObject* data, std::optional<ScalarType> dtype) {
  if (const Storage* storage = as_storage(data))
    return tensor_over(*storage, dtype.value_or(ScalarType::Int64));
  PyObject* found = PyObject_GetAttrString(data, "_untyped_storage");
  if (!found) {
    if (!PyErr_ExceptionMatches(PyExc_AttributeError)) throw PythonError{};
    PyErr_Clear();
    return {};
  }
  const Object untyped(found);
  const Storage* storage = as_storage(found);
  if (!storage) return {};
  const auto own = as_dtype(attribute(data, "dtype").get());
  if (!own) return {};
  check<ErrorKind::Runtime>(dtype.value_or(*own) == *own, OpName("tensor"),
                            "expected a storage of dtype ", name_of(dtype.value_or(*own)),
                            ", or one of bytes, got one of dtype ", name_of(*own));
  return tensor_over(*storage, *own);
}

}  // namespace

Tensor tensor_from_data(PyObject* data, std::optional<ScalarType> dtype, Device device) {
  if (is_array(data)) return detached_copy(array_tensor(data), dtype, device);
  if (!PyList_CheckExact(data) && !PyTuple_CheckExact(data) && !is_number(data)) {
    if (Tensor over = over_storage(data, dtype); over.defined())
      return convert_to(over, dtype, device);
  }
  const Inference inferred(data);
  const ScalarType type = dtype.value_or(inferred.dtype());
  const ScalarType written = is_stored(type) ? computed_type(type) : type;
  Tensor out = empty_cpu(inferred.sizes(), written);
  if (out.numel() > 0) {
    visit_type(AllTypes(), written, [&]<class T>() { Writer<T>(out).write(data, 0); });
  }
  if (written != type) return convert_to(out, type, device);
  return device.is_cpu() ? out : convert_to(out, type, device);
}

}  // namespace treadle::python
