// ScalarList: a list of numbers as an argument of an operator. Each number has its own kind.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/dispatch/operator.h"

namespace treadle {

using ScalarList = ArrayRef<Scalar>;

namespace detail {
template <>
struct Box<ScalarList> {
  static Value to(ScalarList l) { return Value(l.vec()); }
  static ScalarList from(const Value& v) { return v.as<Value::Scalars>(); }
};
}  // namespace detail

}  // namespace treadle
