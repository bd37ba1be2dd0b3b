// A switch over dtypes, each with its C++ type as scalar_t.
//
//   THO_DISPATCH_SWITCH(x.scalar_type(), "twice",
//     THO_DISPATCH_CASE(ScalarType::Float, [&] { twice<scalar_t>(x); })
//     THO_DISPATCH_CASE(ScalarType::Double, [&] { twice<scalar_t>(x); }))
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/headeronly/core/ScalarType.h>
#include <torch/headeronly/util/Exception.h>

#define THO_DISPATCH_CASE(dtype, ...)                                                       \
  case dtype: {                                                                             \
    using scalar_t [[maybe_unused]] = torch::headeronly::impl::ScalarTypeToCPPTypeT<dtype>; \
    return __VA_ARGS__();                                                                   \
  }

#define THO_DISPATCH_SWITCH(TYPE, NAME, ...)                                         \
  [&] {                                                                              \
    const torch::headeronly::ScalarType treadle_dtype = TYPE;                        \
    switch (treadle_dtype) {                                                         \
      __VA_ARGS__                                                                    \
      default:                                                                       \
        throw std::runtime_error(std::string("\"" NAME "\" not implemented for '") + \
                                 torch::headeronly::toString(treadle_dtype) + "'");  \
    }                                                                                \
  }()
