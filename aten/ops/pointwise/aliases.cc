// Aliases of pointwise operators, with the names of NumPy and PyTorch.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/ops/abs.h"
#include "aten/ops/absolute.h"
#include "aten/ops/acos.h"
#include "aten/ops/acosh.h"
#include "aten/ops/arccos.h"
#include "aten/ops/arccosh.h"
#include "aten/ops/arcsin.h"
#include "aten/ops/arcsinh.h"
#include "aten/ops/arctan.h"
#include "aten/ops/arctan2.h"
#include "aten/ops/arctanh.h"
#include "aten/ops/asin.h"
#include "aten/ops/asinh.h"
#include "aten/ops/atan.h"
#include "aten/ops/atan2.h"
#include "aten/ops/atanh.h"
#include "aten/ops/div.h"
#include "aten/ops/divide.h"
#include "aten/ops/fix.h"
#include "aten/ops/ge.h"
#include "aten/ops/greater.h"
#include "aten/ops/greater_equal.h"
#include "aten/ops/gt.h"
#include "aten/ops/le.h"
#include "aten/ops/less.h"
#include "aten/ops/less_equal.h"
#include "aten/ops/lt.h"
#include "aten/ops/mul.h"
#include "aten/ops/multiply.h"
#include "aten/ops/ne.h"
#include "aten/ops/neg.h"
#include "aten/ops/negative.h"
#include "aten/ops/not_equal.h"
#include "aten/ops/sub.h"
#include "aten/ops/subtract.h"
#include "aten/ops/true_divide.h"
#include "aten/ops/trunc.h"

namespace treadle::composite {

Tensor subtract(const Tensor& self, const Tensor& other, const Scalar& alpha) {
  return aten::sub(self, other, alpha);
}
Tensor subtract(const Tensor& self, const Scalar& other, const Scalar& alpha) {
  return aten::sub(self, other, alpha);
}

Tensor multiply(const Tensor& self, const Tensor& other) { return aten::mul(self, other); }
Tensor multiply(const Tensor& self, const Scalar& other) { return aten::mul(self, other); }

Tensor divide(const Tensor& self, const Tensor& other) { return aten::div(self, other); }
Tensor divide(const Tensor& self, const Scalar& other) { return aten::div(self, other); }
Tensor divide(const Tensor& self, const Tensor& other,
              std::optional<std::string_view> rounding_mode) {
  return aten::div(self, other, rounding_mode);
}
Tensor divide(const Tensor& self, const Scalar& other,
              std::optional<std::string_view> rounding_mode) {
  return aten::div(self, other, rounding_mode);
}

Tensor true_divide(const Tensor& self, const Tensor& other) { return aten::div(self, other); }
Tensor true_divide(const Tensor& self, const Scalar& other) { return aten::div(self, other); }

Tensor greater(const Tensor& self, const Tensor& other) { return aten::gt(self, other); }
Tensor greater(const Tensor& self, const Scalar& other) { return aten::gt(self, other); }

Tensor greater_equal(const Tensor& self, const Tensor& other) { return aten::ge(self, other); }
Tensor greater_equal(const Tensor& self, const Scalar& other) { return aten::ge(self, other); }

Tensor less(const Tensor& self, const Tensor& other) { return aten::lt(self, other); }
Tensor less(const Tensor& self, const Scalar& other) { return aten::lt(self, other); }

Tensor less_equal(const Tensor& self, const Tensor& other) { return aten::le(self, other); }
Tensor less_equal(const Tensor& self, const Scalar& other) { return aten::le(self, other); }

Tensor not_equal(const Tensor& self, const Tensor& other) { return aten::ne(self, other); }
Tensor not_equal(const Tensor& self, const Scalar& other) { return aten::ne(self, other); }

Tensor absolute(const Tensor& self) { return aten::abs(self); }
Tensor negative(const Tensor& self) { return aten::neg(self); }
Tensor arccos(const Tensor& self) { return aten::acos(self); }
Tensor arcsin(const Tensor& self) { return aten::asin(self); }
Tensor arctan(const Tensor& self) { return aten::atan(self); }
Tensor arccosh(const Tensor& self) { return aten::acosh(self); }
Tensor arcsinh(const Tensor& self) { return aten::asinh(self); }
Tensor arctanh(const Tensor& self) { return aten::atanh(self); }
Tensor fix(const Tensor& self) { return aten::trunc(self); }
Tensor arctan2(const Tensor& self, const Tensor& other) { return aten::atan2(self, other); }

}  // namespace treadle::composite
