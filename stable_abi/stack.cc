// The conversions between values of boxed calls and their 64 bits, by the types of a schema.
//
// SPDX-License-Identifier: Apache-2.0
#include "stable_abi/stack.h"

#include <cstring>
#include <memory>

#include "stable_abi/numbers.h"

namespace treadle::stable_abi {
namespace {

using schema::BaseType;
using schema::Type;

template <class T>
StableIValue bits_of(T value) {
  static_assert(sizeof(T) <= sizeof(StableIValue));
  StableIValue bits = 0;
  std::memcpy(&bits, &value, sizeof value);  // from the lowest byte on: little-endian machines
  return bits;
}
template <class T>
T from_bits(StableIValue bits) {
  T value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

[[noreturn]] void fail_type(const Type& type, std::string_view name) {
  fail<ErrorKind::NotImplemented>("expected values that PyTorch's stable ABI can carry, got ",
                                  schema::print(type), " for '", name, "'");
}

// The type of a list's elements.
Type element_type(const Type& list) {
  Type element = list;
  element.list = false;
  element.list_size.reset();
  element.optional = list.element_optional;
  element.element_optional = false;
  return element;
}

StableIValue list_to_stable(const Value& value, const Type& type, std::string_view name) {
  const Type element = element_type(type);
  const auto free = [&](List* made) {
    for (const StableIValue item : *made) drop_value(item, element);
    delete made;
  };
  std::unique_ptr<List, decltype(free)> list(new List, free);
  const auto add = [&](const auto& values) {
    list->reserve(values.size());
    for (const auto& v : values) list->push_back(to_stable(Value(v), element, name));
  };
  if (value.is<Value::Ints>())
    add(value.as<Value::Ints>());
  else if (value.is<Value::Doubles>())
    add(value.as<Value::Doubles>());
  else if (value.is<Value::Tensors>())
    add(value.as<Value::Tensors>());
  else if (value.is<Value::Bools>())
    for (const bool v : value.as<Value::Bools>()) list->push_back(bits_of(v));
  else
    fail_type(type, name);
  return bits_of(list.release());
}

template <class T>
Value adopt_list(const List& list, const Type& element, std::string_view name) {
  std::vector<T> values;
  size_t taken = 0;
  try {
    values.reserve(list.size());
    for (; taken < list.size(); ++taken) {
      const Value value = adopt_value(list[taken], element, name);
      values.push_back(value.is_none() ? T() : value.as<T>());
    }
  } catch (...) {
    while (++taken < list.size()) drop_value(list[taken], element);
    throw;
  }
  return values;
}

Value list_from_stable(StableIValue bits, const Type& type, std::string_view name) {
  const auto list = std::unique_ptr<List>(&list_of(from_bits<StableListHandle>(bits)));
  const Type element = element_type(type);
  switch (type.base) {
    case BaseType::Int:
    case BaseType::SymInt:
      return adopt_list<int64_t>(*list, element, name);
    case BaseType::Float:
    case BaseType::SymFloat:
      return adopt_list<double>(*list, element, name);
    case BaseType::Bool:
    case BaseType::SymBool:
      return adopt_list<bool>(*list, element, name);
    case BaseType::Tensor:
      return adopt_list<Tensor>(*list, element, name);
    default:
      fail_type(type, name);
  }
}

}  // namespace

StableIValue to_stable(const Value& value, const Type& type, std::string_view name) {
  if (type.optional) {
    if (value.is_none() || (value.is<Tensor>() && !value.as<Tensor>().defined())) return 0;
    Type present = type;
    present.optional = false;
    return bits_of(new StableIValue(to_stable(value, present, name)));
  }
  if (type.list) return list_to_stable(value, type, name);
  switch (type.base) {
    case BaseType::Tensor:
      return bits_of(new_handle(value.is_none() ? Tensor() : value.as<Tensor>()));
    case BaseType::Int:
    case BaseType::SymInt:
      return bits_of(value.as<int64_t>());
    case BaseType::Float:
    case BaseType::SymFloat:
      return bits_of(value.as<double>());
    case BaseType::Bool:
    case BaseType::SymBool:
      return bits_of(value.as<bool>());
    case BaseType::Str:
      return bits_of(new std::string(value.as<std::string>()));
    case BaseType::ScalarType:
      return bits_of(number_of(value.as<ScalarType>()));
    case BaseType::Layout:
      return bits_of(number_of(value.as<Layout>()));
    case BaseType::MemoryFormat:
      return bits_of(number_of(value.as<MemoryFormat>()));
    case BaseType::Device: {
      const Device device = value.as<Device>();
      return static_cast<uint64_t>(static_cast<uint32_t>(number_of(device.type))) << 32 |
             static_cast<uint32_t>(static_cast<int32_t>(device.index));
    }
    case BaseType::Generator:
      return bits_of(new Generator(value.as<Generator>()));
    default:
      fail_type(type, name);
  }
}

Value adopt_value(StableIValue bits, const Type& type, std::string_view name) {
  if (type.optional) {
    const std::unique_ptr<StableIValue> place(from_bits<StableIValue*>(bits));
    if (!place) return {};
    Type present = type;
    present.optional = false;
    return adopt_value(*place, present, name);
  }
  if (type.list) return list_from_stable(bits, type, name);
  switch (type.base) {
    case BaseType::Tensor:
      return adopt(from_bits<AtenTensorHandle>(bits));
    case BaseType::Int:
    case BaseType::SymInt:
      return from_bits<int64_t>(bits);
    case BaseType::Float:
    case BaseType::SymFloat:
      return from_bits<double>(bits);
    case BaseType::Bool:
    case BaseType::SymBool:
      return (bits & 0xff) != 0;
    case BaseType::Str:
      return std::move(*std::unique_ptr<std::string>(&string_of(from_bits<StringHandle>(bits))));
    case BaseType::ScalarType:
      return dtype_of(from_bits<int32_t>(bits));
    case BaseType::Layout:
      return layout_of(from_bits<int32_t>(bits));
    case BaseType::MemoryFormat:
      return memory_format_of(from_bits<int32_t>(bits));
    case BaseType::Device:
      return device_of(static_cast<int32_t>(bits >> 32), static_cast<int32_t>(bits & 0xffffffff));
    case BaseType::Generator:
      return std::move(
          *std::unique_ptr<Generator>(&generator_of(from_bits<AtenGeneratorHandle>(bits))));
    default:
      fail_type(type, name);
  }
}

void drop_value(StableIValue value, const Type& type) noexcept {
  try {
    adopt_value(value, type, "");
  } catch (...) {  // a value that is none owns nothing
  }
}

}  // namespace treadle::stable_abi
