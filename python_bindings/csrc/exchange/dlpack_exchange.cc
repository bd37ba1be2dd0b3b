// __dlpack_c_exchange_api__: the table of C functions by which other libraries exchange tensors
// with this one, one lookup for each type instead of a Python call for each tensor.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/engine/named_errors.h"
#include "python_bindings/csrc/arguments/convert.h"
#include "python_bindings/csrc/exchange/dlpack.h"
#include "python_bindings/csrc/tensors/tensor_object.h"

namespace treadle::python {
namespace {

const Tensor& tensor_of(void* object) {
  auto* o = static_cast<PyObject*>(object);
  check<ErrorKind::Type>(is_tensor(o), OpName("__dlpack_c_exchange_api__"),
                         "expected a Tensor, got ", type_text(o));
  return unwrap(o);
}

int from_object(void* object, DLManagedTensorVersioned** out) {
  return guarded([&] {
    *out = make_versioned(tensor_of(object), kDLPackVersion, 0);
    return 0;
  });
}

int to_object(DLManagedTensorVersioned* managed, void** out) {
  return guarded([&] {
    *out = wrap(take_versioned(managed));
    return 0;
  });
}

// The pointers of `out` are those of the tensor itself.
int borrow(void* object, DLTensor* out) {
  return guarded([&] {
    const Tensor& t = tensor_of(object);
    describe_for_export(t, *out);
    // The receiver of the address may write there.
    t.storage()->set_told();
    return 0;
  });
}

// Needs no interpreter lock, and so no Python exception.
int allocate(DLTensor* prototype, DLManagedTensorVersioned** out, void* context,
             void (*set_error)(void* context, const char* kind, const char* message)) {
  constexpr const char* kOp = "__dlpack_c_exchange_api__";
  try {
    check<ErrorKind::Type>(prototype->device.type == 1, OpName(kOp),
                           "expected a tensor on the cpu, got device type ",
                           int64_t{prototype->device.type});
    check<ErrorKind::Value>(
        prototype->ndim >= 0 && prototype->ndim <= 64 && (prototype->ndim == 0 || prototype->shape),
        OpName(kOp), "expected 0 to 64 dimensions with their sizes, got ",
        int64_t{prototype->ndim});
    const IntList sizes(prototype->shape, static_cast<size_t>(prototype->ndim));
    const ScalarType dtype = dtype_of_dl(prototype->dtype, kOp);
    *out = make_versioned(named(kOp, [&] { return empty_cpu(sizes, dtype); }), kDLPackVersion, 0);
    return 0;
  } catch (const std::bad_alloc&) {
    set_error(context, "MemoryError", "__dlpack_c_exchange_api__: expected memory, got none");
  } catch (const std::exception& error) {
    set_error(context, "RuntimeError", error.what());
  }
  return -1;
}

int current_stream(int32_t device_type, int32_t, void** out) {
  return guarded([&] {
    check<ErrorKind::Value>(device_type == 1, OpName("__dlpack_c_exchange_api__"),
                            "expected the cpu, got device type ", int64_t{device_type});
    *out = nullptr;
    return 0;
  });
}

DLPackExchangeAPI api = {kDLPackVersion, nullptr, allocate,      from_object,
                         to_object,      borrow,  current_stream};

}  // namespace

void add_exchange_api(PyTypeObject* type) {
  const Object capsule(PyCapsule_New(&api, "dlpack_exchange_api", nullptr));
  checked(PyObject_SetAttrString(reinterpret_cast<PyObject*>(type), "__dlpack_c_exchange_api__",
                                 capsule.get()));
}

}  // namespace treadle::python
