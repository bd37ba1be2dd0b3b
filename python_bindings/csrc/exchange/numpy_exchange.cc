// Exchange with NumPy's arrays, by their fields, and with other objects by the buffer protocol. A
// tensor holds the array or the buffer that it was made from until its storage dies. An ndarray
// made from a tensor holds an UntypedStorage, which pins the memory.
//
// SPDX-License-Identifier: Apache-2.0
#include "python_bindings/csrc/exchange/numpy_exchange.h"

#include <bit>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "aten/engine/named_errors.h"
#include "autograd/view.h"
#include "python_bindings/csrc/arguments/arg_parser.h"
#include "python_bindings/csrc/arguments/convert.h"
#include "python_bindings/csrc/exchange/numpy_api.h"
#include "python_bindings/csrc/tensors/storage_object.h"
#include "python_bindings/csrc/tensors/tensor_object.h"

namespace treadle::python {
namespace {

// A buffer held by a storage. Released under the interpreter lock, whichever thread drops the
// storage.
class HeldBuffer {
 public:
  HeldBuffer(PyObject* object, int flags) {
    if (PyObject_GetBuffer(object, &view_, flags) < 0) throw PythonError{};
  }
  HeldBuffer(const HeldBuffer&) = delete;
  HeldBuffer& operator=(const HeldBuffer&) = delete;
  ~HeldBuffer() {
    if (!interpreter_alive()) return;
    AcquireGil gil;
    call_python(PyBuffer_Release, &view_);
  }
  const Py_buffer& view() const { return view_; }

 private:
  Py_buffer view_;
};

// The dtype of a format of the struct module; NumPy writes complex numbers as "Zf" and "Zd".
ScalarType dtype_of_format(const char* format, Py_ssize_t size) {
  std::string_view text = format ? format : "B";
  if (!text.empty() && (text[0] == '@' || text[0] == '=' || text[0] == '<')) text.remove_prefix(1);
  constexpr std::string_view kSigned = "bhilqn", kUnsigned = "BHILQN";
  if (text == "?") return ScalarType::Bool;
  if (text == "e") return ScalarType::Float16;
  if (text == "f") return ScalarType::Float32;
  if (text == "d") return ScalarType::Float64;
  if (text == "Zf") return ScalarType::Complex64;
  if (text == "Zd") return ScalarType::Complex128;
  if (text.size() == 1 && kSigned.find(text[0]) != std::string_view::npos) {
    if (size == 1) return ScalarType::Int8;
    if (size == 2) return ScalarType::Int16;
    if (size == 4) return ScalarType::Int32;
    if (size == 8) return ScalarType::Int64;
  }
  if (text.size() == 1 && kUnsigned.find(text[0]) != std::string_view::npos) {
    if (size == 1) return ScalarType::UInt8;
    if (size == 2) return ScalarType::UInt16;
    if (size == 4) return ScalarType::UInt32;
    if (size == 8) return ScalarType::UInt64;
  }
  fail<ErrorKind::Type>(
      OpName("from_numpy"),
      "expected elements of a type that is a dtype (bool, uint8 to uint64, int8 to "
      "int64, "
      "float16 to float64, complex64, complex128, native byte order), got format '",
      format ? format : "", "'");
}

void warn_read_only() {
  checked(PyErr_WarnEx(PyExc_UserWarning,
                       "The given array or buffer is not writable: writing to a tensor over it is "
                       "an error. Copy it first to "
                       "avoid this.",
                       1));
}

// Memory of an array or a buffer, with its geometry.
struct Memory {
  char* first;
  ScalarType dtype;
  int64_t item_bytes;
  IntList sizes, strides;  // strides in bytes
  bool writable;
};

// A tensor over it. hold() keeps the memory and gives the function that ends this, which runs when
// the storage dies.
template <class Hold>
Tensor tensor_over(const Memory& memory, Hold&& hold) {
  const int64_t item = memory.item_bytes;
  const int shift = std::countr_zero(static_cast<uint64_t>(item));  // a division takes long
  DimVector strides;
  int64_t low = 0, high = 0,
          numel = 1;  // bytes from the first element to the lowest and the highest one
  for (size_t d = 0; d < memory.sizes.size(); ++d) {
    const int64_t size = memory.sizes[d], stride = memory.strides[d];
    check<ErrorKind::Value>((stride & (item - 1)) == 0 || size <= 1, OpName("from_numpy"),
                            "expected strides that are multiples of the ", item,
                            " bytes of an element, got ", stride, "; copy the array first");
    strides.push_back(stride >> shift);
    numel *= size;
    if (size > 1) (stride < 0 ? low : high) += (size - 1) * stride;
  }
  if (numel == 0) return empty_cpu(memory.sizes, memory.dtype);
  char* lowest = memory.first + low;
  const auto alignment = static_cast<uintptr_t>(item_size(to_real(memory.dtype)));
  check<ErrorKind::Value>(reinterpret_cast<uintptr_t>(lowest) % alignment == 0,
                          OpName("from_numpy"), "expected aligned elements; copy the array first");
  Storage storage = make_intrusive<StorageImpl>(lowest, static_cast<size_t>(high - low + item),
                                                kCPU, hold(), memory.writable);
  return Tensor(make_intrusive<TensorImpl>(std::move(storage), memory.dtype, memory.sizes,
                                           IntList(strides), -low >> shift));
}

// Takes a reference; the function that it gives drops it, on whichever thread.
std::function<void()> hold_reference(PyObject* object) {
  Py_INCREF(object);
  return [object] {
    if (!interpreter_alive()) return;
    AcquireGil gil;
    call_python(Py_DecRef, object);
  };
}

std::shared_ptr<HeldBuffer> hold_array(PyObject* array) {
  check<ErrorKind::Type>(PyObject_CheckBuffer(array), OpName("from_numpy"),
                         "expected a NumPy array, got ", type_text(array));
  try {
    return std::make_shared<HeldBuffer>(array, PyBUF_STRIDED_RO | PyBUF_FORMAT);
  } catch (const PythonError&) {
    // NumPy exports no buffer for some of its types (dates, for one).
    PyErr_Clear();
    const Object dtype = attribute(array, "dtype");
    fail<ErrorKind::Type>(OpName("from_numpy"), "expected elements of a type that is a dtype, got ",
                          utf8(Object(PyObject_Str(dtype.get())).get()));
  }
}

}  // namespace

Tensor tensor_from_numpy(PyObject* object, bool warn) {
  if (is_numpy_array(object)) {
    const auto& array = *reinterpret_cast<const numpy::Array*>(object);
    const auto writable = [&] { return (array.flags & numpy::kWritable) != 0; };
    // A warning can run any code, so what is read of the array is read after it.
    if (warn && !writable() && numpy::dtype_of(*array.dtype)) warn_read_only();
    if (const std::optional<ScalarType> dtype = numpy::dtype_of(*array.dtype)) {
      const auto rank = static_cast<size_t>(array.dimensions);
      return tensor_over({array.data,
                          *dtype,
                          item_size(*dtype),
                          {array.sizes, rank},
                          {array.strides, rank},
                          writable()},
                         [&] { return hold_reference(object); });
    }
  }
  auto held = hold_array(object);
  const Py_buffer& view = held->view();
  const ScalarType dtype = dtype_of_format(view.format, view.itemsize);
  if (view.readonly && warn) warn_read_only();
  const auto rank = static_cast<size_t>(view.ndim);
  return tensor_over({static_cast<char*>(view.buf),
                      dtype,
                      view.itemsize,
                      {view.shape, rank},
                      {view.strides, rank},
                      !view.readonly},
                     [&] { return [held] {}; });
}

Tensor tensor_from_buffer(PyObject* buffer, ScalarType dtype, int64_t count, int64_t offset) {
  if (!PyObject_CheckBuffer(buffer)) {
    fail<ErrorKind::Type>(OpName("frombuffer"), "expected an object with the buffer protocol, got ",
                          type_text(buffer));
  }
  auto held = std::make_shared<HeldBuffer>(buffer, PyBUF_SIMPLE);
  const Py_buffer& view = held->view();
  const int64_t length = view.len, item = item_size(dtype);
  check<ErrorKind::Value>(length > 0 && count != 0, OpName("frombuffer"),
                          "expected at least one element, got a buffer of ", length,
                          " bytes and count = ", count);
  check<ErrorKind::Value>(offset >= 0 && offset < length, OpName("frombuffer"),
                          "expected offset in [0, ", length, "), got ", offset);
  check<ErrorKind::Value>(count > 0 || (length - offset) % item == 0, OpName("frombuffer"),
                          "expected the ", length - offset,
                          " bytes after offset to be a multiple of the ", item,
                          " bytes of an element");
  const int64_t available = (length - offset) / item;
  if (count < 0) count = available;
  check<ErrorKind::Value>(count <= available, OpName("frombuffer"), "expected at most ", available,
                          " elements of ", item, " bytes in a buffer of ", length,
                          " bytes, got count = ", count);
  char* first = static_cast<char*>(view.buf) + offset;
  if (view.readonly) warn_read_only();
  if (reinterpret_cast<uintptr_t>(first) % static_cast<uintptr_t>(item_size(to_real(dtype))) != 0) {
    fail<ErrorKind::Value>(OpName("frombuffer"), "expected an offset at which elements of ", item,
                           " bytes are aligned, got ", offset);
  }
  Storage storage = make_intrusive<StorageImpl>(
      first, static_cast<size_t>(count * item), kCPU, [held] {}, !view.readonly);
  return Tensor(make_intrusive<TensorImpl>(std::move(storage), dtype, IntList{count}));
}

PyObject* tensor_to_numpy(const Tensor& t, bool force) {
  check<ErrorKind::Type>(t.is_strided(), OpName("numpy"),
                         "expected a strided tensor, got one of layout ", name_of(t.layout()),
                         "; call to_dense()");
  check<ErrorKind::Runtime>(force || !autograd::records(t), OpName("numpy"),
                            "expected a tensor with requires_grad = False, got one that "
                            "requires grad; use tensor.detach().numpy() instead");
  check<ErrorKind::Type>(t.is_cpu(), OpName("numpy"), "expected a tensor on the cpu, got one on ",
                         t.device(), "; use tensor.cpu() first");
  const bool conjugated = t.impl()->is_conj();
  check<ErrorKind::Runtime>(!conjugated && !t.impl()->is_neg(), OpName("numpy"),
                            "expected a tensor whose ", conjugated ? "is_conj" : "is_neg",
                            "() is False, got one that is computed when it is read; use tensor.",
                            conjugated ? "resolve_conj" : "resolve_neg", "().numpy() instead");
  const std::optional<int> number = numpy::number_of(t.dtype());
  check<ErrorKind::Type>(number.has_value(), OpName("numpy"),
                         "expected a dtype that NumPy has, got ", t.dtype());
  numpy::ensure_imported();
  DimVector bytes(t.strides());
  for (int64_t& stride : bytes) stride *= t.element_size();
  Object storage(wrap_for_array(t.storage()));
  named("numpy", [&] { t.impl()->storage_data(); });  // raises if it is too small
  char* first = static_cast<char*>(t.storage()->data()) + t.storage_offset() * t.element_size();
  return numpy::make_array(*number, t.sizes(), bytes, first, t.storage()->writable(),
                           storage.release());
}

}  // namespace treadle::python
