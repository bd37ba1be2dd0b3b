// The small types of tensors: Span, DType with the C++ type of each dtype, the 16-bit floats,
// Device, and the switch from a run-time dtype to a type.
//
//   visit_dtype<float, double>(x.dtype(), "fold", [&](auto type) {
//     using T = typename decltype(type)::type;
//     ...
//   });
#pragma once

#include <array>
#include <complex>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <ostream>
#include <type_traits>
#include <vector>

#include "treadle/plugin/error.hpp"

#pragma GCC visibility push(hidden)

namespace treadle::plugin {

// `size()` consecutive elements, not owned.
template <class T>
class Span {
 public:
  constexpr Span() = default;
  constexpr Span(T* data, size_t size) : data_(data), size_(size) {}
  template <class U, class = std::enable_if_t<std::is_same_v<const U, T>>>
  Span(const std::vector<U>& values) : data_(values.data()), size_(values.size()) {}  // NOLINT
  template <class U, size_t n, class = std::enable_if_t<std::is_same_v<const U, T>>>
  Span(const std::array<U, n>& values) : data_(values.data()), size_(n) {}  // NOLINT
  template <size_t n>
  constexpr Span(T (&values)[n]) : data_(values), size_(n) {}  // NOLINT
  // As an argument: f({2, 3}). The list lives as long as the call.
  template <class U = std::remove_const_t<T>, class = std::enable_if_t<std::is_const_v<T>, U>>
  Span(std::initializer_list<std::remove_const_t<T>> values) {  // NOLINT
    data_ = values.begin();
    size_ = values.size();
  }

  constexpr T* data() const { return data_; }
  constexpr size_t size() const { return size_; }
  constexpr bool empty() const { return size_ == 0; }
  constexpr T* begin() const { return data_; }
  constexpr T* end() const { return data_ + size_; }
  constexpr T& operator[](size_t i) const { return data_[i]; }

 private:
  T* data_ = nullptr;
  size_t size_ = 0;
};
using Ints = Span<const int64_t>;

// "(2, 3)"; "(2,)" for one, as Python writes them.
template <class T>
std::ostream& operator<<(std::ostream& out, Span<T> values) {
  out << '(';
  for (size_t i = 0; i < values.size(); ++i) out << (i == 0 ? "" : ", ") << values[i];
  return out << (values.size() == 1 ? ",)" : ")");
}

enum class DType : treadle_dtype {
  Bool = TREADLE_BOOL,
  UInt8 = TREADLE_UINT8,
  UInt16 = TREADLE_UINT16,
  UInt32 = TREADLE_UINT32,
  UInt64 = TREADLE_UINT64,
  Int8 = TREADLE_INT8,
  Int16 = TREADLE_INT16,
  Int32 = TREADLE_INT32,
  Int64 = TREADLE_INT64,
  Float16 = TREADLE_FLOAT16,
  BFloat16 = TREADLE_BFLOAT16,
  Float32 = TREADLE_FLOAT32,
  Float64 = TREADLE_FLOAT64,
  Complex64 = TREADLE_COMPLEX64,
  Complex128 = TREADLE_COMPLEX128,
};

// The 16-bit floats are for storage. Arithmetic happens in float, and the result is rounded to
// nearest even.
struct BFloat16 {
  uint16_t bits = 0;
  BFloat16() = default;
  BFloat16(float value) {  // NOLINT: a number type
    uint32_t u;
    std::memcpy(&u, &value, sizeof u);
    bits = static_cast<uint16_t>((u & 0x7fffffffu) > 0x7f800000u
                                     ? (u >> 16) | 0x40  // stays a NaN
                                     : (u + 0x7fffu + ((u >> 16) & 1)) >> 16);
  }
  operator float() const {  // NOLINT
    const uint32_t u = static_cast<uint32_t>(bits) << 16;
    float value;
    std::memcpy(&value, &u, sizeof value);
    return value;
  }
};
struct Half {
  uint16_t bits = 0;
  Half() = default;
  Half(float value) {  // NOLINT: a number type
    uint32_t u;
    std::memcpy(&u, &value, sizeof u);
    const uint32_t sign = (u >> 16) & 0x8000u, magnitude = u & 0x7fffffffu;
    uint32_t half;
    if (magnitude > 0x7f800000u) {
      half = 0x7e00u;  // NaN
    } else if (magnitude >= 0x477ff000u) {
      half = 0x7c00u;  // rounds to 65536 or more
    } else if (magnitude < 0x38800000u) {
      // Subnormal: adding 0.5 moves the half's last place to the float's, so that the sum is
      // rounded.
      float size;
      std::memcpy(&size, &magnitude, sizeof size);
      size += 0.5f;
      uint32_t shifted;
      std::memcpy(&shifted, &size, sizeof shifted);
      half = shifted - 0x3f000000u;
    } else {
      half = (magnitude + 0xfffu + ((magnitude >> 13) & 1) - 0x38000000u) >> 13;
    }
    bits = static_cast<uint16_t>(sign | half);
  }
  operator float() const {  // NOLINT
    const uint32_t sign = static_cast<uint32_t>(bits & 0x8000u) << 16, magnitude = bits & 0x7fffu;
    uint32_t u = magnitude << 13;
    if (magnitude >= 0x7c00u) {
      u |= 0x7f800000u;  // infinity, NaN
    } else {
      float size;
      std::memcpy(&size, &u, sizeof size);
      size *= 5192296858534827628530496329220096.0f;  // 2^112: exact, subnormals included
      std::memcpy(&u, &size, sizeof u);
    }
    u |= sign;
    float value;
    std::memcpy(&value, &u, sizeof value);
    return value;
  }
};

template <class T>
struct Type {
  using type = T;
};

namespace detail {
template <class T>
constexpr int32_t dtype_number = -1;
template <>
inline constexpr int32_t dtype_number<bool> = TREADLE_BOOL;
template <>
inline constexpr int32_t dtype_number<uint8_t> = TREADLE_UINT8;
template <>
inline constexpr int32_t dtype_number<uint16_t> = TREADLE_UINT16;
template <>
inline constexpr int32_t dtype_number<uint32_t> = TREADLE_UINT32;
template <>
inline constexpr int32_t dtype_number<uint64_t> = TREADLE_UINT64;
template <>
inline constexpr int32_t dtype_number<int8_t> = TREADLE_INT8;
template <>
inline constexpr int32_t dtype_number<int16_t> = TREADLE_INT16;
template <>
inline constexpr int32_t dtype_number<int32_t> = TREADLE_INT32;
template <>
inline constexpr int32_t dtype_number<int64_t> = TREADLE_INT64;
template <>
inline constexpr int32_t dtype_number<Half> = TREADLE_FLOAT16;
template <>
inline constexpr int32_t dtype_number<BFloat16> = TREADLE_BFLOAT16;
template <>
inline constexpr int32_t dtype_number<float> = TREADLE_FLOAT32;
template <>
inline constexpr int32_t dtype_number<double> = TREADLE_FLOAT64;
template <>
inline constexpr int32_t dtype_number<std::complex<float>> = TREADLE_COMPLEX64;
template <>
inline constexpr int32_t dtype_number<std::complex<double>> = TREADLE_COMPLEX128;
}  // namespace detail

// The dtype whose elements are T.
template <class T>
constexpr DType dtype_of() {
  static_assert(detail::dtype_number<T> >= 0, "no dtype has elements of this C++ type");
  return static_cast<DType>(detail::dtype_number<T>);
}

inline const char* dtype_name(DType dtype) {
  return api().dtype_name(static_cast<treadle_dtype>(dtype));
}
inline size_t item_size(DType dtype) { return api().item_size(static_cast<treadle_dtype>(dtype)); }
inline std::ostream& operator<<(std::ostream& out, DType dtype) { return out << dtype_name(dtype); }

constexpr bool is_complex(DType d) { return d == DType::Complex64 || d == DType::Complex128; }
constexpr bool is_floating(DType d) { return d >= DType::Float16 && d <= DType::Float64; }
constexpr bool is_signed_integer(DType d) { return d >= DType::Int8 && d <= DType::Int64; }
constexpr bool is_unsigned_integer(DType d) { return d >= DType::UInt8 && d <= DType::UInt64; }

// Calls f(Type<T>{}) for the T among Ts that has the dtype. TypeError, with `who`, if there is
// none.
template <class... Ts, class F>
auto visit_dtype(DType dtype, const char* who, F&& f) {
  using R = std::common_type_t<decltype(f(Type<Ts>{}))...>;
  if constexpr (std::is_void_v<R>) {
    if (!((dtype == dtype_of<Ts>() ? (f(Type<Ts>{}), true) : false) || ...)) {
      std::string known;
      ((known += (known.empty() ? "" : ", ") + std::string(dtype_name(dtype_of<Ts>()))), ...);
      fail(ErrorKind::Type, who, ": expected a dtype of ", known, ", got ", dtype);
    }
  } else {
    R result{};
    visit_dtype<Ts...>(dtype, who, [&](auto type) -> void { result = f(type); });
    return result;
  }
}
// The same for every dtype.
template <class F>
auto visit_all_dtypes(DType dtype, F&& f) {
  return visit_dtype<bool, uint8_t, uint16_t, uint32_t, uint64_t, int8_t, int16_t, int32_t, int64_t,
                     Half, BFloat16, float, double, std::complex<float>, std::complex<double>>(
      dtype, "dtype", std::forward<F>(f));
}

// Conversions between dtypes, by Treadle's rules: to bool whether the value differs from 0, to a
// real type without the imaginary part, to an integer towards zero.
template <class To, class From>
To convert(From value) {
  constexpr bool to_complex = is_complex(dtype_of<To>()),
                 from_complex = is_complex(dtype_of<From>());
  constexpr bool from_small = std::is_same_v<From, Half> || std::is_same_v<From, BFloat16>;
  if constexpr (std::is_same_v<To, From>) {
    return value;
  } else if constexpr (from_small) {
    return convert<To>(static_cast<float>(value));
  } else if constexpr (std::is_same_v<To, bool>) {
    return value != From(0);
  } else if constexpr (to_complex) {
    using R = typename To::value_type;
    if constexpr (from_complex)
      return To(static_cast<R>(value.real()), static_cast<R>(value.imag()));
    else
      return To(static_cast<R>(value), R(0));
  } else if constexpr (from_complex) {
    return convert<To>(value.real());
  } else if constexpr (std::is_same_v<To, Half> || std::is_same_v<To, BFloat16>) {
    return To(static_cast<float>(value));
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    // They go through 64 bits, so that a value out of range gives the same result on every machine.
    if constexpr (std::is_unsigned_v<To>) {
      if (value >= From(9223372036854775808.0))
        return static_cast<To>(static_cast<uint64_t>(value));
    }
    return static_cast<To>(static_cast<int64_t>(value));
  } else {
    return static_cast<To>(value);
  }
}

// A device. Its type is TREADLE_CPU, TREADLE_META or a result of register_backend().
struct Device {
  treadle_device_type type = TREADLE_CPU;
  int32_t index = -1;  // -1: the current one of its type
  Device() = default;
  explicit Device(treadle_device_type t, int32_t i = -1) : type(t), index(i) {}
  Device(treadle_device device) : type(device.type), index(device.index) {}  // NOLINT
  operator treadle_device() const { return {type, index}; }                  // NOLINT
  static Device cpu() { return Device(TREADLE_CPU, -1); }
  bool operator==(const Device& o) const { return type == o.type && index == o.index; }
  bool operator!=(const Device& o) const { return !(*this == o); }
};

enum class Layout : int32_t { Strided = 0 };
enum class MemoryFormat : int32_t {
  Contiguous = 0,
  Preserve = 1,
  ChannelsLast = 2,
  ChannelsLast3d = 3
};

// A source of random numbers; an empty one is the device's default.
struct Generator {
  treadle_generator* handle = nullptr;
};
// The start of a run of Philox 4x32-10 counters.
struct RandomCounters {
  uint64_t seed = 0, offset = 0;
};
// `blocks` counters of the generator, for this caller alone.
inline RandomCounters reserve_random(Generator generator, Device device, uint64_t blocks) {
  RandomCounters counters;
  succeed(api().reserve_random(generator.handle, device, blocks, &counters.seed, &counters.offset));
  return counters;
}

}  // namespace treadle::plugin

#pragma GCC visibility pop
