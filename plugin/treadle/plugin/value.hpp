// Values at the boundary: Number, and the conversion from and to treadle_value for each C++ type of
// a parameter or result.
//
//   schema                      C++ (a parameter; `?` is std::optional<> of it)
//   Tensor, Tensor?             const Tensor& (undefined: None)
//   Tensor[], Tensor?[]         const std::vector<Tensor>&
//   int, float, bool, Scalar    int64_t, double, bool, Number
//   int[], float[], bool[]      Ints, Span<const double>, Span<const bool>; std::vector, std::array
//   str                         std::string_view, std::string
//   ScalarType, Layout, Device, MemoryFormat, Generator
//                               DType, Layout, Device, MemoryFormat, Generator
#pragma once

#include <optional>
#include <string_view>
#include <tuple>
#include <variant>

#include "treadle/plugin/tensor.hpp"

#pragma GCC visibility push(hidden)

namespace treadle::plugin {

// A Scalar of a schema: a truth value, an integer, a floating or a complex number.
class Number {
 public:
  using Variant = std::variant<bool, int64_t, double, std::complex<double>>;
  Number(bool value) : value_(value) {}                  // NOLINT: any number is one
  Number(double value) : value_(value) {}                // NOLINT
  Number(std::complex<double> value) : value_(value) {}  // NOLINT
  template <class I, class = std::enable_if_t<std::is_integral_v<I>>>
  Number(I value) : value_(static_cast<int64_t>(value)) {}  // NOLINT

  bool is_bool() const { return value_.index() == 0; }
  bool is_integer() const { return value_.index() == 1; }
  bool is_floating() const { return value_.index() == 2; }
  bool is_complex() const { return value_.index() == 3; }
  // The conversion is that of a tensor's element.
  template <class T>
  T to() const {
    return std::visit([](auto v) { return convert<T>(v); }, value_);
  }
  const Variant& variant() const { return value_; }

 private:
  Variant value_;
};

namespace detail {

inline const char* tag_name(int32_t tag) {
  static constexpr const char* kNames[] = {"None",    "Tensor", "bool",         "int",
                                           "float",   "Scalar", "str",          "int[]",
                                           "float[]", "bool[]", "Tensor[]",     "ScalarType",
                                           "Layout",  "Device", "MemoryFormat", "Generator"};
  return tag >= 0 && tag < static_cast<int32_t>(std::size(kNames)) ? kNames[tag] : "unknown";
}
[[noreturn]] inline void mismatch(const char* expected, const treadle_value& value) {
  fail(ErrorKind::Type, "expected ", expected, ", got ", tag_name(value.tag));
}
inline treadle_value tagged(int32_t tag, size_t count = 0) {
  treadle_value value{};
  value.tag = tag;
  value.count = static_cast<uint32_t>(count);
  return value;
}

// Convert<T>: `name` is the spelling in schemas. `read` is valid as long as the value lives (`Held`
// where T is only a view of it). `fits` says whether values of a schema's type can be read. `write`
// gives a value that lives as long as T and `keep`.
struct Nothing {};
template <class T>
struct Convert;

template <class T>
struct ByValue {
  using Held = T;
  static const T& get(const Held& held) { return held; }
};

template <>
struct Convert<Number> : ByValue<Number> {
  static constexpr const char* name = "Scalar";
  static bool fits(int32_t tag) { return tag >= TREADLE_TAG_BOOL && tag <= TREADLE_TAG_COMPLEX; }
  static Number read(const treadle_value& v) {
    switch (v.tag) {
      case TREADLE_TAG_BOOL:
        return Number(v.as.integer != 0);
      case TREADLE_TAG_INT:
        return Number(v.as.integer);
      case TREADLE_TAG_FLOAT:
        return Number(v.as.number);
      case TREADLE_TAG_COMPLEX:
        return Number(std::complex<double>(v.as.complex_parts[0], v.as.complex_parts[1]));
      default:
        mismatch("a number", v);
    }
  }
  using Keep = Nothing;
  static treadle_value write(const Number& number, Keep&) {
    treadle_value value = tagged(TREADLE_TAG_BOOL + static_cast<int32_t>(number.variant().index()));
    if (const auto* b = std::get_if<bool>(&number.variant())) value.as.integer = *b;
    if (const auto* i = std::get_if<int64_t>(&number.variant())) value.as.integer = *i;
    if (const auto* d = std::get_if<double>(&number.variant())) value.as.number = *d;
    if (const auto* c = std::get_if<std::complex<double>>(&number.variant())) {
      value.as.complex_parts[0] = c->real();
      value.as.complex_parts[1] = c->imag();
    }
    return value;
  }
};

// Numbers of one kind accept those of a narrower kind.
template <class T, int32_t kTag>
struct ConvertNumber : ByValue<T> {
  static bool fits(int32_t tag) { return tag == kTag; }
  static T read(const treadle_value& v) {
    if (v.tag < TREADLE_TAG_BOOL || v.tag > kTag) mismatch(Convert<T>::name, v);
    return Convert<Number>::read(v).to<T>();
  }
  using Keep = Nothing;
  static treadle_value write(const T& value, Keep& keep) {
    return Convert<Number>::write(Number(value), keep);
  }
};
template <>
struct Convert<bool> : ConvertNumber<bool, TREADLE_TAG_BOOL> {
  static constexpr const char* name = "bool";
};
template <>
struct Convert<int64_t> : ConvertNumber<int64_t, TREADLE_TAG_INT> {
  static constexpr const char* name = "int";
};
template <>
struct Convert<double> : ConvertNumber<double, TREADLE_TAG_FLOAT> {
  static constexpr const char* name = "float";
};
template <>
struct Convert<std::complex<double>> : ConvertNumber<std::complex<double>, TREADLE_TAG_COMPLEX> {
  static constexpr const char* name = "Scalar";
};
// C++ number types that no schema has, as arguments of calls.
template <class T, class Wide>
struct ConvertWider {
  using Keep = Nothing;
  static treadle_value write(const T& value, Keep& keep) {
    return Convert<Wide>::write(static_cast<Wide>(value), keep);
  }
};
template <>
struct Convert<int32_t> : ConvertWider<int32_t, int64_t> {};
template <>
struct Convert<uint32_t> : ConvertWider<uint32_t, int64_t> {};
template <>
struct Convert<long long> : ConvertWider<long long, int64_t> {};
template <>
struct Convert<size_t> : ConvertWider<size_t, int64_t> {};
template <>
struct Convert<float> : ConvertWider<float, double> {};

template <>
struct Convert<Tensor> {
  static constexpr const char* name = "Tensor";
  static bool fits(int32_t tag) { return tag == TREADLE_TAG_TENSOR; }
  static constexpr bool reads_none = true;  // as an undefined one
  // Borrowed: the reference is not counted.
  struct Held {
    Tensor tensor;
    explicit Held(treadle_tensor* handle) : tensor(Tensor::take(handle)) {}
    Held(Held&&) = default;
    ~Held() { tensor.give(); }
  };
  static Held read(const treadle_value& v) {
    if (v.tag == TREADLE_TAG_NONE) return Held(nullptr);
    if (v.tag != TREADLE_TAG_TENSOR) mismatch(name, v);
    return Held(v.as.tensor);
  }
  static const Tensor& get(const Held& held) { return held.tensor; }
  using Keep = Nothing;
  static treadle_value write(const Tensor& tensor, Keep&) {
    treadle_value value = tagged(tensor.defined() ? TREADLE_TAG_TENSOR : TREADLE_TAG_NONE);
    value.as.tensor = tensor.handle();
    return value;
  }
};

template <>
struct Convert<std::vector<Tensor>> : ByValue<std::vector<Tensor>> {
  static constexpr const char* name = "Tensor[]";
  static bool fits(int32_t tag) { return tag == TREADLE_TAG_TENSORS; }
  static std::vector<Tensor> read(const treadle_value& v) {
    if (v.tag != TREADLE_TAG_TENSORS) mismatch(name, v);
    std::vector<Tensor> tensors;
    tensors.reserve(v.count);
    for (uint32_t i = 0; i < v.count; ++i) tensors.push_back(Tensor::borrow(v.as.tensors[i]));
    return tensors;
  }
  using Keep = std::vector<treadle_tensor*>;
  static treadle_value write(const std::vector<Tensor>& tensors, Keep& keep) {
    for (const Tensor& tensor : tensors) keep.push_back(tensor.handle());
    treadle_value value = tagged(TREADLE_TAG_TENSORS, tensors.size());
    value.as.tensors = keep.data();
    return value;
  }
};

// Lists of numbers: views of the value.
template <class T, int32_t kTag>
struct ConvertSpan : ByValue<Span<const T>> {
  static bool fits(int32_t tag) { return tag == kTag; }
  static Span<const T> read(const treadle_value& v) {
    if (v.tag != kTag) mismatch(tag_name(kTag), v);
    static_assert(sizeof(bool) == sizeof(uint8_t));
    const void* data;
    if constexpr (kTag == TREADLE_TAG_INTS)
      data = v.as.integers;
    else if constexpr (kTag == TREADLE_TAG_FLOATS)
      data = v.as.numbers;
    else
      data = v.as.bools;
    return Span<const T>(static_cast<const T*>(data), v.count);  // no list of two numbers
  }
  using Keep = Nothing;
  static treadle_value write(Span<const T> values, Keep&) {
    treadle_value value = tagged(kTag, values.size());
    if constexpr (kTag == TREADLE_TAG_INTS)
      value.as.integers = values.data();
    else if constexpr (kTag == TREADLE_TAG_FLOATS)
      value.as.numbers = values.data();
    else
      value.as.bools = reinterpret_cast<const uint8_t*>(values.data());
    return value;
  }
};
template <>
struct Convert<Span<const int64_t>> : ConvertSpan<int64_t, TREADLE_TAG_INTS> {
  static constexpr const char* name = "int[]";
};
template <>
struct Convert<Span<const double>> : ConvertSpan<double, TREADLE_TAG_FLOATS> {
  static constexpr const char* name = "float[]";
};
template <>
struct Convert<Span<const bool>> : ConvertSpan<bool, TREADLE_TAG_BOOLS> {
  static constexpr const char* name = "bool[]";
};
template <class T>
struct ConvertVector : ByValue<std::vector<T>> {
  using View = Convert<Span<const T>>;
  static constexpr const char* name = View::name;
  static bool fits(int32_t tag) { return View::fits(tag); }
  static std::vector<T> read(const treadle_value& v) {
    const auto view = View::read(v);
    return {view.begin(), view.end()};
  }
  using Keep = Nothing;
  static treadle_value write(const std::vector<T>& values, Keep& keep) {
    return View::write(values, keep);
  }
};
template <>
struct Convert<std::vector<int64_t>> : ConvertVector<int64_t> {};
template <>
struct Convert<std::vector<double>> : ConvertVector<double> {};
template <class T, size_t n>
struct Convert<std::array<T, n>> : ByValue<std::array<T, n>> {
  using View = Convert<Span<const T>>;
  static constexpr const char* name = View::name;
  static bool fits(int32_t tag) { return View::fits(tag); }
  static std::array<T, n> read(const treadle_value& v) {
    const auto view = View::read(v);
    check(view.size() == n, ErrorKind::Value, "expected a list of ", n, ", got one of ",
          view.size());
    std::array<T, n> values;
    std::copy(view.begin(), view.end(), values.begin());
    return values;
  }
  using Keep = Nothing;
  static treadle_value write(const std::array<T, n>& values, Keep& keep) {
    return View::write(values, keep);
  }
};

template <>
struct Convert<std::string_view> : ByValue<std::string_view> {
  static constexpr const char* name = "str";
  static bool fits(int32_t tag) { return tag == TREADLE_TAG_TEXT; }
  static std::string_view read(const treadle_value& v) {
    if (v.tag != TREADLE_TAG_TEXT) mismatch(name, v);
    return {v.as.text, v.count};
  }
  using Keep = Nothing;
  static treadle_value write(std::string_view text, Keep&) {
    treadle_value value = tagged(TREADLE_TAG_TEXT, text.size());
    value.as.text = text.data();
    return value;
  }
};
template <>
struct Convert<std::string> : ByValue<std::string> {
  static constexpr const char* name = "str";
  static bool fits(int32_t tag) { return tag == TREADLE_TAG_TEXT; }
  static std::string read(const treadle_value& v) {
    return std::string(Convert<std::string_view>::read(v));
  }
  using Keep = Nothing;
  static treadle_value write(const std::string& text, Keep& keep) {
    return Convert<std::string_view>::write(text, keep);
  }
};
template <size_t n>
struct Convert<char[n]> : Convert<std::string_view> {};
template <>
struct Convert<const char*> : Convert<std::string_view> {};

// The content of one member of the value.
template <class T, int32_t kTag>
struct ConvertPlain : ByValue<T> {
  static bool fits(int32_t tag) { return tag == kTag; }
  static T read(const treadle_value& v) {
    if (v.tag != kTag) mismatch(Convert<T>::name, v);
    if constexpr (kTag == TREADLE_TAG_DTYPE)
      return static_cast<T>(v.as.dtype);
    else if constexpr (kTag == TREADLE_TAG_DEVICE)
      return T(v.as.device);
    else
      return static_cast<T>(v.as.integer);
  }
  using Keep = Nothing;
  static treadle_value write(const T& plain, Keep&) {
    treadle_value value = tagged(kTag);
    if constexpr (kTag == TREADLE_TAG_DTYPE)
      value.as.dtype = static_cast<treadle_dtype>(plain);
    else if constexpr (kTag == TREADLE_TAG_DEVICE)
      value.as.device = plain;
    else
      value.as.integer = static_cast<int64_t>(plain);
    return value;
  }
};
template <>
struct Convert<DType> : ConvertPlain<DType, TREADLE_TAG_DTYPE> {
  static constexpr const char* name = "ScalarType";
};
template <>
struct Convert<Device> : ConvertPlain<Device, TREADLE_TAG_DEVICE> {
  static constexpr const char* name = "Device";
};
template <>
struct Convert<Layout> : ConvertPlain<Layout, TREADLE_TAG_LAYOUT> {
  static constexpr const char* name = "Layout";
};
template <>
struct Convert<MemoryFormat> : ConvertPlain<MemoryFormat, TREADLE_TAG_MEMORY_FORMAT> {
  static constexpr const char* name = "MemoryFormat";
};
template <>
struct Convert<Generator> : ByValue<Generator> {
  static constexpr const char* name = "Generator";
  static constexpr bool reads_none = true;  // as the default one
  static bool fits(int32_t tag) { return tag == TREADLE_TAG_GENERATOR; }
  static Generator read(const treadle_value& v) {
    if (v.tag == TREADLE_TAG_NONE) return {};
    if (v.tag != TREADLE_TAG_GENERATOR) mismatch(name, v);
    return {v.as.generator};
  }
  using Keep = Nothing;
  static treadle_value write(const Generator& generator, Keep&) {
    treadle_value value =
        tagged(generator.handle == nullptr ? TREADLE_TAG_NONE : TREADLE_TAG_GENERATOR);
    value.as.generator = generator.handle;
    return value;
  }
};

template <class T>
struct Convert<std::optional<T>> : ByValue<std::optional<T>> {
  static constexpr const char* name = Convert<T>::name;
  static constexpr bool reads_none = true;
  static bool fits(int32_t tag) { return Convert<T>::fits(tag); }
  static std::optional<T> read(const treadle_value& v) {
    if (v.tag == TREADLE_TAG_NONE) return std::nullopt;
    if constexpr (std::is_same_v<T, Tensor>)
      return Tensor::borrow(Convert<Tensor>::read(v).tensor.handle());
    else
      return Convert<T>::read(v);
  }
  using Keep = typename Convert<T>::Keep;
  static treadle_value write(const std::optional<T>& value, Keep& keep) {
    return value ? Convert<T>::write(*value, keep) : tagged(TREADLE_TAG_NONE);
  }
};
template <>
struct Convert<std::nullopt_t> {
  using Keep = Nothing;
  static treadle_value write(std::nullopt_t, Keep&) { return tagged(TREADLE_TAG_NONE); }
};

template <class T, class = void>
constexpr bool reads_none = false;
template <class T>
constexpr bool reads_none<T, std::void_t<decltype(Convert<T>::reads_none)>> = true;

}  // namespace detail

// The number in a value, for example of a generated kernel's call; TypeError if it holds none.
inline Number number_of(const treadle_value& value) { return detail::Convert<Number>::read(value); }

}  // namespace treadle::plugin

#pragma GCC visibility pop
