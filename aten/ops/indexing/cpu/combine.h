// What a write to an element does with the value that is there.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>

#include "aten/backend/cpu/wrapping.h"

namespace treadle::cpu {

struct Replace {
  template <class T>
  void operator()(T& target, const T& value) const {
    target = value;
  }
};
struct Add {
  template <class To, class T>
  void operator()(To& target, const T& value) const {
    target = sum_of(target, static_cast<To>(element_value(value)));
  }
};
struct Multiply {
  template <class To, class T>
  void operator()(To& target, const T& value) const {
    target = product_of(target, static_cast<To>(element_value(value)));
  }
};
template <class T>
bool is_nan_element(const T& value) {
  if constexpr (is_floating_type<T>)
    return std::isnan(static_cast<compute_type<T>>(value));
  else
    return false;
}
struct Largest {
  template <class T>
  void operator()(T& target, const T& value) const {
    if (is_nan_element(value) || element_value(value) > element_value(target))
      target = element_value(value);
  }
};
struct Smallest {
  template <class T>
  void operator()(T& target, const T& value) const {
    if (is_nan_element(value) || element_value(value) < element_value(target))
      target = element_value(value);
  }
};

}  // namespace treadle::cpu
