// The dtype q16_16: fixed-point numbers of 32 bits, the multiples of 1/65536 from -32768 to just
// below 32768.
//
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "aten/engine/layouts.h"
#include "core/base/outside_dtypes.h"
#include "python_bindings/csrc/library/extension_module.h"
#include "treadle/stamp.h"

TREADLE_LIBRARY_STAMP

namespace {

using namespace treadle;

constexpr double kOne = 65536;
constexpr double kLowest = std::numeric_limits<int32_t>::min();
constexpr double kLargest = std::numeric_limits<int32_t>::max();

// double holds each value. A value that is too large becomes the nearest number, NaN becomes 0.
void widen(const void* elements, void* values, int64_t count) {
  const auto* const from = static_cast<const int32_t*>(elements);
  auto* const to = static_cast<double*>(values);
  for (int64_t i = 0; i < count; ++i) to[i] = from[i] / kOne;
}
void narrow(const void* values, void* elements, int64_t count) {
  const auto* const from = static_cast<const double*>(values);
  auto* const to = static_cast<int32_t*>(elements);
  for (int64_t i = 0; i < count; ++i) {
    const double nearest = std::isnan(from[i]) ? 0 : std::nearbyint(from[i] * kOne);
    to[i] = static_cast<int32_t>(std::clamp(nearest, kLowest, kLargest));
  }
}

const auto registered = while_loading([] {
  register_dtype("q16_16", 4,
                 {.computed = ScalarType::Float64, .widen = &widen, .narrow = &narrow});
});

}  // namespace
