// Infix operators on tensors and numbers, for formulas: `grad * (1 - result * result)`. They are in
// a namespace of their own, because other code calls operators by name.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "aten/ops/add.h"
#include "aten/ops/div.h"
#include "aten/ops/eq.h"
#include "aten/ops/ge.h"
#include "aten/ops/gt.h"
#include "aten/ops/le.h"
#include "aten/ops/logical_and.h"
#include "aten/ops/logical_not.h"
#include "aten/ops/logical_or.h"
#include "aten/ops/lt.h"
#include "aten/ops/mul.h"
#include "aten/ops/ne.h"
#include "aten/ops/neg.h"
#include "aten/ops/reciprocal.h"
#include "aten/ops/sub.h"

namespace treadle::autograd::ops_syntax {

inline Tensor operator-(const Tensor& a) { return aten::neg(a); }
inline Tensor operator!(const Tensor& a) { return aten::logical_not(a); }

inline Tensor operator+(const Tensor& a, const Tensor& b) { return aten::add(a, b); }
inline Tensor operator+(const Tensor& a, const Scalar& b) { return aten::add(a, b); }
inline Tensor operator+(const Scalar& a, const Tensor& b) { return aten::add(b, a); }
inline Tensor operator-(const Tensor& a, const Tensor& b) { return aten::sub(a, b); }
inline Tensor operator-(const Tensor& a, const Scalar& b) { return aten::sub(a, b); }
inline Tensor operator-(const Scalar& a, const Tensor& b) { return aten::add(aten::neg(b), a); }
inline Tensor operator*(const Tensor& a, const Tensor& b) { return aten::mul(a, b); }
inline Tensor operator*(const Tensor& a, const Scalar& b) { return aten::mul(a, b); }
inline Tensor operator*(const Scalar& a, const Tensor& b) { return aten::mul(b, a); }
inline Tensor operator/(const Tensor& a, const Tensor& b) { return aten::div(a, b); }
inline Tensor operator/(const Tensor& a, const Scalar& b) { return aten::div(a, b); }
inline Tensor operator/(const Scalar& a, const Tensor& b) {
  return aten::mul(aten::reciprocal(b), a);
}

inline Tensor operator==(const Tensor& a, const Tensor& b) { return aten::eq(a, b); }
inline Tensor operator==(const Tensor& a, const Scalar& b) { return aten::eq(a, b); }
inline Tensor operator!=(const Tensor& a, const Tensor& b) { return aten::ne(a, b); }
inline Tensor operator!=(const Tensor& a, const Scalar& b) { return aten::ne(a, b); }
inline Tensor operator<(const Tensor& a, const Tensor& b) { return aten::lt(a, b); }
inline Tensor operator<(const Tensor& a, const Scalar& b) { return aten::lt(a, b); }
inline Tensor operator<=(const Tensor& a, const Tensor& b) { return aten::le(a, b); }
inline Tensor operator<=(const Tensor& a, const Scalar& b) { return aten::le(a, b); }
inline Tensor operator>(const Tensor& a, const Tensor& b) { return aten::gt(a, b); }
inline Tensor operator>(const Tensor& a, const Scalar& b) { return aten::gt(a, b); }
inline Tensor operator>=(const Tensor& a, const Tensor& b) { return aten::ge(a, b); }
inline Tensor operator>=(const Tensor& a, const Scalar& b) { return aten::ge(a, b); }
// Unlike C++'s short-circuit operators: both sides are tensors, and both are computed.
inline Tensor operator&&(const Tensor& a, const Tensor& b) { return aten::logical_and(a, b); }
inline Tensor operator||(const Tensor& a, const Tensor& b) { return aten::logical_or(a, b); }

// Numbers keep their kind: an integer minus an integer is an integer.
inline Scalar combine(const Scalar& a, const Scalar& b, auto&& op) {
  if (a.is_complex() || b.is_complex())
    return Scalar(op(a.to<std::complex<double>>(), b.to<std::complex<double>>()));
  if (a.is_floating() || b.is_floating()) return Scalar(op(a.to<double>(), b.to<double>()));
  return Scalar(static_cast<int64_t>(
      op(static_cast<uint64_t>(a.to<int64_t>()), static_cast<uint64_t>(b.to<int64_t>()))));
}
inline Scalar operator+(const Scalar& a, const Scalar& b) {
  return combine(a, b, [](auto x, auto y) { return x + y; });
}
inline Scalar operator-(const Scalar& a, const Scalar& b) {
  return combine(a, b, [](auto x, auto y) { return x - y; });
}
inline Scalar operator*(const Scalar& a, const Scalar& b) {
  return combine(a, b, [](auto x, auto y) { return x * y; });
}

}  // namespace treadle::autograd::ops_syntax
