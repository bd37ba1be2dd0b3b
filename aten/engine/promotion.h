// Type promotion by PyTorch's rules. Tensors with dimensions decide first, then 0-dim tensors, then
// Python numbers. A lower rank changes the dtype only when its kind (bool < integer < floating <
// complex) is higher.
//
//   int64[3] + float64[]    ->  float64
//   float32[3] + float64[]  ->  float32
//   int64[3] + 1.5          ->  the default dtype
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "core/tensor/tensor.h"

namespace treadle {

class Promotion {
 public:
  void add(const Tensor& t) {
    add(t.impl()->is_wrapped_number() ? Number : t.dim() > 0 ? Dimensioned : ZeroDim, t.dtype());
  }
  void add(const Scalar& s) { add(Number, s.type()); }
  // Bool when nothing was added.
  ScalarType result() const;

 private:
  enum Rank { Dimensioned, ZeroDim, Number };
  void add(Rank rank, ScalarType t);
  std::optional<ScalarType> by_rank_[3];
};

// 0 bool, 1 integer, 2 floating, 3 complex.
constexpr int kind_rank(ScalarType t) {
  return t == ScalarType::Bool ? 0 : is_complex(t) ? 3 : is_floating(t) ? 2 : 1;
}

// The type that loops compute a dtype in: 16-bit floats are computed in float32.
constexpr ScalarType compute_of(ScalarType t) {
  return t == ScalarType::Float16 || t == ScalarType::BFloat16 ? ScalarType::Float32 : t;
}

}  // namespace treadle
