// Highway's functions of vectors, implemented by the device's functions of numbers.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "hwy/highway.h"

namespace hwy::HWY_NAMESPACE {

#define TREADLE_FUNCTION(Name, function) \
  template <class D, class V>            \
  HWY_INLINE V Name(D, V x) {            \
    return ::function(x);                \
  }
TREADLE_FUNCTION(Acos, acos)
TREADLE_FUNCTION(Acosh, acosh)
TREADLE_FUNCTION(Asin, asin)
TREADLE_FUNCTION(Asinh, asinh)
TREADLE_FUNCTION(Atan, atan)
TREADLE_FUNCTION(Atanh, atanh)
TREADLE_FUNCTION(Cos, cos)
TREADLE_FUNCTION(Exp, exp)
TREADLE_FUNCTION(Expm1, expm1)
TREADLE_FUNCTION(Log, log)
TREADLE_FUNCTION(Log10, log10)
TREADLE_FUNCTION(Log1p, log1p)
TREADLE_FUNCTION(Log2, log2)
TREADLE_FUNCTION(Sin, sin)
TREADLE_FUNCTION(Sinh, sinh)
TREADLE_FUNCTION(Tanh, tanh)
#undef TREADLE_FUNCTION

}  // namespace hwy::HWY_NAMESPACE
