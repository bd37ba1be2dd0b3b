// Finds, once, the best instruction set that this machine has and the library was compiled for.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/backend/cpu/targets.h"

#include "hwy/highway.h"

namespace treadle::simd {

int chosen_target = [] {
  const auto supported = hwy::SupportedTargets();
  if (supported & HWY_AVX3) return 2;
  if (supported & HWY_AVX2) return 1;
  return 0;
}();

}  // namespace treadle::simd
