// Checked: a size, stride or count whose arithmetic detects overflow.
//
//   const Checked end = Checked(offset) + Checked(size - 1) * stride;
//   check<ErrorKind::Runtime>(end.fits(), OpName(op), "expected ...");
//   use(end.value());
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace treadle {

class Checked {
 public:
  constexpr Checked(int64_t value) : value_(value) {}

  constexpr bool fits() const { return fits_; }
  // The number. It has no meaning if it does not fit.
  constexpr int64_t value() const { return value_; }
  constexpr int64_t value_or(int64_t other) const { return fits_ ? value_ : other; }

  friend constexpr Checked operator+(Checked a, Checked b) {
    Checked r(0);
    r.fits_ = !__builtin_add_overflow(a.value_, b.value_, &r.value_) && a.fits_ && b.fits_;
    return r;
  }
  friend constexpr Checked operator-(Checked a, Checked b) {
    Checked r(0);
    r.fits_ = !__builtin_sub_overflow(a.value_, b.value_, &r.value_) && a.fits_ && b.fits_;
    return r;
  }
  friend constexpr Checked operator*(Checked a, Checked b) {
    Checked r(0);
    r.fits_ = !__builtin_mul_overflow(a.value_, b.value_, &r.value_) && a.fits_ && b.fits_;
    return r;
  }
  constexpr Checked& operator+=(Checked other) { return *this = *this + other; }
  constexpr Checked& operator*=(Checked other) { return *this = *this * other; }

 private:
  int64_t value_;
  bool fits_ = true;
};

}  // namespace treadle
