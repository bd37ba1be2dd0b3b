// The choice of a target for tests, which run vector code on each that this machine has.
//
//   for (const int64_t target : hwy::SupportedAndGeneratedTargets()) {
//     const OnTarget on(target);
//     ...                                  // HWY_DYNAMIC_DISPATCH calls that target's functions
//   }
//
// Code that keeps its target's functions in a static variable, as the generated kernels do, stays
// on the target of its first call.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "aten/backend/cpu/targets.h"

#include "hwy/highway.h"

namespace treadle::simd {

class OnTarget {
 public:
  explicit OnTarget(int64_t target) { choose(target); }
  ~OnTarget() { choose(0); }
  OnTarget(const OnTarget&) = delete;
  OnTarget& operator=(const OnTarget&) = delete;

 private:
  static void choose([[maybe_unused]] int64_t target) {
#if (HWY_TARGETS & (HWY_TARGETS - 1)) != 0
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
#endif
  }
};

}  // namespace treadle::simd
