// Errors and values across the boundary to plug-ins.
//
// SPDX-License-Identifier: Apache-2.0
#include "plugin/host/boundary.h"

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

void check_status(treadle_status status) {
  if (status == TREADLE_OK) [[likely]]
    return;
  std::string text = std::move(last_error());
  last_error().clear();
  if (text.empty()) text = "expected a plug-in's function to succeed, got an error without a text";
  for (const auto& [kind, number] : kStatuses) {
    if (number == status) throw Error(kind, text);
  }
  throw Error(ErrorKind::Runtime, text);
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
  treadle_value v;
  std::memset(&v, 0, sizeof v);
  switch (s.kind()) {
    case Scalar::Kind::Bool:
      v.tag = TREADLE_TAG_BOOL;
      v.as.integer = s.to<bool>();
      break;
    case Scalar::Kind::Int:
      v.tag = TREADLE_TAG_INT;
      v.as.integer = s.to<int64_t>();
      break;
    case Scalar::Kind::Double:
      v.tag = TREADLE_TAG_FLOAT;
      v.as.number = s.to<double>();
      break;
    case Scalar::Kind::Complex: {
      v.tag = TREADLE_TAG_COMPLEX;
      const auto c = s.to<std::complex<double>>();
      v.as.complex_parts[0] = c.real();
      v.as.complex_parts[1] = c.imag();
      break;
    }
  }
  return v;
}

BorrowedValues::BorrowedValues(ArrayRef<Value> stack) {
  values_.reserve(stack.size());
  for (const Value& v : stack) values_.push_back(convert(v));
}

treadle_value BorrowedValues::convert(const Value& v) {
  treadle_value c = tagged(TREADLE_TAG_NONE);
  const auto list = [&](treadle_tag tag, size_t count) {
    c.tag = tag;
    c.count = static_cast<uint32_t>(count);
  };
  if (v.is<Tensor>()) {
    if (!v.as<Tensor>().defined()) return c;
    v.as<Tensor>().impl()->storage_data();  // raises where the tensor does not lie in it
    c.tag = TREADLE_TAG_TENSOR;
    c.as.tensor = handle_of(v.as<Tensor>());
  } else if (v.is<bool>()) {
    return to_c(Scalar(v.as<bool>()));
  } else if (v.is<int64_t>()) {
    return to_c(Scalar(v.as<int64_t>()));
  } else if (v.is<double>()) {
    return to_c(Scalar(v.as<double>()));
  } else if (v.is<Scalar>()) {
    return to_c(v.as<Scalar>());
  } else if (v.is<std::string>()) {
    list(TREADLE_TAG_TEXT, v.as<std::string>().size());
    c.as.text = v.as<std::string>().data();
  } else if (v.is<Value::Ints>()) {
    list(TREADLE_TAG_INTS, v.as<Value::Ints>().size());
    c.as.integers = v.as<Value::Ints>().data();
  } else if (v.is<Value::Doubles>()) {
    list(TREADLE_TAG_FLOATS, v.as<Value::Doubles>().size());
    c.as.numbers = v.as<Value::Doubles>().data();
  } else if (v.is<Value::Bools>()) {
    const Value::Bools& bools = v.as<Value::Bools>();
    list(TREADLE_TAG_BOOLS, bools.size());
    c.as.bools = bools_.emplace_back(bools.begin(), bools.end()).data();
  } else if (v.is<Value::Tensors>()) {
    std::vector<treadle_tensor*>& handles = tensors_.emplace_back();
    for (const Tensor& t : v.as<Value::Tensors>()) {
      if (t.defined()) t.impl()->storage_data();
      handles.push_back(handle_of(t));
    }
    list(TREADLE_TAG_TENSORS, handles.size());
    c.as.tensors = handles.data();
  } else if (v.is<ScalarType>()) {
    c.tag = TREADLE_TAG_DTYPE;
    c.as.dtype = to_c(v.as<ScalarType>());
  } else if (v.is<Layout>()) {
    c.tag = TREADLE_TAG_LAYOUT;
    c.as.integer = static_cast<int64_t>(v.as<Layout>());
  } else if (v.is<Device>()) {
    c.tag = TREADLE_TAG_DEVICE;
    c.as.device = to_c(v.as<Device>());
  } else if (v.is<MemoryFormat>()) {
    c.tag = TREADLE_TAG_MEMORY_FORMAT;
    c.as.integer = static_cast<int64_t>(v.as<MemoryFormat>());
  } else if (v.is<Generator>()) {
    c.tag = TREADLE_TAG_GENERATOR;
    c.as.generator = reinterpret_cast<treadle_generator*>(v.as<Generator>().get());
  } else if (!v.is_none()) {
    fail<ErrorKind::NotImplemented>("expected a value that plug-ins can be given, got ",
                                    v.type_name());
  }
  return c;
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
