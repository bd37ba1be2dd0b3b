// Scalar: one number of a kind (bool, integer, floating, complex), like Python's literals.
//
//   Scalar(2).to<float>() == 2.0f;  Scalar(1.5).is_floating()
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <complex>
#include <cstdint>
#include <string>
#include <type_traits>

#include "core/base/scalar_type.h"

namespace treadle {

class Scalar {
 public:
  enum class Kind : uint8_t { Bool, Int, Double, Complex };

  constexpr Scalar() : Scalar(int64_t{0}) {}
  constexpr Scalar(bool v) : i_(v), kind_(Kind::Bool) {}  // NOLINT
  template <class T>
  requires(std::is_integral_v<T> && !std::is_same_v<T, bool>) constexpr Scalar(T v)
      : i_(static_cast<int64_t>(v)),
        kind_(Kind::Int),
        unsigned_(std::is_unsigned_v<T> && i_ < 0) {}                     // NOLINT
  constexpr Scalar(double v) : d_(v), kind_(Kind::Double) {}              // NOLINT
  constexpr Scalar(float v) : d_(v), kind_(Kind::Double) {}               // NOLINT
  Scalar(Half v) : d_(static_cast<float>(v)), kind_(Kind::Double) {}      // NOLINT
  Scalar(BFloat16 v) : d_(static_cast<float>(v)), kind_(Kind::Double) {}  // NOLINT
  template <class T>
  constexpr Scalar(std::complex<T> v)
      : d_(v.real()), imag_(v.imag()), kind_(Kind::Complex) {}  // NOLINT

  constexpr Kind kind() const { return kind_; }
  constexpr bool is_bool() const { return kind_ == Kind::Bool; }
  constexpr bool is_integral() const { return kind_ <= Kind::Int; }  // bool included
  constexpr bool is_floating() const { return kind_ == Kind::Double; }
  constexpr bool is_complex() const { return kind_ == Kind::Complex; }
  // An integer of 2^63 or more, which only uint64 holds.
  constexpr bool exceeds_int64() const { return unsigned_; }

  // Converts like a C++ static_cast, but never undefined. A floating value outside an integer's
  // range wraps or saturates; a complex number loses its imaginary part.
  template <class T>
  T to() const {
    if constexpr (is_complex_type<T>) {
      using R = typename T::value_type;
      if (kind_ == Kind::Complex) return T(static_cast<R>(d_), static_cast<R>(imag_));
      return T(kind_ == Kind::Double ? static_cast<R>(d_) : integer_as<R>(), R(0));
    } else if constexpr (std::is_same_v<T, bool>) {
      if (kind_ == Kind::Complex) return d_ != 0 || imag_ != 0;
      return kind_ == Kind::Double ? d_ != 0 : i_ != 0;
    } else if constexpr (std::is_same_v<T, uint64_t>) {
      if (kind_ >= Kind::Double && d_ >= 9223372036854775808.0)
        return d_ < 18446744073709551616.0 ? static_cast<uint64_t>(d_) : UINT64_MAX;
      return static_cast<uint64_t>(is_integral() ? i_ : saturate(d_));
    } else if constexpr (std::is_integral_v<T>) {
      return static_cast<T>(is_integral() ? i_ : saturate(d_));
    } else if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>) {
      return T(is_integral() ? integer_as<float>() : static_cast<float>(d_));
    } else {
      return is_integral() ? integer_as<T>() : static_cast<T>(d_);
    }
  }
  // Like to<T>(), but RuntimeError when the value does not fit (integers out of range, a complex to
  // a real).
  template <class T>
  T checked_to(const char* what) const;

  // The dtype of a Python number on its own: bool, int64, the default dtype, or its complex
  // counterpart.
  ScalarType type() const;
  Scalar operator-() const;
  Scalar conj() const { return is_complex() ? Scalar(std::complex<double>(d_, -imag_)) : *this; }
  bool equal(double v) const { return is_complex() ? (d_ == v && imag_ == 0) : to<double>() == v; }

 private:
  template <class R>
  constexpr R integer_as() const {
    return unsigned_ ? static_cast<R>(static_cast<uint64_t>(i_)) : static_cast<R>(i_);
  }
  static int64_t saturate(double v) {
    if (!(v == v)) return INT64_MIN;
    if (v >= 9223372036854775808.0) return INT64_MAX;
    if (v < -9223372036854775808.0) return INT64_MIN;
    return static_cast<int64_t>(v);
  }
  union {
    int64_t i_;
    double d_;
  };
  double imag_ = 0;
  Kind kind_;
  bool unsigned_ = false;  // i_ holds the bits of a number of 2^63 or more
};

std::string to_string(const Scalar& s);  // as Python prints it: True, 3, 0.5, (1+2j)

}  // namespace treadle
