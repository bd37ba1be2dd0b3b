// Dtypes that a program registers while it runs: a name, a size, and how elements are converted.
//
//   const ScalarType q8_8 = register_dtype("q8_8", 2, {.computed = ScalarType::Float32,
//                                                      .widen = to_floats, .narrow = from_floats});
//
// Tensors hold such elements, move and copy them as bits, and print their values. All operators
// compute with the values in the type `computed` and store the results rounded, as they do for
// float8 (aten/engine/resolve.h). The dtypes are floating ones, and stay for as long as the
// program.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/scalar_type.h"

namespace treadle {

struct OutsideDtype {
  std::string name;
  ScalarType computed = ScalarType::Float32;  // or Float64: it holds each value
  // The values of `count` elements, and the elements nearest to `count` values. Called by several
  // threads at a time. The memory of the one is not that of the other.
  std::function<void(const void* elements, void* values, int64_t count)> widen;
  std::function<void(const void* values, void* elements, int64_t count)> narrow;
  // Whether the functions may be given parts of a tensor, on several threads.
  bool in_parallel = true;
};

// `item_size`: 1, 2, 4 or 8 bytes. ValueError for another, for a name that is taken or that is no
// identifier, and for a computed type that is neither float32 nor float64; RuntimeError if eight
// dtypes of this size are registered.
ScalarType register_dtype(std::string_view name, int64_t item_size, OutsideDtype dtype);
// `t` is a registered one.
const OutsideDtype& outside_dtype(ScalarType t);
std::optional<ScalarType> outside_dtype_named(std::string_view name);

}  // namespace treadle
