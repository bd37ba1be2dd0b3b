// Checked conversions and the printing of scalars.
//
// SPDX-License-Identifier: Apache-2.0

#include "core/base/scalar.h"

#include <cmath>
#include <limits>

#include "core/base/error.h"

namespace treadle {
namespace {

// Whether the value is in T's range after its fraction is cut off. Unsigned types negate their
// value, which wraps (-1 is 255). NaN fits no integer.
template <class T>
bool fits(double v) {
  if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
    const double limit = std::ldexp(1.0, std::numeric_limits<T>::digits);
    const double low = sizeof(T) == 8 ? -0x1p63 : std::is_signed_v<T> ? -limit - 1.0 : -limit;
    return v < limit && (sizeof(T) < 8 && std::is_signed_v<T> ? v > low : v >= low);
  } else {
    return true;
  }
}

template <class T>
bool fits(int64_t v) {
  if constexpr (std::is_same_v<T, bool> || !std::is_integral_v<T> || sizeof(T) == 8) {
    return true;
  } else {
    constexpr int64_t high = std::numeric_limits<T>::max();
    return v <= high && v >= (std::is_signed_v<T> ? int64_t{std::numeric_limits<T>::min()} : -high);
  }
}

// Floating types hold anything but a finite value beyond their largest.
template <class T>
bool overflows_floating(double v) {
  if constexpr (std::is_same_v<T, float>) {
    return std::isfinite(v) && !std::isfinite(static_cast<float>(v));
  } else if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>) {
    return std::isfinite(v) && !std::isfinite(static_cast<float>(T(static_cast<float>(v))));
  } else {
    return false;
  }
}

// Python leaves out ".0" inside complex numbers.
std::string part(double v) {
  std::string text = str(v);
  if (text.ends_with(".0")) text.resize(text.size() - 2);
  return text;
}

}  // namespace

template <class T>
T Scalar::checked_to(const char* what) const {
  bool ok = true;
  if constexpr (is_complex_type<T>) {
    using R = typename T::value_type;
    ok = is_integral() ||
         (!overflows_floating<R>(d_) && !(is_complex() && overflows_floating<R>(imag_)));
  } else {
    if (is_complex()) ok = imag_ == 0;
    if constexpr (std::is_integral_v<T>)
      ok = ok && (unsigned_       ? std::is_same_v<T, uint64_t> || std::is_same_v<T, bool>
                  : is_integral() ? fits<T>(i_)
                                  : fits<T>(d_));
    else
      ok = ok && !overflows_floating<T>(to<double>());
  }
  check<ErrorKind::Runtime>(ok, OpName(what), "expected a value that fits ",
                            name_of(scalar_type_of<T>), ", got ", *this);
  return to<T>();
}

template bool Scalar::checked_to<bool>(const char*) const;
template uint8_t Scalar::checked_to<uint8_t>(const char*) const;
template uint16_t Scalar::checked_to<uint16_t>(const char*) const;
template uint32_t Scalar::checked_to<uint32_t>(const char*) const;
template uint64_t Scalar::checked_to<uint64_t>(const char*) const;
template int8_t Scalar::checked_to<int8_t>(const char*) const;
template int16_t Scalar::checked_to<int16_t>(const char*) const;
template int32_t Scalar::checked_to<int32_t>(const char*) const;
template int64_t Scalar::checked_to<int64_t>(const char*) const;
template Half Scalar::checked_to<Half>(const char*) const;
template BFloat16 Scalar::checked_to<BFloat16>(const char*) const;
template float Scalar::checked_to<float>(const char*) const;
template double Scalar::checked_to<double>(const char*) const;
template std::complex<float> Scalar::checked_to<std::complex<float>>(const char*) const;
template std::complex<double> Scalar::checked_to<std::complex<double>>(const char*) const;

ScalarType Scalar::type() const {
  switch (kind_) {
    case Kind::Bool:
      return ScalarType::Bool;
    case Kind::Int:
      return unsigned_ ? ScalarType::UInt64 : ScalarType::Int64;
    case Kind::Double:
      return default_dtype();
    case Kind::Complex:
      break;
  }
  return to_complex(default_dtype());
}

Scalar Scalar::operator-() const {
  switch (kind_) {
    case Kind::Bool:
    case Kind::Int:
      // The negative of 2^63 or more is a floating number, but for that of 2^63 itself.
      if (unsigned_ && i_ != INT64_MIN) return Scalar(-to<double>());
      return Scalar(static_cast<int64_t>(-static_cast<uint64_t>(i_)));
    case Kind::Double:
      return Scalar(-d_);
    case Kind::Complex:
      break;
  }
  return Scalar(std::complex<double>(-d_, -imag_));
}

std::string to_string(const Scalar& s) {
  switch (s.kind()) {
    case Scalar::Kind::Bool:
      return s.to<bool>() ? "True" : "False";
    case Scalar::Kind::Int:
      return s.exceeds_int64() ? std::to_string(s.to<uint64_t>()) : std::to_string(s.to<int64_t>());
    case Scalar::Kind::Double:
      return str(s.to<double>());
    case Scalar::Kind::Complex:
      break;
  }
  const auto z = s.to<std::complex<double>>();
  if (z.real() == 0 && !std::signbit(z.real())) return part(z.imag()) + "j";
  return "(" + part(z.real()) + (std::signbit(z.imag()) ? "" : "+") + part(z.imag()) + "j)";
}

}  // namespace treadle
