// Errors and values across the boundary to plug-ins.
//
// SPDX-License-Identifier: Apache-2.0
#include "plugin/host/boundary.h"

#include <cctype>
#include <cstddef>
#include <cstring>
#include <limits>

namespace treadle::plugin {
namespace {

constexpr struct {
  ErrorKind kind;
  treadle_status status;
} kStatuses[] = {
    {ErrorKind::Type, TREADLE_TYPE_ERROR},
    {ErrorKind::Value, TREADLE_VALUE_ERROR},
    {ErrorKind::Index, TREADLE_INDEX_ERROR},
    {ErrorKind::NotImplemented, TREADLE_NOT_IMPLEMENTED},
    {ErrorKind::OutOfMemory, TREADLE_OUT_OF_MEMORY},
    {ErrorKind::LinAlg, TREADLE_LINALG_ERROR},
    {ErrorKind::DeviceLost, TREADLE_DEVICE_LOST},
    {ErrorKind::Runtime, TREADLE_RUNTIME_ERROR},
};

// The structures of core/ that go to plug-ins as they are.
static_assert(sizeof(ExpressionNode) == sizeof(treadle_node) &&
              offsetof(ExpressionNode, kind) == offsetof(treadle_node, kind) &&
              offsetof(ExpressionNode, child_count) == offsetof(treadle_node, child_count) &&
              offsetof(ExpressionNode, children) == offsetof(treadle_node, children) &&
              offsetof(ExpressionNode, text) == offsetof(treadle_node, text) &&
              offsetof(ExpressionNode, integer) == offsetof(treadle_node, integer) &&
              offsetof(ExpressionNode, number) == offsetof(treadle_node, number) &&
              kMaxExpressionChildren == TREADLE_MAX_CHILDREN);
template <class Enum>
constexpr bool same(Enum here, int32_t there) {
  return static_cast<int32_t>(here) == there;
}
static_assert(same(ExpressionKind::Name, TREADLE_NODE_NAME) &&
              same(ExpressionKind::Int, TREADLE_NODE_INT) &&
              same(ExpressionKind::Float, TREADLE_NODE_FLOAT) &&
              same(ExpressionKind::Bool, TREADLE_NODE_BOOL) &&
              same(ExpressionKind::Call, TREADLE_NODE_CALL) &&
              same(ExpressionKind::Binary, TREADLE_NODE_BINARY) &&
              same(ExpressionKind::Unary, TREADLE_NODE_UNARY) &&
              same(ExpressionKind::Select, TREADLE_NODE_SELECT));
static_assert(sizeof(BorrowedValue) == sizeof(treadle_value) &&
              offsetof(BorrowedValue, tag) == offsetof(treadle_value, tag) &&
              offsetof(BorrowedValue, count) == offsetof(treadle_value, count) &&
              offsetof(BorrowedValue, as) == offsetof(treadle_value, as) && sizeof(bool) == 1);
static_assert(same(BorrowedValue::kTensor, TREADLE_TAG_TENSOR) &&
              same(BorrowedValue::kBool, TREADLE_TAG_BOOL) &&
              same(BorrowedValue::kInt, TREADLE_TAG_INT) &&
              same(BorrowedValue::kFloat, TREADLE_TAG_FLOAT) &&
              same(BorrowedValue::kComplex, TREADLE_TAG_COMPLEX) &&
              same(BorrowedValue::kText, TREADLE_TAG_TEXT) &&
              same(BorrowedValue::kInts, TREADLE_TAG_INTS) &&
              same(BorrowedValue::kFloats, TREADLE_TAG_FLOATS) &&
              same(BorrowedValue::kBools, TREADLE_TAG_BOOLS) &&
              same(BorrowedValue::kTensors, TREADLE_TAG_TENSORS) &&
              same(BorrowedValue::kScalarType, TREADLE_TAG_DTYPE) &&
              same(BorrowedValue::kLayout, TREADLE_TAG_LAYOUT) &&
              same(BorrowedValue::kDevice, TREADLE_TAG_DEVICE) &&
              same(BorrowedValue::kMemoryFormat, TREADLE_TAG_MEMORY_FORMAT) &&
              same(BorrowedValue::kGenerator, TREADLE_TAG_GENERATOR));

const char* tag_name(int32_t tag) {
  static constexpr const char* kNames[] = {"None",    "Tensor",  "bool",         "int",
                                           "float",   "complex", "str",          "int[]",
                                           "float[]", "bool[]",  "Tensor[]",     "ScalarType",
                                           "Layout",  "Device",  "MemoryFormat", "Generator"};
  return tag >= 0 && tag < static_cast<int32_t>(std::size(kNames)) ? kNames[tag] : "unknown";
}

bool is_number(int32_t tag) { return tag >= TREADLE_TAG_BOOL && tag <= TREADLE_TAG_COMPLEX; }

Scalar number_of(const treadle_value& v) {
  switch (v.tag) {
    case TREADLE_TAG_BOOL:
      return Scalar(v.as.integer != 0);
    case TREADLE_TAG_INT:
      return Scalar(v.as.integer);
    case TREADLE_TAG_FLOAT:
      return Scalar(v.as.number);
    default:
      return Scalar(std::complex<double>(v.as.complex_parts[0], v.as.complex_parts[1]));
  }
}

treadle_value tagged(treadle_tag tag) {
  treadle_value v;
  std::memset(&v, 0, sizeof v);
  v.tag = tag;
  return v;
}

// A list or text in memory of its own; freed by release().
template <class T>
const T* copied(const T* from, size_t count) {
  T* to = new T[count ? count : 1];
  std::copy(from, from + count, to);
  return to;
}

}  // namespace

std::string& last_error() {
  thread_local std::string text;
  return text;
}

namespace {

// An error with the text of a plug-in. The operator's name and the message, which C++ has apart,
// are one text there: "mm: expected ...", "demo::scale: expected ...".
Error error_of(ErrorKind kind, std::string_view text) {
  size_t end = 0;
  const auto is_name = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.';
  };
  while (end < text.size() && (is_name(text[end]) || text.substr(end).starts_with("::")))
    end += text[end] == ':' ? 2 : 1;
  if (end > 0 && text.substr(end).starts_with("()")) end += 2;
  if (end == 0 || !text.substr(end).starts_with(": ")) return Error(kind, std::string(text));
  return Error(kind, OpName(text.substr(0, end)), std::string(text.substr(end + 2)));
}

}  // namespace

Error error_of(treadle_status status) {
  std::string text = std::move(last_error());
  last_error().clear();
  if (text.empty()) text = "expected a plug-in's function to succeed, got an error without a text";
  for (const auto& [kind, number] : kStatuses) {
    if (number == status) return error_of(kind, text);
  }
  return error_of(ErrorKind::Runtime, text);
}

treadle_status status_of(const Error& error) {
  last_error() = error.what();
  for (const auto& [kind, number] : kStatuses) {
    if (kind == error.kind()) return number;
  }
  return TREADLE_RUNTIME_ERROR;
}

Tensor tensor_of(const treadle_tensor* tensor) {
  if (!tensor) return Tensor();
  return Tensor(IntrusivePtr<TensorImpl>(impl_of(tensor)));
}
Tensor adopted(treadle_tensor* tensor) {
  if (!tensor) return Tensor();
  return Tensor(IntrusivePtr<TensorImpl>::adopt(impl_of(tensor)));
}
treadle_tensor* given_away(const Tensor& t) {
  if (t.impl()) t.impl()->retain();
  return handle_of(t);
}

Device from_c(treadle_device d) {
  check<ErrorKind::Value>(d.type >= 0 && d.type < num_device_types(),
                          "expected the type of a device that is registered, got ", d.type);
  check<ErrorKind::Value>(d.index >= -1 && d.index <= 127,
                          "expected the index of a device, or -1 for the current one, got ",
                          d.index);
  return {static_cast<DeviceType>(d.type), static_cast<int8_t>(d.index)};
}

ScalarType dtype_from_c(treadle_dtype dtype) {
  check<ErrorKind::Value>(dtype >= 0 && dtype < kNumScalarTypes, "expected a dtype, got number ",
                          dtype);
  return static_cast<ScalarType>(dtype);
}

treadle_value to_c(const Scalar& s) {
  const BorrowedValue v = borrowed(s);
  return *to_c(&v);
}

void require_memory(const treadle_value& value) {
  if (value.tag == TREADLE_TAG_TENSOR) {
    impl_of(value.as.tensor)->storage_data();
  } else if (value.tag == TREADLE_TAG_TENSORS) {
    for (uint32_t i = 0; i < value.count; ++i)
      if (value.as.tensors[i] != nullptr) impl_of(value.as.tensors[i])->storage_data();
  }
}

BorrowedValues::BorrowedValues(ArrayRef<Value> stack) {
  values_.reserve(stack.size());
  for (const Value& v : stack) values_.push_back(convert(v));
}

treadle_value BorrowedValues::convert(const Value& value) {
  const BorrowedValue v = std::visit(
      [&]<class T>(const T& given) -> BorrowedValue {
        if constexpr (std::is_same_v<T, std::monostate>) {
          return {};
        } else if constexpr (std::is_same_v<T, Value::Bools>) {
          // A std::vector<bool> has no bools to point to.
          const std::vector<uint8_t>& bools = bools_.emplace_back(given.begin(), given.end());
          BorrowedValue list;
          list.tag = BorrowedValue::kBools;
          list.count = static_cast<uint32_t>(bools.size());
          list.as.bools = reinterpret_cast<const bool*>(bools.data());
          return list;
        } else if constexpr (std::is_same_v<T, Value::Ints>) {
          return borrowed(IntList(given));
        } else if constexpr (std::is_same_v<T, Value::Doubles>) {
          return borrowed(DoubleList(given));
        } else if constexpr (std::is_same_v<T, Value::Tensors>) {
          return borrowed(TensorList(given));
        } else if constexpr (std::is_same_v<T, std::string>) {
          return borrowed(std::string_view(given));
        } else if constexpr (std::is_same_v<T, Value::Scalars>) {
          fail<ErrorKind::NotImplemented>("expected a value that plug-ins can be given, got ",
                                          value.type_name());
        } else {
          return borrowed(given);
        }
      },
      value.variant());
  require_memory(*to_c(&v));
  return *to_c(&v);
}

Value from_c(const treadle_value& v, const schema::Type& type, std::string_view name) {
  using schema::BaseType;
  const auto wrong = [&] {
    fail<ErrorKind::Type>("expected ", schema::print(type), " for argument '", name, "', got ",
                          tag_name(v.tag));
  };
  if (v.tag == TREADLE_TAG_NONE) {
    if (!type.optional && !type.is_tensor()) wrong();
    return Value();
  }
  if (type.list) {
    switch (v.tag) {
      case TREADLE_TAG_INTS:
        if (type.base != BaseType::Int && type.base != BaseType::SymInt) wrong();
        return Value(Value::Ints(v.as.integers, v.as.integers + v.count));
      case TREADLE_TAG_INT:
        if (!type.list_size || (type.base != BaseType::Int && type.base != BaseType::SymInt))
          wrong();
        return Value(Value::Ints(static_cast<size_t>(*type.list_size), v.as.integer));
      case TREADLE_TAG_FLOATS:
        if (type.base != BaseType::Float) wrong();
        return Value(Value::Doubles(v.as.numbers, v.as.numbers + v.count));
      case TREADLE_TAG_BOOLS:
        if (type.base != BaseType::Bool) wrong();
        return Value(Value::Bools(v.as.bools, v.as.bools + v.count));
      case TREADLE_TAG_TENSORS: {
        if (!type.is_tensor()) wrong();
        Value::Tensors tensors;
        for (uint32_t i = 0; i < v.count; ++i) tensors.push_back(tensor_of(v.as.tensors[i]));
        return Value(std::move(tensors));
      }
      default:
        wrong();
    }
  }
  switch (type.base) {
    case BaseType::Tensor:
      if (v.tag != TREADLE_TAG_TENSOR) wrong();
      return Value(tensor_of(v.as.tensor));
    case BaseType::Scalar:
      if (!is_number(v.tag)) wrong();
      return Value(number_of(v));
    case BaseType::Int:
    case BaseType::SymInt:
      if (v.tag != TREADLE_TAG_INT) wrong();
      return Value(v.as.integer);
    case BaseType::Float:
    case BaseType::SymFloat:
      if (v.tag != TREADLE_TAG_FLOAT && v.tag != TREADLE_TAG_INT) wrong();
      return Value(number_of(v).to<double>());
    case BaseType::Bool:
    case BaseType::SymBool:
      if (v.tag != TREADLE_TAG_BOOL) wrong();
      return Value(v.as.integer != 0);
    case BaseType::Str:
      if (v.tag != TREADLE_TAG_TEXT) wrong();
      return Value(std::string(v.as.text, v.count));
    case BaseType::ScalarType:
      if (v.tag != TREADLE_TAG_DTYPE) wrong();
      return Value(dtype_from_c(v.as.dtype));
    case BaseType::Layout:
      if (v.tag != TREADLE_TAG_LAYOUT) wrong();
      return Value(static_cast<Layout>(v.as.integer));
    case BaseType::Device:
      if (v.tag != TREADLE_TAG_DEVICE) wrong();
      return Value(from_c(v.as.device));
    case BaseType::MemoryFormat:
      if (v.tag != TREADLE_TAG_MEMORY_FORMAT || v.as.integer < 0 || v.as.integer > 3) wrong();
      return Value(static_cast<MemoryFormat>(v.as.integer));
    case BaseType::Generator:
      if (v.tag != TREADLE_TAG_GENERATOR) wrong();
      return Value(Generator(reinterpret_cast<GeneratorImpl*>(v.as.generator)));
    default:
      wrong();
  }
  return Value();
}

Value adopted(const treadle_value& v, const schema::Type& type) {
  // Conversion takes its own references. The plug-in's are released. For other values with
  // pointers, the memory stays the plug-in's.
  treadle_value taken = v;
  struct Release {
    treadle_value& value;
    ~Release() {
      if (value.tag == TREADLE_TAG_TENSOR || value.tag == TREADLE_TAG_TENSORS) release(value);
    }
  } const later{taken};
  return from_c(v, type, "result");
}

treadle_value given_away(const Value& value) {
  const BorrowedValues borrowed(ArrayRef<Value>(&value, 1));
  treadle_value v = borrowed.data()[0];
  switch (v.tag) {
    case TREADLE_TAG_TENSOR:
      impl_of(v.as.tensor)->retain();
      break;
    case TREADLE_TAG_TEXT:
      v.as.text = copied(v.as.text, v.count);
      break;
    case TREADLE_TAG_INTS:
      v.as.integers = copied(v.as.integers, v.count);
      break;
    case TREADLE_TAG_FLOATS:
      v.as.numbers = copied(v.as.numbers, v.count);
      break;
    case TREADLE_TAG_BOOLS:
      v.as.bools = copied(v.as.bools, v.count);
      break;
    case TREADLE_TAG_TENSORS:
      for (uint32_t i = 0; i < v.count; ++i)
        if (v.as.tensors[i]) impl_of(v.as.tensors[i])->retain();
      v.as.tensors = copied(v.as.tensors, v.count);
      break;
    case TREADLE_TAG_GENERATOR:
      reinterpret_cast<GeneratorImpl*>(v.as.generator)->retain();
      break;
    default:
      break;
  }
  return v;
}

void release(treadle_value& v) {
  switch (v.tag) {
    case TREADLE_TAG_TENSOR:
      if (v.as.tensor) impl_of(v.as.tensor)->release();
      break;
    case TREADLE_TAG_TEXT:
      delete[] v.as.text;
      break;
    case TREADLE_TAG_INTS:
      delete[] v.as.integers;
      break;
    case TREADLE_TAG_FLOATS:
      delete[] v.as.numbers;
      break;
    case TREADLE_TAG_BOOLS:
      delete[] v.as.bools;
      break;
    case TREADLE_TAG_TENSORS:
      for (uint32_t i = 0; i < v.count; ++i)
        if (v.as.tensors[i]) impl_of(v.as.tensors[i])->release();
      delete[] v.as.tensors;
      break;
    case TREADLE_TAG_GENERATOR:
      reinterpret_cast<GeneratorImpl*>(v.as.generator)->release();
      break;
    default:
      break;
  }
  v = tagged(TREADLE_TAG_NONE);
}

Value default_of(const schema::Argument& a) {
  using schema::DefaultKind;
  check<ErrorKind::Type>(a.default_value.has_value(), "expected a value for argument '", a.name,
                         "', got none");
  const schema::Default& d = *a.default_value;
  treadle_value v = tagged(TREADLE_TAG_NONE);
  std::vector<int64_t> ints;
  std::vector<double> doubles;
  std::vector<uint8_t> bools;
  switch (d.kind) {
    case DefaultKind::None:
      return Value();
    case DefaultKind::Int:
      v = to_c(Scalar(std::get<int64_t>(d.value)));
      break;
    case DefaultKind::Float:
      v = to_c(Scalar(std::get<double>(d.value)));
      break;
    case DefaultKind::Bool:
      v = to_c(Scalar(std::get<bool>(d.value)));
      break;
    case DefaultKind::String:
      return Value(std::get<std::string>(d.value));
    case DefaultKind::Name:
      if (d.text == "Mean" || d.text == "Sum") return Value(int64_t{d.text == "Mean" ? 1 : 2});
      if (d.text == "contiguous_format") return Value(MemoryFormat::Contiguous);
      if (d.text == "preserve_format") return Value(MemoryFormat::Preserve);
      if (d.text == "channels_last") return Value(MemoryFormat::ChannelsLast);
      if (d.text == "channels_last_3d") return Value(MemoryFormat::ChannelsLast3d);
      if (d.text == "long") return Value(ScalarType::Int64);
      if (d.text == "inf" || d.text == "nan") {
        v = to_c(Scalar(d.text == "inf" ? std::numeric_limits<double>::infinity()
                                        : std::numeric_limits<double>::quiet_NaN()));
        break;
      }
      fail<ErrorKind::NotImplemented>("expected a default value that is known, got ", d.text);
    case DefaultKind::List:
      for (const schema::Default& item : d.items) {
        if (item.kind == DefaultKind::Int) ints.push_back(std::get<int64_t>(item.value));
        if (item.kind == DefaultKind::Float) doubles.push_back(std::get<double>(item.value));
        if (item.kind == DefaultKind::Bool) bools.push_back(std::get<bool>(item.value));
      }
      if (a.type.is_tensor()) {
        v.tag = TREADLE_TAG_TENSORS;
      } else if (a.type.base == schema::BaseType::Float) {
        v.tag = TREADLE_TAG_FLOATS;
        v.count = static_cast<uint32_t>(doubles.size());
        v.as.numbers = doubles.data();
      } else if (a.type.base == schema::BaseType::Bool) {
        v.tag = TREADLE_TAG_BOOLS;
        v.count = static_cast<uint32_t>(bools.size());
        v.as.bools = bools.data();
      } else {
        v.tag = TREADLE_TAG_INTS;
        v.count = static_cast<uint32_t>(ints.size());
        v.as.integers = ints.data();
      }
      break;
  }
  return from_c(v, a.type, a.name);
}

}  // namespace treadle::plugin
