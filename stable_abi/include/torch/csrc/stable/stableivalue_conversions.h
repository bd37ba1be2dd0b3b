// detail::from and detail::to: values of C++ as the 64 bits of boxed calls, and back.
//
// `from` makes new references; `to` takes over what the bits point to.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <torch/csrc/stable/generator.h>
#include <torch/csrc/stable/tensor.h>
#include <torch/headeronly/util/shim_utils.h>

HIDDEN_NAMESPACE_BEGIN(torch, stable, detail)

// ---- numbers and handles: their own bytes, from the lowest on

template <typename T, typename = void>
struct Conversion {
  static_assert(sizeof(T) <= sizeof(StableIValue) && std::is_trivially_copyable_v<T>,
                "expected a type that the stable ABI carries");
  static StableIValue from(const T& value) {
    StableIValue bits = 0;
    std::memcpy(&bits, &value, sizeof value);
    return bits;
  }
  static T to(StableIValue bits) {
    T value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
  }
};

template <typename T>
StableIValue from(const T& value) {
  return Conversion<T>::from(value);
}
template <typename T>
T to(StableIValue bits) {
  return Conversion<T>::to(bits);
}

template <>
struct Conversion<std::nullopt_t> {
  static StableIValue from(std::nullopt_t) { return 0; }
};

// ---- numbers that the library tells

#define TREADLE_NUMBERED(Type, from_number)                                                      \
  template <>                                                                                    \
  struct Conversion<Type> {                                                                      \
    static StableIValue from(Type value) { return Conversion<int32_t>::from(number_of(value)); } \
    static Type to(StableIValue bits) { return from_number(Conversion<int32_t>::to(bits)); }     \
  };
TREADLE_NUMBERED(torch::headeronly::ScalarType, dtype_of)
TREADLE_NUMBERED(torch::headeronly::DeviceType, device_type_of)
TREADLE_NUMBERED(torch::headeronly::Layout, layout_of)
TREADLE_NUMBERED(torch::headeronly::MemoryFormat, memory_format_of)
#undef TREADLE_NUMBERED

template <>
struct Conversion<Device> {
  static StableIValue from(const Device& device) {
    return static_cast<uint64_t>(static_cast<uint32_t>(number_of(device.type()))) << 32 |
           static_cast<uint32_t>(device.index());
  }
  static Device to(StableIValue bits) {
    return {device_type_of(static_cast<int32_t>(bits >> 32)), static_cast<int32_t>(bits)};
  }
};

// ---- references

template <>
struct Conversion<Tensor> {
  static StableIValue from(const Tensor& tensor) {
    AtenTensorHandle handle = nullptr;
    STABLE_TORCH_ERROR_CODE_CHECK(aoti_torch_new_tensor_handle(tensor.get(), &handle));
    return Conversion<AtenTensorHandle>::from(handle);
  }
  static Tensor to(StableIValue bits) { return Tensor(Conversion<AtenTensorHandle>::to(bits)); }
};

#if TORCH_FEATURE_VERSION >= TORCH_VERSION_2_13_0
template <>
struct Conversion<Generator> {
  static StableIValue from(const Generator& generator) {
    AtenGeneratorHandle handle = nullptr;
    STABLE_TORCH_ERROR_CODE_CHECK(torch_new_generator_handle(generator.get(), &handle));
    return Conversion<AtenGeneratorHandle>::from(handle);
  }
  static Generator to(StableIValue bits) {
    return Generator(Conversion<AtenGeneratorHandle>::to(bits));
  }
};
#endif

#if TORCH_FEATURE_VERSION >= TORCH_VERSION_2_10_0

template <>
struct Conversion<std::string> {
  static StableIValue from(const std::string& text) {
    StringHandle handle = nullptr;
    STABLE_TORCH_ERROR_CODE_CHECK(torch_new_string_handle(text.data(), text.size(), &handle));
    return Conversion<StringHandle>::from(handle);
  }
  static std::string to(StableIValue bits) {
    const StringHandle handle = Conversion<StringHandle>::to(bits);
    size_t length = 0;
    const char* data = nullptr;
    STABLE_TORCH_ERROR_CODE_CHECK(torch_string_length(handle, &length));
    STABLE_TORCH_ERROR_CODE_CHECK(torch_string_c_str(handle, &data));
    std::string text(data, length);
    STABLE_TORCH_ERROR_CODE_CHECK(torch_delete_string(handle));
    return text;
  }
};
template <>
struct Conversion<std::string_view> {
  static StableIValue from(std::string_view text) {
    return Conversion<std::string>::from(std::string(text));
  }
};

template <typename T>
StableIValue list_of(const T* values, size_t count) {
  StableListHandle list = nullptr;
  STABLE_TORCH_ERROR_CODE_CHECK(torch_new_list_reserve_size(count, &list));
  for (size_t i = 0; i < count; ++i)
    STABLE_TORCH_ERROR_CODE_CHECK(torch_list_push_back(list, Conversion<T>::from(values[i])));
  return Conversion<StableListHandle>::from(list);
}
template <typename T>
struct Conversion<torch::headeronly::HeaderOnlyArrayRef<T>> {
  static StableIValue from(const torch::headeronly::HeaderOnlyArrayRef<T>& values) {
    return list_of(values.data(), values.size());
  }
};
template <typename T>
struct Conversion<std::vector<T>> {
  static StableIValue from(const std::vector<T>& values) {
    if constexpr (std::is_same_v<T, bool>) {  // it has no bools in memory
      const std::unique_ptr<bool[]> copy(new bool[values.size()]);
      for (size_t i = 0; i < values.size(); ++i) copy[i] = values[i];
      return list_of(copy.get(), values.size());
    } else {
      return list_of(values.data(), values.size());
    }
  }
  static std::vector<T> to(StableIValue bits) {
    const StableListHandle list = Conversion<StableListHandle>::to(bits);
    size_t count = 0;
    STABLE_TORCH_ERROR_CODE_CHECK(torch_list_size(list, &count));
    std::vector<T> values;
    values.reserve(count);
    for (size_t i = 0; i < count; ++i) {
      StableIValue item = 0;
      STABLE_TORCH_ERROR_CODE_CHECK(torch_list_get_item(list, i, &item));
      values.push_back(Conversion<T>::to(item));
    }
    STABLE_TORCH_ERROR_CODE_CHECK(torch_delete_list(list));
    return values;
  }
};

#endif  // 2.10

// ---- optional values: the address of the value in memory of its own

template <typename T>
struct Conversion<std::optional<T>> {
  static StableIValue from(const std::optional<T>& value) {
    if (!value) return 0;
#if TORCH_FEATURE_VERSION >= TORCH_VERSION_2_13_0
    StableIValue* place = nullptr;
    STABLE_TORCH_ERROR_CODE_CHECK(torch_new_stable_ivalue(&place));
#else
    StableIValue* place = new StableIValue;
#endif
    *place = Conversion<T>::from(*value);
    return Conversion<StableIValue*>::from(place);
  }
  static std::optional<T> to(StableIValue bits) {
    StableIValue* const place = Conversion<StableIValue*>::to(bits);
    if (!place) return std::nullopt;
    std::optional<T> value(Conversion<T>::to(*place));
#if TORCH_FEATURE_VERSION >= TORCH_VERSION_2_13_0
    STABLE_TORCH_ERROR_CODE_CHECK(torch_delete_stable_ivalue(place));
#else
    delete place;
#endif
    return value;
  }
};

HIDDEN_NAMESPACE_END(torch, stable, detail)
