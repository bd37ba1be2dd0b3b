// The conversions of library_values.h: one switch over the types for each conversion.
//
// SPDX-License-Identifier: Apache-2.0
#include "python_bindings/csrc/library/library_values.h"

#include <limits>

namespace treadle::python {
namespace {

using schema::BaseType;
using schema::Type;

Kind kind_of(const Type& type) {
  switch (type.base) {
    case BaseType::Tensor:
      return type.list ? Kind::TensorList : Kind::Tensor;
    case BaseType::Int:
    case BaseType::SymInt:
      return type.list ? Kind::IntList : Kind::Int;
    case BaseType::Float:
    case BaseType::SymFloat:
      return type.list ? Kind::FloatList : Kind::Float;
    case BaseType::Bool:
    case BaseType::SymBool:
      return type.list ? Kind::BoolList : Kind::Bool;
    case BaseType::Scalar:
      return type.list ? Kind::NumberList : Kind::Number;
    case BaseType::Str:
      return Kind::Str;
    case BaseType::ScalarType:
      return Kind::Dtype;
    case BaseType::Layout:
      return Kind::Layout;
    case BaseType::Device:
      return Kind::Device;
    case BaseType::MemoryFormat:
      return Kind::MemoryFormat;
    case BaseType::Generator:
      return Kind::Generator;
    default:
      return Kind::Any;
  }
}

template <class F>
Object list_of(size_t count, F&& item) {
  Object list(PyList_New(static_cast<Py_ssize_t>(count)));
  for (size_t i = 0; i < count; ++i)
    PyList_SET_ITEM(list.get(), static_cast<Py_ssize_t>(i), item(i));
  return list;
}

struct ToPython {
  Object operator()(std::monostate) const { return Object(none()); }
  Object operator()(bool v) const { return Object(to_bool(v)); }
  Object operator()(int64_t v) const { return Object(PyLong_FromLongLong(v)); }
  Object operator()(double v) const { return Object(PyFloat_FromDouble(v)); }
  Object operator()(const std::string& v) const { return unicode(v); }
  template <class T>
  Object operator()(const std::vector<T>& list) const {
    return list_of(list.size(), [&](size_t i) { return (*this)(T(list[i])).release(); });
  }
  template <class T>
  Object operator()(const T& v) const {
    return Object(wrap(v));
  }
};

// The numbers, dtypes and so on that a schema writes as names.
Value named(const Type& type, const std::string& name) {
  const bool negative = name.starts_with('-');
  const std::string_view bare = std::string_view(name).substr(negative);
  switch (type.base) {
    case BaseType::Int:
    case BaseType::SymInt:
      return int64_t{bare == "Mean" ? 1 : 2};  // of a loss's `reduction`
    case BaseType::Float:
    case BaseType::SymFloat:
    case BaseType::Scalar: {
      double v = bare == "inf" ? std::numeric_limits<double>::infinity()
                               : std::numeric_limits<double>::quiet_NaN();
      if (negative) v = -v;
      return type.base == BaseType::Scalar ? Value(Scalar(v)) : Value(v);
    }
    case BaseType::MemoryFormat:
      return bare == "preserve_format"    ? MemoryFormat::Preserve
             : bare == "channels_last"    ? MemoryFormat::ChannelsLast
             : bare == "channels_last_3d" ? MemoryFormat::ChannelsLast3d
                                          : MemoryFormat::Contiguous;
    default:
      break;
  }
  // The objects that the package has by these names.
  return to_value("default", type, import_attribute("treadle", name.c_str()).get());
}

Value single(const Type& type, const schema::Default& d) {
  using schema::DefaultKind;
  switch (d.kind) {
    case DefaultKind::None:
    case DefaultKind::List:
      return {};
    case DefaultKind::Int: {
      const int64_t v = std::get<int64_t>(d.value);
      if (type.base == BaseType::Float || type.base == BaseType::SymFloat)
        return static_cast<double>(v);
      return type.base == BaseType::Scalar ? Value(Scalar(v)) : Value(v);
    }
    case DefaultKind::Float: {
      const double v = std::get<double>(d.value);
      return type.base == BaseType::Scalar ? Value(Scalar(v)) : Value(v);
    }
    case DefaultKind::Bool: {
      const bool v = std::get<bool>(d.value);
      return type.base == BaseType::Scalar ? Value(Scalar(v)) : Value(v);
    }
    case DefaultKind::String: {
      const std::string& v = std::get<std::string>(d.value);
      return type.base == BaseType::Device ? Value(device_from_string(v)) : Value(v);
    }
    case DefaultKind::Name:
      return named(type, std::get<std::string>(d.value));
  }
  return {};
}

template <class List, class Item = typename List::value_type>
Value list_value(const schema::Argument& a) {
  const schema::Default& d = *a.default_value;
  const size_t repeat =
      d.kind == schema::DefaultKind::List ? 1 : static_cast<size_t>(a.type.list_size.value_or(1));
  List list;
  if (d.kind == schema::DefaultKind::List) {
    for (const schema::Default& item : d.items)
      list.push_back(single(a.type, item).template as<Item>());
  } else {
    for (size_t i = 0; i < repeat; ++i) list.push_back(single(a.type, d).template as<Item>());
  }
  return list;
}

Object number(PyObject* o) {
  const bool plain =
      PyFloat_CheckExact(o) || PyLong_CheckExact(o) || PyBool_Check(o) || PyComplex_CheckExact(o);
  return plain ? Object::borrow(o) : Object(wrap(to_scalar("number", o)));
}

}  // namespace

Param param_of(const schema::Argument& argument, const char* default_text, bool tensors_only) {
  const Type& type = argument.type;
  Param param{argument.name.c_str(), kind_of(type), 0, 0, default_text};
  if (type.optional) param.flags |= kNullable;
  if (argument.default_value) param.flags |= kDefault;
  if (argument.kwarg_only) param.flags |= kKeyword;
  if (type.element_optional) param.flags |= kNullableItems;
  if (tensors_only) param.flags |= kTensorOnly;
  if (type.list_size && *type.list_size < 128) param.length = static_cast<int8_t>(*type.list_size);
  return param;
}

Value to_value(const char* op, const Type& type, PyObject* o) {
  if (o == Py_None) return {};
  switch (kind_of(type)) {
    case Kind::Tensor:
      return operand_tensor(op, o);
    case Kind::TensorList:
      return detail::read_tensors(op, o);
    case Kind::Int:
      return to_int(op, o);
    case Kind::IntList: {
      DimVector list;
      const int length = type.list_size ? static_cast<int>(*type.list_size) : 0;
      detail::read_ints(op, o, length, list);
      return Value::Ints(list.begin(), list.end());
    }
    case Kind::Float:
      return to_double(op, o);
    case Kind::FloatList:
      return detail::read_doubles(op, o);
    case Kind::Bool:
      return to_boolean(o);
    case Kind::BoolList: {
      Value::Bools list;
      for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(o); ++i)
        list.push_back(to_boolean(PySequence_Fast_GET_ITEM(o, i)));
      return list;
    }
    case Kind::Number:
      return to_scalar(op, o);
    case Kind::NumberList:
      return detail::read_scalars(op, o);
    case Kind::Str:
      return std::string(utf8(o));
    case Kind::Dtype:
      return *as_dtype(o);
    case Kind::Layout:
      return reinterpret_cast<LayoutObject*>(o)->value;
    case Kind::Device:
      return to_device(o);
    case Kind::MemoryFormat:
      return reinterpret_cast<MemoryFormatObject*>(o)->value;
    case Kind::Generator:
      return to_generator(o);
    case Kind::Any:
      break;
  }
  fail<ErrorKind::NotImplemented>(OpName(op), "expected a type that Python can give, got ",
                                  schema::print(type));
}

Object to_python(const Value& value) { return std::visit(ToPython(), value.variant()); }

Value default_value(const schema::Argument& argument) {
  const schema::Default& d = *argument.default_value;
  if (!argument.type.list || d.kind == schema::DefaultKind::None) return single(argument.type, d);
  switch (kind_of(argument.type)) {
    case Kind::IntList:
      return list_value<Value::Ints>(argument);
    case Kind::FloatList:
      return list_value<Value::Doubles>(argument);
    case Kind::BoolList:
      return list_value<Value::Bools, bool>(argument);
    case Kind::NumberList:
      return list_value<Value::Scalars>(argument);
    default:
      return Value::Tensors();
  }
}

Object as_schema_says(const char* op, const Type& type, PyObject* o) {
  if (o == Py_None) return Object::borrow(o);
  switch (kind_of(type)) {
    case Kind::Int:
      return PyLong_CheckExact(o) ? Object::borrow(o) : Object(PyLong_FromLongLong(to_int(op, o)));
    case Kind::Float:
      return PyFloat_CheckExact(o) ? Object::borrow(o)
                                   : Object(PyFloat_FromDouble(to_double(op, o)));
    case Kind::Bool:
      return PyBool_Check(o) ? Object::borrow(o) : Object(to_bool(to_boolean(o)));
    case Kind::Number:
      return number(o);
    case Kind::Dtype:
      return Py_IS_TYPE(o, dtype_type) ? Object::borrow(o) : Object(wrap(*as_dtype(o)));
    case Kind::Device:
      return Py_IS_TYPE(o, device_type) ? Object::borrow(o) : Object(wrap(to_device(o)));
    case Kind::TensorList:
      return Object(PySequence_List(o));
    case Kind::IntList:
    case Kind::FloatList:
    case Kind::BoolList:
    case Kind::NumberList:
      return to_python(to_value(op, type, o));
    default:
      return Object::borrow(o);
  }
}

bool fits_result(const Type& type, PyObject* o) {
  if (o == Py_None) return type.optional;
  if (type.list) {
    if (!PyList_Check(o) && !PyTuple_Check(o)) return false;
    Type item = type;
    item.list = false;
    item.optional = type.element_optional;
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(o); ++i) {
      if (!fits_result(item, PySequence_Fast_GET_ITEM(o, i))) return false;
    }
    return true;
  }
  switch (kind_of(type)) {
    case Kind::Tensor:
      return is_tensor(o);
    case Kind::Int:
      return is_int(o);
    case Kind::Float:
      return is_real(o);
    case Kind::Bool:
      return is_bool(o);
    case Kind::Number:
      return is_number(o);
    case Kind::Str:
      return PyUnicode_Check(o);
    case Kind::Dtype:
      return Py_IS_TYPE(o, dtype_type);
    case Kind::Layout:
      return Py_IS_TYPE(o, layout_type);
    case Kind::Device:
      return is_device(o);
    case Kind::MemoryFormat:
      return Py_IS_TYPE(o, memory_format_type);
    case Kind::Generator:
      return is_generator(o);
    default:
      return false;
  }
}

}  // namespace treadle::python
