// Helpers that the tests of this folder share: small tensors from numbers, and the numbers of
// tensors.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "autograd/graph/engine.h"
#include "autograd/meta.h"

namespace treadle::autograd::testing {

inline Tensor make(std::vector<double> values, IntList sizes, bool requires_gradient = false) {
  Tensor t = empty_cpu(sizes, ScalarType::Float64);
  std::memcpy(t.data(), values.data(), values.size() * sizeof(double));
  if (requires_gradient) set_requires_grad(t, true);
  return t;
}
inline Tensor vec(std::vector<double> values, bool requires_gradient = false) {
  const auto n = static_cast<int64_t>(values.size());
  return make(std::move(values), IntList(&n, 1), requires_gradient);
}
inline Tensor number(double value, bool requires_gradient = false) {
  return make({value}, {}, requires_gradient);
}

// The elements in the order of the indices, whatever the strides.
inline std::vector<double> values(const Tensor& t) {
  std::vector<double> out;
  if (!t.defined()) return out;
  for (int64_t i = 0; i < t.numel(); ++i)
    out.push_back(t.data_as<double>()[offset_at(t.sizes(), t.strides(), i)]);
  return out;
}
inline std::vector<double> grad_values(const Tensor& t) { return values(grad_of(t)); }
using Values = std::vector<double>;

// The message of the Error that `f` throws; "" when it throws none, or another exception.
template <class F>
std::string error_of(ErrorKind kind, F&& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.kind() == kind ? e.what() : "";
  }
  return "";
}

}  // namespace treadle::autograd::testing
