// Calls of operators by extensions: by name, and those that have functions of their own.
//
// SPDX-License-Identifier: Apache-2.0
#include "core/dispatch/dispatcher.h"

#include <cstring>
#include <optional>

#include "aten/ops/amax.h"
#include "aten/ops/fill_.h"
#include "aten/ops/full.h"
#include "aten/ops/narrow.h"
#include "aten/ops/new_empty.h"
#include "aten/ops/new_zeros.h"
#include "aten/ops/pad.h"
#include "aten/ops/subtract.h"
#include "stable_abi/boundary.h"
#include "stable_abi/numbers.h"
#include "stable_abi/python_functions.h"
#include "stable_abi/stack.h"
#include "stable_abi/versions.h"

namespace treadle::stable_abi {
namespace {

const Operator& operator_named(const char* name, const char* overload) {
  char text[256];
  const size_t length = std::strlen(given(name, "the name of an operator"));
  const size_t more = overload ? std::strlen(overload) : 0;
  check<ErrorKind::Value>(length + more + 2 <= sizeof text,
                          "expected the name of an operator, got a text of ", length, " bytes");
  std::memcpy(text, name, length);
  size_t end = length;
  if (more > 0) {
    text[end++] = '.';
    std::memcpy(text + end, overload, more);
    end += more;
  }
  text[end] = '\0';
  const Dispatcher& dispatcher = Dispatcher::instance();
  if (const Operator* op = dispatcher.find({text, end})) [[likely]]
    return *op;
  const PythonFunctions* python = python_functions();
  if (python) python->define_operator(text);
  return dispatcher.at({text, end});
}

void call(const char* name, const char* overload, StableIValue* stack) {
  const Operator& op = operator_named(name, overload);
  const schema::FunctionSchema& schema = op.schema();
  Stack values;
  values.reserve(schema.arguments.size() + 1);
  adopt_values(stack, schema.arguments, values);
  op.call_boxed(values);
  to_stable(values, schema.returns, stack);
}

IntList list(const int64_t* values, int64_t count) {
  check<ErrorKind::Value>(count >= 0, "expected the length of a list, got ", count);
  if (count > 0) given(values, "a list");
  return {values, static_cast<size_t>(count)};
}
std::optional<ScalarType> dtype(const int32_t* number) {
  return number ? std::optional(dtype_of(*number)) : std::nullopt;
}
std::optional<Layout> layout(const int32_t* number) {
  return number ? std::optional(layout_of(*number)) : std::nullopt;
}
std::optional<Device> device(const int32_t* type, int32_t index) {
  return type ? std::optional(device_of(*type, index)) : std::nullopt;
}
std::optional<bool> boolean(const int32_t* value) {
  return value ? std::optional(*value != 0) : std::nullopt;
}

}  // namespace
}  // namespace treadle::stable_abi

using namespace treadle;              // NOLINT
using namespace treadle::stable_abi;  // NOLINT

AOTITorchError torch_call_dispatcher(const char* name, const char* overload, StableIValue* stack,
                                     uint64_t version) {
  return guarded([&] {
    check_version(version, name ? name : "");
    call(name, overload, stack);
  });
}
AOTITorchError aoti_torch_call_dispatcher(const char* name, const char* overload,
                                          StableIValue* stack) {
  return guarded([&] { call(name, overload, stack); });
}

AOTITorchError aoti_torch_aten_amax(AtenTensorHandle self, const int64_t* dim, int64_t dim_len,
                                    int32_t keepdim, AtenTensorHandle* result) {
  return guarded(
      [&] { *result = new_handle(aten::amax(tensor_of(self), list(dim, dim_len), keepdim != 0)); });
}
AOTITorchError aoti_torch_aten_fill__Scalar(AtenTensorHandle self, double value) {
  return guarded([&] { aten::fill_(tensor_of(self), Scalar(value)); });
}
AOTITorchError aoti_torch_aten_narrow(AtenTensorHandle self, int64_t dim, int64_t start,
                                      int64_t length, AtenTensorHandle* result) {
  return guarded([&] { *result = new_handle(aten::narrow(tensor_of(self), dim, start, length)); });
}
AOTITorchError aoti_torch_aten_new_empty(AtenTensorHandle self, const int64_t* size,
                                         int64_t size_len, int32_t* dtype, int32_t* layout,
                                         int32_t* device, int32_t device_index, int32_t* pin_memory,
                                         AtenTensorHandle* result) {
  return guarded([&] {
    *result = new_handle(aten::new_empty(
        tensor_of(self), list(size, size_len), stable_abi::dtype(dtype), stable_abi::layout(layout),
        stable_abi::device(device, device_index), boolean(pin_memory)));
  });
}
AOTITorchError aoti_torch_aten_new_zeros(AtenTensorHandle self, const int64_t* size,
                                         int64_t size_len, int32_t* dtype, int32_t* layout,
                                         int32_t* device, int32_t device_index, int32_t* pin_memory,
                                         AtenTensorHandle* result) {
  return guarded([&] {
    *result = new_handle(aten::new_zeros(
        tensor_of(self), list(size, size_len), stable_abi::dtype(dtype), stable_abi::layout(layout),
        stable_abi::device(device, device_index), boolean(pin_memory)));
  });
}
AOTITorchError aoti_torch_aten_pad(AtenTensorHandle self, const int64_t* pad, int64_t pad_len,
                                   const char* mode, double* value, AtenTensorHandle* result) {
  return guarded([&] {
    *result = new_handle(aten::pad(tensor_of(self), list(pad, pad_len), given(mode, "a mode"),
                                   value ? std::optional(*value) : std::nullopt));
  });
}
AOTITorchError aoti_torch_aten_full(const int64_t* size, int64_t size_len, double fill_value,
                                    int32_t* dtype, int32_t* layout, int32_t* device,
                                    int32_t device_index, int32_t* pin_memory,
                                    AtenTensorHandle* result) {
  return guarded([&] {
    *result = new_handle(aten::full(list(size, size_len), Scalar(fill_value),
                                    stable_abi::dtype(dtype), stable_abi::layout(layout),
                                    stable_abi::device(device, device_index), boolean(pin_memory)));
  });
}
AOTITorchError aoti_torch_aten_subtract_Tensor(AtenTensorHandle self, AtenTensorHandle other,
                                               double alpha, AtenTensorHandle* result) {
  return guarded([&] {
    *result = new_handle(aten::subtract(tensor_of(self), tensor_of(other), Scalar(alpha)));
  });
}
