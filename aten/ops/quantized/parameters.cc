// SPDX-License-Identifier: Apache-2.0
#include "aten/ops/quantized/parameters.h"

#include <algorithm>
#include <cmath>

#include "aten/ops/aminmax.h"
#include "aten/ops/item.h"

namespace treadle::quantized {

Parameters fitting(double least, double greatest, int64_t low, int64_t high) {
  least = std::min(least, 0.0);
  greatest = std::max(greatest, 0.0);
  const auto first = static_cast<double>(low), last = static_cast<double>(high);
  double scale = (greatest - least) / (last - first);
  // A scale that float32 cannot hold, or whose inverse it cannot, is none.
  if (static_cast<float>(scale) == 0.0f || std::isinf(1.0f / static_cast<float>(scale)))
    scale = 0.1;
  // The least scale of PyTorch's engines.
  constexpr double kLeast = 6.1e-5;
  if (scale < kLeast) {
    const double former = scale;
    scale = kLeast;
    if (least == 0) {
      greatest = kLeast * (last - first);
    } else if (greatest == 0) {
      least = -kLeast * (last - first);
    } else {
      least *= kLeast / former;
      greatest *= kLeast / former;
    }
  }
  // Of the zero points by the two ends, the one with the smaller error.
  const double by_least = first - least / scale, by_greatest = last - greatest / scale;
  const double error_of_least = std::abs(first) + std::abs(least / scale);
  const double error_of_greatest = std::abs(last) + std::abs(greatest / scale);
  const double zero = error_of_least < error_of_greatest ? by_least : by_greatest;
  return {scale, static_cast<int64_t>(std::clamp(std::nearbyint(zero), first, last))};
}

Parameters chosen_parameters(const char* op, const Tensor& t, int64_t low, int64_t high) {
  if (t.numel() == 0) return fitting(0, 0, low, high);
  const auto [least, greatest] = aten::aminmax(t);
  const double a = aten::item(least).to<double>(), b = aten::item(greatest).to<double>();
  check<ErrorKind::Runtime>(std::isfinite(a) && std::isfinite(b), OpName(op),
                            "expected finite numbers, got ", std::isfinite(a) ? b : a);
  return fitting(a, b, low, high);
}

}  // namespace treadle::quantized
