// DLPack capsules. A consumer that takes the contents renames the capsule. A capsule that no
// consumer took frees its contents itself.
//
// SPDX-License-Identifier: Apache-2.0
#include "python_bindings/csrc/exchange/dlpack.h"

#include <memory>

#include "aten/engine/named_errors.h"
#include "python_bindings/csrc/arguments/convert.h"

namespace treadle::python {
namespace {

constexpr const char* kName = "dltensor";
constexpr const char* kUsedName = "used_dltensor";
constexpr const char* kVersionedName = "dltensor_versioned";
constexpr const char* kUsedVersionedName = "used_dltensor_versioned";
constexpr int32_t kDLCpu = 1;

DLDataType to_dl(ScalarType dtype) {
  const auto bits = static_cast<uint8_t>(item_size(dtype) * 8);
  uint8_t code = 0;
  check<ErrorKind::Type>(!is_stored(dtype) || dtype == ScalarType::Complex32, OpName("__dlpack__"),
                         "expected a dtype that others know, got ", dtype);
  if (dtype == ScalarType::Bool)
    code = 6;
  else if (is_integral(dtype, false) && !is_signed(dtype))
    code = 1;
  else if (dtype == ScalarType::BFloat16)
    code = 4;
  else if (is_floating(dtype))
    code = 2;
  else if (is_complex(dtype))
    code = 5;
  return {code, bits, 1};
}

ScalarType from_dl(DLDataType type) {
  for (int i = 0; i < kNumScalarTypes; ++i) {
    const auto dtype = static_cast<ScalarType>(i);
    const DLDataType candidate = to_dl(dtype);
    if (candidate.code == type.code && candidate.bits == type.bits && type.lanes == 1) return dtype;
  }
  fail<ErrorKind::Type>(OpName("from_dlpack"),
                        "expected an element type that is a dtype, got type code ",
                        int64_t{type.code}, " with ", int64_t{type.bits}, " bits and ",
                        int64_t{type.lanes}, " lanes");
}

// The state of an exported tensor as long as the consumer holds it. The tensor itself may get
// another storage meanwhile.
template <class Managed>
struct Export {
  explicit Export(const Tensor& t) : storage(t.storage()), sizes(t.sizes()), strides(t.strides()) {
    storage->hold(Holder::DLPack);
  }
  ~Export() { storage->let_go(Holder::DLPack); }
  Export(const Export&) = delete;
  Export& operator=(const Export&) = delete;

  Storage storage;
  DimVector sizes, strides;
  Managed managed{};
};

template <class Managed>
Managed* make_export(const Tensor& t) {
  check<ErrorKind::Runtime>(!t.impl()->is_conj() && !t.impl()->is_neg(), OpName("__dlpack__"),
                            "expected a tensor whose bytes are its values, got one whose "
                            "is_conj() or is_neg() is True; use resolve_conj() or resolve_neg()");
  auto e = std::make_unique<Export<Managed>>(t);
  e->managed.context = e.get();
  e->managed.deleter = [](Managed* self) { delete static_cast<Export<Managed>*>(self->context); };
  e->managed.tensor = {t.numel() ? named("__dlpack__", [&] { return t.data(); }) : nullptr,
                       {kDLCpu, 0},
                       static_cast<int32_t>(t.dim()),
                       to_dl(t.dtype()),
                       e->sizes.data(),
                       e->strides.data(),
                       0};
  return &e.release()->managed;
}

template <class Managed>
void free_unused(PyObject* capsule, const char* name) {
  if (!PyCapsule_IsValid(capsule, name)) return;  // taken over by a consumer
  auto* managed = static_cast<Managed*>(PyCapsule_GetPointer(capsule, name));
  if (managed->deleter) managed->deleter(managed);
}

// A tensor over `dl`, which `owner` keeps alive.
Tensor import_tensor(const DLTensor& dl, std::shared_ptr<void> owner, bool read_only) {
  check<ErrorKind::NotImplemented>(dl.device.type == kDLCpu, OpName("from_dlpack"),
                                   "expected a tensor on the cpu, got device type ",
                                   int64_t{dl.device.type});
  check<ErrorKind::Value>(dl.ndim >= 0 && dl.ndim <= 64, OpName("from_dlpack"),
                          "expected 0 to 64 dimensions, got ", int64_t{dl.ndim});
  const ScalarType dtype = from_dl(dl.dtype);
  const DimVector sizes(dl.shape, dl.shape + dl.ndim);
  const int64_t numel = checked_numel(sizes, item_size(dtype));
  if (numel == 0) return empty_cpu(sizes, dtype);
  check<ErrorKind::Value>(dl.data != nullptr, OpName("from_dlpack"),
                          "expected data, got a null pointer");
  const DimVector strides =
      dl.strides ? DimVector(dl.strides, dl.strides + dl.ndim) : contiguous_strides(sizes);
  int64_t low = 0, high = 0;
  for (int d = 0; d < dl.ndim; ++d) {
    int64_t reach = 0;
    const auto at = static_cast<size_t>(d);
    int64_t& end = strides[at] < 0 ? low : high;
    check<ErrorKind::Value>(!__builtin_mul_overflow(sizes[at] - 1, strides[at], &reach) &&
                                !__builtin_add_overflow(end, reach, &end) &&
                                end < (int64_t{1} << 58) && end > -(int64_t{1} << 58),
                            OpName("from_dlpack"),
                            "expected strides inside the address space, got ", strides);
  }
  char* first = static_cast<char*>(dl.data) + dl.byte_offset + low * item_size(dtype);
  check<ErrorKind::Value>(
      reinterpret_cast<uintptr_t>(first) % static_cast<uintptr_t>(item_size(to_real(dtype))) == 0,
      OpName("from_dlpack"), "expected aligned elements; copy the tensor first");
  const auto bytes = static_cast<size_t>((high - low + 1) * item_size(dtype));
  Storage storage = make_intrusive<StorageImpl>(
      first, bytes, kCPU, [owner] {}, !read_only);
  Tensor t(make_intrusive<TensorImpl>(std::move(storage), dtype, IntList{0}));
  t.impl()->set_geometry(sizes, strides, -low);
  return t;
}

// The deleter of another library may run Python code.
template <class Managed>
std::shared_ptr<void> take_over(Managed* managed) {
  return std::shared_ptr<void>(managed, [](void* p) {
    auto* held = static_cast<Managed*>(p);
    if (!held->deleter || !interpreter_alive()) return;
    AcquireGil gil;
    call_python(held->deleter, held);
  });
}

Tensor from_capsule(PyObject* capsule) {
  if (PyCapsule_IsValid(capsule, kVersionedName)) {
    auto* managed =
        static_cast<DLManagedTensorVersioned*>(PyCapsule_GetPointer(capsule, kVersionedName));
    check<ErrorKind::Runtime>(managed->version.major == 1, OpName("from_dlpack"),
                              "expected DLPack version 1, got ", uint64_t{managed->version.major});
    checked(PyCapsule_SetName(capsule, kUsedVersionedName));
    return import_tensor(managed->tensor, take_over(managed), managed->flags & 1);
  }
  if (PyCapsule_IsValid(capsule, kName)) {
    auto* managed = static_cast<DLManagedTensor*>(PyCapsule_GetPointer(capsule, kName));
    checked(PyCapsule_SetName(capsule, kUsedName));
    return import_tensor(managed->tensor, take_over(managed), false);
  }
  fail<ErrorKind::Runtime>(OpName("from_dlpack"),
                           "expected a DLPack capsule that nobody has taken yet");
}

}  // namespace

void refuse_export(const std::string& message) {
  PyErr_SetString(PyExc_BufferError, ("__dlpack__: " + message).c_str());
  throw PythonError{};
}

PyObject* tensor_to_dlpack(const Tensor& t, bool versioned) {
  if (t.requires_grad())
    refuse_export("expected a tensor that does not require grad; detach it first");
  if (!t.is_cpu()) refuse_export(str("expected a tensor on the cpu, got one on ", t.device()));
  if (!versioned) {
    auto* managed = make_export<DLManagedTensor>(t);
    PyObject* capsule =
        PyCapsule_New(managed, kName, [](PyObject* c) { free_unused<DLManagedTensor>(c, kName); });
    if (!capsule) managed->deleter(managed);
    return Object(capsule).release();
  }
  auto* managed = make_export<DLManagedTensorVersioned>(t);
  managed->version = {1, 0};
  managed->flags = t.storage()->writable() ? 0 : 1;
  PyObject* capsule = PyCapsule_New(managed, kVersionedName, [](PyObject* c) {
    free_unused<DLManagedTensorVersioned>(c, kVersionedName);
  });
  if (!capsule) managed->deleter(managed);
  return Object(capsule).release();
}

Tensor tensor_from_dlpack(PyObject* source) {
  if (PyCapsule_CheckExact(source)) return from_capsule(source);
  Object method = Object::maybe(PyObject_GetAttrString(source, "__dlpack__"));
  if (!method) {
    PyErr_Format(PyExc_AttributeError, "from_dlpack: expected an object with __dlpack__, got %s",
                 type_text(source).c_str());
    throw PythonError{};
  }
  Object none_args(PyTuple_New(0));
  Object keywords(Py_BuildValue("{s:(ii)}", "max_version", 1, 0));
  Object capsule =
      Object::maybe(call_python(PyObject_Call, method.get(), none_args.get(), keywords.get()));
  if (!capsule) {
    if (!PyErr_ExceptionMatches(PyExc_TypeError)) throw PythonError{};
    PyErr_Clear();  // made before version 1, without max_version
    capsule = Object(call_python(PyObject_CallNoArgs, method.get()));
  }
  return from_capsule(capsule.get());
}

}  // namespace treadle::python
