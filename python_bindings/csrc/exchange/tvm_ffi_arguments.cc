// Values of tvm-ffi for tensors, texts and lists.
//
// SPDX-License-Identifier: Apache-2.0
#include "python_bindings/csrc/exchange/tvm_ffi_arguments.h"

namespace treadle::python::tvm_ffi {

Arguments::~Arguments() {
  for (void* const object : objects_) function_.release(object);
}

void Arguments::add(const Any& value) {
  check<ErrorKind::Value>(count_ < kMostArguments, OpName(function_.name), "expected at most ",
                          kMostArguments, " arguments, got more");
  values_[count_++] = value;
}

void Arguments::add(const Tensor& t) {
  add(Any{.type_index = t.defined() ? kDLTensorPtr : kNone});
  if (!t.defined()) return;
  DLTensor& described = tensors_[count_ - 1];
  describe_tensor(t, described, function_.name.c_str());
  values_[count_ - 1].as.pointer = &described;
}

Any Arguments::text(std::string_view text) {
  const auto& kept = texts_.emplace_back(std::make_unique<std::string>(text));
  check<ErrorKind::Value>(text.find('\0') == std::string_view::npos, OpName(function_.name),
                          "expected a text without null characters, got one of ", text.size(),
                          " bytes with one");
  Any a{.type_index = kRawStr};
  a.as.text = kept->c_str();
  return a;
}

Any Arguments::dtype(ScalarType dtype) const {
  Any a{.type_index = kDataType};
  a.as.dtype = dl_type(dtype, function_.name.c_str());
  return a;
}

Any Arguments::device(Device device) const {
  check<ErrorKind::Value>(device.is_cpu(), OpName(function_.name), "expected the device cpu, got ",
                          device);
  Any a{.type_index = kDevice};
  a.as.device = {1, 0};
  return a;
}

void Arguments::require_library(const void* what) const {
  check<ErrorKind::Runtime>(what && function_.release, OpName(function_.name),
                            "expected a library that is linked with libtvm_ffi, which makes "
                            "lists, got one that is not, and a list");
}

Any Arguments::object(void* made, TypeIndex type) {
  objects_.push_back(made);
  Any a{.type_index = type};
  a.as.pointer = made;
  return a;
}

Any Arguments::tensor_object(const Tensor& t) {
  if (!t.defined()) return {};
  require_library(reinterpret_cast<const void*>(function_.from_dlpack));
  DLTensor described;
  describe_tensor(t, described, function_.name.c_str());  // an error of the function
  objects_.reserve(objects_.size() + 1);
  DLManagedTensorVersioned* const managed = make_versioned(t, kDLPackVersion, 0);
  void* made = nullptr;
  const int status = function_.from_dlpack(managed, 0, 0, &made);
  if (status != 0) {
    managed->deleter(managed);
    raise_error(function_, status);
  }
  return object(made, kTensor);
}

Any Arguments::list(const std::vector<Any>& elements) {
  require_library(function_.make_array);
  objects_.reserve(objects_.size() + 1);
  Any result;
  const int status = function_.call_object(function_.make_array, elements.data(),
                                           static_cast<int32_t>(elements.size()), &result);
  if (status != 0) raise_error(function_, status);
  return object(result.as.pointer, static_cast<TypeIndex>(result.type_index));
}

}  // namespace treadle::python::tvm_ffi
