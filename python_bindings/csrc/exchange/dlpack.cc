// DLPack capsules. A consumer that takes the contents renames the capsule. A capsule that no
// consumer took frees its contents itself.
//
// SPDX-License-Identifier: Apache-2.0
#include "python_bindings/csrc/exchange/dlpack.h"

#include <array>
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

// The type codes of dtypes that are no plain numbers; 0 for all others.
uint8_t code_of_stored(ScalarType dtype) {
  switch (dtype) {
    case ScalarType::Float8_e4m3fn:
      return 10;
    case ScalarType::Float8_e4m3fnuz:
      return 11;
    case ScalarType::Float8_e5m2:
      return 12;
    case ScalarType::Float8_e5m2fnuz:
      return 13;
    case ScalarType::Float8_e8m0fnu:
      return 14;
    case ScalarType::Float4_e2m1fn_x2:
      return 17;
    default:
      return 0;
  }
}

std::optional<DLDataType> find_dl(ScalarType dtype) {
  if (is_outside(dtype)) return std::nullopt;
  const auto bits = static_cast<uint8_t>(item_size(dtype) * 8);
  if (dtype == ScalarType::Float4_e2m1fn_x2) return DLDataType{17, 4, 2};  // two in a byte
  if (const uint8_t code = code_of_stored(dtype)) return DLDataType{code, bits, 1};
  if (dtype == ScalarType::Complex32) return DLDataType{5, bits, 1};
  if (is_stored(dtype)) return std::nullopt;
  uint8_t code = 0;
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
  return DLDataType{code, bits, 1};
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
  DLTensor described;
  describe_for_export(t, described);  // where it throws, nothing is held yet
  auto e = std::make_unique<Export<Managed>>(t);
  e->managed.context = e.get();
  e->managed.deleter = [](Managed* self) { delete static_cast<Export<Managed>*>(self->context); };
  e->managed.tensor = described;
  e->managed.tensor.shape = e->sizes.data();
  e->managed.tensor.strides = e->strides.data();
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
  check<ErrorKind::Value>(dl.ndim >= 0 && dl.ndim <= 64 && (dl.ndim == 0 || dl.shape),
                          OpName("from_dlpack"),
                          "expected 0 to 64 dimensions with their sizes, got ", int64_t{dl.ndim});
  const ScalarType dtype = dtype_of_dl(dl.dtype, "from_dlpack");
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
    checked(PyCapsule_SetName(capsule, kUsedVersionedName));
    return take_versioned(managed);
  }
  if (PyCapsule_IsValid(capsule, kName)) {
    auto* managed = static_cast<DLManagedTensor*>(PyCapsule_GetPointer(capsule, kName));
    checked(PyCapsule_SetName(capsule, kUsedName));
    return import_tensor(managed->tensor, take_over(managed), false);
  }
  fail<ErrorKind::Runtime>(OpName("from_dlpack"),
                           "expected a DLPack capsule that nobody has taken yet");
}

// The element types of all dtypes; one without bits is a dtype that others do not know.
const auto dl_types = [] {
  std::array<DLDataType, kNumDtypes> table{};
  for (size_t i = 0; i < table.size(); ++i)
    table[i] = find_dl(static_cast<ScalarType>(i)).value_or(DLDataType{});
  return table;
}();

}  // namespace

void refuse_export(const std::string& message) {
  PyErr_SetString(PyExc_BufferError, ("__dlpack__: " + message).c_str());
  throw PythonError{};
}

ScalarType dtype_of_dl(DLDataType type, const char* op) {
  for (int i = 0; i < kNumDtypes; ++i) {
    const auto candidate = find_dl(static_cast<ScalarType>(i));
    if (candidate && candidate->code == type.code && candidate->bits == type.bits &&
        candidate->lanes == type.lanes)
      return static_cast<ScalarType>(i);
  }
  fail<ErrorKind::Type>(OpName(op), "expected an element type that is a dtype, got type code ",
                        int64_t{type.code}, " with ", int64_t{type.bits}, " bits and ",
                        int64_t{type.lanes}, " lanes");
}

DLDataType dl_type(ScalarType dtype, const char* op) {
  const auto number = static_cast<size_t>(dtype);
  check<ErrorKind::Type>(number < dl_types.size() && dl_types[number].bits != 0, OpName(op),
                         "expected a dtype that others know, got ", dtype);
  return dl_types[number];
}

void describe_tensor(const Tensor& t, DLTensor& out, const char* op) {
  check<ErrorKind::Runtime>(t.is_cpu() && t.is_strided(), OpName(op),
                            "expected a strided tensor on the cpu, got one on ", t.device(),
                            " of layout ", name_of(t.layout()));
  check<ErrorKind::Runtime>(!t.impl()->is_conj() && !t.impl()->is_neg(), OpName(op),
                            "expected a tensor whose bytes are its values, got one whose "
                            "is_conj() or is_neg() is True; use resolve_conj() or resolve_neg()");
  out = {t.numel() ? named(op, [&] { return t.data(); }) : nullptr,
         {kDLCpu, 0},
         static_cast<int32_t>(t.dim()),
         dl_type(t.dtype(), op),
         const_cast<int64_t*>(t.sizes().data()),
         const_cast<int64_t*>(t.strides().data()),
         0};
}

void describe_for_export(const Tensor& t, DLTensor& out) {
  if (!t.is_cpu()) refuse_export(str("expected a tensor on the cpu, got one on ", t.device()));
  if (!find_dl(t.dtype())) refuse_export(str("expected a dtype that others know, got ", t.dtype()));
  describe_tensor(t, out, "__dlpack__");
}

DLManagedTensorVersioned* make_versioned(const Tensor& t, DLPackVersion version, uint64_t flags) {
  auto* managed = make_export<DLManagedTensorVersioned>(t);
  managed->version = version;
  managed->flags = flags | (t.storage()->writable() ? 0 : kDLReadOnly);
  return managed;
}

Tensor take_versioned(DLManagedTensorVersioned* managed) {
  const std::shared_ptr<void> owner = take_over(managed);
  check<ErrorKind::Runtime>(managed->version.major == kDLPackVersion.major, OpName("from_dlpack"),
                            "expected DLPack version 1, got ", uint64_t{managed->version.major});
  return import_tensor(managed->tensor, owner, managed->flags & kDLReadOnly);
}

PyObject* tensor_to_dlpack(const Tensor& t, std::optional<DLPackVersion> version, bool copied) {
  if (t.requires_grad())
    refuse_export("expected a tensor that does not require grad; detach it first");
  if (!version) {
    if (t.is_cpu() && t.is_strided() && !t.storage()->writable())
      refuse_export("expected max_version = (1, 0) or later for a tensor that is read-only");
    auto* managed = make_export<DLManagedTensor>(t);
    PyObject* capsule =
        PyCapsule_New(managed, kName, [](PyObject* c) { free_unused<DLManagedTensor>(c, kName); });
    if (!capsule) managed->deleter(managed);
    return Object(capsule).release();
  }
  auto* managed = make_versioned(t, *version, copied ? kDLIsCopied : 0);
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
  Object keywords(
      Py_BuildValue("{s:(II)}", "max_version", kDLPackVersion.major, kDLPackVersion.minor));
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
