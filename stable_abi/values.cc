// The values that do not fit 64 bits: lists, texts, the places of optional values, generators.
//
// SPDX-License-Identifier: Apache-2.0
#include "stable_abi/boundary.h"
#include "stable_abi/numbers.h"

using namespace treadle;              // NOLINT
using namespace treadle::stable_abi;  // NOLINT

// ---- lists

namespace treadle::stable_abi {
namespace {
StableIValue& element_of(StableListHandle handle, size_t index) {
  List& list = list_of(handle);
  check<ErrorKind::Index>(index < list.size(), "expected an index of a list of ", list.size(),
                          " elements, got ", index);
  return list[index];
}
}  // namespace
}  // namespace treadle::stable_abi

AOTITorchError torch_new_list_reserve_size(size_t size, StableListHandle* result) {
  return guarded([&] {
    auto list = std::make_unique<List>();
    list->reserve(size);
    *result = reinterpret_cast<StableListHandle>(list.release());
  });
}
AOTITorchError torch_list_size(StableListHandle list, size_t* result) {
  return guarded([&] { *result = list_of(list).size(); });
}
AOTITorchError torch_list_get_item(StableListHandle list, size_t index, StableIValue* result) {
  return guarded([&] { *result = element_of(list, index); });
}
AOTITorchError torch_list_set_item(StableListHandle list, size_t index, StableIValue element) {
  return guarded([&] { element_of(list, index) = element; });
}
AOTITorchError torch_list_push_back(StableListHandle list, StableIValue element) {
  return guarded([&] { list_of(list).push_back(element); });
}
AOTITorchError torch_delete_list(StableListHandle list) {
  return guarded([&] { delete reinterpret_cast<List*>(list); });
}

// ---- texts

AOTITorchError torch_new_string_handle(const char* data, size_t length, StringHandle* result) {
  return guarded([&] {
    if (length > 0) given(data, "a text");
    *result = reinterpret_cast<StringHandle>(new std::string(data ? data : "", length));
  });
}
AOTITorchError torch_delete_string(StringHandle string) {
  return guarded([&] { delete reinterpret_cast<std::string*>(string); });
}
AOTITorchError torch_string_length(StringHandle string, size_t* result) {
  return guarded([&] { *result = string_of(string).size(); });
}
AOTITorchError torch_string_c_str(StringHandle string, const char** result) {
  return guarded([&] { *result = string_of(string).c_str(); });
}

// ---- places of optional values

// Extensions for versions before 2.13 use `new` and `delete` themselves, so these must match.
AOTITorchError torch_new_stable_ivalue(StableIValue** result) {
  return guarded([&] { *result = new StableIValue(0); });
}
AOTITorchError torch_delete_stable_ivalue(StableIValue* value) {
  return guarded([&] { delete given(value, "a value"); });
}

// ---- generators

AOTITorchError torch_new_generator_handle(AtenGeneratorHandle generator,
                                          AtenGeneratorHandle* result) {
  return guarded([&] {
    *result = reinterpret_cast<AtenGeneratorHandle>(new Generator(generator_of(generator)));
  });
}
AOTITorchError torch_delete_generator(AtenGeneratorHandle generator) {
  return guarded([&] { delete reinterpret_cast<Generator*>(generator); });
}
AOTITorchError torch_generator_get_device(AtenGeneratorHandle generator, int32_t* device_type,
                                          int32_t* device_index) {
  return guarded([&] {
    const Device device = generator_of(generator)->device();
    *device_type = number_of(device.type);
    *device_index = device.index;
  });
}
